// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Inside of the rule table, shared by sw_flow_table.c and sw_flow_stats.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sw_flow.h"

#define SW_FLOW_MAX_PMDS 128
#define SW_FLOW_NO_SLOT UINT32_MAX

struct sw_flow_leftover;

// A rule.
struct sw_flow_entry {
	struct sw_rule rule;
	uint32_t slot;  // of its counters; SW_FLOW_NO_SLOT until committed
	bool is_wanted; // while a change is worked out
	uint64_t order; // of addition: decides between equal priorities
	uint64_t created_ns;
};

struct sw_flow_total {
	uint64_t packets, bytes;
};

struct sw_flow_table {
	struct sw_flow_ref ref;
	struct rte_rcu_qsbr *qsbr;
	struct sw_flow_entry **entries; // in matching order
	uint32_t n_entries;
	uint32_t n_leftovers;
	uint64_t next_order;
	struct sw_flow_leftover *leftovers; // oldest first
	struct sw_flow_leftover **leftovers_end;

	struct sw_flow_stats *pmds[SW_FLOW_MAX_PMDS]; // NULL = free
	uint64_t retired_bad[SW_N_BAD];
	struct sw_flow_total retired[SW_FLOW_MAX_RULES]; // what ended PMDs counted
	struct sw_flow_total base[SW_FLOW_MAX_RULES];    // where the slot's present rule began
	bool is_used[SW_FLOW_MAX_RULES]; // has a rule, or had one that a PMD may still count
};

// Give the entry a free slot at *at or later; *at is where the next search begins.
bool sw_flow_slot_take(struct sw_flow_table *table, uint32_t *at, struct sw_flow_entry *entry);
// What the slot's present rule has counted.
struct sw_flow_total sw_flow_slot_count(const struct sw_flow_table *table, uint32_t slot);
