// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_pipe_fast.h"

#include <string.h>

#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "sw_bits_fast.h"
#include "sw_exec_fast.h"
#include "sw_flow_count_fast.h"
#include "sw_impl_fast.h"
#include "sw_tx_fast.h"

static inline void flow_hit(const struct sw_pipe *pipe, struct sw_megaflow *f, uint64_t packets,
			    uint64_t bytes)
{
	sw_pipe_add(&f->packets, packets);
	sw_pipe_add(&f->bytes, bytes);
	atomic_store_explicit(&f->used, pipe->used, memory_order_relaxed);
}

// Packets that one flow, or flows with the same simple verdict, decide about. is_all: the whole
// burst.
static inline __attribute__((always_inline)) void
forward(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq, uint32_t flow, uint16_t verdict,
	struct rte_mbuf **pkts, uint16_t n, bool is_all)
{
	uint16_t index;

	if (unlikely(verdict > SW_OFPORT_MAX)) {
		if (verdict == SW_VERDICT_ACTIONS)
			sw_exec(run, rxq, flow, pkts, n);
		else
			sw_tx_drop(run, rxq->counts, verdict - SW_VERDICT_DROP0, pkts, n);
		return;
	}
	index = run->plan->out_of[verdict];
	if (unlikely(index == SW_NO_OUT))
		sw_tx_drop(run, rxq->counts, PMDP_DROP_PORT_DOWN, pkts, n);
	else if (is_all)
		sw_tx_output(run, &run->plan->outs[index], pkts, n);
	else
		sw_tx_append(run, &run->plan->outs[index], pkts, n);
}

static inline uint64_t bytes_of(struct rte_mbuf *const *pkts, uint32_t n)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		bytes += pkts[i]->pkt_len;
	return bytes;
}

// Flows of these packets differ: each is counted, and neighbours with the same verdict go together.
static void act_mixed(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq, struct rte_mbuf **pkts,
		      const uint32_t *flows, uint32_t n)
{
	struct sw_pipe *pipe = run->pipe;
	uint16_t verdicts[SW_BURST];
	uint32_t end;

	for (uint32_t i = 0; i < n; i++) {
		struct sw_megaflow *f = &pipe->mega.flows[flows[i]];

		flow_hit(pipe, f, 1, pkts[i]->pkt_len);
		verdicts[i] = f->verdict;
	}
	for (uint32_t i = 0; i < n; i = end) {
		bool is_simple = verdicts[i] != SW_VERDICT_ACTIONS;

		for (end = i + 1; end < n && verdicts[end] == verdicts[i] &&
				  (is_simple || flows[end] == flows[i]);)
			end++;
		forward(run, rxq, flows[i], verdicts[i], pkts + i, (uint16_t)(end - i),
			end - i == n);
	}
}

static inline void act(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq,
		       struct rte_mbuf **pkts, const uint32_t *flows, uint32_t n)
{
	struct sw_pipe *pipe = run->pipe;
	uint32_t differs = 0;

	for (uint32_t i = 1; i < n; i++)
		differs |= flows[i] ^ flows[0];
	if (likely(differs == 0)) {
		struct sw_megaflow *f = &pipe->mega.flows[flows[0]];

		flow_hit(pipe, f, n, bytes_of(pkts, n));
		forward(run, rxq, flows[0], f->verdict, pkts, (uint16_t)n, true);
	} else {
		act_mixed(run, rxq, pkts, flows, n);
	}
	if (unlikely(pipe->transient != 0)) {
		SW_FOR_EACH_BIT(i, pipe->transient)
		sw_pipe_push(run, pipe->mega.max_flows + i);
		pipe->transient = 0;
	}
}

// Count what is malformed, once per packet; drop runts; see which keys are wide.
static __rte_noinline void sort_out(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq,
				    struct sw_pass *pass)
{
	struct sw_pipe *pipe = run->pipe;
	uint32_t n = 0;

	for (uint32_t i = 0; i < pass->n; i++) {
		uint32_t bad = pipe->bad[i] & ~SW_KEY_WIDE;

		if (bad != SW_BAD_NONE && pipe->depth == 0)
			sw_pipe_add(&run->flow_stats->bad[bad], 1);
		if (bad == SW_BAD_RUNT) {
			sw_tx_drop(run, rxq->counts, PMDP_DROP_MALFORMED, &pass->pkts[i], 1);
			continue;
		}
		if (n != i) {
			bool is_wide = (pipe->bad[i] & SW_KEY_WIDE) != 0;

			pipe->keys[n] = pipe->keys[i];
			pass->pkts[n] = pass->pkts[i];
			if (is_wide)
				memset(&pipe->keys[i].word[SW_KEY_META_WORD], 0, 64);
		}
		pass->wide |= (uint32_t)((pipe->bad[i] & SW_KEY_WIDE) != 0) << n;
		n++;
	}
	pass->n = n;
}

static inline void extract(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq,
			   struct sw_pass *pass, const uint32_t *recirc_ids)
{
	struct sw_pipe *pipe = run->pipe;
	uint32_t any;

	any = run->plan->impl->extract(pass->pkts, pass->n, rxq->in_port, pipe->keys, pipe->bad);
	for (uint32_t i = 0; recirc_ids != NULL && i < pass->n; i++)
		pipe->keys[i].recirc_id = recirc_ids[i];
	if (unlikely(any != 0))
		sort_out(run, rxq, pass);
}

static struct sw_caches caches_of(const struct sw_pmd_run *run, const struct sw_plan_rxq *rxq,
				  const struct sw_classifier *cls)
{
	bool is_recirculated = run->pipe->depth > 0;
	bool is_bypass = rxq->is_bypass && cls->n <= 1;

	return (struct sw_caches){
		.is_emc = rxq->emc_inv_prob != 0 && (!is_bypass || rxq->emc_inv_prob == 1) &&
			  !(is_recirculated && sw_emc_is_half_full(run->pipe->emc)),
		.is_smc = run->plan->smc != NULL,
	};
}

// The flow that a device's mark stands for, if it is still that one.
static uint32_t marked_flow(const struct sw_pipe *pipe, const struct rte_mbuf *pkt, uint32_t cls)
{
	const struct sw_mega *mega = &pipe->mega;
	const struct sw_megaflow *f;
	uint64_t mark;
	uint32_t flow;

	if (!(pkt->ol_flags & RTE_MBUF_F_RX_FDIR_ID) || pkt->hash.fdir.hi >= SW_MAX_MARKS)
		return SW_MEGA_NONE;
	mark = atomic_load_explicit(&pipe->marks[pkt->hash.fdir.hi], memory_order_relaxed);
	flow = (uint32_t)mark;
	if (mark == 0 || flow >= mega->max_flows)
		return SW_MEGA_NONE;
	f = &mega->flows[flow];
	if (f->id != mark >> 32 || f->generation != pipe->generation ||
	    mega->shapes[f->subtable].classifier != cls)
		return SW_MEGA_NONE;
	return flow;
}

// Marked packets need no look; the others go through lookup, and then all stand in their old order.
static __rte_noinline bool pass_marked(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq,
				       struct sw_pass *pass)
{
	struct sw_pipe *pipe = run->pipe;
	uint32_t cls = (uint32_t)(pass->cls - pipe->mega.classifiers);
	struct rte_mbuf *pkts[SW_BURST], *rest[SW_BURST];
	uint32_t flows[SW_BURST];
	struct sw_pass others = *pass;
	uint32_t n = pass->n, n_kept = 0, at = 0;

	others.pkts = rest;
	others.n = 0;
	for (uint32_t i = 0; i < n; i++) {
		pkts[i] = pass->pkts[i];
		flows[i] = marked_flow(pipe, pkts[i], cls);
		if (flows[i] == SW_MEGA_NONE)
			rest[others.n++] = pkts[i];
	}
	if (others.n == n)
		return false;
	run->counters[PMDP_C_PHWOL_HITS] += n - others.n;
	if (others.n > 0)
		extract(run, rxq, &others, NULL);
	if (others.n > 0)
		sw_pipe_lookup(run, rxq, &others);
	for (uint32_t i = 0; i < n; i++) {
		if (flows[i] == SW_MEGA_NONE) {
			if (at == others.n || rest[at] != pkts[i])
				continue; // dropped as a runt
			flows[i] = pipe->flows[at++];
		}
		pass->pkts[n_kept] = pkts[i];
		flows[n_kept++] = flows[i];
	}
	if (n_kept > 0)
		act(run, rxq, pass->pkts, flows, n_kept);
	return true;
}

static inline void pass_run(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq,
			    struct sw_pass *pass, const uint32_t *recirc_ids)
{
	struct sw_pipe *pipe = run->pipe;

	pass->caches = caches_of(run, rxq, pass->cls);
	if (unlikely(atomic_load_explicit(&pipe->n_marks, memory_order_relaxed) > 0) &&
	    recirc_ids == NULL && pass_marked(run, rxq, pass))
		return;
	extract(run, rxq, pass, recirc_ids);
	if (recirc_ids != NULL)
		run->counters[PMDP_C_RECIRCULATIONS] += pass->n;
	if (unlikely(pass->n == 0))
		return;
	sw_pipe_lookup(run, rxq, pass);
	act(run, rxq, pass->pkts, pipe->flows, pass->n);
}

static __rte_noinline void recirculate(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq)
{
	struct sw_pipe *pipe = run->pipe;

	while (pipe->waiting->n > 0) {
		struct sw_recirc *now = pipe->waiting;
		struct sw_pass pass = {
			.pkts = now->pkts,
			.n = now->n,
			.cls = sw_mega_classifier(&pipe->mega, rxq->index, true),
		};

		pipe->waiting = now == &pipe->recirc[0] ? &pipe->recirc[1] : &pipe->recirc[0];
		pipe->waiting->n = 0;
		pipe->depth++;
		pass_run(run, rxq, &pass, now->ids);
	}
	pipe->depth = 0;
}

// Flows of a port that was here before end.
static __rte_noinline void adopt(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq)
{
	struct sw_mega *mega = &run->pipe->mega;

	for (uint32_t flow = 0; flow < mega->n_high; flow++) {
		if (mega->flows[flow].id == 0 ||
		    mega->shapes[mega->flows[flow].subtable].classifier / 2 != rxq->index)
			continue;
		sw_pipe_push(run, flow);
		sw_mega_delete(mega, flow);
	}
	sw_mega_classifier(mega, rxq->index, false)->in_port = rxq->in_port;
	sw_mega_classifier(mega, rxq->index, true)->in_port = rxq->in_port;
}

// The one flow of a port whose rules look at nothing, if that is how it is.
static inline uint32_t sole_flow(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq,
				 const struct sw_classifier *cls)
{
	struct sw_pipe *pipe = run->pipe;
	uint32_t flow;

	if (cls->n != 1 || pipe->mega.shapes[cls->order[0]].n_words != 0 || !rxq->is_bypass ||
	    rxq->emc_inv_prob == 1 || run->plan->smc != NULL)
		return SW_MEGA_NONE;
	flow = sw_mega_find(&pipe->mega, cls, &pipe->keys[0], &run->counters[PMDP_C_LOOKUPS]);
	return flow == SW_MEGA_NONE || pipe->mega.flows[flow].generation != pipe->generation
		       ? SW_MEGA_NONE
		       : flow;
}

static inline uint16_t drop_runts(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq,
				  struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t n_kept = 0;

	for (uint16_t i = 0; i < n; i++) {
		if (likely(pkts[i]->pkt_len >= RTE_ETHER_HDR_LEN)) {
			pkts[n_kept++] = pkts[i];
			continue;
		}
		sw_pipe_add(&run->flow_stats->bad[SW_BAD_RUNT], 1);
		sw_tx_drop(run, rxq->counts, PMDP_DROP_MALFORMED, &pkts[i], 1);
	}
	return n_kept;
}

static inline void sole(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq, uint32_t flow,
			struct rte_mbuf **pkts, uint16_t n)
{
	struct sw_megaflow *f = &run->pipe->mega.flows[flow];

	n = drop_runts(run, rxq, pkts, n);
	if (unlikely(n == 0))
		return;
	run->counters[PMDP_C_MEGAFLOW_HITS] += n;
	flow_hit(run->pipe, f, n, bytes_of(pkts, n));
	forward(run, rxq, flow, f->verdict, pkts, n, true);
}

void sw_pipe_burst(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq, struct rte_mbuf **pkts,
		   uint16_t n)
{
	struct sw_pipe *pipe = run->pipe;
	struct sw_pass pass = {
		.pkts = pkts, .n = n, .cls = sw_mega_classifier(&pipe->mega, rxq->index, false)};
	uint32_t flow;

	pipe->tables = sw_tables_get(run->flows);
	pipe->generation = (uint32_t)sw_tables_generation(pipe->tables);
	pipe->used = (uint32_t)(run->now_ticks >> SW_MEGA_USED_SHIFT);
	if (unlikely(pass.cls->in_port != rxq->in_port))
		adopt(run, rxq);
	flow = sole_flow(run, rxq, pass.cls);
	if (flow != SW_MEGA_NONE) {
		sole(run, rxq, flow, pkts, n);
	} else {
		for (uint16_t i = 0; i < n; i++)
			rte_prefetch0(rte_pktmbuf_mtod(pkts[i], const void *));
		pass_run(run, rxq, &pass, NULL);
	}
	if (unlikely(pipe->waiting->n > 0))
		recirculate(run, rxq);
}
