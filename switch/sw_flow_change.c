// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Changes of the rules: worked out on the side, then made at once or called off.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pmdp_clock.h"
#include "sw_flow_table.h"

// What is to be added and what is to go. An entry can be in both: said twice by one change.
struct change {
	struct sw_flow_table *table;
	struct sw_flow_entry **added;
	struct sw_flow_entry **gone;
	uint32_t n_added, n_gone;
};

static int begin(struct change *change, struct sw_flow_table *table, uint32_t n_rules,
		 struct sw_error *err)
{
	*change = (struct change){.table = table};
	change->added = malloc((n_rules + 1) * sizeof(struct sw_flow_entry *));
	change->gone =
		malloc((table->n_entries + (size_t)n_rules + 1) * sizeof(struct sw_flow_entry *));
	if (change->added && change->gone)
		return 0;
	free(change->added);
	free(change->gone);
	sw_fail(err, -ENOMEM, "no memory for %u rules", n_rules);
	return -ENOMEM;
}

static struct sw_flow_entry **bucket_of(struct sw_flow_table *table, const struct sw_rule *rule)
{
	return &table->rule_buckets[sw_flow_rule_hash(rule) % SW_FLOW_RULE_BUCKETS];
}

static void touch(struct sw_flow_table *table, struct sw_flow_group *group)
{
	group->is_changed = true;
	table->is_changed[group->table] = true;
}

static void remove_entry(struct change *change, struct sw_flow_entry *entry)
{
	entry->is_gone = true;
	if (!entry->is_listed)
		change->gone[change->n_gone++] = entry;
	entry->is_listed = true;
}

static void link_entry(struct sw_flow_table *table, struct sw_flow_entry *entry)
{
	struct sw_flow_entry **bucket = bucket_of(table, &entry->rule);

	entry->next_in_bucket = *bucket;
	*bucket = entry;
	entry->next_in_group = entry->group->entries;
	if (entry->next_in_group)
		entry->next_in_group->previous_in_group = entry;
	entry->group->entries = entry;
	entry->group->n_entries++;
	touch(table, entry->group);
}

static void unlink_entry(struct sw_flow_table *table, struct sw_flow_entry *entry)
{
	struct sw_flow_entry **at = bucket_of(table, &entry->rule);

	while (*at != entry)
		at = &(*at)->next_in_bucket;
	*at = entry->next_in_bucket;
	if (entry->previous_in_group)
		entry->previous_in_group->next_in_group = entry->next_in_group;
	else
		entry->group->entries = entry->next_in_group;
	if (entry->next_in_group)
		entry->next_in_group->previous_in_group = entry->previous_in_group;
	entry->group->n_entries--;
}

// Of a rule; what is compiled of it is left to those who may still read it.
static void free_entry(struct sw_flow_entry *entry)
{
	sw_rule_free(&entry->rule);
	free(entry);
}

static struct sw_flow_entry *entry_new(struct sw_flow_table *table, const struct sw_rule *rule)
{
	struct sw_flow_entry *entry = aligned_alloc(64, (sizeof(*entry) + 63) & ~(size_t)63);

	if (!entry)
		return NULL;
	memset(entry, 0, sizeof(*entry));
	if (sw_rule_copy(rule, &entry->rule) < 0) {
		free(entry);
		return NULL;
	}
	entry->compiled = sw_crule_new(rule, table->next_order);
	entry->group = entry->compiled ? sw_flow_group_find(table, rule) : NULL;
	if (!entry->group) {
		sw_crule_free(entry->compiled);
		free_entry(entry);
		return NULL;
	}
	table->next_order++;
	return entry;
}

/*
 * Lay a rule over what is there. is_replacing: everything old has been removed; what says the same
 * comes back.
 */
static int add_rule(struct change *change, const struct sw_rule *rule, bool is_replacing)
{
	struct sw_flow_entry *entry, *back = NULL;

	for (entry = *bucket_of(change->table, rule); entry; entry = entry->next_in_bucket) {
		if (!sw_rule_is_same_match(&entry->rule, rule))
			continue;
		if (!entry->is_gone)
			remove_entry(change, entry); // said twice: the later one counts
		if (is_replacing && entry->created_ns && sw_rule_is_same(&entry->rule, rule))
			back = entry;
	}
	if (back) {
		back->is_gone = false;
		return 0;
	}
	entry = entry_new(change->table, rule);
	if (!entry)
		return -ENOMEM;
	link_entry(change->table, entry);
	change->added[change->n_added++] = entry;
	return 0;
}

// What came back stays; what was never committed is no concern of the PMDs.
static uint32_t settle_gone(struct change *change)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < change->n_gone; i++) {
		struct sw_flow_entry *entry = change->gone[i];

		entry->is_listed = false;
		if (!entry->is_gone || !entry->created_ns)
			continue;
		touch(change->table, entry->group);
		change->gone[n++] = entry;
	}
	change->n_gone = n;
	return n;
}

// Rules that were added and removed again in the same change.
static void settle_added(struct change *change)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < change->n_added; i++) {
		struct sw_flow_entry *entry = change->added[i];

		if (!entry->is_gone) {
			change->added[n++] = entry;
			continue;
		}
		unlink_entry(change->table, entry);
		sw_crule_free(entry->compiled);
		free_entry(entry);
	}
	change->n_added = n;
}

static void call_off(struct change *change)
{
	for (uint32_t i = 0; i < change->n_gone; i++)
		change->gone[i]->is_gone = change->gone[i]->has_heir = false;
	for (uint32_t i = 0; i < change->n_added; i++) {
		struct sw_flow_entry *entry = change->added[i];

		unlink_entry(change->table, entry);
		if (entry->compiled->slot != UINT32_MAX && !entry->heir_of)
			sw_flow_slot_return(change->table, entry->compiled->slot);
		sw_crule_free(entry->compiled);
		free_entry(entry);
	}
}

static int take_slots(struct change *change, struct sw_error *err)
{
	uint32_t n = change->table->n_entries - change->n_gone + change->n_added;

	if (n > SW_FLOW_MAX_RULES)
		return sw_fail(err, -ENOSPC,
			       "%u rules: the tables hold %u (delete some with del-flows)", n,
			       SW_FLOW_MAX_RULES);
	for (uint32_t i = 0; i < change->n_added; i++) {
		if (!change->added[i]->heir_of &&
		    !sw_flow_slot_take(change->table, change->added[i]))
			return sw_fail(
				err, -ENOSPC,
				"no counters for %u more rules: those of deleted rules are still "
				"in use by a PMD (try again, or see pmd-health-show for a stalled "
				"one)",
				change->n_added - i);
	}
	return 0;
}

static void update_entries(struct change *change, struct sw_flow_entry **entries)
{
	struct sw_flow_table *table = change->table;
	uint64_t now = pmdp_mono_now_ns();
	uint32_t n = 0;

	for (uint32_t i = 0; i < table->n_entries; i++) {
		if (!table->entries[i]->is_gone)
			entries[n++] = table->entries[i];
	}
	for (uint32_t i = 0; i < change->n_added; i++) {
		struct sw_flow_entry *entry = change->added[i];

		entry->created_ns = entry->heir_of ? entry->heir_of->created_ns : now;
		if (entry->heir_of)
			table->by_slot[entry->compiled->slot] = entry;
		entry->heir_of = NULL;
		entries[n++] = entry;
	}
	for (uint32_t i = 0; i < change->n_gone; i++) {
		unlink_entry(table, change->gone[i]);
		free_entry(change->gone[i]);
	}
	free(table->entries);
	table->entries = entries;
	table->n_entries = n;
	table->is_sorted = false;
}

// What is compiled of the rules that go; those without an heir come first. Returns how many these
// are.
static uint32_t list_gone(const struct change *change, struct sw_crule **rules)
{
	uint32_t n_left = 0, n = change->n_gone;

	for (uint32_t i = 0; i < change->n_gone; i++) {
		struct sw_flow_entry *entry = change->gone[i];

		rules[entry->has_heir ? --n : n_left++] = entry->compiled;
	}
	return n_left;
}

static int commit(struct change *change, struct sw_error *err)
{
	struct sw_flow_table *table = change->table;
	size_t n_max = (size_t)table->n_entries + change->n_added + 1;
	struct sw_flow_entry **entries = malloc(n_max * sizeof(struct sw_flow_entry *));
	struct sw_crule **rules = malloc((change->n_gone + 1) * sizeof(*rules));
	struct sw_flow_publication publication = {.tables = NULL};
	uint32_t n_left;
	int rc = entries && rules ? 0 : sw_fail(err, -ENOMEM, "no memory for the tables of rules");

	if (rc == 0)
		rc = take_slots(change, err);
	if (rc == 0)
		rc = sw_flow_prepare(table, change->n_gone, &publication, err);
	if (rc < 0) {
		sw_flow_unprepare(table, &publication);
		free(entries);
		free(rules);
		return rc;
	}
	n_left = list_gone(change, rules);
	update_entries(change, entries);
	sw_flow_publish(table, &publication, rules, change->n_gone, n_left);
	free(rules);
	return 0;
}

// Returns how many are gone, or what the change failed with.
static int end(struct change *change, int rc, struct sw_error *err)
{
	int n_gone = (int)settle_gone(change);

	settle_added(change);
	sw_flow_reap(change->table);
	if (rc == 0 && (n_gone || change->n_added))
		rc = commit(change, err);
	if (rc < 0)
		call_off(change);
	sw_flow_groups_tidy(change->table);
	free(change->added);
	free(change->gone);
	return rc < 0 ? rc : n_gone;
}

static int change_rules(struct sw_flow_table *table, const struct sw_rule *rules, uint32_t n_rules,
			bool is_replacing, struct sw_error *err)
{
	struct change change;
	int rc = begin(&change, table, n_rules, err);

	if (rc < 0)
		return rc;
	for (uint32_t i = 0; is_replacing && i < table->n_entries; i++)
		remove_entry(&change, table->entries[i]);
	for (uint32_t i = 0; i < n_rules && rc == 0; i++)
		rc = add_rule(&change, &rules[i], is_replacing);
	if (rc < 0)
		sw_fail(err, rc, "no memory for %u rules", n_rules);
	rc = end(&change, rc, err);
	return rc < 0 ? rc : 0;
}

int sw_flow_add(struct sw_flow_table *table, const struct sw_rule *rules, uint32_t n_rules,
		struct sw_error *err)
{
	return change_rules(table, rules, n_rules, false, err);
}

int sw_flow_replace(struct sw_flow_table *table, const struct sw_rule *rules, uint32_t n_rules,
		    struct sw_error *err)
{
	return change_rules(table, rules, n_rules, true, err);
}

int sw_flow_delete(struct sw_flow_table *table, const struct sw_flow_filter *filter,
		   struct sw_error *err)
{
	struct change change;
	int rc = begin(&change, table, 0, err);

	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < table->n_entries; i++) {
		if (sw_flow_filter_matches(filter, &table->entries[i]->rule))
			remove_entry(&change, table->entries[i]);
	}
	return end(&change, 0, err);
}

// The rule of this entry as the mod wants it; its actions are the mod's own. -EINVAL: a goto_table
// would lead backwards.
static int modified(const struct sw_flow_entry *entry, const struct sw_flow_mod *mod,
		    struct sw_rule *out_rule, struct sw_error *err)
{
	struct sw_rule rule = entry->rule;

	rule.n_acts = mod->filter.match.n_acts;
	rule.acts = mod->filter.match.acts;
	if (mod->has_cookie)
		rule.cookie = mod->cookie;
	for (uint32_t i = 0; i < rule.n_acts; i++) {
		if (rule.acts[i].type == SW_RULE_GOTO && rule.acts[i].table <= rule.table)
			return sw_fail(
				err, -EINVAL,
				"goto_table:%u: a rule of table %u is among those meant, and "
				"the table must be a later one (say table=N, or resubmit(,%u))",
				rule.acts[i].table, rule.table, rule.acts[i].table);
	}
	*out_rule = rule;
	return 0;
}

// A rule takes another's place, with its age, its rank and what it has counted.
static int inherit(struct change *change, struct sw_flow_entry *old, const struct sw_rule *rule,
		   struct sw_error *err)
{
	struct sw_flow_entry *entry = entry_new(change->table, rule);

	if (!entry)
		return sw_fail(err, -ENOMEM, "no memory for the changed rules");
	entry->heir_of = old;
	entry->compiled->rank = old->compiled->rank;
	entry->compiled->slot = old->compiled->slot;
	remove_entry(change, old);
	old->has_heir = true;
	link_entry(change->table, entry);
	change->added[change->n_added++] = entry;
	return 0;
}

int sw_flow_modify(struct sw_flow_table *table, const struct sw_flow_mod *mod, struct sw_error *err)
{
	struct change change;
	int rc = begin(&change, table, table->n_entries, err);

	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < table->n_entries && rc == 0; i++) {
		struct sw_flow_entry *entry = table->entries[i];
		struct sw_rule rule;

		if (!sw_flow_filter_matches(&mod->filter, &entry->rule))
			continue;
		rc = modified(entry, mod, &rule, err);
		if (rc == 0 && !sw_rule_is_same(&rule, &entry->rule))
			rc = inherit(&change, entry, &rule, err);
	}
	return end(&change, rc, err);
}
