// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Flow rules as text and back, in the syntax of ovs-ofctl(8). Control thread only; nothing here
 * knows of tables or PMDs. A rule owns its actions: whoever gets one filled in frees it with
 * sw_rule_free().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sw_error.h"
#include "sw_key.h"

#define SW_N_TABLES 255
#define SW_FLOW_DEFAULT_PRIORITY 32768
#define SW_FLOW_TEXT_BYTES 8192 // of a rule as text, with its end
#define SW_RULE_MAX_ACTS 64

// sw_rule_act.type. A rule without actions drops.
#define SW_RULE_OUTPUT 1 // to port, at most max_len bytes
#define SW_RULE_FLOOD 2
#define SW_RULE_ALL 3 // the same under another name
#define SW_RULE_NORMAL 4
#define SW_RULE_SET 5
#define SW_RULE_PUSH_VLAN 6
#define SW_RULE_POP_VLAN 7
#define SW_RULE_DEC_TTL 8
#define SW_RULE_RESUBMIT 9 // look up in table with in_port = port, then go on
#define SW_RULE_GOTO 10    // last
#define SW_RULE_RECIRC 11  // last
#define SW_RULE_NOTE 12    // says something to the reader

#define SW_PORT_IN_PORT 0xfff8 // of an action: the port that the packet came from
#define SW_TABLE_SAME 255      // of RESUBMIT: the table that the rule stands in

struct sw_rule_act {
	uint8_t type;
	uint8_t name;     // SET: how it was said, for the dump
	uint8_t needs;    // SET: SW_NEEDS_* of the packet, else nothing happens
	uint8_t n_bytes;  // SET, NOTE
	uint16_t offset;  // SET: in struct sw_key
	uint16_t port;    // OUTPUT, RESUBMIT
	uint32_t max_len; // OUTPUT; 0: all
	uint16_t tpid;    // PUSH_VLAN, network order
	uint8_t table;    // RESUBMIT, GOTO, RECIRC
	uint8_t reserved;
	union {
		struct {
			uint8_t value[16]; // SET, network order; 0 where mask is 0
			uint8_t mask[16];
		};
		uint8_t note[32];
	};
};

struct sw_rule {
	struct sw_key value; // 0 where mask is 0
	struct sw_key mask;
	uint64_t cookie;
	uint16_t priority;
	uint8_t table;
	uint32_t n_acts;
	struct sw_rule_act *acts; // malloc'd; NULL when n_acts is 0
};

// Accepts a rule that is all 0.
void sw_rule_free(struct sw_rule *rule);
void sw_rules_free(struct sw_rule *rules, uint32_t n_rules);
// -ENOMEM.
int sw_rule_copy(const struct sw_rule *rule, struct sw_rule *out_copy);

// ofport of a port named in a rule, or -ENOENT. ctx is the caller's.
typedef int sw_port_resolve_fn(void *ctx, const char *name);

struct sw_rule_parser {
	sw_port_resolve_fn *resolve; // NULL: ports by number only
	void *resolve_ctx;
};

// Parse a rule. -EINVAL: err names the field and the remedy, *out_rule is untouched. -ENOMEM.
int sw_rule_parse(const struct sw_rule_parser *parser, const char *text, struct sw_rule *out_rule,
		  struct sw_error *err);

// Parse the lines of a file: blank ones and what stands behind '#' are skipped. *out_rules is
// malloc'd, for sw_rules_free(). -EINVAL: err names the line. -ENOMEM.
int sw_rules_parse(const struct sw_rule_parser *parser, const char *const *lines, uint32_t n_lines,
		   struct sw_rule **out_rules, uint32_t *out_n, struct sw_error *err);

// The same table, match and priority. The same in all but what they have counted.
bool sw_rule_is_same_match(const struct sw_rule *a, const struct sw_rule *b);
bool sw_rule_is_same(const struct sw_rule *a, const struct sw_rule *b);

// What del-flows and dump-flows select with: a match without actions.
struct sw_flow_filter {
	struct sw_rule match;
	uint64_t cookie_mask;
	uint16_t out_port; // 0: whatever the rule does
	bool is_any_table; // whatever match.table
	bool is_strict;    // this match and priority exactly, instead of all rules within it
};

// Parse a match; text NULL or empty selects everything. -EINVAL.
int sw_flow_filter_parse(const struct sw_rule_parser *parser, const char *text, bool is_strict,
			 struct sw_flow_filter *out_filter, struct sw_error *err);
// What mod-flows says: which rules (by the filter's match), and what they are to do.
struct sw_flow_mod {
	struct sw_flow_filter filter; // filter.match.acts: the new actions
	uint64_t cookie;              // the new one
	bool has_cookie;              // otherwise each keeps its own
};

// Parse such a rule; *out_mod is for sw_flow_mod_free(). -EINVAL, -ENOMEM.
int sw_flow_mod_parse(const struct sw_rule_parser *parser, const char *text, bool is_strict,
		      struct sw_flow_mod *out_mod, struct sw_error *err);
void sw_flow_mod_free(struct sw_flow_mod *mod);

bool sw_flow_filter_matches(const struct sw_flow_filter *filter, const struct sw_rule *rule);
// True when there may be packets within both, that is, unless they differ in a bit that both look
// at.
bool sw_flow_filter_meets(const struct sw_flow_filter *filter, const struct sw_key *value,
			  const struct sw_key *mask);

// The match of keys that equal this one where mask is 1, without priority and actions, e.g.
// "udp,in_port=1,nw_dst=20.0.0.0/24"; also of a megaflow, whose recirc_id is then said. Returns the
// length, as snprintf.
int sw_match_format(const struct sw_key *key, const struct sw_key *mask, char *out, size_t size);
int sw_rule_format_match(const struct sw_rule *rule, char *out, size_t size);
int sw_rule_format_actions(const struct sw_rule *rule, char *out, size_t size);
// All of it, such that sw_rule_parse() gives the same rule again.
int sw_rule_format(const struct sw_rule *rule, char *out, size_t size);
