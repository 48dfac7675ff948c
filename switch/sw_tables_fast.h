// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Layout of a snapshot of the tables, as sw_tables.c compiles it and sw_tables_lookup_fast.c
 * searches it.
 *
 * A table is a list of subtables, best rule first; a subtable holds the rules of one mask in a
 * hash. It is never changed: a new snapshot shares those that are still right and replaces the
 * others.
 *
 * To say why a packet is *not* in a subtable with few bits of its key, a subtable also knows
 *   - the hashes of its rules over the first stages of the key alone: who is not in one of these
 *     sets is in no rule, whatever the later stages say. (A false "is in it", by equal hashes,
 *     costs width, never truth: hashes are functions of the bits that are put into the mask.)
 *   - for addresses and ports that are matched by prefix: the sorted values of each piece of 32 or
 *     16 bits. Where the packet's piece is not among them, one bit more than the longest common
 *     beginning with a neighbour proves it.
 */
#pragma once

#include <stdint.h>

#include "sw_xlate_fast.h"

// Stages: where the packet comes from, type and tags, MAC addresses, protocol, addresses, the rest.
#define SW_N_STAGES 6
#define SW_STAGE_TYPE 1
#define SW_STAGE_PROTO 3
#define SW_STAGE_ADDRESS 4

#define SW_MAX_STEPS 24
#define SW_N_PIECES 10 // four words of addresses, two ports

struct sw_rule_act;

// A rule as a PMD sees it.
struct sw_crule {
	uint64_t rank; // the highest that matches wins: by priority, then by age
	uint32_t slot;
	uint32_t n_acts;
	const struct sw_rule_act *acts;
	uint64_t value[]; // one for each step of the subtable
};

// Numbers other than 0, open addressing, at most half full. mask 0: no number.
struct sw_set {
	uint32_t mask;
	uint32_t n;
	uint32_t *at; // 0: free
};

// The bits of one word that belong to one stage.
struct sw_step {
	uint64_t mask;
	uint32_t word;
	uint32_t stage;
};

struct sw_piece {
	uint32_t word;
	uint32_t shift;  // of the piece in its word, from the top, once the word is in host order
	uint32_t n_bits; // of the prefix
	uint32_t width;  // 32 or 16
	uint32_t n;
	uint32_t *values; // ascending, moved to the top of 32 bits
};

struct sw_cslot {
	uint32_t hash;
	uint32_t reserved;
	const struct sw_crule *rule; // NULL: free
};

struct sw_subtable {
	uint64_t best; // rank of its best rule
	uint32_t n_steps;
	uint32_t hash_mask;
	struct sw_cslot *hash;
	uint32_t end[SW_N_STAGES]; // steps of the stages up to this one
	uint32_t n_pieces;
	uint32_t n_addresses;           // of the pieces, those of addresses, which come first
	struct sw_set set[SW_N_STAGES]; // of the last stage with steps: none, the hash says it
	struct sw_step step[SW_MAX_STEPS];
	struct sw_piece piece[SW_N_PIECES];
};

struct sw_ctable {
	uint32_t n_subtables;
	uint32_t reserved;
	const struct sw_subtable *subtable[]; // by best, descending
};

struct sw_tables {
	uint64_t generation;
	// Proofs take as many bits of a piece as a multiple of this: 1, 4 or 8. With many subtables
	// exact ones would add up to more shapes of megaflows than a lookup should have to visit.
	uint32_t grain;
	uint32_t reserved;
	const struct sw_ctable *table[SW_XLATE_N_TABLES]; // NULL: empty
};
