// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_flow_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_rcu_qsbr.h>

#include "sw_flow_set.h"

#define MAX_LEFTOVERS 256 // rule sets that may wait for a PMD

// What an old rule set leaves behind until no PMD uses it.
struct sw_flow_leftover {
	struct sw_flow_leftover *next;
	uint64_t token; // of the grace period
	struct sw_flow_set *set;
	uint32_t n_slots;
	uint32_t slots[];
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

// The oldest.
static void leftover_free(struct sw_flow_table *table)
{
	struct sw_flow_leftover *left = table->leftovers;

	for (uint32_t i = 0; i < left->n_slots; i++)
		table->is_used[left->slots[i]] = false;
	table->leftovers = left->next;
	if (!table->leftovers)
		table->leftovers_end = &table->leftovers;
	table->n_leftovers--;
	sw_flow_set_free(left->set);
	free(left);
}

static void leftover_add(struct sw_flow_table *table, struct sw_flow_leftover *left)
{
	left->token = table->qsbr ? rte_rcu_qsbr_start(table->qsbr) : 0;
	*table->leftovers_end = left;
	table->leftovers_end = &left->next;
	table->n_leftovers++;
	sw_flow_reap(table);
}

void sw_flow_reap(struct sw_flow_table *table)
{
	while (table->leftovers &&
	       (!table->qsbr ||
		rte_rcu_qsbr_check(table->qsbr, table->leftovers->token, false) == 1))
		leftover_free(table);
}

struct sw_flow_table *sw_flow_table_create(struct rte_rcu_qsbr *qsbr)
{
	struct sw_flow_table *table = calloc(1, sizeof(*table));
	struct sw_flow_set *set = sw_flow_set_compile(NULL, 0);

	if (!table || !set) {
		free(table);
		sw_flow_set_free(set);
		return NULL;
	}
	table->qsbr = qsbr;
	table->leftovers_end = &table->leftovers;
	atomic_init(&table->ref.set, set);
	return table;
}

void sw_flow_table_destroy(struct sw_flow_table *table)
{
	if (!table)
		return;
	while (table->leftovers)
		leftover_free(table);
	for (uint32_t i = 0; i < table->n_entries; i++)
		free(table->entries[i]);
	for (uint32_t i = 0; i < SW_FLOW_MAX_PMDS; i++)
		free(table->pmds[i]);
	free(table->entries);
	sw_flow_set_free(atomic_load_explicit(&table->ref.set, memory_order_relaxed));
	free(table);
}

const struct sw_flow_ref *sw_flow_table_ref(const struct sw_flow_table *table)
{
	return &table->ref;
}

static int compare_entries(const void *a, const void *b)
{
	const struct sw_flow_entry *x = *(struct sw_flow_entry *const *)a;
	const struct sw_flow_entry *y = *(struct sw_flow_entry *const *)b;

	if (x->rule.priority != y->rule.priority)
		return x->rule.priority > y->rule.priority ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

// Give back what a refused change has taken. Entries of the table stay.
static void discard(struct sw_flow_table *table, struct sw_flow_entry **next, uint32_t n)
{
	for (uint32_t i = 0; next && i < n; i++) {
		if (next[i]->created_ns != 0)
			continue;
		if (next[i]->slot != SW_FLOW_NO_SLOT)
			table->is_used[next[i]->slot] = false;
		free(next[i]);
	}
	free(next);
}

static int take_slots(struct sw_flow_table *table, struct sw_flow_entry **next, uint32_t n,
		      struct sw_error *err)
{
	uint32_t at = 0;

	if (n > SW_FLOW_MAX_RULES)
		return sw_fail(err, -ENOSPC,
			       "%u rules: the table holds %u (delete some with del-flows)", n,
			       SW_FLOW_MAX_RULES);
	for (uint32_t i = 0; i < n; i++) {
		if (next[i]->slot == SW_FLOW_NO_SLOT && !sw_flow_slot_take(table, &at, next[i]))
			return sw_fail(
				err, -ENOSPC,
				"the rule table is full: %u rules, and deleted ones that a PMD may "
				"still use (try again, or see pmd-health-show for a stalled one)",
				n);
	}
	return 0;
}

// Everything that can be refused: slots for new entries, matching order, the compiled set.
static int prepare(struct sw_flow_table *table, struct sw_flow_entry **next, uint32_t n,
		   struct sw_flow_set **out_set, struct sw_error *err)
{
	int rc;

	sw_flow_reap(table);
	if (table->n_leftovers >= MAX_LEFTOVERS)
		return sw_fail(err, -EBUSY,
			       "%u earlier changes wait for a PMD that does not answer (see "
			       "pmd-health-show, then try again)",
			       table->n_leftovers);
	rc = take_slots(table, next, n, err);
	if (rc < 0)
		return rc;
	qsort(next, n, sizeof(struct sw_flow_entry *), compare_entries);
	*out_set = sw_flow_set_compile((const struct sw_flow_entry *const *)next, n);
	return *out_set ? 0 : sw_fail(err, -ENOMEM, "no memory for %u rules", n);
}

// The rules of the table become next, which is taken over, also on failure. Returns how many old
// ones are gone.
static int commit(struct sw_flow_table *table, struct sw_flow_entry **next, uint32_t n,
		  struct sw_error *err)
{
	uint32_t n_old = table->n_entries;
	struct sw_flow_leftover *left = calloc(1, sizeof(*left) + n_old * sizeof(left->slots[0]));
	struct sw_flow_set *set = NULL;
	uint64_t now = now_ns();
	int rc = left ? prepare(table, next, n, &set, err) : sw_fail(err, -ENOMEM, "no memory");

	if (rc < 0) {
		discard(table, next, n);
		free(left);
		return rc;
	}
	for (uint32_t i = 0; i < n_old; i++)
		table->entries[i]->is_wanted = false;
	for (uint32_t i = 0; i < n; i++) {
		next[i]->is_wanted = true;
		if (next[i]->created_ns == 0)
			next[i]->created_ns = now;
	}
	for (uint32_t i = 0; i < n_old; i++) {
		if (table->entries[i]->is_wanted)
			continue;
		left->slots[left->n_slots++] = table->entries[i]->slot;
		free(table->entries[i]);
	}
	free(table->entries);
	table->entries = next;
	table->n_entries = n;
	left->set = atomic_load_explicit(&table->ref.set, memory_order_relaxed);
	// F1, release: pairs with F2 (sw_flow_set_get).
	atomic_store_explicit(&table->ref.set, set, memory_order_release);
	rc = (int)left->n_slots;
	leftover_add(table, left);
	return rc;
}

static struct sw_flow_entry *entry_new(struct sw_flow_table *table, const struct sw_rule *rule)
{
	struct sw_flow_entry *entry = aligned_alloc(64, (sizeof(*entry) + 63) & ~(size_t)63);

	if (!entry)
		return NULL;
	memset(entry, 0, sizeof(*entry));
	entry->rule = *rule;
	entry->slot = SW_FLOW_NO_SLOT;
	entry->order = table->next_order++;
	return entry;
}

static uint32_t find(struct sw_flow_entry *const *entries, uint32_t n, const struct sw_rule *rule)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (sw_rule_is_same_match(&entries[i]->rule, rule))
			break;
	}
	return i;
}

static bool is_same(const struct sw_rule *a, const struct sw_rule *b)
{
	return a->out == b->out && a->cookie == b->cookie && sw_rule_is_same_match(a, b);
}

/*
 * Lay rules over the *n entries of next, which has room. kept NULL: every rule is a new entry. Else
 * those of kept are taken where they say the same.
 */
static int overlay(struct sw_flow_table *table, struct sw_flow_entry **next, uint32_t *n,
		   const struct sw_rule *rules, uint32_t n_rules, bool is_keeping)
{
	for (uint32_t i = 0; i < n_rules; i++) {
		uint32_t at = find(next, *n, &rules[i]);
		uint32_t old = is_keeping ? find(table->entries, table->n_entries, &rules[i])
					  : table->n_entries;
		struct sw_flow_entry *entry;

		if (old < table->n_entries && is_same(&table->entries[old]->rule, &rules[i]))
			entry = table->entries[old];
		else
			entry = entry_new(table, &rules[i]);
		if (!entry)
			return -ENOMEM;
		if (at < *n && next[at]->created_ns == 0)
			free(next[at]); // said twice: the later line counts
		next[at] = entry;
		*n += at == *n;
	}
	return 0;
}

static int change(struct sw_flow_table *table, const struct sw_rule *rules, uint32_t n_rules,
		  bool is_replacing, struct sw_error *err)
{
	uint32_t n = is_replacing ? 0 : table->n_entries;
	struct sw_flow_entry **next =
		calloc((size_t)n + n_rules + 1, sizeof(struct sw_flow_entry *));
	int rc;

	if (next && n)
		memcpy(next, table->entries, n * sizeof(struct sw_flow_entry *));
	if (!next || overlay(table, next, &n, rules, n_rules, is_replacing) < 0) {
		discard(table, next, n);
		return sw_fail(err, -ENOMEM, "no memory for %u rules", n_rules);
	}
	rc = commit(table, next, n, err);
	return rc < 0 ? rc : 0;
}

int sw_flow_add(struct sw_flow_table *table, const struct sw_rule *rules, uint32_t n_rules,
		struct sw_error *err)
{
	return change(table, rules, n_rules, false, err);
}

int sw_flow_replace(struct sw_flow_table *table, const struct sw_rule *rules, uint32_t n_rules,
		    struct sw_error *err)
{
	return change(table, rules, n_rules, true, err);
}

int sw_flow_delete(struct sw_flow_table *table, const struct sw_flow_filter *filter,
		   struct sw_error *err)
{
	struct sw_flow_entry **next = calloc(table->n_entries + 1, sizeof(struct sw_flow_entry *));
	uint32_t n = 0;

	if (!next)
		return sw_fail(err, -ENOMEM, "no memory");
	for (uint32_t i = 0; i < table->n_entries; i++) {
		if (!sw_flow_filter_matches(filter, &table->entries[i]->rule))
			next[n++] = table->entries[i];
	}
	if (n == table->n_entries) {
		free(next);
		return 0;
	}
	return commit(table, next, n, err);
}

uint32_t sw_flow_count(const struct sw_flow_table *table)
{
	return table->n_entries;
}

void sw_flow_get(const struct sw_flow_table *table, uint32_t i, struct sw_flow_info *out_info)
{
	const struct sw_flow_entry *entry = table->entries[i];
	struct sw_flow_total count = sw_flow_slot_count(table, entry->slot);

	out_info->rule = entry->rule;
	out_info->n_packets = count.packets;
	out_info->n_bytes = count.bytes;
	out_info->created_ns = entry->created_ns;
}
