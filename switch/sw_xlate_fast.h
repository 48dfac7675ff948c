// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Translation: from the tables of rules and one key to a megaflow. Runs in a PMD on a miss
 * (upcall): no allocation, lock, system call or log, and bounded work.
 *
 * A snapshot of the tables is immutable. Control publishes a new one with a higher generation (F1)
 * and frees the old one after every PMD has passed a quiescent state; a PMD takes the pointer with
 * sw_tables_get() (F2) and may use it until it reports its next quiescent state.
 *
 * The result says which bits of the key were looked at: every packet that agrees in them gets the
 * same actions and passes the same rules in this snapshot. (Translated itself, it may get another
 * mask that is just as right: there may be several proofs that a rule does not match.) The same key
 * always gives the same result. in_port and recirc_id are always in the mask.
 *
 * Counters of rules stand in one array per PMD, indexed by the rule's slot. A megaflow remembers
 * the slots of the rules that it passed (out->slots) and adds its packets to them when it is swept
 * or dies. A slot is given to another rule only when no PMD has a megaflow of that generation any
 * more: each PMD publishes the oldest generation that its megaflows come from
 * (sw_flow_stats.oldest_generation, O1); control reads it (O2) before it reuses a slot.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sw_act.h"
#include "sw_key.h"

struct sw_tables;
struct sw_trace;

#define SW_XLATE_N_TABLES 255
#define SW_XLATE_MAX_ACTS 32  // of one megaflow
#define SW_XLATE_MAX_RULES 32 // that it can pass, by resubmit and goto_table
#define SW_XLATE_MAX_RESUBMIT 64

struct sw_xlate {
	struct sw_key mask;
	uint32_t n_acts;      // 0: drop
	uint32_t drop_reason; // PMDP_DROP_*: of a list without actions
	uint32_t n_slots;
	struct sw_act acts[SW_XLATE_MAX_ACTS];
	uint32_t slots[SW_XLATE_MAX_RULES];
};

// Where the current snapshot is found.
struct sw_flow_ref {
	struct sw_tables *_Atomic tables;
};

static inline const struct sw_tables *sw_tables_get(const struct sw_flow_ref *ref)
{
	return atomic_load_explicit(&ref->tables, memory_order_acquire); // F2
}

// Grows with every change of the rules; starts at 1. It is the first word of a snapshot.
static inline uint64_t sw_tables_generation(const struct sw_tables *tables)
{
	return *(const uint64_t *)tables;
}

/*
 * Translate. key->recirc_id says where to begin: 0 is table 0, N is table N - 1 (the action
 * recirc(table=N)). Fills *out always: too many resubmits, rules or actions make it drop with
 * PMDP_DROP_RECIRC_LIMIT.
 */
void sw_xlate(const struct sw_tables *tables, const struct sw_key *key, struct sw_xlate *out);

// The same, told step by step (sw_trace_fast.h); trace may be NULL.
void sw_xlate_traced(const struct sw_tables *tables, const struct sw_key *key, struct sw_xlate *out,
		     struct sw_trace *trace);
