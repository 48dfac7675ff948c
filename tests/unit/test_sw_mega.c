// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Megaflows and caches by themselves: every flow that was installed is found, by every
// implementation, until it ends; limits hold; what is free is used again; a hit is never another
// flow's.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_malloc.h>

#include "sw_bits_fast.h"
#include "sw_impl.h"
#include "sw_impl_fast.h"
#include "sw_pipe.h"
#include "tests/unit/sw_bed.h"

#define N_FLOWS 4096

static struct sw_mega *mega;
static struct sw_emc *emc;
static uint32_t seed;

static uint32_t next(void)
{
	seed = seed * 1664525 + 1013904223;
	return seed >> 8;
}

static int setup(void **state)
{
	(void)state;
	bed_open(state);
	mega = &bed.run.pipe->mega;
	emc = bed.run.pipe->emc;
	seed = 20261130;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	bed_close(state);
	return 0;
}

static struct sw_key key_of(uint32_t n)
{
	struct sw_key key = {.dl_type = 8, .nw_proto = 17, .in_port = 1};

	key.nw_src = n;
	key.nw_dst = n * 7;
	key.tp_src = (uint16_t)n;
	key.dl_src[5] = (uint8_t)n;
	return key;
}

// Masks of 0 to 10 words.
static struct sw_xlate xlate_of(uint32_t shape)
{
	struct sw_xlate xlate = {.n_acts = 1};

	xlate.acts[0] = (struct sw_act){.type = SW_ACT_OUTPUT, .port = 2};
	for (uint32_t i = 0; i < SW_KEY_WORDS; i++)
		xlate.mask.word[i] = shape >> i & 1 ? UINT64_MAX >> (shape % 5) : 0;
	xlate.mask.word[SW_KEY_META_WORD] = UINT64_C(0xffffffff0000ffff);
	return xlate;
}

static uint32_t add(struct sw_classifier *cls, const struct sw_key *key,
		    const struct sw_xlate *xlate, uint32_t *out_flow)
{
	return sw_mega_add(mega, cls, key, xlate, 1, 0, N_FLOWS, out_flow);
}

static bool covers(uint32_t flow, const struct sw_key *key)
{
	return flow != SW_MEGA_NONE && mega->flows[flow].id != 0 &&
	       sw_mega_matches(mega, flow, mega->shapes[mega->flows[flow].subtable].classifier,
			       key);
}

static void check_found(struct sw_classifier *cls, const struct sw_key *keys, uint32_t n)
{
	const struct sw_impl *impl = sw_impl_find("autovalidator");
	uint32_t flows[SW_BURST];
	uint64_t n_visited = 0;
	uint32_t found;

	found = impl->mega_lookup(mega, cls, keys, sw_bits_below(n), flows, &n_visited);
	assert_int_equal(found, sw_bits_below(n));
	for (uint32_t i = 0; i < n; i++)
		assert_true(covers(flows[i], &keys[i]));
	assert_true(n_visited >= n);
	assert_int_equal(sw_impl_n_differences(), 0);
}

static void test_all_that_is_there_is_found(void **state)
{
	static const uint32_t shapes[] = {0, 0x10, 0x19, 0x1d, 0x3f, 0xff, 0x7ff, 0xffff, 0x1};
	struct sw_classifier *cls = &mega->classifiers[0];
	uint32_t flows[N_FLOWS];
	uint32_t n = 0;

	(void)state;
	for (uint32_t i = 0; i < N_FLOWS; i++) {
		struct sw_key key = key_of(next());
		struct sw_xlate xlate = xlate_of(shapes[next() % 9]);

		if (sw_mega_find(mega, cls, &key, &(uint64_t){0}) == SW_MEGA_NONE)
			n += add(cls, &key, &xlate, &flows[n]) == SW_MEGA_ADDED;
	}
	assert_int_equal(mega->n_flows, n);
	while (n > 0) {
		struct sw_key keys[SW_BURST];
		uint32_t k = RTE_MIN(n, (uint32_t)SW_BURST);

		for (uint32_t i = 0; i < k; i++)
			keys[i] = mega->cold[flows[next() % n]].key;
		check_found(cls, keys, k);
		for (uint32_t i = 0; i < 3 && n > 0; i++) {
			uint32_t at = next() % n;

			sw_mega_delete(mega, flows[at]);
			flows[at] = flows[--n];
		}
		if (n % 100 < 3)
			sw_mega_sort(mega, cls);
	}
	assert_int_equal(mega->n_shapes, 0);
	for (uint32_t i = 0; i <= mega->bucket_mask; i++) {
		assert_int_equal(mega->buckets[i].n_passed, 0);
		assert_true(mega->buckets[i].entries[0] == 0);
	}
}

// More flows with one hash than a lookup may look at: the rest is refused, what is in is found.
// Which of the first four keys are found, by every implementation alike.
static uint32_t found_of(struct sw_classifier *cls, const struct sw_key *keys,
			 const uint32_t *flows)
{
	const struct sw_impl *impl = sw_impl_find("autovalidator");
	uint32_t out[SW_BURST], found;

	found = impl->mega_lookup(mega, cls, keys, 0xf, out, &(uint64_t){0});
	assert_int_equal(sw_impl_n_differences(), 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(!(found >> i & 1) || out[i] == flows[i]);
	return found;
}

// The subtable's only flow is compared without a hash: it must be the one that is left.
static void test_the_single_flow_of_a_subtable(void **state)
{
	static const uint32_t shapes[] = {0x10, 0x19, 0x1d, 0x3f, 0xff, 0x7ff, 0xffff};
	struct sw_classifier *cls = &mega->classifiers[0];

	(void)state;
	for (uint32_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
		struct sw_xlate xlate = xlate_of(shapes[s]);
		struct sw_key keys[4];
		uint32_t flows[4];

		for (uint32_t i = 0; i < 4; i++) {
			keys[i] = key_of(0);
			keys[i].word[4] = i + 1;
		}
		for (uint32_t round = 0; round < 3; round++) {
			uint32_t left = 0;

			for (uint32_t i = 0; i < 3; i++) {
				assert_int_equal(add(cls, &keys[i], &xlate, &flows[i]),
						 SW_MEGA_ADDED);
				left |= 1u << i;
				assert_int_equal(found_of(cls, keys, flows), left);
			}
			assert_int_equal(cls->n, 1);
			for (uint32_t i = 0; i < 3; i++) {
				uint32_t gone = (i * (round == 2 ? 2 : 1) + round) % 3;

				sw_mega_delete(mega, flows[gone]);
				left &= ~(1u << gone);
				assert_int_equal(found_of(cls, keys, flows), left);
			}
		}
	}
}

static void test_equal_hashes_are_bounded(void **state)
{
	const uint32_t most = SW_MEGA_MAX_PROBES * SW_MEGA_BUCKET_ENTRIES;
	struct sw_classifier *cls = &mega->classifiers[0];
	struct sw_xlate xlate = xlate_of(0x18); // ports, then addresses
	struct sw_key keys[64];
	uint32_t n = 0, flow;

	(void)state;
	xlate.mask.word[3] = xlate.mask.word[4] = UINT64_MAX;
	for (uint32_t i = 0; i < 64; i++) {
		// The sum is linear: a change of the first word is undone by one of the second.
		uint64_t seen = _mm_crc32_u64(0, i + 1) ^ _mm_crc32_u64(0, 0);

		keys[i] = (struct sw_key){.in_port = 1};
		keys[i].word[3] = i + 1;
		keys[i].word[4] = seen;
		n += add(cls, &keys[i], &xlate, &flow) == SW_MEGA_ADDED;
	}
	assert_int_equal(n, most);
	check_found(cls, keys, SW_BURST);
	check_found(cls, keys + most - SW_BURST, SW_BURST);
	assert_int_equal(sw_mega_find(mega, cls, &keys[most], &(uint64_t){0}), SW_MEGA_NONE);
}

static void test_shapes_of_a_port_have_a_limit(void **state)
{
	struct sw_classifier *cls = &mega->classifiers[0];
	struct sw_key key = key_of(1);
	uint32_t flows[SW_MEGA_MAX_PORT_SHAPES + 1];

	(void)state;
	for (uint32_t i = 0; i < SW_MEGA_MAX_PORT_SHAPES; i++) {
		struct sw_xlate xlate = xlate_of(0x10);

		xlate.mask.word[3] = i + 1;
		assert_int_equal(add(cls, &key, &xlate, &flows[i]), SW_MEGA_ADDED);
	}
	for (uint32_t i = 0; i < 2; i++) {
		struct sw_xlate xlate = xlate_of(0x10);

		xlate.mask.word[2] = 1;
		assert_int_equal(add(cls, &key, &xlate, &flows[SW_MEGA_MAX_PORT_SHAPES]),
				 i == 0 ? SW_MEGA_TOO_MANY : SW_MEGA_ADDED);
		if (i == 0)
			sw_mega_delete(mega, flows[0]);
	}
}

static void test_flows_have_a_limit(void **state)
{
	struct sw_classifier *cls = &mega->classifiers[0];
	struct sw_xlate xlate = xlate_of(0x10);
	uint32_t flow, n = 0;

	(void)state;
	for (uint32_t i = 0; i < N_FLOWS + 10; i++) {
		struct sw_key key = key_of(i);

		n += add(cls, &key, &xlate, &flow) == SW_MEGA_ADDED;
	}
	assert_int_equal(n, N_FLOWS);
	sw_mega_delete(mega, 17);
	assert_int_equal(add(cls, &(struct sw_key){.in_port = 1}, &xlate, &flow), SW_MEGA_ADDED);
	assert_int_equal(flow, 17);
}

// Lists that do not fit into a flow come from a pool of their own, which has an end too.
static void test_long_lists_have_a_limit(void **state)
{
	struct sw_classifier *cls = &mega->classifiers[0];
	struct sw_xlate xlate = xlate_of(0x10);
	uint32_t flow, n = 0;

	(void)state;
	xlate.n_acts = SW_XLATE_MAX_ACTS;
	for (uint32_t i = 0; i < SW_MEGA_MAX_BIG + 10; i++) {
		struct sw_key key = key_of(i);

		n += add(cls, &key, &xlate, &flow) == SW_MEGA_ADDED;
	}
	assert_int_equal(n, SW_MEGA_MAX_BIG);
	sw_mega_delete(mega, 0);
	assert_int_equal(add(cls, &(struct sw_key){.in_port = 1}, &xlate, &flow), SW_MEGA_ADDED);
}

static uint32_t emc_hash(const struct sw_key *key)
{
	struct rte_mbuf mbuf = {.ol_flags = 0};

	return sw_key_hash(key, &mbuf);
}

// Keys that differ in one bit, under one hash: never one for the other.
static void test_emc_compares_whole_keys(void **state)
{
	struct sw_xlate xlate = xlate_of(0);
	struct sw_key key = key_of(5);
	struct sw_key wide = key;
	uint32_t flow;

	(void)state;
	assert_int_equal(add(&mega->classifiers[0], &key, &xlate, &flow), SW_MEGA_ADDED);
	sw_emc_insert(emc, mega, &key, 77, false, flow);
	assert_int_equal(sw_emc_find(emc, mega, &key, 77, false), flow);
	for (uint32_t bit = 0; bit < sizeof(key) * 8; bit++) {
		struct sw_key other = key;
		bool is_wide = bit >= 9 * 64;

		if (bit / 64 == SW_KEY_META_WORD && bit % 64 >= 16 && bit % 64 < 32)
			continue; // always 0
		other.word[bit / 64] ^= UINT64_C(1) << bit % 64;
		assert_int_equal(sw_emc_find(emc, mega, &other, 77, is_wide), SW_MEGA_NONE);
	}
	wide.nd_target[3] = 9;
	sw_emc_insert(emc, mega, &wide, 77, true, flow);
	assert_int_equal(emc->n_entries, 2);
	assert_int_equal(sw_emc_find(emc, mega, &wide, 77, true), flow);
	assert_int_equal(sw_emc_find(emc, mega, &key, 77, false), flow);
	// The flow's next life is another flow.
	sw_mega_delete(mega, flow);
	assert_int_equal(sw_emc_find(emc, mega, &key, 77, false), SW_MEGA_NONE);
	assert_int_equal(add(&mega->classifiers[0], &key, &xlate, &flow), SW_MEGA_ADDED);
	assert_int_equal(sw_emc_find(emc, mega, &key, 77, false), SW_MEGA_NONE);
	for (uint32_t i = 0; i < SW_EMC_ENTRIES / SW_EMC_SWEEP; i++)
		sw_emc_sweep(emc, mega);
	assert_int_equal(emc->n_entries, 0);
}

static void test_emc_of_bursts(void **state)
{
	const struct sw_impl *impl = sw_impl_find("autovalidator");
	struct sw_xlate xlate = xlate_of(0xff);
	uint32_t n_hits = 0;

	(void)state;
	for (uint32_t burst = 0; burst < 200; burst++) {
		struct sw_key keys[SW_BURST];
		uint32_t hashes[SW_BURST], flows[SW_BURST];
		uint32_t found;

		for (uint32_t i = 0; i < SW_BURST; i++) {
			keys[i] = key_of(next() % 2000);
			hashes[i] = emc_hash(&keys[i]) & (burst % 2 == 0 ? UINT32_MAX : 0xf);
		}
		found = impl->emc_lookup(emc, mega, keys, hashes, UINT32_MAX, 0, flows);
		SW_FOR_EACH_BIT(i, found)
		assert_true(covers(flows[i], &keys[i]));
		SW_FOR_EACH_BIT(i, ~found)
		{
			uint32_t flow =
				sw_mega_find(mega, &mega->classifiers[0], &keys[i], &(uint64_t){0});

			if (flow == SW_MEGA_NONE)
				add(&mega->classifiers[0], &keys[i], &xlate, &flow);
			sw_emc_insert(emc, mega, &keys[i], hashes[i], false, flow);
		}
		n_hits += sw_n_bits(found);
	}
	assert_true(n_hits > 500);
	assert_int_equal(sw_impl_n_differences(), 0);
}

static void test_smc_is_only_a_guess(void **state)
{
	struct sw_smc *smc = sw_pipe_smc(bed.run.pipe);
	struct sw_classifier *cls = &mega->classifiers[0];
	struct sw_xlate xlate = xlate_of(0x10);
	struct sw_key a = key_of(1), b = key_of(2);
	uint32_t flow_a, flow_b;

	(void)state;
	assert_int_equal(add(cls, &a, &xlate, &flow_a), SW_MEGA_ADDED);
	assert_int_equal(add(cls, &b, &xlate, &flow_b), SW_MEGA_ADDED);
	sw_smc_insert(smc, 99, flow_a);
	assert_int_equal(sw_smc_find(smc, mega, cls, &a, 99), flow_a);
	assert_int_equal(sw_smc_find(smc, mega, cls, &b, 99), SW_MEGA_NONE);
	assert_int_equal(sw_smc_find(smc, mega, cls + 2, &a, 99), SW_MEGA_NONE); // another port
	sw_smc_insert(smc, 99, flow_b); // the same signature: in its place
	assert_int_equal(smc->n_entries, 1);
	assert_int_equal(sw_smc_find(smc, mega, cls, &b, 99), flow_b);
	// Seventeen signatures in a bucket of sixteen.
	for (uint32_t i = 0; i < SW_SMC_WAYS + 1; i++)
		sw_smc_insert(smc, 99 + ((i + 5) << 16), flow_a);
	assert_int_equal(smc->n_entries, SW_SMC_WAYS);
	sw_mega_delete(mega, flow_b);
	sw_mega_delete(mega, flow_a);
	for (uint32_t i = 0; i < SW_SMC_BUCKETS / SW_SMC_SWEEP; i++)
		sw_smc_sweep(smc, mega);
	assert_int_equal(smc->n_entries, 0);
}

static void test_hash_of_fragments(void **state)
{
	struct sw_key first = key_of(1), later;
	struct sw_key other = key_of(1);

	(void)state;
	other.tp_src++;
	assert_int_not_equal(emc_hash(&first), emc_hash(&other));
	first.nw_frag = SW_FRAG_ANY;
	later = first;
	later.nw_frag = SW_FRAG_ANY | SW_FRAG_LATER;
	later.tp_src = 0;
	assert_int_equal(emc_hash(&first), emc_hash(&later));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(test_all_that_is_there_is_found), TEST(test_the_single_flow_of_a_subtable),
		TEST(test_equal_hashes_are_bounded),   TEST(test_shapes_of_a_port_have_a_limit),
		TEST(test_flows_have_a_limit),         TEST(test_long_lists_have_a_limit),
		TEST(test_emc_compares_whole_keys),    TEST(test_emc_of_bursts),
		TEST(test_smc_is_only_a_guess),        TEST(test_hash_of_fragments),
	};

	return cmocka_run_group_tests(tests, bed_start, bed_stop);
}
