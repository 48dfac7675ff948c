// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Classification of bursts by flow rules, on the packet path.
 *
 * A rule set is immutable. Control publishes a new one (sw_flow.h) and frees the old one after
 * every PMD has passed a quiescent state; a PMD takes the pointer with sw_flow_set_get() and may
 * use it until it reports its next quiescent state.
 *
 * Counters of rules stand in one array per PMD, indexed by the rule's slot, which it keeps through
 * all rule sets. Only the PMD writes it.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "sw_key.h"

struct rte_mbuf;
struct sw_flow_set;

#define SW_FLOW_MAX_RULES 4096
#define SW_FLOW_MAX_BURST 64

// What becomes of a packet: an ofport to send it to, or one of these.
#define SW_OFPORT_MAX 0xfeff
#define SW_OUT_DROP 0xfff0      // a rule says drop
#define SW_OUT_NO_RULE 0xfff1   // no rule matches
#define SW_OUT_MALFORMED 0xfff2 // a runt
#define SW_OUT_MIXED 0xfff3     // only as a return value: not the same for the whole burst
#define SW_OUT_IN_PORT 0xfff8   // only in rules: back where it came from

struct sw_flow_count {
	_Atomic uint64_t packets; // W: PMD, relaxed
	_Atomic uint64_t bytes;   // W: PMD, relaxed
};

// Of one PMD, 64-byte aligned, written by that PMD alone.
struct sw_flow_stats {
	_Atomic uint64_t bad[SW_N_BAD]; // malformed frames by SW_BAD_*; W: PMD, relaxed
	struct sw_flow_count rules[SW_FLOW_MAX_RULES];
};

// Where the current rule set is found; part of struct sw_flow_table.
struct sw_flow_ref {
	struct sw_flow_set *_Atomic set;
};

// F2, acquire: pairs with F1 (sw_flow_table.c), so that the set's contents are seen whole.
static inline const struct sw_flow_set *sw_flow_set_get(const struct sw_flow_ref *ref)
{
	return atomic_load_explicit(&ref->set, memory_order_acquire);
}

/*
 * Classify n (at most SW_FLOW_MAX_BURST) packets received from in_port. out[i] becomes the ofport
 * that packet i goes to (which may not exist) or SW_OUT_DROP, _NO_RULE or _MALFORMED. Returns that
 * value if it is the same for all, else SW_OUT_MIXED. Counts rules and malformed frames in stats;
 * drops are the caller's to count.
 */
uint16_t sw_flow_classify(const struct sw_flow_set *set, struct sw_flow_stats *stats,
			  uint16_t in_port, struct rte_mbuf *const *pkts, uint16_t n,
			  uint16_t *out);
