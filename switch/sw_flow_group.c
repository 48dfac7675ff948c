// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Groups of rules with the same table and mask: what a subtable is made of.
#include <nmmintrin.h>
#include <stdlib.h>
#include <string.h>

#include "sw_flow_table.h"

static uint64_t hash_key(uint64_t hash, const struct sw_key *key)
{
	for (unsigned int i = 0; i < SW_KEY_WORDS; i++)
		hash = _mm_crc32_u64(hash, key->word[i]);
	return hash;
}

uint64_t sw_flow_rule_hash(const struct sw_rule *rule)
{
	uint64_t hash = (uint64_t)rule->table << 16 | rule->priority;

	return hash_key(hash_key(hash, &rule->value), &rule->mask);
}

static struct sw_flow_group **bucket_of(struct sw_flow_table *table, uint8_t number,
					const struct sw_key *mask)
{
	return &table->mask_buckets[hash_key(number, mask) % SW_FLOW_MASK_BUCKETS];
}

struct sw_flow_group *sw_flow_group_find(struct sw_flow_table *table, const struct sw_rule *rule)
{
	struct sw_flow_group **bucket = bucket_of(table, rule->table, &rule->mask);
	struct sw_flow_group *group;

	for (group = *bucket; group; group = group->next_in_bucket) {
		if (group->table == rule->table &&
		    memcmp(&group->mask, &rule->mask, sizeof(group->mask)) == 0)
			return group;
	}
	group = aligned_alloc(64, (sizeof(*group) + 63) & ~(size_t)63);
	if (!group)
		return NULL;
	memset(group, 0, sizeof(*group));
	group->mask = rule->mask;
	group->table = rule->table;
	group->next_in_bucket = *bucket;
	*bucket = group;
	group->next_in_table = table->groups[rule->table];
	table->groups[rule->table] = group;
	return group;
}

void sw_flow_groups_tidy(struct sw_flow_table *table)
{
	for (uint32_t t = 0; t < SW_N_TABLES; t++) {
		struct sw_flow_group **at = &table->groups[t];

		if (!table->is_changed[t])
			continue;
		table->is_changed[t] = false;
		while (*at) {
			struct sw_flow_group *group = *at;
			struct sw_flow_group **in_bucket =
				bucket_of(table, group->table, &group->mask);

			group->is_changed = false;
			if (group->n_entries) {
				at = &group->next_in_table;
				continue;
			}
			*at = group->next_in_table;
			while (*in_bucket != group)
				in_bucket = &(*in_bucket)->next_in_bucket;
			*in_bucket = group->next_in_bucket;
			free(group);
		}
	}
}
