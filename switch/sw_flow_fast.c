// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_flow_fast.h"

#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "sw_flow_set.h"
#include "sw_key_fast.h"

#define PREFETCH_AHEAD 6

// Only this thread writes, so a plain add in two relaxed halves loses nothing.
static inline void count(_Atomic uint64_t *counter, uint64_t n)
{
	uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);

	atomic_store_explicit(counter, value + n, memory_order_relaxed);
}

static inline const struct sw_flow_group *group_of(const struct sw_flow_set *set, uint16_t in_port)
{
	uint32_t at = sw_flow_hash(in_port) & set->hash_mask;

	for (;;) {
		const struct sw_flow_group *group = &set->hash[at];

		if (group->in_port == in_port)
			return group;
		if (group->in_port == SW_FLOW_NO_GROUP)
			return &set->rest;
		at = (at + 1) & set->hash_mask;
	}
}

static inline bool matches(const struct sw_flow_rule *rule, const struct sw_key *key)
{
	unsigned int i;

	for (i = 0; i < rule->n_words; i++) {
		if ((key->word[rule->index[i]] & rule->words[i].mask) != rule->words[i].value)
			return false;
	}
	return true;
}

static inline const struct sw_flow_rule *match(const struct sw_flow_group *group,
					       const struct sw_key *key)
{
	uint32_t i;

	for (i = 0; i < group->n_rules; i++) {
		if (matches(group->rules[i], key))
			return group->rules[i];
	}
	return NULL;
}

// A packet never goes back to where it came from unless the rule says in_port.
static inline uint16_t rule_out(const struct sw_flow_rule *rule, uint16_t in_port)
{
	if (likely(!rule->is_relative))
		return rule->out;
	if (rule->out == SW_OUT_IN_PORT)
		return in_port;
	return rule->out == in_port ? SW_OUT_DROP : rule->out;
}

// Every packet meets the same rule, or none: only lengths are looked at.
static uint16_t classify_by_port(const struct sw_flow_rule *rule, struct sw_flow_stats *stats,
				 uint16_t in_port, struct rte_mbuf *const *pkts, uint16_t n,
				 uint16_t *out)
{
	uint16_t to = rule ? rule_out(rule, in_port) : SW_OUT_NO_RULE;
	uint64_t bytes = 0;
	uint16_t n_runts = 0;
	uint16_t i;

	for (i = 0; i < n; i++) {
		uint32_t len = pkts[i]->pkt_len;

		out[i] = to;
		bytes += len;
		if (unlikely(len < RTE_ETHER_HDR_LEN)) {
			out[i] = SW_OUT_MALFORMED;
			bytes -= len;
			n_runts++;
		}
	}
	if (rule) {
		count(&stats->rules[rule->slot].packets, (uint64_t)n - n_runts);
		count(&stats->rules[rule->slot].bytes, bytes);
	}
	if (likely(!n_runts))
		return to;
	count(&stats->bad[SW_BAD_RUNT], n_runts);
	return n_runts == n ? SW_OUT_MALFORMED : SW_OUT_MIXED;
}

static inline uint16_t classify_one(const struct sw_flow_group *group, struct sw_flow_stats *stats,
				    uint16_t in_port, const struct rte_mbuf *pkt)
{
	const struct sw_flow_rule *rule;
	struct sw_key key;
	uint32_t bad = sw_key_extract_mbuf(pkt, group->depth, &key);

	if (unlikely(bad)) {
		count(&stats->bad[bad], 1);
		if (bad == SW_BAD_RUNT)
			return SW_OUT_MALFORMED;
	}
	rule = match(group, &key);
	if (unlikely(!rule))
		return SW_OUT_NO_RULE;
	count(&stats->rules[rule->slot].packets, 1);
	count(&stats->rules[rule->slot].bytes, pkt->pkt_len);
	return rule_out(rule, in_port);
}

uint16_t sw_flow_classify(const struct sw_flow_set *set, struct sw_flow_stats *stats,
			  uint16_t in_port, struct rte_mbuf *const *pkts, uint16_t n, uint16_t *out)
{
	const struct sw_flow_group *group = group_of(set, in_port);
	uint16_t i, differs = 0;

	if (group->depth == SW_DEPTH_NONE)
		return classify_by_port(group->n_rules ? group->rules[0] : NULL, stats, in_port,
					pkts, n, out);
	for (i = 0; i < n && i < PREFETCH_AHEAD; i++)
		rte_prefetch0(rte_pktmbuf_mtod(pkts[i], const void *));
	for (i = 0; i < n; i++) {
		if (i + PREFETCH_AHEAD < n)
			rte_prefetch0(rte_pktmbuf_mtod(pkts[i + PREFETCH_AHEAD], const void *));
		out[i] = classify_one(group, stats, in_port, pkts[i]);
		differs |= out[i] ^ out[0];
	}
	return differs ? SW_OUT_MIXED : out[0];
}
