// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// When the poster tries again, with a fed clock and fed chance.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test_dir.h"
#include "vs_pace.h"

#define S UINT64_C(1000000000)

static uint64_t pause_after(struct vs_pace *pace, uint64_t retry_after_ns, uint32_t random)
{
	const uint64_t now_ns = 1000 * S;

	vs_pace_failed(pace, now_ns, retry_after_ns, random);
	return pace->ready_ns - now_ns;
}

static void test_pauses_double_up_to_the_limit(void **state)
{
	struct vs_pace pace = {.min_ns = S, .max_ns = 60 * S};
	static const uint64_t expected_s[] = {1, 2, 4, 8, 16, 32, 60, 60, 60};

	(void)state;
	for (size_t i = 0; i < sizeof(expected_s) / sizeof(expected_s[0]); i++)
		assert_int_equal(pause_after(&pace, 0, UINT32_MAX), expected_s[i] * S);
	// A night later it is still the limit, not an overflow.
	for (int i = 0; i < 100000; i++)
		assert_int_equal(pause_after(&pace, 0, UINT32_MAX), 60 * S);
	vs_pace_succeeded(&pace);
	assert_int_equal(pace.ready_ns, 0);
	assert_int_equal(pause_after(&pace, 0, UINT32_MAX), S);
}

static void test_chance_takes_up_to_half(void **state)
{
	uint64_t random = test_seed("chance_takes_up_to_half"), least = UINT64_MAX, most = 0;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		struct vs_pace pace = {.min_ns = 8 * S, .max_ns = 60 * S};
		uint64_t pause_ns = pause_after(&pace, 0, (uint32_t)(test_random(&random) >> 32));

		assert_in_range(pause_ns, 4 * S, 8 * S);
		least = pause_ns < least ? pause_ns : least;
		most = pause_ns > most ? pause_ns : most;
	}
	assert_true(least < 4 * S + S / 10 && most > 8 * S - S / 10);
}

static void test_the_collector_may_ask_for_more(void **state)
{
	struct vs_pace pace = {.min_ns = S, .max_ns = 60 * S};

	(void)state;
	assert_int_equal(pause_after(&pace, 20 * S, 0), 20 * S);
	assert_int_equal(pause_after(&pace, 3600 * S, 0), 60 * S); // but not for everything
	assert_int_equal(pause_after(&pace, 1, 0), 2 * S);         // nor for less
}

static void test_odd_limits(void **state)
{
	struct vs_pace one = {.min_ns = 1, .max_ns = 1};
	struct vs_pace large = {.min_ns = 3600 * S, .max_ns = 3600 * S};

	(void)state;
	assert_in_range(pause_after(&one, 0, 0), 0, 1);
	assert_in_range(pause_after(&large, 0, 7), 1800 * S, 3600 * S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pauses_double_up_to_the_limit),
		cmocka_unit_test(test_chance_takes_up_to_half),
		cmocka_unit_test(test_the_collector_may_ask_for_more),
		cmocka_unit_test(test_odd_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
