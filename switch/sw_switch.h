// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The switch as one object: what main creates, in the order of its fields, and commands work on.
 *
 * Control side, main thread: one epoll loop (sw_loop.c) over signals, a housekeeping timer and the
 * control socket. sw_ctl (sw_ctl.h) is asked to serve when its descriptor (an epoll of its own) is
 * readable; its handlers call the functions of sw_port.h, sw_stats.h, sw_flow.h and those below,
 * all of which run in the main thread. Fast side: PMD threads (sw_pmd.h). They share no lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sw_error.h"
#include "sw_pmd.h"
#include "sw_port.h"
#include "sw_settings.h"

struct pmdp_publisher;
struct rte_rcu_qsbr;
struct sw_ctl;
struct sw_flow_table;
struct sw_impl;
struct sw_offload;
struct sw_mac_table;
struct sw_plan;
struct sw_pools;

#define SW_HOUSEKEEP_MS 50

// What systemd was told last (sw_notify.c).
struct sw_notify {
	uint64_t watchdog_us; // 0: none
	uint64_t fed_ns;
	uint64_t status_ns;
};

struct sw_options {
	char instance[64];
	char rundir[256]; // resolved
	const char *file; // start-up file, NULL = none
};

struct sw_switch {
	struct sw_options options;
	struct sw_settings settings; // as applied
	struct sw_perf_limits perf_limits;
	cpu_set_t allowed_cpus; // the process' affinity at start
	bool has_eal;
	bool has_hugepages;
	uint64_t start_ns; // CLOCK_MONOTONIC

	struct pmdp_publisher *pub;
	uint64_t tsc_hz;           // 0: beats carry CLOCK_MONOTONIC
	struct rte_rcu_qsbr *qsbr; // PMDs by sw_pmd.index
	struct sw_pools *pools;
	struct sw_ports ports;
	struct sw_pmds pmds;
	struct sw_plan *plan;
	struct sw_flow_table *flows;
	struct sw_mac_table *macs;
	struct sw_offload *offload;
	const struct sw_impl *impl; // of extraction and lookup
	struct sw_ctl *ctl;

	struct sw_notify notify;
	uint64_t ports_published_ns;

	int epoll_fd;
	int timer_fd;
	int signal_fd;
	bool is_starting; // the start-up file is being read: plans wait
	bool is_stopping;
};

/*
 * Bring the switch in line with wanted: PMD threads, keepalive, scheduling. On success (and on
 * -ETIMEDOUT: a PMD does not answer, the rest follows when it does) sw->settings is wanted.
 * -EINVAL: a value can't be (err says which), nothing was changed.
 */
int sw_switch_apply(struct sw_switch *sw, const struct sw_settings *wanted, struct sw_error *err);

// After the start-up file: create the PMDs and bring the plan into being. As sw_switch_apply().
int sw_switch_start(struct sw_switch *sw, struct sw_error *err);

// The cores that settings ask for, with the default resolved.
void sw_switch_pmd_cpus(const struct sw_switch *sw, const struct sw_settings *settings,
			cpu_set_t *out_cpus);

// Signs of life, port slots, deferred frees, plans. From the timer and while control waits.
void sw_switch_housekeep(struct sw_switch *sw);

#ifdef PMDP_TEST_HOOKS
/*
 * `test-hook PMD ACTION [MS]`: ACTION spin (endless loop in sw_test_spin, MS or for ever), block
 * (in a system call, MS), exit (the thread ends unannounced). PMD: a name or "core:N".
 * `test-hook PORT mark`: the port's device marks packets from now on (sw_test_mark.c).
 */
int sw_test_hook(struct sw_switch *sw, int argc, const char *const *argv, struct sw_error *err);
int sw_test_mark(struct sw_switch *sw, const char *name, struct sw_error *err);
#endif
