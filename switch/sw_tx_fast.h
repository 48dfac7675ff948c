// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Sending, on the packet path. The usual case, a whole burst to one port, is inline in the poll
 * loop.
 */
#pragma once

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "sw_pmd_fast.h"

// After a first try that sent only a part. Returns how many of n are sent in all.
uint16_t sw_tx_retry(struct sw_plan_out *out, struct rte_mbuf **pkts, uint16_t n, uint16_t sent);

// Drop what is too long for the port; the rest moves together. Returns how many are left.
uint16_t sw_tx_drop_long(struct sw_pmd_run *run, struct sw_plan_out *out, struct rte_mbuf **pkts,
			 uint16_t n);

/*
 * Put pkts into the out's batch, which leaves at the end of the burst (sw_tx_flush_all), when full,
 * or when its time has come. Takes them over in any case.
 */
void sw_tx_append(struct sw_pmd_run *run, struct sw_plan_out *out, struct rte_mbuf **pkts,
		  uint16_t n);

static inline uint32_t sw_tx_longest(struct rte_mbuf *const *pkts, uint16_t n)
{
	uint32_t longest = 0;

	for (uint16_t i = 0; i < n; i++)
		longest = RTE_MAX(longest, pkts[i]->pkt_len);
	return longest;
}

// One burst on a queue that is ours now. Every packet is sent or dropped.
static inline void sw_tx_burst(struct sw_pmd_run *run, struct sw_plan_out *out,
			       struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t sent;

	sw_pmd_crumb(run, out->crumb_tx);
	sent = rte_eth_tx_burst(out->port_id, out->queue, pkts, n);
	if (unlikely(sent < n))
		sent = sw_tx_retry(out, pkts, n, sent);
	run->counters[PMDP_C_TX_PACKETS] += sent;
	run->counters[PMDP_C_TX_BATCHES]++;
	if (unlikely(sent < n))
		sw_tx_drop(run, out->counts, PMDP_DROP_TX_QUEUE_FULL, pkts + sent, n - sent);
}

// All that a burst has for this out: at once, where a batch would change nothing.
static inline void sw_tx_output(struct sw_pmd_run *run, struct sw_plan_out *out,
				struct rte_mbuf **pkts, uint16_t n)
{
	if (out->claim != NULL || out->n > 0 || run->plan->flush_interval_ticks > 0) {
		sw_tx_append(run, out, pkts, n);
		return;
	}
	if (unlikely(sw_tx_longest(pkts, n) > out->max_len))
		n = sw_tx_drop_long(run, out, pkts, n);
	if (likely(n > 0))
		sw_tx_burst(run, out, pkts, n);
}
