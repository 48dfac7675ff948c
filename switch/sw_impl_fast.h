// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The implementations of extraction and lookup: one source for what they do, variants for what the
 * CPU can. The scalar one is the reference.
 *
 * The variants are compiled with flags of their own; nothing outside their functions may be called
 * before sw_impl.c has asked the CPU.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sw_emc_fast.h"
#include "sw_key_fast.h"
#include "sw_mega_fast.h"

/*
 * Of the keys whose bits are set in want (of at most 32), find the flows: out_flows[i]. Returns
 * which were found. wide: keys with more in their second line than word 8.
 */
typedef uint32_t sw_emc_lookup_fn(struct sw_emc *emc, const struct sw_mega *mega,
				  const struct sw_key *keys, const uint32_t *hashes, uint32_t want,
				  uint32_t wide, uint32_t *out_flows);

// Adds the subtables that were visited to *n_visited, and to the subtables their hits.
typedef uint32_t sw_mega_lookup_fn(const struct sw_mega *mega, const struct sw_classifier *cls,
				   const struct sw_key *keys, uint32_t want, uint32_t *out_flows,
				   uint64_t *n_visited);

// Which of n keys are equal to the one before. Bit 0 is never set.
typedef uint32_t sw_key_runs_fn(const struct sw_key *keys, uint32_t n, uint32_t wide);

struct sw_impl {
	const char *name;
	sw_key_burst_fn *extract;
	sw_key_runs_fn *runs;
	sw_emc_lookup_fn *emc_lookup;
	sw_mega_lookup_fn *mega_lookup;
};

extern const struct sw_impl sw_impl_scalar;
extern const struct sw_impl sw_impl_avx2;
extern const struct sw_impl sw_impl_avx512;
// All that the CPU has, one after the other; differences are counted, the scalar result is used.
extern const struct sw_impl sw_impl_autovalidator;

// Those that the autovalidator compares; set once by sw_impl.c before the first PMD starts.
#define SW_IMPL_MAX 4
extern const struct sw_impl *sw_impls_usable[SW_IMPL_MAX];
extern uint32_t sw_impls_n_usable;
extern _Atomic uint64_t sw_impl_differences; // W: PMDs, relaxed add (the validator is no fast path)
