// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Labels from names that may hold anything, thread selection, histogram buckets.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cp_label.h"
#include "cp_metrics_parts.h"
#include "cp_select.h"

static void expect(const char *name, const char *expected)
{
	char out[CP_LABEL_BYTES];

	assert_string_equal(cp_label("default", name, out), expected);
}

static void test_odd_names(void **state)
{
	(void)state;
	expect(NULL, "default");
	expect("", "default");
	expect("pmd-c01/id:2", "default:pmd-c01_id:2");
	expect("a.b", "default:a.b");
	expect("a-b", "default:a-b");
	expect("a\"b", "default:a\"b");
	expect("a\\b", "default:a\\b");
	expect("\xc3\xbc", "default:\xc3\xbc");
	expect("a/b", "default:a_b");
	expect("a b\tc\nd\x7f", "default:a_b_c_d_");
	expect("\xff\xc3", "default:__");      // no UTF-8, cut sequence
	expect("\xc0\xaf", "default:__");      // overlong
	expect("\xed\xa0\x80", "default:___"); // surrogate
	expect("\xf0\x9f\x92\xa5", "default:\xf0\x9f\x92\xa5");
}

static void test_longest_names_fit(void **state)
{
	char instance[64], port[64], out[CP_LABEL_BYTES];

	(void)state;
	memset(instance, 'i', 63);
	memset(port, 'x', 63);
	instance[63] = port[63] = 0;
	cp_label(instance, port, out);
	assert_int_equal(strlen(out), 127);
	assert_string_equal(out + 64, port);
}

static void fill(const char *const *names, size_t n, const char **out,
		 struct cp_label_set **out_set)
{
	uint32_t slots[16];

	for (size_t i = 0; i < n; i++)
		slots[i] = (uint32_t)i + 10;
	*out_set = cp_label_set_new(n);
	assert_non_null(*out_set);
	assert_int_equal(cp_label_set_fill(*out_set, "s", names, slots, n, out), 0);
}

static void test_no_two_share_a_label(void **state)
{
	const char *names[] = {"a/b", "a_b", "worker", "worker", "c/d", "c/d"};
	const char *out[6];
	struct cp_label_set *set;

	(void)state;
	fill(names, 6, out, &set);
	assert_string_equal(out[0], "s:a_b~10"); // the one that needed a change gives way
	assert_string_equal(out[1], "s:a_b");
	assert_string_equal(out[2], "s:worker");
	assert_string_equal(out[3], "s:worker~13");
	assert_string_equal(out[4], "s:c_d");
	assert_string_equal(out[5], "s:c_d~15");
	cp_label_set_free(set);
}

static void test_suffix_fits_into_a_full_label(void **state)
{
	char long_name[127];
	const char *names[] = {long_name, long_name};
	const char *out[2];
	struct cp_label_set *set;

	(void)state;
	memset(long_name, 'x', 125);
	memcpy(long_name + 123, "\xc3\xbc", 2); // not to be cut in the middle
	long_name[125] = 0;
	fill(names, 2, out, &set);
	assert_int_equal(strlen(out[0]), 127);
	assert_string_equal(out[1] + strlen(out[1]) - 4, "x~11");
	cp_label_set_free(set);
}

static void test_selection(void **state)
{
	struct cp_select select = {0};
	char why[128] = "";

	(void)state;
	assert_true(cp_select_match(&select, "anything"));
	assert_int_equal(cp_select_add(&select, "main", NULL, 0), 0);
	assert_int_equal(cp_select_add(&select, "/^pmd-c0[12]/", NULL, 0), 0);
	assert_true(cp_select_match(&select, "main"));
	assert_false(cp_select_match(&select, "main2"));
	assert_true(cp_select_match(&select, "pmd-c01/id:2"));
	assert_false(cp_select_match(&select, "pmd-c03/id:2"));
	select.is_inverted = true;
	assert_false(cp_select_match(&select, "main"));
	assert_true(cp_select_match(&select, "pmd-c03/id:2"));
	assert_true(cp_select_add(&select, "/(/", why, sizeof(why)) < 0);
	assert_true(why[0] != 0);
	assert_true(cp_select_add(&select, "", why, sizeof(why)) < 0);
	cp_select_clear(&select);
	assert_true(cp_select_match(&select, "main"));
}

static void test_buckets_are_cumulative_and_complete(void **state)
{
	struct pmdp_lane_body body = {0};
	uint64_t counts[CP_N_BUCKETS], all = 1000;

	(void)state;
	body.gap_hist[PMDP_HIST_FLOOR_BIN - 1] = 77; // below the floor: part of the rest
	body.gap_hist[PMDP_HIST_FLOOR_BIN] = 3;
	body.gap_hist[PMDP_HIST_FLOOR_BIN + 5] = 2;
	body.gap_hist[PMDP_N_HIST - 1] = 1;
	body.counters[PMDP_C_ITERATIONS] = all;
	cp_buckets(&body, counts);
	assert_int_equal(counts[0], all - 6);
	assert_int_equal(counts[1], all - 3);
	assert_int_equal(counts[5], all - 3);
	assert_int_equal(counts[6], all - 1);
	assert_int_equal(counts[CP_N_BUCKETS - 2], all - 1);
	assert_int_equal(counts[CP_N_BUCKETS - 1], all);

	// A program that counts no iterations still gets a histogram of its gaps.
	body.counters[PMDP_C_ITERATIONS] = 0;
	cp_buckets(&body, counts);
	assert_int_equal(counts[0], 0);
	assert_int_equal(counts[CP_N_BUCKETS - 1], 6);
}

static void test_bounds_read_back_exactly(void **state)
{
	char text[32];

	(void)state;
	assert_string_equal(cp_bucket_bound(0, text, sizeof(text)), "1.6384e-05");
	for (uint32_t i = 0; i < CP_N_BUCKETS - 1; i++) {
		double expected = (double)(UINT64_C(1) << (PMDP_HIST_FLOOR_BIN + i)) / 1e9;

		assert_true(strtod(cp_bucket_bound(i, text, sizeof(text)), NULL) == expected);
	}
	assert_string_equal(cp_bucket_bound(CP_N_BUCKETS - 1, text, sizeof(text)), "+Inf");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_odd_names),
		cmocka_unit_test(test_longest_names_fit),
		cmocka_unit_test(test_no_two_share_a_label),
		cmocka_unit_test(test_suffix_fits_into_a_full_label),
		cmocka_unit_test(test_selection),
		cmocka_unit_test(test_buckets_are_cumulative_and_complete),
		cmocka_unit_test(test_bounds_read_back_exactly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
