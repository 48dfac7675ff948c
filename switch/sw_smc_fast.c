// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_smc_fast.h"

#include <emmintrin.h>

#include <rte_branch_prediction.h>
#include <rte_prefetch.h>

#include "sw_bits_fast.h"

static inline uint16_t signature(uint32_t hash)
{
	uint16_t upper = (uint16_t)(hash >> 16);

	return upper != 0 ? upper : 1;
}

// Two bits for each way whose signature is this one.
static inline uint32_t equal(const struct sw_smc_bucket *bucket, uint16_t wanted)
{
	const __m128i *signatures = (const __m128i *)(const void *)bucket->signatures;
	__m128i all = _mm_set1_epi16((short)wanted);
	uint32_t low = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi16(signatures[0], all));
	uint32_t high = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi16(signatures[1], all));

	return low | high << 16;
}

uint32_t sw_smc_find(struct sw_smc *smc, const struct sw_mega *mega,
		     const struct sw_classifier *cls, const struct sw_key *key, uint32_t hash)
{
	const struct sw_smc_bucket *bucket = sw_smc_at(smc, hash);
	uint32_t number = (uint32_t)(cls - mega->classifiers);
	uint32_t ways = equal(bucket, signature(hash));

	while (ways != 0) {
		uint32_t way = (uint32_t)__builtin_ctz(ways) / 2;
		uint32_t flow = bucket->flows[way];

		if (likely(sw_mega_matches(mega, flow, number, key)))
			return flow;
		ways &= ~(UINT32_C(3) << way * 2);
	}
	return SW_MEGA_NONE;
}

uint32_t sw_smc_lookup(struct sw_smc *smc, const struct sw_mega *mega,
		       const struct sw_classifier *cls, const struct sw_key *keys,
		       const uint32_t *hashes, uint32_t want, uint32_t *out_flows)
{
	uint32_t found = 0;

	SW_FOR_EACH_BIT(i, want)
	{
		const struct sw_smc_bucket *bucket = sw_smc_at(smc, hashes[i]);
		uint32_t ways = equal(bucket, signature(hashes[i]));

		if (ways != 0)
			rte_prefetch0(&mega->flows[bucket->flows[__builtin_ctz(ways) / 2]]);
	}
	SW_FOR_EACH_BIT(i, want)
	{
		uint32_t flow = sw_smc_find(smc, mega, cls, &keys[i], hashes[i]);

		if (flow == SW_MEGA_NONE)
			continue;
		out_flows[i] = flow;
		found |= SW_BIT(i);
	}
	return found;
}

// The way of this signature, else a free one, else each in turn.
void sw_smc_insert(struct sw_smc *smc, uint32_t hash, uint32_t flow)
{
	struct sw_smc_bucket *bucket = sw_smc_at(smc, hash);
	uint32_t ways = equal(bucket, signature(hash));
	uint32_t way = smc->next_victim % SW_SMC_WAYS;

	if (ways == 0) {
		ways = equal(bucket, 0);
		smc->n_entries += ways != 0;
		smc->next_victim++;
	}
	if (ways != 0)
		way = (uint32_t)__builtin_ctz(ways) / 2;
	bucket->signatures[way] = signature(hash);
	bucket->flows[way] = (uint16_t)flow;
}

void sw_smc_sweep(struct sw_smc *smc, const struct sw_mega *mega)
{
	for (uint32_t i = 0; i < SW_SMC_SWEEP; i++) {
		struct sw_smc_bucket *bucket = &smc->buckets[smc->sweep_at];

		smc->sweep_at = (smc->sweep_at + 1) % SW_SMC_BUCKETS;
		for (uint32_t way = 0; way < SW_SMC_WAYS; way++) {
			if (bucket->signatures[way] == 0 || mega->flows[bucket->flows[way]].id != 0)
				continue;
			bucket->signatures[way] = 0;
			smc->n_entries--;
		}
	}
}
