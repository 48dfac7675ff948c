// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Search of one table for the best rule, and which bits of the key decided it.
 */
#pragma once

#include <nmmintrin.h>
#include <stdbool.h>
#include <stdint.h>

#include "sw_tables_fast.h"

static inline uint32_t sw_set_place(uint32_t number)
{
	return number * UINT32_C(0x9e3779b1) >> 7;
}

// number is not 0.
static inline bool sw_set_has(const struct sw_set *set, uint32_t number)
{
	uint32_t at = sw_set_place(number) & set->mask;

	while (set->mask && set->at[at]) {
		if (set->at[at] == number)
			return true;
		at = (at + 1) & set->mask;
	}
	return false;
}

static inline uint64_t sw_hash_step(uint64_t hash, uint64_t word)
{
	return _mm_crc32_u64(hash, word);
}

// The value of a piece, at the top of 32 bits.
static inline uint32_t sw_piece_of(const struct sw_piece *piece, const struct sw_key *key)
{
	uint64_t word = __builtin_bswap64(key->word[piece->word]) << piece->shift;

	return (uint32_t)(word >> 32) & UINT32_MAX << (32 - piece->n_bits);
}

/*
 * The best rule that matches the key; NULL: none. Sets in *look every bit that decided it, perhaps
 * more. Every key that agrees with this one in them gives the same rule and the same bits.
 */
const struct sw_crule *sw_tables_lookup(const struct sw_tables *tables, uint8_t number,
					const struct sw_key *key, struct sw_key *look);
