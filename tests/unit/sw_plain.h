// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * A plain evaluation of the rules, one packet and one rule at a time, in all tables: what the
 * switch must be equal to. It carries a packet through the rules and writes down what leaves it and
 * how it looks then.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sw_flow.h"

#define SW_PLAIN_MAX_RULES 120
#define SW_PLAIN_MAX_OUT 2048 // all that the resubmits of one packet may send
#define SW_PLAIN_TAGS 4       // that a translation keeps in mind
#define SW_PLAIN_MAX_DEEP 64

// A packet under way: its key, and its tags, of which the key knows two. Those below are no longer
// seen by any action.
struct sw_plain_packet {
	struct sw_key key;
	uint16_t tags[SW_PLAIN_TAGS]; // 0: none
	uint16_t deep[SW_PLAIN_MAX_DEEP];
	uint32_t n_deep;
};

// What has left, and how it looked.
struct sw_plain_left {
	uint8_t type; // SW_ACT_*
	uint16_t port;
	uint32_t arg; // max_len, recirc_id
	struct sw_plain_packet packet;
};

// One pass of a packet through the tables.
struct sw_plain_way {
	struct sw_plain_left out[SW_PLAIN_MAX_OUT];
	uint32_t n_out;
	uint32_t n_late; // that others of its megaflow send where this one's TTL has ended
	const struct sw_rule *rules[256];
	uint32_t n_rules;
	uint32_t n_resubmits;
	uint32_t n_acts;   // that a translation makes of it, at most
	uint8_t known_ttl; // bits that a rule has set
	bool is_over;
	bool is_dead;    // its TTL has ended
	bool is_limited; // too many resubmits or rules
	bool is_missed;  // the last table had no rule
};

// As the tables of rules do: the rule takes the place of one with the same match. It is taken over.
void sw_plain_add(const struct sw_rule *rule);
void sw_plain_delete(const struct sw_flow_filter *filter);
// Other actions, copied, for the rules that match. False, and nothing: a goto_table would lead
// backwards.
bool sw_plain_modify(const struct sw_flow_mod *mod);
uint32_t sw_plain_count(void);
void sw_plain_clear(void);

// Carry a packet through the tables, from the one on that its recirc_id says. Good until the next
// call.
const struct sw_plain_way *sw_plain_walk(const struct sw_plain_packet *packet);
struct sw_plain_packet sw_plain_packet_of(const struct sw_key *key);

// Print the key and the rules, and fail.
void sw_plain_explain(const struct sw_key *key, const char *what);

// Carry a packet with this key through the actions of a translation, and fail unless the same
// leaves it as from the rules, for the same reason and by way of the same rules.
void sw_plain_check(struct sw_flow_table *table, const struct sw_key *key,
		    const struct sw_xlate *result);
