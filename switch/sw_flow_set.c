// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_flow_set.h"

#include <stdlib.h>
#include <string.h>

#include "sw_flow_table.h"

#define ALIGN(bytes) (((bytes) + 63) & ~(size_t)63)

// The bytes of words 0 to 2 that are layer 2 (of little-endian words).
#define L2_WORD UINT64_C(0x0000ffffffffffff)

// Room that a set needs, and where its parts stand in it.
struct plan {
	const struct sw_flow_entry *const *entries;
	uint32_t n;
	uint16_t *ports; // distinct input ports, each once
	uint32_t n_ports;
	uint32_t n_hash;
	size_t rules_bytes;
	size_t lists_len; // pointers in all groups
};

static unsigned int n_words(const struct sw_rule *rule)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < SW_KEY_WORDS; i++)
		n += rule->mask.word[i] != 0;
	return n;
}

static size_t rule_bytes(const struct sw_rule *rule)
{
	return ALIGN(sizeof(struct sw_flow_rule) + n_words(rule) * sizeof(struct sw_flow_word));
}

static uint32_t depth_of(const struct sw_rule *rule)
{
	uint64_t deep = 0, any = 0;

	for (unsigned int i = 0; i < SW_KEY_WORDS; i++) {
		any |= rule->mask.word[i];
		deep |= i < 3 ? rule->mask.word[i] & ~L2_WORD : rule->mask.word[i];
	}
	return deep ? SW_DEPTH_FULL : any ? SW_DEPTH_L2 : SW_DEPTH_NONE;
}

// Rules of one input port (0: of every other), up to the first that matches all. list may be NULL:
// only counted.
static uint32_t collect(const struct plan *plan, struct sw_flow_rule *const *rules,
			uint16_t in_port, const struct sw_flow_rule **list, uint32_t *out_depth)
{
	uint32_t n = 0, depth = SW_DEPTH_NONE;

	for (uint32_t i = 0; i < plan->n; i++) {
		const struct sw_rule *rule = &plan->entries[i]->rule;
		uint32_t needs = depth_of(rule);

		if (rule->in_port != 0 && rule->in_port != in_port)
			continue;
		if (list)
			list[n] = rules[i];
		n++;
		if (needs > depth)
			depth = needs;
		if (needs == SW_DEPTH_NONE)
			break;
	}
	*out_depth = depth;
	return n;
}

static int compare_ports(const void *a, const void *b)
{
	return (int)*(const uint16_t *)a - (int)*(const uint16_t *)b;
}

static bool plan_make(struct plan *plan)
{
	uint32_t n = 0, depth;

	plan->ports = calloc(plan->n + 1, sizeof(*plan->ports));
	if (!plan->ports)
		return false;
	for (uint32_t i = 0; i < plan->n; i++) {
		plan->rules_bytes += rule_bytes(&plan->entries[i]->rule);
		if (plan->entries[i]->rule.in_port)
			plan->ports[n++] = plan->entries[i]->rule.in_port;
	}
	qsort(plan->ports, n, sizeof(*plan->ports), compare_ports);
	for (uint32_t i = 0; i < n; i++) {
		if (i == 0 || plan->ports[i] != plan->ports[i - 1])
			plan->ports[plan->n_ports++] = plan->ports[i];
	}
	plan->n_hash = 2;
	while (plan->n_hash < plan->n_ports * 2)
		plan->n_hash *= 2;
	plan->lists_len = collect(plan, NULL, 0, NULL, &depth);
	for (uint32_t i = 0; i < plan->n_ports; i++)
		plan->lists_len += collect(plan, NULL, plan->ports[i], NULL, &depth);
	return true;
}

static void fill_rule(const struct sw_flow_entry *entry, struct sw_flow_rule *to)
{
	const struct sw_rule *rule = &entry->rule;

	to->slot = entry->slot;
	to->out = rule->out;
	to->is_relative = 0;
	to->n_words = 0;
	if (rule->in_port == 0)
		to->is_relative = rule->out != SW_OUT_DROP;
	else if (rule->out == SW_OUT_IN_PORT)
		to->out = rule->in_port;
	else if (rule->out == rule->in_port)
		to->out = SW_OUT_DROP; // a packet goes back only by the action in_port
	for (uint8_t i = 0; i < SW_KEY_WORDS; i++) {
		if (rule->mask.word[i] == 0)
			continue;
		to->index[to->n_words] = i;
		to->words[to->n_words].mask = rule->mask.word[i];
		to->words[to->n_words].value = rule->value.word[i];
		to->n_words++;
	}
}

static struct sw_flow_group *hash_place(struct sw_flow_group *hash, uint32_t mask, uint16_t in_port)
{
	uint32_t at = sw_flow_hash(in_port) & mask;

	while (hash[at].in_port != SW_FLOW_NO_GROUP)
		at = (at + 1) & mask;
	return &hash[at];
}

static void fill(const struct plan *plan, uint8_t *memory, struct sw_flow_rule **rules)
{
	struct sw_flow_set *set = (struct sw_flow_set *)memory;
	struct sw_flow_group *hash = (struct sw_flow_group *)(memory + ALIGN(sizeof(*set)));
	uint8_t *at = (uint8_t *)hash + ALIGN(plan->n_hash * sizeof(*hash));
	const struct sw_flow_rule **list =
		(const struct sw_flow_rule **)(void *)(at + plan->rules_bytes);

	set->hash = hash;
	set->hash_mask = plan->n_hash - 1;
	for (uint32_t i = 0; i < plan->n_hash; i++)
		hash[i].in_port = SW_FLOW_NO_GROUP;
	for (uint32_t i = 0; i < plan->n; i++) {
		rules[i] = (struct sw_flow_rule *)(void *)at;
		fill_rule(plan->entries[i], rules[i]);
		at += rule_bytes(&plan->entries[i]->rule);
	}
	set->rest.rules = list;
	set->rest.n_rules = collect(plan, rules, 0, list, &set->rest.depth);
	list += set->rest.n_rules;
	for (uint32_t i = 0; i < plan->n_ports; i++) {
		struct sw_flow_group *group = hash_place(hash, set->hash_mask, plan->ports[i]);

		group->in_port = plan->ports[i];
		group->rules = list;
		group->n_rules = collect(plan, rules, plan->ports[i], list, &group->depth);
		list += group->n_rules;
	}
}

struct sw_flow_set *sw_flow_set_compile(const struct sw_flow_entry *const *entries, uint32_t n)
{
	struct plan plan = {.entries = entries, .n = n};
	struct sw_flow_rule **rules = calloc(n + 1, sizeof(*rules));
	uint8_t *memory = NULL;
	size_t bytes;

	if (!rules || !plan_make(&plan))
		goto out;
	bytes = ALIGN(sizeof(struct sw_flow_set)) +
		ALIGN(plan.n_hash * sizeof(struct sw_flow_group)) + plan.rules_bytes +
		ALIGN(plan.lists_len * sizeof(*rules));
	memory = aligned_alloc(64, bytes);
	if (!memory)
		goto out;
	memset(memory, 0, bytes); // also faults the pages in, which a PMD must not
	fill(&plan, memory, rules);
out:
	free(plan.ports);
	free(rules);
	return (struct sw_flow_set *)(void *)memory;
}

void sw_flow_set_free(struct sw_flow_set *set)
{
	free(set);
}
