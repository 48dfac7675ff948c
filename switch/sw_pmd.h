// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * PMD threads: created, bound, scheduled and ended by the control thread.
 *
 * A PMD is a pthread of ours bound to one core, registered with EAL (so that mempool caches work)
 * and with a lane in the segment. It polls what its plan says (sw_plan.h). Fields are marked with
 * their writer; what the poll loop writes stands on cache lines of its own.
 */
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "pmdp_abi.h"
#include "sw_error.h"
#include "sw_perf.h"
#include "sw_port.h"
#include "sw_usage.h"

struct pmdp_lane;
struct sw_flow_stats;
struct sw_pipe;
struct sw_plan_pmd;
struct sw_switch;

#define SW_MAX_PMDS 64

// sw_pmd.life
#define SW_PMD_STARTING 0
#define SW_PMD_RUNNING 1
#define SW_PMD_FAILED 2 // could not start; error says why
#define SW_PMD_EXITED 3 // left its loop on request

// What a PMD counts for one port slot; on lines that only this PMD writes.
struct sw_port_counts {
	alignas(64) _Atomic uint64_t n[PMDP_P_N_COUNTERS]; // W: PMD, relaxed
};

struct sw_pmd {
	// Constant after creation.
	struct sw_switch *sw;
	char name[16];  // pmd-c01/id:1
	uint16_t index; // slot in struct sw_pmds, also the RCU thread id
	int core;
	int numa;
	uint32_t tid;
	struct pmdp_lane *lane;         // the PMD's, gone when it leaves; control uses the next two
	const struct pmdp_hot_shm *hot; // in the segment, as long as the publisher lives
	const struct pmdp_lane_shm *shm;
	struct sw_flow_stats *flow_stats;
	struct sw_pipe *pipe;
	struct sw_port_counts *port_counts; // SW_MAX_PORTS of them
	int wake_fd;                        // eventfd: a PMD without work blocks on it

	// Control side.
	pthread_t thread;
	bool is_leaving;                      // its core is no longer in pmd-cpu-mask
	bool is_known;                        // the plan has seen it RUNNING
	sem_t started;                        // posted by the PMD when life leaves STARTING
	uint64_t clear_base[PMDP_N_COUNTERS]; // counters at the last pmd-stats-clear
	uint64_t cleared_ns;                  // when that was; 0: never
	struct sw_perf_kept perf;
	struct sw_usage usage;
	uint64_t usage_due_ns; // of its next mark
	bool is_sharing_said;
	uint64_t seen_beats; // by sw_notify.c
	uint64_t seen_ns;
	struct sw_error error;

	// Handshake (sw_plan.h). Written by control.
	alignas(128) _Atomic(struct sw_plan_pmd *) next; // W: control, release (P1)
	_Atomic uint32_t want_keepalive;                 // W: control, relaxed
	_Atomic(struct sw_perf *) want_perf;             // W: control, release (D1); NULL: off
	_Atomic uint32_t test_action; // W: control, release; SW_TEST_*, test hooks only
	_Atomic uint32_t test_ms;     // W: control, before test_action
	// Written by the PMD.
	alignas(128) _Atomic uint64_t taken; // W: PMD, release (P3): generation of the plan it has
	_Atomic uint32_t life;               // W: PMD, release (L1); SW_PMD_*
	_Atomic uint32_t has_keepalive;      // W: PMD, release; what it does now
};

struct sw_pmds {
	struct sw_pmd *slots[SW_MAX_PMDS]; // NULL = free
	uint16_t n;
	uint32_t next_id;
};

// Iterate: pass NULL first; NULL after the last.
struct sw_pmd *sw_pmd_next(struct sw_switch *sw, const struct sw_pmd *pmd);
struct sw_pmd *sw_pmd_by_core(struct sw_switch *sw, int core);
struct sw_pmd *sw_pmd_by_name(struct sw_switch *sw, const char *name);

/*
 * Create the thread and wait (bounded) until it runs. It sleeps until it gets a plan. -ETIMEDOUT:
 * its core gives it no time; it takes part when it runs at last. -ENOSPC, -ENOMEM, -errno.
 */
int sw_pmd_create(struct sw_switch *sw, int core, struct sw_error *err);

// The thread has left its loop (life EXITED): join and free.
void sw_pmd_destroy(struct sw_switch *sw, struct sw_pmd *pmd);

// Has the thread ended without announcing it? Asks the kernel.
bool sw_pmd_is_gone(const struct sw_pmd *pmd);

// Wake a sleeping PMD so that it looks at its plan.
void sw_pmd_wake(struct sw_pmd *pmd);

// One queue that a PMD polls, for pmd-rxq-show. Fills at most n, returns how many there are.
struct sw_pmd_rxq {
	const struct sw_port *port;
	uint16_t queue;
};
uint32_t sw_pmd_rxqs(struct sw_switch *sw, const struct sw_pmd *pmd, struct sw_pmd_rxq *out_rxqs,
		     uint32_t n);
