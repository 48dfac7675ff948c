// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Lookups for every CPU; the reference for the others.
#define IMPL scalar
#define visit visit_any

#include "sw_lookup_impl_fast.h"

static inline bool is_line(const uint64_t *a, const uint64_t *b)
{
	uint64_t differs = 0;

	for (uint32_t i = 0; i < SW_KEY_LINE_WORDS; i++)
		differs |= a[i] ^ b[i];
	return differs == 0;
}
