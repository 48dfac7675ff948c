// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Inside of the tables of rules, shared by sw_flow_table.c (what is there, its publication),
 * sw_flow_group.c (rules by mask), sw_flow_change.c (changes) and sw_flow_stats.c (counters and
 * their slots).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sw_flow.h"
#include "sw_tables.h"

#define SW_FLOW_MAX_PMDS 128
#define SW_FLOW_RULE_BUCKETS 65536
#define SW_FLOW_MASK_BUCKETS 4096

struct sw_flow_leftover;

// The rules of one table that have the same mask: what a subtable is made of.
struct sw_flow_group {
	struct sw_key mask;
	uint8_t table;
	bool is_changed;
	uint32_t n_entries; // those that are gone included
	struct sw_flow_entry *entries;
	struct sw_subtable *now;  // published; NULL: none
	struct sw_subtable *next; // to be, while a change is prepared
	struct sw_flow_group *next_in_bucket;
	struct sw_flow_group *next_in_table;
};

// A rule.
struct sw_flow_entry {
	struct sw_rule rule;
	struct sw_crule *compiled; // holds its slot
	struct sw_flow_group *group;
	struct sw_flow_entry *next_in_group;
	struct sw_flow_entry *previous_in_group;
	struct sw_flow_entry *next_in_bucket;
	struct sw_flow_entry *heir_of; // while not committed: whose slot, age and rank it takes
	uint64_t created_ns;           // 0: not yet committed
	bool is_gone;                  // to be deleted by the change at hand
	bool is_listed;                // in its list of those
	bool has_heir;                 // then: its slot stays in use
};

struct sw_flow_total {
	uint64_t packets, bytes;
};

// A slot that a PMD may still count in.
struct sw_flow_waiting {
	uint64_t generation; // of the first snapshot without its rule
	uint32_t slot;
};

struct sw_flow_table {
	struct sw_flow_ref ref;
	struct rte_rcu_qsbr *qsbr;
	struct sw_flow_entry **entries;
	uint32_t n_entries;
	bool is_sorted;
	uint64_t next_order;
	struct sw_flow_entry *rule_buckets[SW_FLOW_RULE_BUCKETS];
	struct sw_flow_group *mask_buckets[SW_FLOW_MASK_BUCKETS];
	struct sw_flow_group *groups[SW_N_TABLES]; // lists
	bool is_changed[SW_N_TABLES];

	uint32_t n_leftovers;
	struct sw_flow_leftover *leftovers; // oldest first
	struct sw_flow_leftover **leftovers_end;

	struct sw_flow_stats *pmds[SW_FLOW_MAX_PMDS]; // NULL = free
	uint64_t retired_bad[SW_N_BAD];
	struct sw_flow_total retired[SW_FLOW_MAX_SLOTS]; // what ended PMDs counted
	struct sw_flow_total base[SW_FLOW_MAX_SLOTS];    // where the slot's present rule began
	struct sw_flow_entry *by_slot[SW_FLOW_MAX_SLOTS];
	uint32_t free_slots[SW_FLOW_MAX_SLOTS]; // a stack
	uint32_t n_free_slots;
	struct sw_flow_waiting waiting[SW_FLOW_MAX_SLOTS]; // a ring, oldest first
	uint32_t first_waiting, n_waiting;
};

uint64_t sw_flow_rule_hash(const struct sw_rule *rule);
struct sw_flow_group *sw_flow_group_find(struct sw_flow_table *table, const struct sw_rule *rule);
// Remove the groups that have no entries.
void sw_flow_groups_tidy(struct sw_flow_table *table);

/*
 * Publish what the groups of changed tables say. The rules in gone are no longer among them; they
 * and those of the last snapshot are freed in time. The slots of the first n_left of them go with
 * them, those of the others have heirs. In two steps, so that all that can fail comes first.
 */
struct sw_flow_publication {
	struct sw_tables *tables;
	struct sw_flow_leftover *left;
};

// -EBUSY, -ENOSPC, -ENOMEM; sw_flow_unprepare() cleans up in any case.
int sw_flow_prepare(struct sw_flow_table *table, uint32_t n_gone, struct sw_flow_publication *out,
		    struct sw_error *err);
void sw_flow_unprepare(struct sw_flow_table *table, struct sw_flow_publication *publication);
void sw_flow_publish(struct sw_flow_table *table, struct sw_flow_publication *publication,
		     struct sw_crule *const *gone, uint32_t n_gone, uint32_t n_left);

void sw_flow_slots_init(struct sw_flow_table *table);
// A slot for the entry, whose counters begin at 0. false: there is none.
bool sw_flow_slot_take(struct sw_flow_table *table, struct sw_flow_entry *entry);
// The change was called off: no PMD has seen it.
void sw_flow_slot_return(struct sw_flow_table *table, uint32_t slot);
// Its rule is in no snapshot from this generation on.
void sw_flow_slot_leave(struct sw_flow_table *table, uint32_t slot, uint64_t generation);
// Make those free that no PMD counts in any more.
void sw_flow_slots_reap(struct sw_flow_table *table);
// What the slot's present rule has counted.
struct sw_flow_total sw_flow_slot_count(const struct sw_flow_table *table, uint32_t slot);
