// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Lookups with AVX-512: one permutation takes the words that a subtable names out of the key, one
// instruction masks them, one compares them with a flow's.
#include <immintrin.h>

#define IMPL avx512
#define visit visit_avx512

#include "sw_impl_fast.h"

static inline __attribute__((always_inline)) uint32_t
visit_avx512(const struct sw_mega *mega, uint32_t subtable, const struct sw_key *keys,
	     uint32_t want, uint32_t *out_flows);

#include "sw_lookup_impl_fast.h"

static inline bool is_line(const uint64_t *a, const uint64_t *b)
{
	return _mm512_cmpneq_epi64_mask(_mm512_load_si512(a), _mm512_load_si512(b)) == 0;
}

struct words {
	alignas(64) uint64_t word[8];
};

static inline bool is_flow(const struct sw_mega *mega, uint32_t subtable, uint32_t flow,
			   __mmask8 lanes, const struct words *words)
{
	const struct sw_megaflow *f = &mega->flows[flow];
	__m512i have = _mm512_maskz_loadu_epi64(lanes, f->words);

	return f->subtable == subtable &&
	       _mm512_cmpneq_epi64_mask(have, _mm512_load_si512(words->word)) == 0;
}

static inline uint32_t probe(const struct sw_mega *mega, uint32_t subtable, __mmask8 lanes,
			     uint32_t hash, const struct words *words)
{
	for (uint32_t n = 0; n < SW_MEGA_MAX_PROBES; n++) {
		const struct sw_bucket *bucket = sw_bucket_at(mega, hash, n);

		for (uint32_t i = 0; i < SW_MEGA_BUCKET_ENTRIES; i++) {
			uint64_t entry = bucket->entries[i];
			uint32_t flow = (uint32_t)(entry >> 32) - 1;

			if (entry == 0)
				break;
			if (likely((uint32_t)entry == hash) &&
			    likely(is_flow(mega, subtable, flow, lanes, words)))
				return flow;
		}
		if (likely(bucket->n_passed == 0))
			break;
	}
	return SW_MEGA_NONE;
}

struct taken {
	__m512i index, mask;
};

// The words of a key that the subtable names, masked.
static inline __m512i take(const struct taken *from, const struct sw_key *key)
{
	__m512i words = _mm512_permutex2var_epi64(_mm512_load_si512(&key->word[0]), from->index,
						  _mm512_load_si512(&key->word[8]));

	return _mm512_and_si512(words, from->mask);
}

static inline uint32_t visit_single_avx512(const struct sw_mega *mega, uint32_t flow,
					   const struct taken *from, __mmask8 lanes,
					   const struct sw_key *keys, uint32_t want,
					   uint32_t *out_flows)
{
	__m512i have = _mm512_maskz_loadu_epi64(lanes, mega->flows[flow].words);
	uint32_t found = 0;

	SW_FOR_EACH_BIT(i, want)
	{
		out_flows[i] = flow;
		found |= (uint32_t)(_mm512_cmpneq_epi64_mask(have, take(from, &keys[i])) == 0) << i;
	}
	return found;
}

static inline __attribute__((always_inline)) uint32_t
visit_words(const struct sw_mega *mega, uint32_t subtable, const struct sw_key *keys, uint32_t want,
	    uint32_t *out_flows, uint32_t n_words)
{
	const struct sw_shape *sub = &mega->shapes[subtable];
	__mmask8 lanes = (__mmask8)(SW_BIT(n_words) - 1);
	const struct taken from = {
		_mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(const void *)sub->index)),
		_mm512_maskz_loadu_epi64(lanes, sub->mask)};
	struct words words[SW_BURST];
	uint32_t hashes[SW_BURST];
	uint32_t found = 0;

	if (sub->n_flows == 1)
		return visit_single_avx512(mega, sub->flows, &from, lanes, keys, want, out_flows);
	SW_FOR_EACH_BIT(i, want)
	{
		uint64_t hash = sub->seed;

		_mm512_store_si512(words[i].word, take(&from, &keys[i]));
		for (uint32_t n = 0; n < n_words; n++)
			hash = _mm_crc32_u64(hash, words[i].word[n]);
		hashes[i] = (uint32_t)hash;
	}
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
		uint32_t flow = probe(mega, subtable, lanes, hashes[i], &words[i]);

		out_flows[i] = flow;
		found |= (uint32_t)(flow != SW_MEGA_NONE) << i;
	}
	return found;
}

static inline uint32_t visit_avx512(const struct sw_mega *mega, uint32_t subtable,
				    const struct sw_key *keys, uint32_t want, uint32_t *out_flows)
{
	switch (mega->shapes[subtable].n_words) {
#define CASE(n) \
	case n: \
		return visit_words(mega, subtable, keys, want, out_flows, n)
		CASE(1);
		CASE(2);
		CASE(3);
		CASE(4);
		CASE(5);
		CASE(6);
		CASE(7);
		CASE(8);
#undef CASE
	default: // none at all, or more than a register holds
		return visit_scalar(mega, subtable, keys, want, out_flows,
				    mega->shapes[subtable].n_words);
	}
}
