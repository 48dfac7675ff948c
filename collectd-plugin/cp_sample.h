// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * One instance as the values thread sees it: a private copy of its segment, by pread alone.
 *
 * What was last seen stays when the switch is gone: its threads then count as GONE (killed) or
 * UNUSED (clean stop), its links as unknown, its counters as they were, until the next switch. The
 * values thread's alone; no wait, no lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pmdp_names.h"
#include "pmdp_watch.h"
#include "pmdpulse.h"

struct cp_thread {
	uint32_t slot;
	uint32_t state; // PMDP_STATE_*
	struct pmdp_lane_look look;
	struct pmdp_lane_body body;
	uint64_t busy_ns, idle_ns, sleep_ns, upcall_ns; // of body, in time
};

struct cp_port {
	uint32_t slot;
	struct pmdp_port_body body;
};

struct cp_process {
	bool is_known; // the rest is from /proc now
	double uptime_s, user_s, system_s;
	double rss_bytes, vsz_bytes;
};

struct cp_sample {
	uint32_t status; // PMDP_WATCH_*
	uint64_t now_ns;
	uint64_t n_restarts;
	bool is_keepalive;
	uint64_t interval_ns; // by which threads are judged, 0 unknown
	uint64_t stall_ns;    // two intervals of the switch: what its threads call a stall
	uint64_t alive_ns;
	struct cp_process process;
	struct cp_thread *threads;
	size_t n_threads;
	struct cp_port *ports;
	size_t n_ports;
};

struct cp_sampler;

// NULL without memory.
struct cp_sampler *cp_sampler_new(const char *instance);
void cp_sampler_free(struct cp_sampler *sampler); // accepts NULL

// Look now. Never fails: what can't be read keeps its last value. Valid until the next call.
const struct cp_sample *cp_sampler_step(struct cp_sampler *sampler);

// CPU time, memory and age of a process. is_known false: no such process, or another by now.
void cp_process_read(uint32_t pid, uint64_t start_ticks, struct cp_process *out);
