// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Rules as objects: copies, comparisons, filters.
#include "sw_rule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void sw_rule_free(struct sw_rule *rule)
{
	free(rule->acts);
	rule->acts = NULL;
	rule->n_acts = 0;
}

void sw_rules_free(struct sw_rule *rules, uint32_t n_rules)
{
	for (uint32_t i = 0; rules && i < n_rules; i++)
		sw_rule_free(&rules[i]);
	free(rules);
}

int sw_rule_copy(const struct sw_rule *rule, struct sw_rule *out_copy)
{
	struct sw_rule_act *acts = NULL;

	if (rule->n_acts) {
		acts = malloc(rule->n_acts * sizeof(*acts));
		if (!acts)
			return -ENOMEM;
		memcpy(acts, rule->acts, rule->n_acts * sizeof(*acts));
	}
	*out_copy = *rule;
	out_copy->acts = acts;
	return 0;
}

bool sw_rule_is_same_match(const struct sw_rule *a, const struct sw_rule *b)
{
	return a->table == b->table && a->priority == b->priority &&
	       memcmp(&a->value, &b->value, sizeof(a->value)) == 0 &&
	       memcmp(&a->mask, &b->mask, sizeof(a->mask)) == 0;
}

bool sw_rule_is_same(const struct sw_rule *a, const struct sw_rule *b)
{
	return a->cookie == b->cookie && a->n_acts == b->n_acts && sw_rule_is_same_match(a, b) &&
	       (a->n_acts == 0 || memcmp(a->acts, b->acts, a->n_acts * sizeof(*a->acts)) == 0);
}

static bool has_output(const struct sw_rule *rule, uint16_t port)
{
	for (uint32_t i = 0; i < rule->n_acts; i++) {
		if (rule->acts[i].type == SW_RULE_OUTPUT && rule->acts[i].port == port)
			return true;
	}
	return false;
}

bool sw_flow_filter_matches(const struct sw_flow_filter *filter, const struct sw_rule *rule)
{
	const struct sw_rule *match = &filter->match;

	if (((rule->cookie ^ match->cookie) & filter->cookie_mask) != 0)
		return false;
	if (filter->out_port && !has_output(rule, filter->out_port))
		return false;
	if (!filter->is_any_table && match->table != rule->table)
		return false;
	if (filter->is_strict)
		return match->priority == rule->priority &&
		       memcmp(&match->value, &rule->value, sizeof(match->value)) == 0 &&
		       memcmp(&match->mask, &rule->mask, sizeof(match->mask)) == 0;
	for (unsigned int i = 0; i < SW_KEY_WORDS; i++) {
		uint64_t mask = match->mask.word[i];

		if (mask & ~rule->mask.word[i] ||
		    (rule->value.word[i] ^ match->value.word[i]) & mask)
			return false;
	}
	return true;
}

bool sw_flow_filter_meets(const struct sw_flow_filter *filter, const struct sw_key *value,
			  const struct sw_key *mask)
{
	const struct sw_rule *match = &filter->match;

	for (unsigned int i = 0; i < SW_KEY_WORDS; i++) {
		if ((value->word[i] ^ match->value.word[i]) & mask->word[i] & match->mask.word[i])
			return false;
	}
	return true;
}
