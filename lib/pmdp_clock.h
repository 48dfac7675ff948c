// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The two clocks of a segment and conversions between their units. Not installed: for our own
 * rooms.
 *
 * Conversions go through 128 bits and saturate: a gap of days, or a hostile number, gives a large
 * result and never a small one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#define PMDP_NS_PER_S UINT64_C(1000000000)

__extension__ typedef unsigned __int128 pmdp_u128;

// What a reader makes of keepalive_interval_ns (docs/abi.md): hostile input, kept far from where
// twice of it would overflow. 0: the default.
static inline uint64_t pmdp_usable_interval_ns(uint64_t interval_ns)
{
	const uint64_t least_ns = PMDP_NS_PER_S / 1000, most_ns = 3600 * PMDP_NS_PER_S;

	if (interval_ns == 0)
		return PMDP_NS_PER_S / 20;
	return interval_ns < least_ns ? least_ns : interval_ns > most_ns ? most_ns : interval_ns;
}

static inline uint64_t pmdp_mono_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * PMDP_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static inline uint64_t pmdp_realtime_now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

// Does the time stamp counter run at one rate in all power states? Else it is no clock.
static inline bool pmdp_tsc_is_invariant(void)
{
#if defined(__x86_64__)
	unsigned int a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8));
#else
	return false;
#endif
}

// Only where pmdp_tsc_is_invariant(); elsewhere the callers never choose PMDP_CLOCK_TSC.
static inline uint64_t pmdp_tsc_now(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#else
	return pmdp_mono_now_ns();
#endif
}

static inline uint64_t pmdp_scale(uint64_t value, uint64_t mul, uint64_t div)
{
	pmdp_u128 product = (pmdp_u128)value * mul / div;

	return product > UINT64_MAX ? UINT64_MAX : (uint64_t)product;
}

static inline uint64_t pmdp_ticks_to_ns(uint64_t ticks, uint64_t ticks_hz)
{
	return ticks_hz == PMDP_NS_PER_S ? ticks : pmdp_scale(ticks, PMDP_NS_PER_S, ticks_hz);
}

static inline uint64_t pmdp_ns_to_ticks(uint64_t ns, uint64_t ticks_hz)
{
	return ticks_hz == PMDP_NS_PER_S ? ns : pmdp_scale(ns, ticks_hz, PMDP_NS_PER_S);
}
