// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Layout of a rule set, as sw_flow_set.c compiles it and sw_flow_fast.c walks it.
 *
 * Rules are grouped by input port. A group lists its rules in matching order and ends at the first
 * that matches everything. A rule holds only the words of the key that it looks at. Everything is
 * in one allocation and never changes.
 */
#pragma once

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include "sw_flow_fast.h"

struct sw_flow_word {
	uint64_t mask;
	uint64_t value;
};

struct sw_flow_rule {
	uint32_t slot;
	uint16_t out;
	uint8_t n_words;
	uint8_t is_relative;         // out depends on the input port: compare when it matches
	uint8_t index[SW_KEY_WORDS]; // which word of the key, ascending
	struct sw_flow_word words[];
};

struct sw_flow_group {
	uint32_t in_port; // SW_FLOW_NO_GROUP: slot of the hash is free
	uint32_t n_rules;
	uint32_t depth; // SW_DEPTH_*, what these rules need
	uint32_t reserved;
	const struct sw_flow_rule *const *rules;
};

#define SW_FLOW_NO_GROUP UINT32_MAX

struct sw_flow_set {
	struct sw_flow_group rest; // for every port that no rule names
	uint32_t hash_mask;
	uint32_t reserved;
	const struct sw_flow_group *hash; // open addressing, at most half full
};

static inline uint32_t sw_flow_hash(uint32_t in_port)
{
	return (in_port * UINT32_C(0x9e3779b1)) >> 16;
}

struct sw_flow_entry;

// Compile n entries, which stand in matching order. NULL without memory.
struct sw_flow_set *sw_flow_set_compile(const struct sw_flow_entry *const *entries, uint32_t n);
void sw_flow_set_free(struct sw_flow_set *set);
