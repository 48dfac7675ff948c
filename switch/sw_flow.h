// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Flow rules, control side: text to rule and back, the table of rules, its publication to the PMDs.
 *
 * One table, priorities 0 to 65535, actions output and drop. All calls belong to the control
 * thread; they allocate and, in case of sw_flow_commit, sort. None waits for a PMD: what an old
 * rule set holds is freed by sw_flow_reap() once every PMD has let go of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sw_error.h"
#include "sw_flow_fast.h"

struct rte_rcu_qsbr;

#define SW_FLOW_DEFAULT_PRIORITY 32768
#define SW_FLOW_TEXT_BYTES 1024

struct sw_rule {
	struct sw_key value; // 0 where mask is 0
	struct sw_key mask;
	uint64_t cookie;
	uint16_t in_port; // 0: any
	uint16_t priority;
	uint16_t out; // ofport, SW_OUT_DROP or SW_OUT_IN_PORT
};

// ofport of a port named in a rule, or -ENOENT. ctx is the caller's.
typedef int sw_port_resolve_fn(void *ctx, const char *name);

struct sw_rule_parser {
	sw_port_resolve_fn *resolve; // NULL: ports by number only
	void *resolve_ctx;
};

// Parse a rule in ovs-ofctl(8) syntax. -EINVAL: err names the field and the remedy, *out_rule is
// untouched.
int sw_rule_parse(const struct sw_rule_parser *parser, const char *text, struct sw_rule *out_rule,
		  struct sw_error *err);

// Parse the lines of a file: blank ones and what stands behind '#' are skipped. *out_rules is
// malloc'd. -EINVAL: err names the line. -ENOMEM.
int sw_rules_parse(const struct sw_rule_parser *parser, const char *const *lines, uint32_t n_lines,
		   struct sw_rule **out_rules, uint32_t *out_n, struct sw_error *err);

// The same match and priority.
bool sw_rule_is_same_match(const struct sw_rule *a, const struct sw_rule *b);

// What del-flows and dump-flows select with: a match without actions.
struct sw_flow_filter {
	struct sw_rule match;
	uint64_t cookie_mask;
	uint16_t out_port; // 0: whatever the rule does
	bool is_strict;    // this match and priority exactly, instead of all rules within it
};

// Parse a match; text NULL or empty selects everything. -EINVAL.
int sw_flow_filter_parse(const struct sw_rule_parser *parser, const char *text, bool is_strict,
			 struct sw_flow_filter *out_filter, struct sw_error *err);
bool sw_flow_filter_matches(const struct sw_flow_filter *filter, const struct sw_rule *rule);

// Match of a rule without priority and actions, e.g. "udp,in_port=1,nw_dst=20.0.0.0/24". Its
// actions. Returns the length, as snprintf.
int sw_rule_format_match(const struct sw_rule *rule, char *out, size_t size);
int sw_rule_format_actions(const struct sw_rule *rule, char *out, size_t size);
// All of it, such that sw_rule_parse() gives the same rule again.
int sw_rule_format(const struct sw_rule *rule, char *out, size_t size);

struct sw_flow_table;

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
 * Change the table: all the rules at once, or none. As in ovs-ofctl, an added rule takes the place
 * of one with the same match and priority and starts counting at 0; replace leaves alone, counters
 * included, what stands there already, and deletes the rest.
 * -ENOSPC  more than SW_FLOW_MAX_RULES, counting deleted ones that a PMD may still use
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

// Free what no PMD uses any more. Call it a few times a second.
void sw_flow_reap(struct sw_flow_table *table);

struct sw_flow_info {
	struct sw_rule rule;
	uint64_t n_packets;
	uint64_t n_bytes;
	uint64_t created_ns; // CLOCK_MONOTONIC
};

uint32_t sw_flow_count(const struct sw_flow_table *table);
// Rule number i in matching order; i < sw_flow_count().
void sw_flow_get(const struct sw_flow_table *table, uint32_t i, struct sw_flow_info *out_info);
