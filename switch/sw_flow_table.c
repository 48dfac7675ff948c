// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_flow_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_rcu_qsbr.h>

_Static_assert(SW_N_TABLES == SW_XLATE_N_TABLES, "both sides know the same tables");

#define MAX_LEFTOVERS 256 // snapshots that may wait for a PMD

// What a snapshot leaves behind until no PMD uses it.
struct sw_flow_leftover {
	struct sw_flow_leftover *next;
	uint64_t token;      // of the grace period
	uint64_t generation; // of the snapshot that took its place
	struct sw_tables *tables;
	uint32_t n_tables, n_subtables, n_rules;
	uint32_t n_slots; // of the first so many rules
	const struct sw_ctable *ctable[SW_N_TABLES];
	struct sw_subtable **subtables;
	struct sw_crule **rules;
};

// What is constant to all who read it.
static void free_constant(const void *memory)
{
	void *own;

	memcpy(&own, &memory, sizeof(own));
	free(own);
}

// The oldest.
static void leftover_free(struct sw_flow_table *table)
{
	struct sw_flow_leftover *left = table->leftovers;

	table->leftovers = left->next;
	if (!table->leftovers)
		table->leftovers_end = &table->leftovers;
	table->n_leftovers--;
	for (uint32_t i = 0; i < left->n_rules; i++) {
		if (i < left->n_slots)
			sw_flow_slot_leave(table, left->rules[i]->slot, left->generation);
		sw_crule_free(left->rules[i]);
	}
	for (uint32_t i = 0; i < left->n_subtables; i++)
		sw_subtable_free(left->subtables[i]);
	for (uint32_t i = 0; i < left->n_tables; i++)
		free_constant(left->ctable[i]);
	free(left->tables);
	free(left->subtables);
	free(left->rules);
	free(left);
}

void sw_flow_reap(struct sw_flow_table *table)
{
	while (table->leftovers &&
	       (!table->qsbr ||
		rte_rcu_qsbr_check(table->qsbr, table->leftovers->token, false) == 1))
		leftover_free(table);
	sw_flow_slots_reap(table);
}

struct sw_flow_table *sw_flow_table_create(struct rte_rcu_qsbr *qsbr)
{
	struct sw_flow_table *table = calloc(1, sizeof(*table));
	struct sw_tables *tables = calloc(1, sizeof(*tables));

	if (!table || !tables) {
		free(table);
		free(tables);
		return NULL;
	}
	tables->generation = 1;
	tables->grain = 1;
	table->qsbr = qsbr;
	table->leftovers_end = &table->leftovers;
	sw_flow_slots_init(table);
	atomic_init(&table->ref.tables, tables);
	return table;
}

void sw_flow_table_destroy(struct sw_flow_table *table)
{
	struct sw_tables *tables;

	if (!table)
		return;
	while (table->leftovers)
		leftover_free(table);
	for (uint32_t i = 0; i < table->n_entries; i++) {
		sw_crule_free(table->entries[i]->compiled);
		sw_rule_free(&table->entries[i]->rule);
		free(table->entries[i]);
	}
	tables = atomic_load_explicit(&table->ref.tables, memory_order_relaxed);
	for (uint32_t t = 0; t < SW_N_TABLES; t++) {
		while (table->groups[t]) {
			struct sw_flow_group *group = table->groups[t];

			table->groups[t] = group->next_in_table;
			sw_subtable_free(group->now);
			free(group);
		}
		free_constant(tables->table[t]);
	}
	for (uint32_t i = 0; i < SW_FLOW_MAX_PMDS; i++)
		free(table->pmds[i]);
	free(table->entries);
	free(tables);
	free(table);
}

const struct sw_flow_ref *sw_flow_table_ref(const struct sw_flow_table *table)
{
	return &table->ref;
}

// The group's next subtable, of the entries that stay.
static int prepare_group(struct sw_flow_group *group)
{
	struct sw_crule **rules = malloc((group->n_entries + 1) * sizeof(*rules));
	struct sw_flow_entry *entry;
	uint32_t n = 0;

	if (!rules)
		return -ENOMEM;
	for (entry = group->entries; entry; entry = entry->next_in_group) {
		if (!entry->is_gone)
			rules[n++] = entry->compiled;
	}
	group->next = n ? sw_subtable_new(&group->mask, rules, n) : NULL;
	free(rules);
	return n && !group->next ? -ENOMEM : 0;
}

static int compare_subtables(const void *a, const void *b)
{
	const struct sw_subtable *x = *(const struct sw_subtable *const *)a;
	const struct sw_subtable *y = *(const struct sw_subtable *const *)b;

	return x->best > y->best ? -1 : x->best < y->best;
}

static const struct sw_subtable *coming(const struct sw_flow_group *group)
{
	return group->is_changed ? group->next : group->now;
}

static int prepare_table(struct sw_flow_table *table, uint32_t number, struct sw_tables *tables,
			 struct sw_error *err)
{
	struct sw_flow_group *group;
	struct sw_ctable *ctable;
	uint32_t n = 0;

	for (group = table->groups[number]; group; group = group->next_in_table) {
		if (group->is_changed && prepare_group(group) < 0)
			return sw_fail(err, -ENOMEM, "no memory for the rules of table %u", number);
		n += coming(group) != NULL;
	}
	if (n > SW_FLOW_MAX_MASKS)
		return sw_fail(
			err, -ENOSPC,
			"table %u: %u different masks, but a table holds %u (spread the rules "
			"over several tables, or let more of them match on the same fields)",
			number, n, SW_FLOW_MAX_MASKS);
	tables->table[number] = NULL;
	if (n == 0)
		return 0;
	ctable = malloc(sizeof(*ctable) + n * sizeof(ctable->subtable[0]));
	if (!ctable)
		return sw_fail(err, -ENOMEM, "no memory for table %u", number);
	ctable->n_subtables = 0;
	for (group = table->groups[number]; group; group = group->next_in_table) {
		if (coming(group))
			ctable->subtable[ctable->n_subtables++] = coming(group);
	}
	qsort(ctable->subtable, n, sizeof(ctable->subtable[0]), compare_subtables);
	tables->table[number] = ctable;
	return 0;
}

static struct sw_flow_leftover *leftover_new(struct sw_flow_table *table, uint32_t n_gone)
{
	struct sw_flow_leftover *left = calloc(1, sizeof(*left));
	uint32_t n = 0;

	for (uint32_t t = 0; t < SW_N_TABLES; t++) {
		struct sw_flow_group *group = table->is_changed[t] ? table->groups[t] : NULL;

		for (; group; group = group->next_in_table)
			n += group->is_changed;
	}
	if (!left)
		return NULL;
	left->subtables = malloc((n + 1) * sizeof(*left->subtables));
	left->rules = malloc((n_gone + 1) * sizeof(*left->rules));
	if (!left->subtables || !left->rules) {
		free(left->subtables);
		free(left->rules);
		free(left);
		return NULL;
	}
	return left;
}

int sw_flow_prepare(struct sw_flow_table *table, uint32_t n_gone, struct sw_flow_publication *out,
		    struct sw_error *err)
{
	int rc = 0;

	out->left = NULL;
	out->tables = NULL;
	if (table->n_leftovers >= MAX_LEFTOVERS)
		return sw_fail(err, -EBUSY,
			       "%u earlier changes wait for a PMD that does not answer (see "
			       "pmd-health-show, then try again)",
			       table->n_leftovers);
	out->left = leftover_new(table, n_gone);
	out->tables = malloc(sizeof(*out->tables));
	if (!out->left || !out->tables)
		return sw_fail(err, -ENOMEM, "no memory for the tables of rules");
	*out->tables = *sw_tables_get(&table->ref);
	out->tables->generation++;
	for (uint32_t t = 0; t < SW_N_TABLES && rc == 0; t++) {
		if (table->is_changed[t])
			rc = prepare_table(table, t, out->tables, err);
	}
	if (rc == 0)
		out->tables->grain = sw_tables_grain(out->tables);
	return rc;
}

void sw_flow_unprepare(struct sw_flow_table *table, struct sw_flow_publication *publication)
{
	const struct sw_tables *now = sw_tables_get(&table->ref);

	for (uint32_t t = 0; t < SW_N_TABLES; t++) {
		struct sw_flow_group *group = table->is_changed[t] ? table->groups[t] : NULL;

		for (; group; group = group->next_in_table) {
			sw_subtable_free(group->next);
			group->next = NULL;
		}
		if (publication->tables && publication->tables->table[t] != now->table[t])
			free_constant(publication->tables->table[t]);
	}
	free(publication->tables);
	if (publication->left) {
		free(publication->left->subtables);
		free(publication->left->rules);
	}
	free(publication->left);
}

void sw_flow_publish(struct sw_flow_table *table, struct sw_flow_publication *publication,
		     struct sw_crule *const *gone, uint32_t n_gone, uint32_t n_left)
{
	struct sw_flow_leftover *left = publication->left;

	left->tables = atomic_load_explicit(&table->ref.tables, memory_order_relaxed);
	left->generation = publication->tables->generation;
	for (uint32_t t = 0; t < SW_N_TABLES; t++) {
		struct sw_flow_group *group = table->is_changed[t] ? table->groups[t] : NULL;

		if (table->is_changed[t] && left->tables->table[t])
			left->ctable[left->n_tables++] = left->tables->table[t];
		for (; group; group = group->next_in_table) {
			if (!group->is_changed)
				continue;
			if (group->now)
				left->subtables[left->n_subtables++] = group->now;
			group->now = group->next;
			group->next = NULL;
		}
	}
	for (uint32_t i = 0; i < n_gone; i++) {
		left->rules[i] = gone[i];
		if (i < n_left)
			table->by_slot[gone[i]->slot] = NULL;
	}
	left->n_rules = n_gone;
	left->n_slots = n_left;
	// F1, release: pairs with F2 (sw_tables_get).
	atomic_store_explicit(&table->ref.tables, publication->tables, memory_order_release);
	left->token = table->qsbr ? rte_rcu_qsbr_start(table->qsbr) : 0;
	*table->leftovers_end = left;
	table->leftovers_end = &left->next;
	table->n_leftovers++;
	sw_flow_reap(table);
}

uint32_t sw_flow_count(const struct sw_flow_table *table)
{
	return table->n_entries;
}

static int compare_entries(const void *a, const void *b)
{
	const struct sw_flow_entry *x = *(struct sw_flow_entry *const *)a;
	const struct sw_flow_entry *y = *(struct sw_flow_entry *const *)b;

	if (x->rule.table != y->rule.table)
		return x->rule.table < y->rule.table ? -1 : 1;
	return x->compiled->rank > y->compiled->rank ? -1 : 1;
}

void sw_flow_get(struct sw_flow_table *table, uint32_t i, struct sw_flow_info *out_info)
{
	struct sw_flow_total count;
	const struct sw_flow_entry *entry;

	if (!table->is_sorted) {
		qsort(table->entries, table->n_entries, sizeof(struct sw_flow_entry *),
		      compare_entries);
		table->is_sorted = true;
	}
	entry = table->entries[i];
	count = sw_flow_slot_count(table, entry->compiled->slot);
	out_info->rule = &entry->rule;
	out_info->n_packets = count.packets;
	out_info->n_bytes = count.bytes;
	out_info->created_ns = entry->created_ns;
}

uint32_t sw_flow_masks(const struct sw_flow_table *table, uint8_t number)
{
	const struct sw_ctable *ctable = sw_tables_get(&table->ref)->table[number];

	return ctable ? ctable->n_subtables : 0;
}

const struct sw_rule *sw_flow_by_slot(const struct sw_flow_table *table, uint32_t slot)
{
	return slot < SW_FLOW_MAX_SLOTS && table->by_slot[slot] ? &table->by_slot[slot]->rule
								: NULL;
}
