// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The tables of rules, control side, and their publication to the PMDs.
 *
 * Tables 0 to 254, priorities 0 to 65535. All calls belong to the control thread; they allocate.
 * None waits for a PMD: what an old snapshot holds is freed by sw_flow_reap() once every PMD has
 * let go of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sw_error.h"
#include "sw_flow_count_fast.h"
#include "sw_rule.h"
#include "sw_xlate_fast.h"

struct rte_rcu_qsbr;
struct sw_flow_table;

// Different masks in one table: so a miss is bounded in time.
#define SW_FLOW_MAX_MASKS 1024

// qsbr: under which the PMDs report quiescent states; NULL: there are none (tests). NULL without
// memory.
struct sw_flow_table *sw_flow_table_create(struct rte_rcu_qsbr *qsbr);
// No PMD may use the table any more. Accepts NULL.
void sw_flow_table_destroy(struct sw_flow_table *table);
// For the PMDs; lives as long as the table. Never leads to NULL.
const struct sw_flow_ref *sw_flow_table_ref(const struct sw_flow_table *table);

// Counters for a new PMD, zeroed and pre-faulted; NULL without memory or beyond 128 PMDs.
struct sw_flow_stats *sw_flow_stats_attach(struct sw_flow_table *table);
// The PMD has ended: what it counted is kept. Accepts NULL.
void sw_flow_stats_detach(struct sw_flow_table *table, struct sw_flow_stats *stats);
// Malformed frames by SW_BAD_*, of all PMDs since the start.
void sw_flow_bad_counts(const struct sw_flow_table *table, uint64_t out_bad[SW_N_BAD]);

/*
 * Change the tables: all the rules at once, or none. The rules are copied. As in ovs-ofctl, an
 * added rule takes the place of one with the same table, match and priority and starts counting at
 * 0; replace leaves alone, counters included, what stands there already, and deletes the rest.
 * -ENOSPC  more than SW_FLOW_MAX_RULES, or SW_FLOW_MAX_MASKS in a table; or too many deleted ones
 *          that a PMD may still count for
 * -EBUSY   too much waits for a PMD that does not answer
 * -ENOMEM
 */
int sw_flow_add(struct sw_flow_table *table, const struct sw_rule *rules, uint32_t n_rules,
		struct sw_error *err);
int sw_flow_replace(struct sw_flow_table *table, const struct sw_rule *rules, uint32_t n_rules,
		    struct sw_error *err);
// Returns how many were deleted, or -EBUSY, -ENOMEM.
int sw_flow_delete(struct sw_flow_table *table, const struct sw_flow_filter *filter,
		   struct sw_error *err);

// Give rules other actions; they go on counting. Returns how many were changed, or -EINVAL (a
// goto_table that would lead backwards) or as above.
int sw_flow_modify(struct sw_flow_table *table, const struct sw_flow_mod *mod,
		   struct sw_error *err);

// Free what no PMD uses any more. Call it a few times a second.
void sw_flow_reap(struct sw_flow_table *table);

struct sw_flow_info {
	const struct sw_rule *rule; // until the next change
	uint64_t n_packets;
	uint64_t n_bytes;
	uint64_t created_ns; // CLOCK_MONOTONIC
};

uint32_t sw_flow_count(const struct sw_flow_table *table);
// Rule number i, by table and then in matching order; i < sw_flow_count().
void sw_flow_get(struct sw_flow_table *table, uint32_t i, struct sw_flow_info *out_info);
// How many different masks the rules of a table have.
uint32_t sw_flow_masks(const struct sw_flow_table *table, uint8_t number);
// The rule that counts in a slot; NULL if there is none.
const struct sw_rule *sw_flow_by_slot(const struct sw_flow_table *table, uint32_t slot);
