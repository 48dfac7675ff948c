// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Lookups with AVX2: cache lines are compared in halves.
#include <immintrin.h>

#define IMPL avx2
#define visit visit_any

#include "sw_lookup_impl_fast.h"

static inline bool is_line(const uint64_t *a, const uint64_t *b)
{
	const __m256i *x = (const __m256i *)(const void *)a;
	const __m256i *y = (const __m256i *)(const void *)b;
	__m256i differs =
		_mm256_or_si256(_mm256_xor_si256(x[0], y[0]), _mm256_xor_si256(x[1], y[1]));

	return _mm256_testz_si256(differs, differs);
}
