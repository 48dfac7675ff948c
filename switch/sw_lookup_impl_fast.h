// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Lookups of bursts. Included by each variant, which defines before
 *   IMPL                 its name, e.g. scalar
 *   is_line(a, b)        are two cache lines equal?
 *   visit(...)           one subtable, as visit_scalar() below
 */
#include <rte_branch_prediction.h>
#include <rte_prefetch.h>

#include "sw_bits_fast.h"
#include "sw_impl_fast.h"
#include "sw_mega_hash_fast.h"

#define PASTE(a, b) a##b
#define NAME(a, b) PASTE(a, b)

// From so many flows on, a subtable's buckets and flows are fetched ahead.
#define MANY_FLOWS 512

static inline __attribute__((always_inline)) bool is_line(const uint64_t *a, const uint64_t *b);

// A subtable with one flow needs no hash.
static inline __attribute__((always_inline)) uint32_t
visit_single(const struct sw_mega *mega, uint32_t subtable, const struct sw_key *keys,
	     uint32_t want, uint32_t *out_flows, uint32_t n_words)
{
	const struct sw_shape *sub = &mega->shapes[subtable];
	const struct sw_megaflow *f = &mega->flows[sub->flows];
	uint32_t found = 0;

	SW_FOR_EACH_BIT(i, want)
	{
		out_flows[i] = sub->flows;
		found |= (uint32_t)sw_mega_is_words(sub, &keys[i], f, n_words) << i;
	}
	return found;
}

static inline __attribute__((always_inline)) uint32_t
visit_scalar(const struct sw_mega *mega, uint32_t subtable, const struct sw_key *keys,
	     uint32_t want, uint32_t *out_flows, uint32_t n_words)
{
	const struct sw_shape *sub = &mega->shapes[subtable];
	uint32_t hashes[SW_BURST];
	uint32_t found = 0;

	if (sub->n_flows == 1)
		return visit_single(mega, subtable, keys, want, out_flows, n_words);
	SW_FOR_EACH_BIT(i, want)
	hashes[i] = sw_mega_hash_key(sub, &keys[i], n_words);
	if (sub->n_flows >= MANY_FLOWS) {
		SW_FOR_EACH_BIT(i, want)
		rte_prefetch0(sw_bucket_at(mega, hashes[i], 0));
		SW_FOR_EACH_BIT(i, want)
		{
			uint64_t entry = sw_bucket_at(mega, hashes[i], 0)->entries[0];

			if (entry != 0)
				rte_prefetch0(&mega->flows[(entry >> 32) - 1]);
		}
	}
	SW_FOR_EACH_BIT(i, want)
	{
		uint32_t flow = sw_mega_probe(mega, subtable, &keys[i], hashes[i], n_words);

		out_flows[i] = flow;
		found |= (uint32_t)(flow != SW_MEGA_NONE) << i;
	}
	return found;
}

// The compiler makes a loop of its own for each usual number of words.
static inline __attribute__((always_inline)) uint32_t visit_any(const struct sw_mega *mega,
								uint32_t subtable,
								const struct sw_key *keys,
								uint32_t want, uint32_t *out_flows)
{
	switch (mega->shapes[subtable].n_words) {
#define CASE(n) \
	case n: \
		return visit_scalar(mega, subtable, keys, want, out_flows, n)
		CASE(1);
		CASE(2);
		CASE(3);
		CASE(4);
		CASE(5);
		CASE(6);
#undef CASE
	default:
		return visit_scalar(mega, subtable, keys, want, out_flows,
				    mega->shapes[subtable].n_words);
	}
}

static uint32_t mega_lookup(const struct sw_mega *mega, const struct sw_classifier *cls,
			    const struct sw_key *keys, uint32_t want, uint32_t *out_flows,
			    uint64_t *n_visited)
{
	uint32_t all = 0;

	for (uint32_t n = 0; n < cls->n && want != 0; n++) {
		uint32_t found = visit(mega, cls->order[n], keys, want, out_flows);

		*n_visited += sw_n_bits(want);
		mega->shapes[cls->order[n]].hits += sw_n_bits(found);
		want &= ~found;
		all |= found;
	}
	return all;
}

static uint32_t emc_lookup(struct sw_emc *emc, const struct sw_mega *mega,
			   const struct sw_key *keys, const uint32_t *hashes, uint32_t want,
			   uint32_t wide, uint32_t *out_flows)
{
	uint32_t candidates[SW_BURST];
	uint32_t maybe = 0, found = 0;

	// Two keys of one set can only meet here by their hashes; the second way's turn comes when
	// the first is another key.
	SW_FOR_EACH_BIT(i, want & ~wide)
	{
		const struct sw_emc_tag *set = sw_emc_set(emc, hashes[i]);
		uint64_t meta = keys[i].word[SW_KEY_META_WORD];
		uint32_t way = !sw_emc_is_tag(&set[0], hashes[i], meta);

		candidates[i] = (uint32_t)(set - emc->tags) + way;
		if (way != 0 && !sw_emc_is_tag(&set[1], hashes[i], meta))
			continue;
		maybe |= SW_BIT(i);
		rte_prefetch0(&emc->first[candidates[i]]);
	}
	SW_FOR_EACH_BIT(i, maybe)
	{
		const struct sw_emc_tag *tag = &emc->tags[candidates[i]];
		uint32_t flow = sw_emc_flow(tag);

		// A wide entry's id never equals a flow's.
		if (likely(is_line(emc->first[candidates[i]].word, keys[i].word) &&
			   mega->flows[flow].id == tag->id)) {
			out_flows[i] = flow;
			found |= SW_BIT(i);
		}
	}
	// The few others one by one.
	SW_FOR_EACH_BIT(i, (maybe & ~found) | (want & wide))
	{
		uint32_t flow =
			sw_emc_find(emc, mega, &keys[i], hashes[i], (wide & SW_BIT(i)) != 0);

		if (flow != SW_MEGA_NONE) {
			out_flows[i] = flow;
			found |= SW_BIT(i);
		}
	}
	return found;
}

static uint32_t key_runs(const struct sw_key *keys, uint32_t n, uint32_t wide)
{
	uint32_t equal = 0;

	for (uint32_t i = 1; i < n; i++) {
		bool is_equal = is_line(keys[i].word, keys[i - 1].word) &&
				keys[i].word[SW_KEY_META_WORD] ==
					keys[i - 1].word[SW_KEY_META_WORD];

		equal |= (uint32_t)is_equal << i;
	}
	// Of wide keys only what is seen here is known to be equal.
	return equal & ~wide & ~(wide << 1);
}

const struct sw_impl NAME(sw_impl_, IMPL) = {
#define TEXT(a) #a
#define TEXT_OF(a) TEXT(a)
	.name = TEXT_OF(IMPL),
	.extract = NAME(sw_key_burst_, IMPL),
	.runs = key_runs,
	.emc_lookup = emc_lookup,
	.mega_lookup = mega_lookup,
};
