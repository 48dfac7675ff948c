// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The packet path of a PMD: the poll loop and sending. No allocation, lock, system call or log.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "pmdpulse.h"
#include "sw_flow_count_fast.h"
#include "sw_perf_fast.h"
#include "sw_plan_fast.h"
#include "sw_xlate_fast.h"

struct sw_mac_table;
struct sw_pipe;

// What the PMD has at hand while it polls; its own memory.
struct sw_pmd_run {
	struct pmdp_lane *lane;
	// Where beats and breadcrumbs go: the lane's slot, or while keepalive is off unseen below,
	// where nobody looks. The path of a packet is the same in both, to the instruction.
	struct pmdp_hot_shm *hot;
	uint64_t floor_ticks; // gaps from this length on are recorded; UINT64_MAX: none
	uint64_t *counters;   // lane->counters
	const struct sw_flow_ref *flows;
	struct sw_flow_stats *flow_stats;
	struct sw_plan_pmd *plan;
	struct sw_pipe *pipe;
	struct sw_mac_table *macs;
	struct sw_perf *perf; // NULL: pmd-perf-metrics is off
	uint64_t
		now_ticks; // end of the last iteration: times are a chain, nothing is counted twice
	uint32_t now_s;    // seconds of CLOCK_MONOTONIC, as of the last housekeeping
	bool is_keepalive;
	bool is_tsc;
	uint16_t n_touched; // outs with packets that wait
	uint16_t touched[SW_MAX_PORTS];
	struct pmdp_hot_shm unseen;
};

// Before the first poll, and whenever enable-keepalive changes. The lane's floor is set by its
// claim and stays.
static inline void sw_pmd_set_keepalive(struct sw_pmd_run *run, bool is_on)
{
	run->is_keepalive = is_on;
	run->hot = is_on ? run->lane->hot : &run->unseen;
	run->floor_ticks = is_on ? run->lane->floor_ticks : UINT64_MAX;
}

static inline void sw_pmd_crumb(struct sw_pmd_run *run, uint64_t crumb)
{
	PMDP_STORE_RELAXED(&run->hot->crumb, crumb);
}

// Poll the queues of the plan until due_ticks, at least once.
void sw_pmd_poll(struct sw_pmd_run *run, uint64_t due_ticks);

// One more iteration, timed queue by queue. Only with plan->sampled.
void sw_pmd_sample(struct sw_pmd_run *run);

/*
 * Send what waits. is_final: what can't be sent is dropped and counted (the plan goes away);
 * otherwise it is kept.
 */
void sw_tx_flush_all(struct sw_pmd_run *run, bool is_final);

// Drop and count; counts belongs to the port that is to blame.
void sw_tx_drop(struct sw_pmd_run *run, struct sw_port_counts *counts, uint32_t reason,
		struct rte_mbuf **pkts, uint16_t n);

// One writer per counter: a load and a store, no read-modify-write.
static inline void sw_count(struct sw_port_counts *counts, uint32_t index, uint64_t n)
{
	uint64_t old = atomic_load_explicit(&counts->n[index], memory_order_relaxed);

	atomic_store_explicit(&counts->n[index], old + n, memory_order_relaxed);
}
