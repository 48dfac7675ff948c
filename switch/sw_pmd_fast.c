// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_pmd_fast.h"

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

// Packets of one verdict. is_all: they are the whole burst.
static inline void forward(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq, uint16_t verdict,
			   struct rte_mbuf **pkts, uint16_t n, bool is_all)
{
	uint64_t *counters = run->counters;
	uint16_t index;

	if (unlikely(verdict > SW_OFPORT_MAX)) {
		uint32_t reason = verdict == SW_OUT_DROP      ? PMDP_DROP_ACTION
				  : verdict == SW_OUT_NO_RULE ? PMDP_DROP_NO_RULE
							      : PMDP_DROP_MALFORMED;

		counters[reason == PMDP_DROP_ACTION ? PMDP_C_MEGAFLOW_HITS : PMDP_C_MISSES] += n;
		sw_tx_drop(run, rxq->counts, reason, pkts, n);
		return;
	}
	counters[PMDP_C_MEGAFLOW_HITS] += n;
	index = run->plan->out_of[verdict];
	if (unlikely(index == SW_NO_OUT))
		sw_tx_drop(run, rxq->counts, PMDP_DROP_PORT_DOWN, pkts, n);
	else if (is_all)
		sw_tx_output(run, &run->plan->outs[index], pkts, n);
	else
		sw_tx_append(run, &run->plan->outs[index], pkts, n);
}

static inline void process(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq,
			   struct rte_mbuf **pkts, uint16_t n)
{
	const struct sw_flow_set *set = sw_flow_set_get(run->flows);
	uint16_t verdicts[SW_BURST];
	uint16_t all = sw_flow_classify(set, run->flow_stats, rxq->in_port, pkts, n, verdicts);
	uint16_t end;

	if (likely(all != SW_OUT_MIXED)) {
		forward(run, rxq, all, pkts, n, true);
	} else {
		for (uint16_t i = 0; i < n; i = end) {
			for (end = i + 1; end < n && verdicts[end] == verdicts[i];)
				end++;
			forward(run, rxq, verdicts[i], pkts + i, end - i, false);
		}
	}
	if (run->n_touched > 0)
		sw_tx_flush_all(run, false);
}

static inline __attribute__((always_inline)) void
poll_queues(struct sw_pmd_run *run, uint64_t due_ticks, const bool is_keepalive, const bool is_tsc)
{
	struct sw_plan_pmd *plan = run->plan;
	struct pmdp_lane *lane = run->lane;
	uint64_t *counters = run->counters;
	uint64_t now = run->now_ticks;
	struct rte_mbuf *pkts[SW_BURST];

	do {
		uint32_t n_received = 0;
		uint64_t end;

		for (uint32_t i = 0; i < plan->n_rxq; i++) {
			const struct sw_plan_rxq *rxq = &plan->rxqs[i];
			uint16_t n;

			if (is_keepalive)
				pmdp_lane_crumb(lane, rxq->crumb_rx);
			n = rte_eth_rx_burst(rxq->port_id, rxq->queue, pkts, SW_BURST);
			if (n == 0)
				continue;
			if (is_keepalive)
				pmdp_lane_crumb(lane, rxq->crumb_process);
			process(run, rxq, pkts, n);
			counters[PMDP_C_RX_BATCHES]++;
			n_received += n;
		}
		// What a shared queue or the flush interval held back.
		if (unlikely(run->n_touched > 0))
			sw_tx_flush_all(run, false);

		end = is_tsc ? rte_rdtsc() : pmdp_lane_clock(lane);
		counters[n_received > 0 ? PMDP_C_BUSY_TICKS : PMDP_C_IDLE_TICKS] += end - now;
		counters[PMDP_C_RX_PACKETS] += n_received;
		counters[PMDP_C_ITERATIONS]++;
		now = end;
		run->now_ticks = now;
		if (is_keepalive)
			pmdp_lane_beat(lane, now);
	} while ((int64_t)(now - due_ticks) < 0);
}

void sw_pmd_poll(struct sw_pmd_run *run, uint64_t due_ticks)
{
	if (run->is_tsc) {
		if (run->is_keepalive)
			poll_queues(run, due_ticks, true, true);
		else
			poll_queues(run, due_ticks, false, true);
	} else {
		poll_queues(run, due_ticks, run->is_keepalive, false);
	}
}
