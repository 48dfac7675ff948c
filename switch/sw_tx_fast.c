// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_tx_fast.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_pause.h>

// How often a PMD asks for a shared transmit queue before it goes on with other work.
#define SW_TX_CLAIM_TRIES 32
#define SW_TX_CLAIM_TRIES_FINAL 100000

void sw_tx_drop(struct sw_pmd_run *run, struct sw_port_counts *counts, uint32_t reason,
		struct rte_mbuf **pkts, uint16_t n)
{
	run->counters[PMDP_C_DROP0 + reason] += n;
	sw_count(counts, PMDP_P_DROP0 + reason, n);
	rte_pktmbuf_free_bulk(pkts, n);
}

static bool tx_claim(struct sw_tx_claim *claim, uint32_t n_tries)
{
	for (uint32_t i = 0; i < n_tries; i++) {
		// X1 pairs with X2: the queue's state is seen as its last user left it.
		if (atomic_load_explicit(&claim->is_taken, memory_order_relaxed) == 0 &&
		    atomic_exchange_explicit(&claim->is_taken, 1, memory_order_acquire) == 0)
			return true;
		rte_pause();
	}
	return false;
}

// The port takes at most n_retries further tries, and none after a try that sent nothing: a full
// receiver must not hold up the other ports of this PMD.
uint16_t sw_tx_retry(struct sw_plan_out *out, struct rte_mbuf **pkts, uint16_t n, uint16_t sent)
{
	uint16_t more = sent;
	uint32_t retries = 0;

	while (more > 0 && sent < n && retries < out->n_retries) {
		more = rte_eth_tx_burst(out->port_id, out->queue, pkts + sent, n - sent);
		sent += more;
		retries++;
	}
	if (retries > 0)
		sw_count(out->counts, PMDP_P_TX_RETRIES, retries);
	return sent;
}

static void tx_flush(struct sw_pmd_run *run, struct sw_plan_out *out, bool is_final)
{
	if (out->n == 0)
		return;
	if (out->claim == NULL) {
		sw_tx_burst(run, out, out->pkts, out->n);
	} else if (tx_claim(out->claim, is_final ? SW_TX_CLAIM_TRIES_FINAL : SW_TX_CLAIM_TRIES)) {
		sw_tx_burst(run, out, out->pkts, out->n);
		atomic_store_explicit(&out->claim->is_taken, 0, memory_order_release); // X2
	} else if (is_final) {
		sw_tx_drop(run, out->counts, PMDP_DROP_TX_QUEUE_FULL, out->pkts, out->n);
	} else {
		return;
	}
	out->n = 0;
}

void sw_tx_flush_all(struct sw_pmd_run *run, bool is_final)
{
	uint64_t now = run->now_ticks;
	uint16_t n_kept = 0;

	for (uint16_t i = 0; i < run->n_touched; i++) {
		struct sw_plan_out *out = &run->plan->outs[run->touched[i]];

		if (is_final || (int64_t)(now - out->flush_ticks) >= 0)
			tx_flush(run, out, is_final);
		if (out->n > 0)
			run->touched[n_kept++] = run->touched[i];
		else
			out->is_touched = false;
	}
	run->n_touched = n_kept;
}

// Drops what is too long for the port; the rest moves together. Returns how many are left.
static uint16_t tx_check_length(struct sw_pmd_run *run, struct sw_plan_out *out,
				struct rte_mbuf **pkts, uint16_t n)
{
	return likely(sw_tx_longest(pkts, n) <= out->max_len) ? n
							      : sw_tx_drop_long(run, out, pkts, n);
}

uint16_t sw_tx_drop_long(struct sw_pmd_run *run, struct sw_plan_out *out, struct rte_mbuf **pkts,
			 uint16_t n)
{
	uint16_t n_kept = 0;

	for (uint16_t i = 0; i < n; i++) {
		if (pkts[i]->pkt_len > out->max_len)
			sw_tx_drop(run, out->counts, PMDP_DROP_MTU, &pkts[i], 1);
		else
			pkts[n_kept++] = pkts[i];
	}
	return n_kept;
}

// The first packet of a batch: its time runs, and the out is on the list of those to flush.
static void tx_touch(struct sw_pmd_run *run, struct sw_plan_out *out)
{
	out->flush_ticks = run->now_ticks + run->plan->flush_interval_ticks;
	if (!out->is_touched) {
		out->is_touched = true;
		run->touched[run->n_touched++] = (uint16_t)(out - run->plan->outs);
	}
}

void sw_tx_append(struct sw_pmd_run *run, struct sw_plan_out *out, struct rte_mbuf **pkts,
		  uint16_t n)
{
	n = tx_check_length(run, out, pkts, n);
	while (n > 0) {
		uint16_t room = SW_BURST - out->n;
		uint16_t k = RTE_MIN(room, n);

		if (out->n == 0 && k > 0)
			tx_touch(run, out);
		for (uint16_t i = 0; i < k; i++)
			out->pkts[out->n++] = pkts[i];
		pkts += k;
		n -= k;
		if (out->n < SW_BURST)
			return;
		tx_flush(run, out, false);
		if (unlikely(out->n > 0)) {
			// A shared queue in other hands: the batch stays, what does not fit goes.
			if (n > 0)
				sw_tx_drop(run, out->counts, PMDP_DROP_TX_QUEUE_FULL, pkts, n);
			return;
		}
	}
}
