// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * A plain evaluation of the rules, one packet and one rule at a time, in all tables: what the
 * switch must be equal to. It carries a packet through the rules and writes down what leaves it and
 * how it looks then.
 */
#pragma once

#include <stdint.h>

#include "sw_flow.h"

#define SW_PLAIN_MAX_RULES 120

// As the tables of rules do: the rule takes the place of one with the same match. It is taken over.
void sw_plain_add(const struct sw_rule *rule);
void sw_plain_delete(const struct sw_flow_filter *filter);
uint32_t sw_plain_count(void);
void sw_plain_clear(void);

// Carry a packet with this key through the actions of a translation, and fail unless the same
// leaves it as from the rules, for the same reason and by way of the same rules.
void sw_plain_check(struct sw_flow_table *table, const struct sw_key *key,
		    const struct sw_xlate *result);
