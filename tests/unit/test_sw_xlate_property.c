// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The translation against a plain evaluation of the rules, while rules come and go. Bits that are
 * not in the mask of a megaflow are changed: its actions and rules must still be right for what
 * comes out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pmdp_abi.h"
#include "pmdp_clock.h"
#include "sw_change.h"
#include "sw_flow.h"
#include "sw_plain.h"
#include "sw_random.h"
#include "test_dir.h"

static uint32_t n_bits(const struct sw_key *mask)
{
	uint32_t n = 0;

	for (unsigned int i = 0; i < SW_KEY_WORDS; i++)
		n += (uint32_t)__builtin_popcountll(mask->word[i]);
	return n;
}

// Another key of the same megaflow: like a random one where the mask says nothing.
static struct sw_key relative(const struct sw_key *key, const struct sw_key *mask)
{
	struct sw_key other = sw_random_key(), out = *key;
	uint32_t one_word = sw_random_dice(2) ? sw_random_dice(SW_KEY_WORDS) : SW_KEY_WORDS;

	for (unsigned int i = 0; i < SW_KEY_WORDS; i++) {
		uint64_t noise = sw_random_dice(4) ? other.word[i] : test_random(&sw_random_seed);

		if (one_word == SW_KEY_WORDS || one_word == i)
			out.word[i] = (key->word[i] & mask->word[i]) | (noise & ~mask->word[i]);
	}
	out.reserved2 = 0;
	return out;
}

static double now_s(void)
{
	return (double)pmdp_mono_now_ns() / 1e9;
}

// PMDP_TEST_PACKETS: how many packets; without it, what fits into some seconds.
static void test_xlate_equals_a_plain_evaluation(void **state)
{
	const char *wanted = getenv("PMDP_TEST_PACKETS");
	uint64_t n_wanted = wanted ? strtoull(wanted, NULL, 10) : 1000000;
	struct sw_flow_table *table = sw_flow_table_create(NULL);
	uint64_t n_packets = 0, n_acts = 0, n_limits = 0, sum_bits = 0, n_keys = 0;
	double begin_s = now_s();

	(void)state;
	sw_random_seed = test_seed("sw_xlate");
	while (n_packets < n_wanted && (wanted || n_packets < 50000 || now_s() - begin_s < 15)) {
		sw_change(table);
		for (uint32_t i = sw_random_dice(60); i > 0; i--) {
			const struct sw_tables *tables = sw_tables_get(sw_flow_table_ref(table));
			struct sw_key key = sw_random_key();
			struct sw_xlate result;

			sw_xlate(tables, &key, &result);
			assert_int_equal(result.mask.in_port, UINT16_MAX);
			assert_int_equal(result.mask.recirc_id, UINT32_MAX);
			sw_plain_check(table, &key, &result);
			n_acts += result.n_acts;
			n_limits += result.n_acts == 0 &&
				    result.drop_reason == PMDP_DROP_RECIRC_LIMIT;
			sum_bits += n_bits(&result.mask) - 48;
			n_keys++;
			for (uint32_t j = 0; j < 8; j++, n_packets++) {
				struct sw_key other = relative(&key, &result.mask);

				sw_plain_check(table, &other, &result);
			}
		}
	}
	print_message(
		"%llu packets, %.2f actions and %.1f bits a megaflow, %llu limits, %u rules\n",
		(unsigned long long)n_packets, (double)n_acts / (double)n_keys,
		(double)sum_bits / (double)n_keys, (unsigned long long)n_limits, sw_plain_count());
	sw_plain_clear();
	sw_flow_table_destroy(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_xlate_equals_a_plain_evaluation),
	};

	return cmocka_run_group_tests_name("sw_xlate_property", tests, NULL, NULL);
}
