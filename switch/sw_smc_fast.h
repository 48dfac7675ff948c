// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The signature-match cache of one PMD: from 16 bits of a key's hash to a megaflow, for more flows
 * than the EMC holds. Written and read by that PMD alone.
 *
 * A bucket is one cache line: sixteen signatures and the numbers of the flows that they mean. What
 * is found is only a guess: the key is compared with that flow under its mask, whatever has become
 * of it.
 */
#pragma once

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include "sw_key.h"
#include "sw_mega_fast.h"

#define SW_SMC_WAYS 16
#define SW_SMC_BUCKETS 65536
#define SW_SMC_SWEEP 32 // buckets that a sweep looks at

struct sw_smc_bucket {
	alignas(64) uint16_t signatures[SW_SMC_WAYS]; // 0: free
	uint16_t flows[SW_SMC_WAYS];
};

struct sw_smc {
	uint32_t n_entries;
	uint32_t next_victim;
	uint32_t sweep_at;
	struct sw_smc_bucket buckets[SW_SMC_BUCKETS];
};

static inline struct sw_smc_bucket *sw_smc_at(struct sw_smc *smc, uint32_t hash)
{
	return &smc->buckets[hash & (SW_SMC_BUCKETS - 1)];
}

// SW_MEGA_NONE: none of the flows that have this signature matches.
uint32_t sw_smc_find(struct sw_smc *smc, const struct sw_mega *mega,
		     const struct sw_classifier *cls, const struct sw_key *key, uint32_t hash);
void sw_smc_insert(struct sw_smc *smc, uint32_t hash, uint32_t flow);
// A few buckets: entries of free flows go.
void sw_smc_sweep(struct sw_smc *smc, const struct sw_mega *mega);

// Of those in want, with their buckets prefetched. Returns which are found.
uint32_t sw_smc_lookup(struct sw_smc *smc, const struct sw_mega *mega,
		       const struct sw_classifier *cls, const struct sw_key *keys,
		       const uint32_t *hashes, uint32_t want, uint32_t *out_flows);
