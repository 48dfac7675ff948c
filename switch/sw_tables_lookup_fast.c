// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_tables_lookup_fast.h"

#include <stddef.h>

#include <rte_branch_prediction.h>

static inline void look_at_steps(const struct sw_subtable *sub, uint32_t from, uint32_t to,
				 struct sw_key *look)
{
	for (uint32_t i = from; i < to; i++)
		look->word[sub->step[i].word] |= sub->step[i].mask;
}

// How many bits prove that the piece is not among the values; 0: it is.
static uint32_t bits_that_differ(const struct sw_piece *piece, uint32_t value)
{
	const uint32_t *values = piece->values;
	uint32_t from = 0, n = piece->n, common = 0;

	while (n > 0) { // the first that is not less
		uint32_t half = n / 2;

		if (values[from + half] < value) {
			from += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	if (from < piece->n) {
		if (values[from] == value)
			return 0;
		common = (uint32_t)__builtin_clz(values[from] ^ value);
	}
	if (from > 0) {
		uint32_t below = (uint32_t)__builtin_clz(values[from - 1] ^ value);

		common = below > common ? below : common;
	}
	return common + 1;
}

static bool is_proved(const struct sw_subtable *sub, uint32_t from, uint32_t to, uint32_t grain,
		      const struct sw_key *key, struct sw_key *look)
{
	for (uint32_t i = from; i < to; i++) {
		const struct sw_piece *piece = &sub->piece[i];
		uint32_t n_bits = bits_that_differ(piece, sw_piece_of(piece, key));
		uint64_t mask;

		if (n_bits == 0)
			continue;
		n_bits = (n_bits + grain - 1) & ~(grain - 1);
		n_bits = n_bits < piece->n_bits ? n_bits : piece->n_bits;
		mask = (uint64_t)(UINT32_MAX << (32 - n_bits)) << 32 >> piece->shift;
		look->word[piece->word] |= __builtin_bswap64(mask);
		return true;
	}
	return false;
}

/*
 * The packet is not in the subtable, and the set of this stage (or the hash, for the last) says so.
 * Find the cheapest proof: addresses, seen as what their type is, ports, seen as what their
 * protocol is, or all bits up to the stage.
 */
static __attribute__((noinline)) void explain(const struct sw_subtable *sub, uint32_t stage,
					      uint32_t grain, const struct sw_key *key,
					      struct sw_key *look)
{
	const uint32_t *end = sub->end;

	if (stage > SW_STAGE_TYPE && is_proved(sub, 0, sub->n_addresses, grain, key, look)) {
		look_at_steps(sub, 0, end[SW_STAGE_TYPE], look);
	} else if (stage > SW_STAGE_PROTO &&
		   is_proved(sub, sub->n_addresses, sub->n_pieces, grain, key, look)) {
		look_at_steps(sub, 0, end[SW_STAGE_TYPE], look);
		look_at_steps(sub, end[SW_STAGE_PROTO - 1], end[SW_STAGE_PROTO], look);
	} else {
		look_at_steps(sub, 0, end[stage], look);
	}
}

static inline bool matches(const struct sw_subtable *sub, const struct sw_crule *rule,
			   const struct sw_key *key)
{
	uint64_t differs = 0;

	for (uint32_t i = 0; i < sub->n_steps; i++)
		differs |= (key->word[sub->step[i].word] & sub->step[i].mask) ^ rule->value[i];
	return differs == 0;
}

static const struct sw_crule *search(const struct sw_subtable *sub, uint32_t grain,
				     const struct sw_key *key, struct sw_key *look)
{
	const struct sw_cslot *slot;
	uint64_t hash = 0;
	uint32_t stage, i = 0;

	for (stage = 0;; stage++) {
		uint32_t begin = i;

		for (; i < sub->end[stage]; i++)
			hash = sw_hash_step(hash, key->word[sub->step[i].word] & sub->step[i].mask);
		if (i == sub->n_steps)
			break;
		if (i > begin && !sw_set_has(&sub->set[stage], (uint32_t)hash | 1)) {
			explain(sub, stage, grain, key, look);
			return NULL;
		}
	}
	for (i = (uint32_t)hash & sub->hash_mask;; i = (i + 1) & sub->hash_mask) {
		slot = &sub->hash[i];
		if (!slot->rule) {
			explain(sub, stage, grain, key, look);
			return NULL;
		}
		if (slot->hash == (uint32_t)hash && matches(sub, slot->rule, key))
			break;
	}
	look_at_steps(sub, 0, sub->n_steps, look);
	return slot->rule;
}

const struct sw_crule *sw_tables_lookup(const struct sw_tables *tables, uint8_t number,
					const struct sw_key *key, struct sw_key *look)
{
	const struct sw_ctable *table = tables->table[number];
	const struct sw_crule *best = NULL;

	for (uint32_t i = 0; table && i < table->n_subtables; i++) {
		const struct sw_subtable *sub = table->subtable[i];
		const struct sw_crule *rule;

		if (best && sub->best < best->rank)
			break;
		rule = search(sub, tables->grain, key, look);
		if (rule && (!best || rule->rank > best->rank))
			best = rule;
	}
	return best;
}
