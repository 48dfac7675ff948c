// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// MAC learning: what PMDs ask for and control remembers.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sw_mac.h"
#include "test_dir.h"

static struct sw_mac_table *table;

static int setup(void **state)
{
	(void)state;
	table = sw_mac_create();
	return table ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	sw_mac_destroy(table);
	return 0;
}

static const uint8_t *mac_of(uint32_t number)
{
	static uint8_t mac[6];

	mac[0] = 2;
	for (unsigned int i = 0; i < 4; i++)
		mac[5 - i] = (uint8_t)(number >> 8 * i);
	return mac;
}

static struct sw_mac_counts counts_of(void)
{
	struct sw_mac_counts counts;

	sw_mac_counts(table, &counts);
	return counts;
}

static void test_mac_learns_moves_and_forgets(void **state)
{
	(void)state;
	assert_int_equal(sw_mac_lookup(table, mac_of(1), 0, 1000), SW_MAC_UNKNOWN);
	sw_mac_learn(table, mac_of(1), 0, 5, 1000);
	sw_mac_learn(table, mac_of(1), 0, 5, 1000); // asked already
	assert_int_equal(sw_mac_lookup(table, mac_of(1), 0, 1000), SW_MAC_UNKNOWN);
	sw_mac_poll(table, 1000);
	assert_int_equal(sw_mac_lookup(table, mac_of(1), 0, 1000), 5);
	assert_int_equal(sw_mac_lookup(table, mac_of(1), 7, 1000), SW_MAC_UNKNOWN); // another VLAN
	assert_int_equal(counts_of().n_learned, 1);
	assert_int_equal(counts_of().n_dropped, 0);

	sw_mac_learn(table, mac_of(1), 0, 6, 1001);
	sw_mac_poll(table, 1001);
	assert_int_equal(sw_mac_lookup(table, mac_of(1), 0, 1001), 6);
	assert_int_equal(counts_of().n_moved, 1);

	// A packet keeps it young; without one it is forgotten, by readers at once.
	sw_mac_learn(table, mac_of(1), 0, 6, 1200);
	sw_mac_poll(table, 1301 + 1);
	assert_int_equal(sw_mac_lookup(table, mac_of(1), 0, 1500), 6);
	assert_int_equal(sw_mac_lookup(table, mac_of(1), 0, 1501), SW_MAC_UNKNOWN);
	assert_int_equal(counts_of().n, 1);
	sw_mac_poll(table, 1501);
	assert_int_equal(counts_of().n, 0);
	assert_int_equal(counts_of().n_expired, 1);
}

static void test_mac_groups_and_nobody_are_not_learnt(void **state)
{
	static const uint8_t group[6] = {1, 0, 0x5e, 0, 0, 1}, nobody[6] = {0};

	(void)state;
	sw_mac_learn(table, group, 0, 5, 1000);
	sw_mac_learn(table, nobody, 0, 5, 1000);
	sw_mac_poll(table, 1000);
	assert_int_equal(counts_of().n_learned, 0);
}

static void test_mac_flush_of_a_port(void **state)
{
	struct sw_mac_info info;
	uint32_t at = 0, n = 0;

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		sw_mac_learn(table, mac_of(i), 3, (uint16_t)(1 + i % 2), 1000);
		sw_mac_poll(table, 1000);
	}
	sw_mac_flush(table, 1);
	while (sw_mac_next(table, &at, 1010, &info)) {
		assert_int_equal(info.port, 2);
		assert_int_equal(info.vid, 3);
		assert_int_equal(info.age_s, 10);
		assert_int_equal(info.mac[5] % 2, 1);
		n++;
	}
	assert_int_equal(n, 50);
	sw_mac_flush(table, 0);
	assert_int_equal(counts_of().n, 0);
}

// More addresses than the table holds: the oldest make room, nothing breaks, and none is beyond its
// bound.
static void test_mac_flood(void **state)
{
	uint32_t n_known = 0;

	(void)state;
	for (uint32_t i = 0; i < 4 * SW_MAC_MAX; i++) {
		sw_mac_learn(table, mac_of(i), 0, 1, 1000 + i / 1024);
		if (i % 64 == 63)
			sw_mac_poll(table, 1000 + i / 1024);
	}
	sw_mac_poll(table, 1032);
	assert_in_range(counts_of().n, SW_MAC_MAX - 100, SW_MAC_MAX);
	assert_true(counts_of().n_evicted > 2 * SW_MAC_MAX);
	for (uint32_t i = 0; i < 4 * SW_MAC_MAX; i++)
		n_known += sw_mac_lookup(table, mac_of(i), 0, 1032) == 1;
	assert_int_equal(n_known, counts_of().n);
	// The youngest are mostly there.
	n_known = 0;
	for (uint32_t i = 4 * SW_MAC_MAX - 1024; i < 4 * SW_MAC_MAX; i++)
		n_known += sw_mac_lookup(table, mac_of(i), 0, 1032) == 1;
	assert_true(n_known > 700);
}

// A flood of addresses from one port leaves those of others alone, and they can still come in.
static void test_mac_flood_takes_no_place_from_other_ports(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 500; i++) {
		sw_mac_learn(table, mac_of(1000000 + i), 0, 2, 1000);
		sw_mac_poll(table, 1000);
	}
	for (uint32_t i = 0; i < 8 * SW_MAC_MAX; i++) {
		sw_mac_learn(table, mac_of(i), 0, 1, 1000);
		if (i % 64 == 63)
			sw_mac_poll(table, 1000);
	}
	for (uint32_t i = 0; i < 500; i++) {
		assert_int_equal(sw_mac_lookup(table, mac_of(1000000 + i), 0, 1000), 2);
		sw_mac_learn(table, mac_of(2000000 + i), 0, 3, 1000);
		sw_mac_poll(table, 1000);
		assert_int_equal(sw_mac_lookup(table, mac_of(2000000 + i), 0, 1000), 3);
	}
	assert_int_equal(counts_of().n, SW_MAC_MAX);
	// Those that the flood lost its places to are still there.
	for (uint32_t i = 0; i < 500; i++) {
		assert_int_equal(sw_mac_lookup(table, mac_of(1000000 + i), 0, 1000), 2);
		assert_int_equal(sw_mac_lookup(table, mac_of(2000000 + i), 0, 1000), 3);
	}
	// Addresses that move are counted where they are.
	for (uint32_t i = 0; i < 500; i++) {
		sw_mac_learn(table, mac_of(1000000 + i), 0, 3, 1001);
		sw_mac_poll(table, 1001);
	}
	sw_mac_flush(table, 1);
	assert_int_equal(counts_of().n, 1000);
	sw_mac_flush(table, 3);
	assert_int_equal(counts_of().n, 0);
}

// Nor does it keep them from being learned: requests wait by port.
static void test_mac_flood_keeps_nobody_from_learning(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 50; round++) {
		for (uint32_t i = 0; i < 20000; i++)
			sw_mac_learn(table, mac_of(round * 20000 + i), 0, 1, 1000);
		sw_mac_learn(table, mac_of(5000000 + round), 0, 2, 1000);
		sw_mac_poll(table, 1000);
		assert_int_equal(sw_mac_lookup(table, mac_of(5000000 + round), 0, 1000), 2);
	}
}

// A port goes: what its last packets asked for must not come after it.
static void test_mac_flush_forgets_requests(void **state)
{
	(void)state;
	sw_mac_learn(table, mac_of(1), 0, 1, 1000);
	sw_mac_learn(table, mac_of(2), 0, 2, 1000);
	sw_mac_flush(table, 1);
	sw_mac_poll(table, 1000);
	assert_int_equal(sw_mac_lookup(table, mac_of(1), 0, 1000), SW_MAC_UNKNOWN);
	assert_int_equal(sw_mac_lookup(table, mac_of(2), 0, 1000), 2);
	sw_mac_learn(table, mac_of(1), 0, 3, 1000); // its place is free for another
	sw_mac_poll(table, 1000);
	assert_int_equal(sw_mac_lookup(table, mac_of(1), 0, 1000), 3);
}

static _Atomic int is_over;
static _Atomic uint64_t n_found;

// Every address has a port of its own: whoever finds another has read a torn entry.
static void *reader(void *arg)
{
	uint64_t seed = (uint64_t)(uintptr_t)arg;

	while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
		uint32_t number = (uint32_t)(test_random(&seed) % 20000);
		uint8_t mac[6] = {2, 0, 0, 0, (uint8_t)(number >> 8), (uint8_t)number};
		uint16_t port = sw_mac_lookup(table, mac, 0, 1000);

		if (port != SW_MAC_UNKNOWN) {
			if (port != number % 100 + 1)
				abort();
			atomic_fetch_add_explicit(&n_found, 1, memory_order_relaxed);
		}
		sw_mac_learn(table, mac, 0, (uint16_t)(number % 100 + 1), 1000);
	}
	return NULL;
}

// Bounded by time, but not before something has happened: the machine may be busy.
static void test_mac_readers_never_see_a_torn_entry(void **state)
{
	uint64_t end_ns = test_now_ns() + UINT64_C(700000000), seed = test_seed("sw_mac");
	uint64_t n_taken_out = 0, n = 0;
	pthread_t threads[2];

	(void)state;
	for (uintptr_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reader, (void *)(seed + i)), 0);
	while (test_now_ns() < end_ns || n < 1000 || n_taken_out < 1000) {
		sw_mac_poll(table, 1000);
		if (test_random(&seed) % 8 == 0)
			sw_mac_flush(table, (uint16_t)(1 + test_random(&seed) % 100));
		n = atomic_load_explicit(&n_found, memory_order_relaxed);
		n_taken_out = counts_of().n_evicted + counts_of().n_expired;
	}
	atomic_store_explicit(&is_over, 1, memory_order_relaxed);
	for (unsigned int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	print_message("%llu found, %llu taken out\n", (unsigned long long)n,
		      (unsigned long long)n_taken_out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_mac_learns_moves_and_forgets, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mac_groups_and_nobody_are_not_learnt, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_mac_flush_of_a_port, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mac_flood, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mac_flood_takes_no_place_from_other_ports,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_mac_flood_keeps_nobody_from_learning, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_mac_flush_forgets_requests, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mac_readers_never_see_a_torn_entry, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("sw_mac", tests, NULL, NULL);
}
