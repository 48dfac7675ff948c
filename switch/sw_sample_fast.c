// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Which queue takes how much of a busy PMD: single iterations, timed queue by queue. The poll loop
// itself reads the clock once an iteration, whatever the number of queues.
#include <rte_cycles.h>
#include <rte_ethdev.h>

#include "sw_poll_fast.h"

// After so many samples (a minute or two) all sums are halved, so that old ones are forgotten.
#define SW_SAMPLE_MEMORY 16384

static uint64_t clock_now(const struct sw_pmd_run *run)
{
	return run->is_tsc ? rte_rdtsc() : pmdp_lane_clock(run->lane);
}

static void add(_Atomic uint64_t *sum, uint64_t ticks)
{
	uint64_t old = atomic_load_explicit(sum, memory_order_relaxed);

	atomic_store_explicit(sum, old + ticks, memory_order_relaxed);
}

static uint16_t poll_queue(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq)
{
	struct rte_mbuf *pkts[SW_BURST];
	uint16_t n;

	sw_pmd_crumb(run, rxq->crumb_rx);
	n = rte_eth_rx_burst(rxq->port_id, rxq->queue, pkts, SW_BURST);
	if (n == 0)
		return 0;
	sw_pmd_crumb(run, rxq->crumb_process);
	sw_poll_process(run, rxq, pkts, n);
	return n;
}

// What poll_queues() does at the end of an iteration, and of its loop.
static void end_iteration(struct sw_pmd_run *run, uint64_t end, uint64_t n_packets)
{
	uint64_t begin = run->now_ticks;
	struct pmdp_lane *lane = run->lane;

	run->counters[PMDP_C_ITERATIONS]++;
	run->counters[PMDP_C_RX_PACKETS] += n_packets;
	run->counters[n_packets != 0 ? PMDP_C_BUSY_TICKS : PMDP_C_IDLE_TICKS] += end - begin;
	if (end - begin >= run->floor_ticks) {
		lane->last_ticks = begin;
		pmdp_lane_gap(lane, end);
	}
	if (run->perf != NULL)
		sw_perf_record(run->perf, run->counters, begin, end, n_packets);
	run->now_ticks = end;
	PMDP_STORE_RELAXED(&run->hot->beat_ticks, end);
	PMDP_STORE_RELAXED(&run->hot->beats, lane->beats + 1);
	if (run->is_keepalive) {
		lane->beats++;
		lane->last_ticks = end;
	}
}

static void forget_half(struct sw_plan_pmd *plan)
{
	plan->n_samples = 0;
	for (uint32_t i = 0; i <= plan->n_rxq; i++)
		atomic_store_explicit(
			&plan->sampled[i],
			atomic_load_explicit(&plan->sampled[i], memory_order_relaxed) / 2,
			memory_order_relaxed);
}

void sw_pmd_sample(struct sw_pmd_run *run)
{
	struct sw_plan_pmd *plan = run->plan;
	uint64_t begin = clock_now(run), at = begin, n_packets = 0;

	for (uint32_t i = 0; i < plan->n_rxq; i++) {
		uint16_t n = poll_queue(run, &plan->rxqs[i]);
		uint64_t now = clock_now(run);

		// A look at an empty queue is nobody's work.
		if (n > 0)
			add(&plan->sampled[i], now - at);
		at = now;
		n_packets += n;
	}
	if (run->n_touched > 0)
		sw_tx_flush_all(run, false);
	at = clock_now(run);
	if (n_packets > 0)
		add(&plan->sampled[plan->n_rxq], at - begin);
	if (++plan->n_samples == SW_SAMPLE_MEMORY)
		forget_half(plan);
	end_iteration(run, at, n_packets);
}
