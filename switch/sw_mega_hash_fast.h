// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Hashes of masked keys and the search in buckets, shared by lookup and installation of megaflows.
#pragma once

#include <nmmintrin.h>

#include <rte_branch_prediction.h>

#include "sw_mega_fast.h"

static inline struct sw_bucket *sw_bucket_at(const struct sw_mega *mega, uint32_t hash, uint32_t n)
{
	// The upper bits come last in the comparison, so they choose the bucket.
	return &mega->buckets[((hash >> 16 ^ hash) + n) & mega->bucket_mask];
}

// The same for masked words as for a key that is masked here.
static inline uint32_t sw_mega_hash_key(const struct sw_shape *sub, const struct sw_key *key,
					uint32_t n_words)
{
	uint64_t hash = sub->seed;

	for (uint32_t i = 0; i < n_words; i++)
		hash = _mm_crc32_u64(hash, key->word[sub->index[i]] & sub->mask[i]);
	return (uint32_t)hash;
}

static inline uint32_t sw_mega_hash_words(const struct sw_shape *sub, const uint64_t *words)
{
	uint64_t hash = sub->seed;

	for (uint32_t i = 0; i < sub->n_words; i++)
		hash = _mm_crc32_u64(hash, words[i]);
	return (uint32_t)hash;
}

static inline bool sw_mega_is_words(const struct sw_shape *sub, const struct sw_key *key,
				    const struct sw_megaflow *f, uint32_t n_words)
{
	uint64_t differs = 0;

	for (uint32_t i = 0; i < n_words; i++)
		differs |= (key->word[sub->index[i]] & sub->mask[i]) ^ f->words[i];
	return differs == 0;
}

static inline uint32_t sw_mega_probe(const struct sw_mega *mega, uint32_t subtable,
				     const struct sw_key *key, uint32_t hash, uint32_t n_words)
{
	const struct sw_shape *sub = &mega->shapes[subtable];

	for (uint32_t n = 0; n < SW_MEGA_MAX_PROBES; n++) {
		const struct sw_bucket *bucket = sw_bucket_at(mega, hash, n);

		for (uint32_t i = 0; i < SW_MEGA_BUCKET_ENTRIES; i++) {
			uint64_t entry = bucket->entries[i];
			uint32_t flow = (uint32_t)(entry >> 32) - 1;

			if (entry == 0)
				break;
			if (likely((uint32_t)entry == hash) &&
			    likely(mega->flows[flow].subtable == subtable &&
				   sw_mega_is_words(sub, key, &mega->flows[flow], n_words)))
				return flow;
		}
		if (likely(bucket->n_passed == 0))
			break;
	}
	return SW_MEGA_NONE;
}
