// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_exec_fast.h"

#include <string.h>

#include <rte_ether.h>
#include <rte_mbuf.h>

#include "sw_act.h"
#include "sw_edit_fast.h"
#include "sw_key_fast.h"
#include "sw_mac_fast.h"
#include "sw_pipe_fast.h"
#include "sw_tx_fast.h"

// One packet on its way through a list.
struct exec {
	struct sw_pmd_run *run;
	const struct sw_plan_rxq *rxq;
	const struct sw_act *acts;
	uint32_t n_acts;
	struct rte_mbuf *pkt; // NULL: it has gone
	struct sw_headers headers;
	bool has_headers; // and the packet is writable
};

static bool is_edit(const struct sw_act *act)
{
	return act->type == SW_ACT_SET || act->type == SW_ACT_PUSH_VLAN ||
	       act->type == SW_ACT_POP_VLAN || act->type == SW_ACT_DEC_TTL;
}

static void drop(struct exec *x, uint32_t reason)
{
	sw_tx_drop(x->run, x->rxq->counts, reason, &x->pkt, 1);
	x->pkt = NULL;
}

// A copy that should have been made and was not: as if it had been, and been dropped.
static void count_unmade(struct exec *x, uint32_t reason)
{
	x->run->counters[PMDP_C_DROP0 + reason]++;
	sw_count(x->rxq->counts, PMDP_P_DROP0 + reason, 1);
}

/*
 * What goes out at action number at: the packet itself where nothing follows, else another. Where
 * the packet is changed later on, or shall be shorter, that is a copy; otherwise both share their
 * bytes.
 */
static struct rte_mbuf *take(struct exec *x, uint32_t at, uint32_t max_len, bool is_last)
{
	struct rte_mbuf *pkt = x->pkt;
	bool is_cut = max_len != 0 && pkt->pkt_len > max_len;
	bool is_copied = is_cut;
	struct rte_mbuf *made;

	if (is_last && is_cut && pkt->nb_segs == 1) {
		// Length is the buffer's own, whoever shares the bytes.
		rte_pktmbuf_trim(pkt, (uint16_t)(pkt->pkt_len - max_len));
		is_cut = false;
	}
	if (is_last && !is_cut) {
		x->pkt = NULL;
		return pkt;
	}
	for (uint32_t i = at + 1; i < x->n_acts; i++)
		is_copied = is_copied || is_edit(&x->acts[i]);
	made = is_copied ? rte_pktmbuf_copy(pkt, pkt->pool, 0, is_cut ? max_len : UINT32_MAX)
			 : rte_pktmbuf_clone(pkt, pkt->pool);
	if (is_last && made != NULL) {
		rte_pktmbuf_free(pkt); // its shorter copy stands for it
		x->pkt = NULL;
	} else if (is_last) {
		drop(x, PMDP_DROP_NO_MEMORY);
	} else {
		x->run->counters[PMDP_C_COPIES]++;
		if (made == NULL)
			count_unmade(x, PMDP_DROP_NO_MEMORY);
	}
	return made;
}

static void output(struct exec *x, struct sw_plan_out *out, uint32_t at, uint32_t max_len,
		   bool is_last)
{
	struct rte_mbuf *pkt = take(x, at, max_len, is_last);

	if (pkt != NULL)
		sw_tx_append(x->run, out, &pkt, 1);
}

static void output_to(struct exec *x, uint16_t ofport, uint32_t at, uint32_t max_len, bool is_last)
{
	uint16_t index = x->run->plan->out_of[ofport];

	if (index != SW_NO_OUT)
		output(x, &x->run->plan->outs[index], at, max_len, is_last);
	else if (is_last)
		drop(x, PMDP_DROP_PORT_DOWN);
	else {
		x->run->counters[PMDP_C_COPIES]++;
		count_unmade(x, PMDP_DROP_PORT_DOWN);
	}
}

static void flood(struct exec *x, uint32_t at, uint32_t max_len, bool is_last)
{
	struct sw_plan_pmd *plan = x->run->plan;
	uint32_t n = plan->n_outs;
	uint32_t in = plan->out_of[x->rxq->in_port];
	uint32_t last = n;

	// A frame that is too long for a port does not go there: others may take it.
	for (uint32_t i = 0; i < n; i++)
		last = i != in ? i : last;
	for (uint32_t i = 0; i < n && last < n; i++) {
		if (i != in)
			output(x, &plan->outs[i], at, max_len, is_last && i == last);
	}
	if (is_last && x->pkt != NULL)
		drop(x, PMDP_DROP_ACTION); // there is no other port
}

static void normal(struct exec *x, uint32_t at, bool is_last)
{
	struct sw_pmd_run *run = x->run;
	uint8_t copied[16];
	// 14 at least: runts don't come here. Not even these need be in one segment.
	uint32_t len = RTE_MIN(x->pkt->pkt_len, (uint32_t)sizeof(copied));
	const uint8_t *head = rte_pktmbuf_read(x->pkt, 0, len, copied);
	uint16_t vid = 0, to = SW_MAC_UNKNOWN;
	uint32_t now_s = run->now_s;

	if (unlikely(sw_mac_is_reserved(head))) {
		if (is_last)
			drop(x, PMDP_DROP_ACTION);
		return;
	}
	if (len == sizeof(copied) &&
	    ((head[12] == 0x81 && head[13] == 0x00) || (head[12] == 0x88 && head[13] == 0xa8)))
		vid = (uint16_t)((head[14] & 0x0f) << 8 | head[15]);
	sw_mac_learn(run->macs, head + 6, vid, x->rxq->in_port, now_s);
	if (!(head[0] & 1))
		to = sw_mac_lookup(run->macs, head, vid, now_s);
	if (to == SW_MAC_UNKNOWN)
		flood(x, at, 0, is_last);
	else if (to != x->rxq->in_port)
		output_to(x, to, at, 0, is_last);
	else if (is_last)
		drop(x, PMDP_DROP_ACTION); // it is where it wants to be
}

// Before the first change: headers in one piece, and bytes that nobody shares.
static bool make_writable(struct exec *x)
{
	struct rte_mbuf *pkt = x->pkt;
	uint32_t reach = RTE_MIN(pkt->pkt_len, (uint32_t)SW_KEY_REACH_BYTES);

	if (unlikely(pkt->data_len < reach || !RTE_MBUF_DIRECT(pkt) ||
		     rte_mbuf_refcnt_read(pkt) > 1 || pkt->nb_segs > 1)) {
		struct rte_mbuf *own = rte_pktmbuf_copy(pkt, pkt->pool, 0, UINT32_MAX);

		if (own == NULL) {
			drop(x, PMDP_DROP_NO_MEMORY);
			return false;
		}
		rte_pktmbuf_free(pkt);
		x->pkt = own;
	}
	sw_edit_find(x->pkt, &x->headers);
	x->has_headers = true;
	return true;
}

// A tag has come or gone before the other headers. They are not looked for again: behind more than
// two tags they would not be found, but the translation goes on to change them.
static void shift_headers(struct sw_headers *headers, int n_tags)
{
	headers->n_tags += n_tags;
	if (headers->l3 != 0)
		headers->l3 += 4 * n_tags;
	if (headers->l4 != 0)
		headers->l4 += 4 * n_tags;
}

static void push_vlan(struct exec *x, const struct sw_act *act)
{
	if (!sw_edit_push_vlan(x->pkt, act->tpid, act->tci)) {
		// A copy has room before it.
		struct rte_mbuf *own = rte_pktmbuf_copy(x->pkt, x->pkt->pool, 0, UINT32_MAX);

		if (own == NULL || !sw_edit_push_vlan(own, act->tpid, act->tci)) {
			rte_pktmbuf_free(own);
			drop(x, PMDP_DROP_NO_MEMORY);
			return;
		}
		rte_pktmbuf_free(x->pkt);
		x->pkt = own;
	}
	shift_headers(&x->headers, 1);
}

static void edit(struct exec *x, const struct sw_act *act)
{
	if (!x->has_headers && !make_writable(x))
		return;
	switch (act->type) {
	case SW_ACT_SET:
		sw_edit_set(x->pkt, &x->headers, act);
		break;
	case SW_ACT_PUSH_VLAN:
		push_vlan(x, act);
		break;
	case SW_ACT_POP_VLAN:
		if (x->headers.n_tags > 0) {
			sw_edit_pop_vlan(x->pkt);
			shift_headers(&x->headers, -1);
		}
		break;
	default:
		if (!sw_edit_dec_ttl(x->pkt, &x->headers))
			drop(x, PMDP_DROP_ACTION);
		break;
	}
}

static void recirculate(struct exec *x, const struct sw_act *act)
{
	struct sw_pipe *pipe = x->run->pipe;

	if (pipe->depth >= SW_RECIRC_LIMIT || pipe->waiting->n >= SW_BURST) {
		drop(x, PMDP_DROP_RECIRC_LIMIT);
		return;
	}
	pipe->waiting->ids[pipe->waiting->n] = act->recirc_id;
	pipe->waiting->pkts[pipe->waiting->n++] = x->pkt;
	x->pkt = NULL;
}

static void exec_one(struct exec *x)
{
	for (uint32_t i = 0; i < x->n_acts && x->pkt != NULL; i++) {
		const struct sw_act *act = &x->acts[i];
		bool is_last = i + 1 == x->n_acts;

		switch (act->type) {
		case SW_ACT_OUTPUT:
			output_to(x, act->port, i, act->max_len, is_last);
			break;
		case SW_ACT_FLOOD:
			flood(x, i, act->max_len, is_last);
			break;
		case SW_ACT_NORMAL:
			normal(x, i, is_last);
			break;
		case SW_ACT_RECIRC:
			recirculate(x, act);
			break;
		default:
			edit(x, act);
			break;
		}
	}
	if (x->pkt != NULL)
		drop(x, PMDP_DROP_ACTION);
}

void sw_exec(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq, uint32_t flow,
	     struct rte_mbuf **pkts, uint16_t n)
{
	const struct sw_mega *mega = &run->pipe->mega;
	struct exec x = {
		.run = run,
		.rxq = rxq,
		.acts = sw_mega_acts(mega, flow),
		.n_acts = mega->cold[flow].n_acts,
	};

	for (uint16_t i = 0; i < n; i++) {
		x.pkt = pkts[i];
		x.has_headers = false;
		exec_one(&x);
	}
}
