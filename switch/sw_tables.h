// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Compiles rules into the parts of a snapshot (sw_tables_fast.h). Control thread; NULL without
 * memory.
 */
#pragma once

#include <stdint.h>

#include "sw_rule.h"
#include "sw_tables_fast.h"

// The steps in which a mask is looked at. Returns how many.
uint32_t sw_steps(const struct sw_key *mask, struct sw_step out_steps[SW_MAX_STEPS]);

struct sw_crule *sw_crule_new(const struct sw_rule *rule, uint64_t order);
void sw_crule_free(struct sw_crule *rule);

// What sw_tables.grain should be.
uint32_t sw_tables_grain(const struct sw_tables *tables);

// rules: of one table and mask; of those that match the same only the best one is found. They must
// outlive the subtable.
struct sw_subtable *sw_subtable_new(const struct sw_key *mask, struct sw_crule *const *rules,
				    uint32_t n_rules);
void sw_subtable_free(struct sw_subtable *sub);

// Places numbers into a set that grows. false without memory.
bool sw_set_add(struct sw_set *set, uint32_t number);
void sw_set_free(struct sw_set *set);
