// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_tables.h"

#include <stdlib.h>
#include <string.h>

#include "sw_tables_lookup_fast.h"

#define ALIGN(bytes) (((bytes) + 63) & ~(size_t)63)
// Age counts down from here, so that of equal priorities the older one ranks higher.
#define RANK_AGE_BITS 48

/*
 * Up to so many subtables with pieces, proofs are exact, or multiples of 4 bits. Of random packets,
 * 20 rules with 19 masks make 630 shapes and 1250 megaflows with exact proofs, 90 and 7800 with
 * multiples of 4, 40 and 67000 with bytes; 500 rules with 154 masks: 1010 and 41000, 160 and 63000,
 * 57 and 75000.
 */
#define SW_EXACT_SUBTABLES 4
#define SW_NIBBLE_SUBTABLES 64

#define BYTES(from, to) (UINT64_MAX >> (64 - 8 * ((to) - (from))) << 8 * (from))

// Which bits belong to which stage, byte by byte (of little-endian words).
static const struct sw_step stages[] = {
	{UINT64_MAX, 8, 0},
	{BYTES(0, 6), 0, SW_STAGE_TYPE},  // dl_type, tags
	{BYTES(0, 6), 1, 2},              // dl_dst
	{BYTES(0, 6), 2, 2},              // dl_src
	{BYTES(6, 8), 0, SW_STAGE_PROTO}, // nw_proto, nw_frag
	{BYTES(6, 8), 1, SW_STAGE_PROTO}, // nw_tos, nw_ttl
	{UINT64_MAX, 4, SW_STAGE_ADDRESS},
	{UINT64_MAX, 5, SW_STAGE_ADDRESS},
	{UINT64_MAX, 6, SW_STAGE_ADDRESS},
	{UINT64_MAX, 7, SW_STAGE_ADDRESS},
	{BYTES(4, 8), 3, SW_STAGE_ADDRESS}, // ipv6_label
	{BYTES(6, 8), 2, 5},                // tcp_flags
	{BYTES(0, 4), 3, 5},                // ports
	{UINT64_MAX, 9, 5},
	{UINT64_MAX, 10, 5},
	{UINT64_MAX, 11, 5},
	{UINT64_MAX, 12, 5},
	{UINT64_MAX, 13, 5},
	{UINT64_MAX, 14, 5},
	{UINT64_MAX, 15, 5},
};

#define N_STAGE_STEPS (sizeof(stages) / sizeof(stages[0]))
_Static_assert(N_STAGE_STEPS <= SW_MAX_STEPS, "room for every step");

uint32_t sw_steps(const struct sw_key *mask, struct sw_step out_steps[SW_MAX_STEPS])
{
	uint32_t n = 0;

	for (size_t i = 0; i < N_STAGE_STEPS; i++) {
		uint64_t bits = mask->word[stages[i].word] & stages[i].mask;

		if (bits)
			out_steps[n++] = (struct sw_step){bits, stages[i].word, stages[i].stage};
	}
	return n;
}

struct sw_crule *sw_crule_new(const struct sw_rule *rule, uint64_t order)
{
	struct sw_step steps[SW_MAX_STEPS];
	uint32_t n = sw_steps(&rule->mask, steps);
	struct sw_crule *to;
	size_t bytes = sizeof(*to) + n * sizeof(to->value[0]), acts_at = ALIGN(bytes);

	to = aligned_alloc(64, ALIGN(acts_at + rule->n_acts * sizeof(rule->acts[0])));
	if (!to)
		return NULL;
	memset(to, 0, bytes);
	to->rank = (uint64_t)rule->priority << RANK_AGE_BITS |
		   ((UINT64_C(1) << RANK_AGE_BITS) - 1 - order);
	to->slot = UINT32_MAX;
	to->n_acts = rule->n_acts;
	to->acts = (const struct sw_rule_act *)(const void *)((const uint8_t *)to + acts_at);
	if (rule->n_acts)
		memcpy((uint8_t *)to + acts_at, rule->acts, rule->n_acts * sizeof(rule->acts[0]));
	for (uint32_t i = 0; i < n; i++)
		to->value[i] = rule->value.word[steps[i].word] & steps[i].mask;
	return to;
}

void sw_crule_free(struct sw_crule *rule)
{
	free(rule);
}

// Touches the pages, so that no PMD has to fault them in. (Of malloc and memset the compiler makes
// a calloc, which leaves that to the first reader.)
static void *zeroed(size_t bytes)
{
	void *memory = aligned_alloc(64, ALIGN(bytes));

	return memory ? memset(memory, 0, ALIGN(bytes)) : NULL;
}

static void set_put(struct sw_set *set, uint32_t number)
{
	uint32_t at = sw_set_place(number) & set->mask;

	while (set->at[at] && set->at[at] != number)
		at = (at + 1) & set->mask;
	set->n += set->at[at] == 0;
	set->at[at] = number;
}

bool sw_set_add(struct sw_set *set, uint32_t number)
{
	if (!set->at || set->n * 2 > set->mask) {
		struct sw_set larger = {.mask = set->at ? set->mask * 2 + 1 : 3};

		larger.at = zeroed(((size_t)larger.mask + 1) * sizeof(*larger.at));
		if (!larger.at)
			return false;
		for (uint32_t i = 0; set->at && i <= set->mask; i++) {
			if (set->at[i])
				set_put(&larger, set->at[i]);
		}
		free(set->at);
		*set = larger;
	}
	set_put(set, number);
	return true;
}

void sw_set_free(struct sw_set *set)
{
	free(set->at);
	memset(set, 0, sizeof(*set));
}

// Hashes of the rules over the stages, each with all before it.
static bool fill_sets(struct sw_subtable *sub, const struct sw_crule *rule, uint32_t *out_hash)
{
	uint64_t hash = 0;
	uint32_t i = 0;

	for (uint32_t stage = 0; stage < SW_N_STAGES; stage++) {
		uint32_t begin = i;

		for (; i < sub->end[stage]; i++)
			hash = sw_hash_step(hash, rule->value[i]);
		if (i > begin && i < sub->n_steps &&
		    !sw_set_add(&sub->set[stage], (uint32_t)hash | 1))
			return false;
	}
	*out_hash = (uint32_t)hash;
	return true;
}

static void hash_put(struct sw_subtable *sub, const struct sw_crule *rule, uint32_t hash)
{
	uint32_t at = hash & sub->hash_mask;

	for (; sub->hash[at].rule; at = (at + 1) & sub->hash_mask) {
		const struct sw_crule *other = sub->hash[at].rule;

		if (sub->hash[at].hash != hash ||
		    memcmp(other->value, rule->value, sub->n_steps * sizeof(rule->value[0])) != 0)
			continue;
		if (rule->rank > other->rank)
			sub->hash[at].rule = rule;
		return;
	}
	sub->hash[at] = (struct sw_cslot){.hash = hash, .rule = rule};
}

// A piece of an address or a port that the mask takes by a prefix; n_bits 0: it does not.
static struct sw_piece piece_at(const struct sw_key *mask, uint32_t word, uint32_t shift,
				uint32_t width)
{
	struct sw_piece piece = {.word = word, .shift = shift, .width = width};
	uint32_t bits = (uint32_t)(__builtin_bswap64(mask->word[word]) << shift >> 32);

	if (width == 16)
		bits &= 0xffff0000;
	if (bits && (~bits == 0 || ((~bits + 1) & ~bits) == 0)) // ones, then zeros
		piece.n_bits = (uint32_t)__builtin_popcount(bits);
	return piece;
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static uint32_t step_of(const struct sw_subtable *sub, uint32_t word, uint32_t stage)
{
	uint32_t i = 0;

	while (sub->step[i].word != word || sub->step[i].stage != stage)
		i++;
	return i;
}

static bool fill_piece(struct sw_subtable *sub, struct sw_piece *piece,
		       struct sw_crule *const *rules, uint32_t n_rules)
{
	uint32_t step = step_of(sub, piece->word, piece->width == 32 ? SW_STAGE_ADDRESS : 5);
	struct sw_set set = {0};
	bool has_zero = false;

	for (uint32_t i = 0; i < n_rules; i++) {
		struct sw_key key;
		uint32_t value;

		key.word[piece->word] = rules[i]->value[step];
		value = sw_piece_of(piece, &key);
		has_zero = has_zero || value == 0;
		if (value && !sw_set_add(&set, value))
			goto no_memory;
	}
	piece->values = malloc((set.n + 1) * sizeof(*piece->values));
	if (!piece->values)
		goto no_memory;
	if (has_zero)
		piece->values[piece->n++] = 0;
	for (uint32_t i = 0; set.at && i <= set.mask; i++) {
		if (set.at[i])
			piece->values[piece->n++] = set.at[i];
	}
	qsort(piece->values, piece->n, sizeof(*piece->values), compare_u32);
	sw_set_free(&set);
	return true;
no_memory:
	sw_set_free(&set);
	return false;
}

static bool fill_pieces(struct sw_subtable *sub, const struct sw_key *mask,
			struct sw_crule *const *rules, uint32_t n_rules)
{
	for (uint32_t i = 0; i < SW_N_PIECES; i++) {
		struct sw_piece piece = i < 8 ? piece_at(mask, 4 + i / 2, i % 2 * 32, 32)
					      : piece_at(mask, 3, i % 2 * 16, 16);

		if (piece.n_bits == 0)
			continue;
		sub->n_addresses += i < 8;
		sub->piece[sub->n_pieces] = piece;
		if (!fill_piece(sub, &sub->piece[sub->n_pieces++], rules, n_rules))
			return false;
	}
	return true;
}

static bool fill(struct sw_subtable *sub, const struct sw_key *mask, struct sw_crule *const *rules,
		 uint32_t n_rules)
{
	uint32_t n_places = 2;

	while (n_places < n_rules * 2)
		n_places *= 2;
	sub->n_steps = sw_steps(mask, sub->step);
	for (uint32_t i = 0; i < sub->n_steps; i++) {
		for (uint32_t stage = sub->step[i].stage; stage < SW_N_STAGES; stage++)
			sub->end[stage] = i + 1;
	}
	sub->hash = zeroed(n_places * sizeof(*sub->hash));
	if (!sub->hash)
		return false;
	sub->hash_mask = n_places - 1;
	for (uint32_t i = 0; i < n_rules; i++) {
		uint32_t hash;

		if (!fill_sets(sub, rules[i], &hash))
			return false;
		hash_put(sub, rules[i], hash);
		if (rules[i]->rank > sub->best)
			sub->best = rules[i]->rank;
	}
	return fill_pieces(sub, mask, rules, n_rules);
}

struct sw_subtable *sw_subtable_new(const struct sw_key *mask, struct sw_crule *const *rules,
				    uint32_t n_rules)
{
	struct sw_subtable *sub = zeroed(sizeof(*sub));

	if (!sub)
		return NULL;
	if (!fill(sub, mask, rules, n_rules)) {
		sw_subtable_free(sub);
		return NULL;
	}
	return sub;
}

uint32_t sw_tables_grain(const struct sw_tables *tables)
{
	uint32_t n = 0;

	for (uint32_t t = 0; t < SW_XLATE_N_TABLES; t++) {
		const struct sw_ctable *table = tables->table[t];

		for (uint32_t i = 0; table && i < table->n_subtables; i++)
			n += table->subtable[i]->n_pieces > 0;
	}
	return n <= SW_EXACT_SUBTABLES ? 1 : n <= SW_NIBBLE_SUBTABLES ? 4 : 8;
}

void sw_subtable_free(struct sw_subtable *sub)
{
	if (!sub)
		return;
	for (uint32_t i = 0; i < SW_N_STAGES; i++)
		sw_set_free(&sub->set[i]);
	for (uint32_t i = 0; i < sub->n_pieces; i++)
		free(sub->piece[i].values);
	free(sub->hash);
	free(sub);
}
