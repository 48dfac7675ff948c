// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Counters of rules: one array per PMD, summed here; and the slots in them.
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
		if (!stats)
			return NULL;
		memset(stats, 0, bytes);
		// The PMD will find this snapshot or a later one.
		atomic_init(&stats->oldest_generation,
			    sw_tables_generation(sw_tables_get(&table->ref)));
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
	for (uint32_t i = 0; i < SW_FLOW_MAX_SLOTS; i++) {
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

void sw_flow_slots_init(struct sw_flow_table *table)
{
	// The lowest are given out first: they share pages.
	for (uint32_t i = 0; i < SW_FLOW_MAX_SLOTS; i++)
		table->free_slots[i] = SW_FLOW_MAX_SLOTS - 1 - i;
	table->n_free_slots = SW_FLOW_MAX_SLOTS;
}

// The slot is free, so no PMD counts in it and its total stands still.
bool sw_flow_slot_take(struct sw_flow_table *table, struct sw_flow_entry *entry)
{
	uint32_t slot;

	if (table->n_free_slots == 0)
		return false;
	slot = table->free_slots[--table->n_free_slots];
	table->base[slot] = slot_total(table, slot);
	table->by_slot[slot] = entry;
	entry->compiled->slot = slot;
	return true;
}

void sw_flow_slot_return(struct sw_flow_table *table, uint32_t slot)
{
	table->by_slot[slot] = NULL;
	table->free_slots[table->n_free_slots++] = slot;
}

void sw_flow_slot_leave(struct sw_flow_table *table, uint32_t slot, uint64_t generation)
{
	uint32_t at = (table->first_waiting + table->n_waiting++) % SW_FLOW_MAX_SLOTS;

	table->by_slot[slot] = NULL;
	table->waiting[at] = (struct sw_flow_waiting){.generation = generation, .slot = slot};
}

void sw_flow_slots_reap(struct sw_flow_table *table)
{
	uint64_t oldest = UINT64_MAX;

	for (uint32_t i = 0; i < SW_FLOW_MAX_PMDS; i++) {
		uint64_t generation;

		if (!table->pmds[i])
			continue;
		// O2, acquire: pairs with O1, so that what the PMD counted before is in the total.
		generation = atomic_load_explicit(&table->pmds[i]->oldest_generation,
						  memory_order_acquire);
		oldest = generation < oldest ? generation : oldest;
	}
	while (table->n_waiting && table->waiting[table->first_waiting].generation <= oldest) {
		sw_flow_slot_return(table, table->waiting[table->first_waiting].slot);
		table->first_waiting = (table->first_waiting + 1) % SW_FLOW_MAX_SLOTS;
		table->n_waiting--;
	}
}

struct sw_flow_total sw_flow_slot_count(const struct sw_flow_table *table, uint32_t slot)
{
	struct sw_flow_total total = slot_total(table, slot);

	total.packets -= table->base[slot].packets;
	total.bytes -= table->base[slot].bytes;
	return total;
}
