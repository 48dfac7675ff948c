// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Sets of packets of a burst, as bits.
#pragma once

#include <stdint.h>

#define SW_BIT(i) (UINT32_C(1) << (i))

#define SW_FOR_EACH_BIT(i, bits)                                                                \
	for (uint32_t rest_ = (bits), i; rest_ != 0 && (i = (uint32_t)__builtin_ctz(rest_), 1); \
	     rest_ &= rest_ - 1)

static inline uint32_t sw_n_bits(uint32_t bits)
{
	return (uint32_t)__builtin_popcount(bits);
}

// The first n, 1 to 32.
static inline uint32_t sw_bits_below(uint32_t n)
{
	return UINT32_MAX >> (32 - n);
}
