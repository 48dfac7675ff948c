// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_pmd_fast.h"

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "sw_poll_fast.h"

/*
 * What an iteration changes is kept in registers and written back at the end, about twice a
 * millisecond; only the beat goes out at once. The beat is pmdp_lane_beat(), spelled out for that:
 * the iteration's length, which busy and idle time need anyway, is also the gap since the last
 * beat. No branch asks for keepalive (see run->hot): where such branches lie alone made up to 2
 * percent of the rate, in either direction.
 */
static inline __attribute__((always_inline)) void poll_queues(struct sw_pmd_run *run,
							      uint64_t due_ticks, const bool is_tsc)
{
	struct sw_plan_pmd *plan = run->plan;
	const struct sw_plan_rxq *const end_rxqs = plan->rxqs + plan->n_rxq;
	struct pmdp_lane *lane = run->lane;
	struct pmdp_hot_shm *hot = run->hot;
	uint64_t *counters = run->counters;
	const uint64_t floor_ticks = run->floor_ticks;
	const uint64_t begin_beats = lane->beats;
	const uint64_t begin = run->now_ticks;
	uint64_t beats = begin_beats;
	uint64_t now = begin;
	uint64_t busy_ticks = 0;
	uint64_t n_packets = 0;
	struct rte_mbuf *pkts[SW_BURST];

	do {
		uint64_t n_before = n_packets;
		uint64_t end;

		for (const struct sw_plan_rxq *rxq = plan->rxqs; rxq < end_rxqs; rxq++) {
			uint16_t n;

			PMDP_STORE_RELAXED(&hot->crumb, rxq->crumb_rx);
			n = rte_eth_rx_burst(rxq->port_id, rxq->queue, pkts, SW_BURST);
			if (n == 0)
				continue;
			PMDP_STORE_RELAXED(&hot->crumb, rxq->crumb_process);
			sw_poll_process(run, rxq, pkts, n);
			n_packets += n;
		}
		// What a shared queue or the flush interval held back.
		if (unlikely(run->n_touched > 0))
			sw_tx_flush_all(run, false);

		end = is_tsc ? rte_rdtsc() : pmdp_lane_clock(lane);
		busy_ticks += n_packets != n_before ? end - now : 0;
		if (unlikely(end - now >= floor_ticks)) {
			lane->last_ticks = now;
			pmdp_lane_gap(lane, end);
		}
		if (unlikely(run->perf != NULL))
			sw_perf_record(run->perf, counters, now, end, n_packets - n_before);
		now = end;
		run->now_ticks = now;
		beats++;
		PMDP_STORE_RELAXED(&hot->beat_ticks, now);
		PMDP_STORE_RELAXED(&hot->beats, beats);
	} while ((int64_t)(now - due_ticks) < 0);

	counters[PMDP_C_ITERATIONS] += beats - begin_beats;
	counters[PMDP_C_RX_PACKETS] += n_packets;
	counters[PMDP_C_BUSY_TICKS] += busy_ticks;
	counters[PMDP_C_IDLE_TICKS] += now - begin - busy_ticks;
	if (run->is_keepalive) {
		lane->beats = beats;
		lane->last_ticks = now;
	}
}

void sw_pmd_poll(struct sw_pmd_run *run, uint64_t due_ticks)
{
	if (run->is_tsc)
		poll_queues(run, due_ticks, true);
	else
		poll_queues(run, due_ticks, false);
}
