// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// What a PMD records of its iterations: totals and histograms agree, histories, and the log of
// suspicious iterations with its neighbours, also while control copies at full speed.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pmdp_shm.h"
#include "sw_perf.h"
#include "sw_perf_fast.h"
#include "sw_pmd.h"

#define MS_TICKS 1000

static struct sw_perf *perf;
static uint64_t counters[PMDP_N_COUNTERS];
static uint64_t now;
static struct sw_pmd pmd;

static int set_up(void **state)
{
	(void)state;
	perf = aligned_alloc(128, sizeof(*perf));
	memset(perf, 0, sizeof(*perf));
	perf->ms_ticks = MS_TICKS;
	atomic_store(&perf->limit_cycles, UINT64_MAX);
	memset(counters, 0, sizeof(counters));
	memset(&pmd, 0, sizeof(pmd));
	pmd.perf.perf = perf;
	now = 1000000;
	sw_perf_begin(perf, counters);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(perf);
	return 0;
}

static void iterate(uint64_t cycles, uint32_t packets, uint32_t batches, uint32_t upcalls,
		    uint64_t upcall_ticks)
{
	counters[PMDP_C_RX_BATCHES] += batches;
	counters[PMDP_C_MISSES] += upcalls;
	counters[PMDP_C_UPCALL_TICKS] += upcall_ticks;
	sw_perf_record(perf, counters, now, now + cycles, packets);
	now += cycles;
}

static int published(struct sw_perf_totals *out)
{
	sw_perf_publish(perf);
	return sw_perf_totals(&pmd, out);
}

static void test_bins_are_two_an_octave(void **state)
{
	(void)state;
	assert_int_equal(sw_perf_bin(0), 0);
	assert_int_equal(sw_perf_bin(1), 1);
	for (uint32_t bin = 0; bin < SW_PERF_N_BINS; bin++) {
		uint64_t low = sw_perf_bin_low(bin);

		assert_int_equal(sw_perf_bin(low), bin);
		if (bin > 0)
			assert_int_equal(sw_perf_bin(low - 1), bin - 1);
	}
	// What a 32-bit cycle count would fold into a small bin.
	assert_int_equal(sw_perf_bin((UINT64_C(1) << 32) + 5), SW_PERF_N_BINS - 1);
	assert_int_equal(sw_perf_bin(UINT64_MAX), SW_PERF_N_BINS - 1);
}

static uint64_t sum(const uint64_t *bins)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < SW_PERF_N_BINS; i++)
		n += bins[i];
	return n;
}

static void test_totals_and_histograms(void **state)
{
	struct sw_perf_totals totals;

	(void)state;
	iterate(100, 0, 0, 0, 0);
	iterate(3200, 64, 2, 0, 0);
	iterate(9000, 32, 1, 3, 6000);
	assert_int_equal(published(&totals), 0);
	assert_int_equal(totals.n_iterations, 3);
	assert_int_equal(totals.n_idle, 1);
	assert_int_equal(totals.cycles, 12300);
	assert_int_equal(totals.idle_cycles, 100);
	assert_int_equal(totals.n_packets, 96);
	assert_int_equal(totals.n_batches, 3);
	assert_int_equal(totals.n_upcalls, 3);
	assert_int_equal(totals.upcall_cycles, 6000);
	assert_int_equal(totals.bins[SW_PERF_CYCLES][sw_perf_bin(3200)], 1);
	assert_int_equal(totals.bins[SW_PERF_PACKETS][0], 1);
	assert_int_equal(totals.bins[SW_PERF_PACKETS][sw_perf_bin(64)], 1);
	assert_int_equal(totals.bins[SW_PERF_CYCLES_PER_PACKET][sw_perf_bin(50)], 1);
	assert_int_equal(totals.bins[SW_PERF_PACKETS_PER_BATCH][sw_perf_bin(32)], 2);
	assert_int_equal(totals.bins[SW_PERF_UPCALLS][0], 2);
	assert_int_equal(sum(totals.bins[SW_PERF_BATCHES]), 3);
	assert_int_equal(totals.bins[SW_PERF_BATCHES][0], 1);
	assert_int_equal(totals.bins[SW_PERF_CYCLES_PER_UPCALL][sw_perf_bin(2000)], 1);
	assert_int_equal(sum(totals.bins[SW_PERF_CYCLES]), 3);
	assert_int_equal(sum(totals.bins[SW_PERF_CYCLES_PER_PACKET]), 2);
}

static void test_what_was_counted_while_off_is_not_recorded(void **state)
{
	struct sw_perf_totals totals;

	(void)state;
	counters[PMDP_C_RX_BATCHES] = 77;
	counters[PMDP_C_MISSES] = 5;
	counters[PMDP_C_UPCALL_TICKS] = 12345;
	sw_perf_begin(perf, counters);
	iterate(500, 4, 1, 0, 0);
	assert_int_equal(published(&totals), 0);
	assert_int_equal(totals.n_batches, 1);
	assert_int_equal(totals.n_upcalls, 0);
	assert_int_equal(totals.upcall_cycles, 0);
}

static void test_history_folds_idle_iterations(void **state)
{
	struct sw_perf_iteration its[8];

	(void)state;
	for (int i = 0; i < 3; i++)
		iterate(50, 0, 0, 0, 0);
	iterate(640, 10, 1, 0, 0);
	iterate(320, 5, 1, 0, 0);
	assert_int_equal(sw_perf_iterations(&pmd, its, 8), 2);
	assert_int_equal(its[0].n_idle, 3);
	assert_int_equal(its[0].n_packets, 10);
	assert_int_equal(its[0].begin_ticks, 1000150);
	assert_int_equal(its[1].n_idle, 0);
	assert_int_equal(its[1].cycles, 320);
	// The newest ones, and never more than the ring has.
	for (uint32_t i = 0; i < 3 * SW_PERF_N_ITERATIONS; i++)
		iterate(10, i + 1, 1, 0, 0);
	assert_int_equal(sw_perf_iterations(&pmd, its, 8), 8);
	assert_int_equal(its[7].n_packets, 3 * SW_PERF_N_ITERATIONS);
	assert_int_equal(its[0].n_packets, 3 * SW_PERF_N_ITERATIONS - 7);
}

static void test_milliseconds_add_up(void **state)
{
	struct sw_perf_ms ms[16];
	uint64_t n = 0;

	(void)state;
	for (int i = 0; i < 100; i++)
		iterate(100, i % 2 ? 32 : 0, i % 2, 0, 0);
	assert_int_equal(sw_perf_milliseconds(&pmd, ms, 16), 10);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(ms[i].n_iterations, 10);
		assert_int_equal(ms[i].n_idle, 5);
		assert_int_equal(ms[i].cycles, MS_TICKS);
		n += ms[i].n_packets;
	}
	assert_int_equal(n, 50 * 32);
}

static void set_limit(uint64_t cycles, uint32_t before, uint32_t after, bool is_extending)
{
	atomic_store(&perf->limit_cycles, cycles);
	atomic_store(&perf->n_before, before);
	atomic_store(&perf->n_after, after);
	atomic_store(&perf->is_extending, is_extending);
}

static void test_suspicious_iteration_comes_with_its_neighbours(void **state)
{
	const struct sw_perf_log *log = &perf->log.slots[0];
	struct sw_perf_totals totals;

	(void)state;
	set_limit(400, 3, 2, false);
	for (uint32_t i = 1; i <= 10; i++)
		iterate(100, i, 1, 0, 0);
	iterate(401, 11, 1, 0, 0);
	iterate(100, 12, 1, 0, 0);
	assert_int_equal(atomic_load(&perf->log.n_written), 0);
	iterate(100, 13, 1, 0, 0);
	assert_int_equal(atomic_load(&perf->log.n_written), 1);
	assert_int_equal(log->n, 6);
	assert_int_equal(log->at, 3);
	assert_int_equal(log->n_suspicious, 1);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(log->iterations[i].n_packets, 8 + i);
	assert_int_equal(log->iterations[3].cycles, 401);
	assert_int_equal(published(&totals), 0);
	assert_int_equal(totals.n_suspicious, 1);
	assert_int_equal(totals.n_lost, 0);
}

static void test_log_closes_when_no_packets_come(void **state)
{
	(void)state;
	set_limit(400, 3, 5, false);
	iterate(500, 0, 0, 0, 0); // without packets, but suspicious all the same
	assert_int_equal(atomic_load(&perf->log.n_written), 0);
	for (int i = 0; i < 101; i++)
		iterate(100, 0, 0, 0, 0);
	assert_int_equal(atomic_load(&perf->log.n_written), 1);
	assert_int_equal(perf->log.slots[0].n, 1);
	assert_int_equal(perf->log.slots[0].iterations[0].cycles, 500);
}

static void test_further_ones_extend_within_the_slot(void **state)
{
	(void)state;
	set_limit(400, 1, 2, true);
	iterate(100, 1, 1, 0, 0);
	iterate(500, 2, 1, 0, 0);
	iterate(500, 3, 1, 0, 0);
	iterate(100, 4, 1, 0, 0);
	assert_int_equal(atomic_load(&perf->log.n_written), 0);
	iterate(100, 5, 1, 0, 0);
	assert_int_equal(atomic_load(&perf->log.n_written), 1);
	assert_int_equal(perf->log.slots[0].n, 5);
	assert_int_equal(perf->log.slots[0].n_suspicious, 2);
	// Suspicious for ever: slots fill, what has no room is counted, all of it.
	set_limit(0, SW_PERF_MAX_NEIGHBOURS, SW_PERF_MAX_NEIGHBOURS, true);
	for (uint32_t i = 0; i < 5000; i++)
		iterate(10, 1, 1, 0, 0);
	assert_int_equal(atomic_load(&perf->log.n_written), SW_PERF_N_LOGS);
	for (uint32_t i = 1; i < SW_PERF_N_LOGS; i++) {
		assert_true(perf->log.slots[i].n <= SW_PERF_LOG_ITERATIONS);
		assert_true(perf->log.slots[i].at < perf->log.slots[i].n);
	}
	assert_in_range(perf->totals.n_lost, 4000, 5002);
}

// Control copies while the PMD records: a copy is whole, so sums agree in every one.
static atomic_bool is_done;

static void *record(void *arg)
{
	uint32_t x = 1, n = 0;

	(void)arg;
	while (!atomic_load_explicit(&is_done, memory_order_relaxed)) {
		x = x * 1664525 + 1013904223;
		iterate(100 + (x >> 20), x >> 26, x >> 26 ? 1 + (x >> 31) : 0, x >> 30 == 3, 100);
		if (++n % 1000 == 0) // a PMD's iterations between two publications
			sw_perf_publish(perf);
	}
	return NULL;
}

static void test_copies_are_whole(void **state)
{
	struct sw_perf_iteration its[256];
	struct sw_perf_totals totals;
	uint64_t n_last = 0;
	pthread_t thread;
	uint32_t n_copies = 0;

	(void)state;
	set_limit(4000, 5, 5, false);
	assert_int_equal(pthread_create(&thread, NULL, record, NULL), 0);
	for (int i = 0; i < 20000 || n_copies < 100; i++) {
		uint32_t n = sw_perf_iterations(&pmd, its, 256);

		for (uint32_t k = 1; k < n; k++)
			assert_true(its[k].begin_ticks >=
				    its[k - 1].begin_ticks + its[k - 1].cycles);
		// Refused while the other thread is off its core in the midst of a publication.
		if (sw_perf_totals(&pmd, &totals) != 0)
			continue;
		n_copies += totals.n_iterations > n_last;
		assert_int_equal(sum(totals.bins[SW_PERF_CYCLES]), totals.n_iterations);
		assert_int_equal(sum(totals.bins[SW_PERF_PACKETS]), totals.n_iterations);
		assert_int_equal(sum(totals.bins[SW_PERF_CYCLES_PER_PACKET]),
				 totals.n_iterations - totals.n_idle);
		assert_true(totals.n_iterations >= n_last);
		n_last = totals.n_iterations;
	}
	atomic_store(&is_done, true);
	pthread_join(thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bins_are_two_an_octave),
		cmocka_unit_test_setup_teardown(test_totals_and_histograms, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_was_counted_while_off_is_not_recorded,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_history_folds_idle_iterations, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_milliseconds_add_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_suspicious_iteration_comes_with_its_neighbours,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_log_closes_when_no_packets_come, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_further_ones_extend_within_the_slot, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_copies_are_whole, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
