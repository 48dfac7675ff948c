// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Counters of rules: one array per PMD, summed here.
#include <stdlib.h>
#include <string.h>

#include "sw_flow_table.h"

struct sw_flow_stats *sw_flow_stats_attach(struct sw_flow_table *table)
{
	size_t bytes = (sizeof(struct sw_flow_stats) + 63) & ~(size_t)63;

	for (uint32_t i = 0; i < SW_FLOW_MAX_PMDS; i++) {
		struct sw_flow_stats *stats;

		if (table->pmds[i])
			continue;
		stats = aligned_alloc(64, bytes);
		if (stats)
			memset(stats, 0, bytes);
		table->pmds[i] = stats;
		return stats;
	}
	return NULL;
}

void sw_flow_stats_detach(struct sw_flow_table *table, struct sw_flow_stats *stats)
{
	if (!stats)
		return;
	for (uint32_t i = 0; i < SW_N_BAD; i++)
		table->retired_bad[i] += atomic_load_explicit(&stats->bad[i], memory_order_relaxed);
	for (uint32_t i = 0; i < SW_FLOW_MAX_RULES; i++) {
		const struct sw_flow_count *count = &stats->rules[i];

		table->retired[i].packets +=
			atomic_load_explicit(&count->packets, memory_order_relaxed);
		table->retired[i].bytes +=
			atomic_load_explicit(&count->bytes, memory_order_relaxed);
	}
	for (uint32_t i = 0; i < SW_FLOW_MAX_PMDS; i++) {
		if (table->pmds[i] == stats)
			table->pmds[i] = NULL;
	}
	free(stats);
}

void sw_flow_bad_counts(const struct sw_flow_table *table, uint64_t out_bad[SW_N_BAD])
{
	memcpy(out_bad, table->retired_bad, sizeof(table->retired_bad));
	for (uint32_t p = 0; p < SW_FLOW_MAX_PMDS; p++) {
		for (uint32_t i = 0; table->pmds[p] && i < SW_N_BAD; i++)
			out_bad[i] +=
				atomic_load_explicit(&table->pmds[p]->bad[i], memory_order_relaxed);
	}
}

// All that a slot has counted since the start.
static struct sw_flow_total slot_total(const struct sw_flow_table *table, uint32_t slot)
{
	struct sw_flow_total sum = table->retired[slot];

	for (uint32_t p = 0; p < SW_FLOW_MAX_PMDS; p++) {
		const struct sw_flow_count *count;

		if (!table->pmds[p])
			continue;
		count = &table->pmds[p]->rules[slot];
		sum.packets += atomic_load_explicit(&count->packets, memory_order_relaxed);
		sum.bytes += atomic_load_explicit(&count->bytes, memory_order_relaxed);
	}
	return sum;
}

// The slot is free, so no PMD counts in it and its total stands still.
bool sw_flow_slot_take(struct sw_flow_table *table, uint32_t *at, struct sw_flow_entry *entry)
{
	for (; *at < SW_FLOW_MAX_RULES; ++*at) {
		if (table->is_used[*at])
			continue;
		table->is_used[*at] = true;
		table->base[*at] = slot_total(table, *at);
		entry->slot = *at;
		return true;
	}
	return false;
}

struct sw_flow_total sw_flow_slot_count(const struct sw_flow_table *table, uint32_t slot)
{
	struct sw_flow_total total = slot_total(table, slot);

	total.packets -= table->base[slot].packets;
	total.bytes -= table->base[slot].bytes;
	return total;
}
