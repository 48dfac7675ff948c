// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Stalls and starvation: raise, true duration, count, clear, damping; with a fed clock.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "detector_sim.h"

#define STALL PMDP_KIND_PMD_STALL
#define STARVED PMDP_KIND_PMD_STARVED

static struct sim sim;

static void test_stall_live_then_completed(void **state)
{
	const struct sim_told *raise, *update, *clear;

	(void)state;
	sim_init(&sim, 2, 50 * MS);
	sim_absent(&sim, 0, T0 + S + 33 * MS, T0 + S + 333 * MS + 7);
	sim_run(&sim, T0 + 5 * S);
	assert_told(PMDP_T_RAISE, 0, 1);
	raise = sim_find(&sim, PMDP_T_RAISE, STALL, 0);
	assert_int_equal(raise->at_ns, T0 + S + 133 * MS); // last beat plus two intervals, no later
	assert_int_equal(raise->t.lane, 0);
	assert_int_equal(raise->t.begin_ns, T0 + S + 33 * MS);
	assert_int_equal(raise->t.end_ns, 0);
	assert_int_equal(raise->t.length_ns, 100 * MS);
	assert_int_equal(raise->t.worst_state, PMDP_STATE_DEAD);
	assert_told(PMDP_T_UPDATE, 0, 1); // its end, at the first look after it
	update = sim_find(&sim, PMDP_T_UPDATE, STALL, 0);
	assert_true(update->at_ns - (T0 + S + 333 * MS) <= 101 * MS);
	assert_int_equal(update->t.length_ns, 300 * MS + 7);
	assert_int_equal(update->t.end_ns, T0 + S + 333 * MS + 7);
	assert_int_equal(update->t.new_state, PMDP_STATE_ALIVE);
	assert_told(PMDP_T_CLEAR, 0, 1);
	clear = sim_find(&sim, PMDP_T_CLEAR, STALL, 0);
	assert_int_equal(clear->at_ns, T0 + 2 * S + 333 * MS + 7); // end plus hold
	assert_int_equal(clear->t.length_ns, 300 * MS + 7);
	assert_int_equal(clear->t.total_ns, 300 * MS + 7);
	assert_int_equal(clear->t.n_stalls, 1);
	assert_false(clear->t.is_self_timed);
}

static void test_stall_between_two_looks(void **state)
{
	const struct sim_told *raise, *clear;

	(void)state;
	sim_init(&sim, 1, 50 * MS);
	sim.limits.late_ns = 10 * S; // a watcher that looks seldom
	sim_run(&sim, T0 + S);
	sim_absent(&sim, 0, T0 + S, T0 + S + 120 * MS + 5);
	sim_step(&sim, T0 + S + 140 * MS);
	assert_told(PMDP_T_RAISE, STALL, 1);
	raise = sim_find(&sim, PMDP_T_RAISE, STALL, 0);
	assert_int_equal(raise->t.length_ns, 120 * MS + 5);
	assert_int_equal(raise->t.begin_ns, T0 + S);
	assert_int_equal(raise->t.end_ns, T0 + S + 120 * MS + 5);
	assert_int_equal(raise->t.worst_state, PMDP_STATE_DEAD);
	assert_int_equal(raise->t.new_state, PMDP_STATE_ALIVE);
	assert_true(raise->t.is_self_timed);
	sim_run(&sim, T0 + 5 * S);
	assert_told(PMDP_T_UPDATE, STALL, 0); // the raise said it all
	assert_told(PMDP_T_CLEAR, STALL, 1);
	clear = sim_find(&sim, PMDP_T_CLEAR, STALL, 0);
	assert_int_equal(clear->at_ns, T0 + 2 * S + 140 * MS); // from the look: its end is not
							       // known
	assert_int_equal(clear->t.n_stalls, 1);
}

static void test_stall_gaps_below_limit_are_none(void **state)
{
	(void)state;
	sim_init(&sim, 1, 50 * MS);
	for (uint32_t i = 0; i < 50; i++)
		sim_absent(&sim, 0, T0 + i * S, T0 + i * S + 99 * MS);
	sim_run(&sim, T0 + 60 * S);
	assert_told(PMDP_T_RAISE, 0, 0);
}

// Beats are visible a look before the lane's own counters: one stall, and its true length in the
// end.
static void test_stall_torn_order(void **state)
{
	const struct sim_told *clear;

	(void)state;
	sim_init(&sim, 1, 50 * MS);
	sim_absent(&sim, 0, T0 + S, T0 + S + 250 * MS + 3);
	sim_run(&sim, T0 + S + 200 * MS);
	sim.lanes[0].is_torn = true;
	sim_step(&sim, T0 + S + 280 * MS);
	assert_told(PMDP_T_UPDATE, STALL, 1);
	sim_run(&sim, T0 + 5 * S);
	assert_told(PMDP_T_RAISE, STALL, 1);
	assert_told(PMDP_T_CLEAR, STALL, 1);
	clear = sim_find(&sim, PMDP_T_CLEAR, STALL, 0);
	assert_int_equal(clear->t.n_stalls, 1);
	assert_int_equal(clear->t.length_ns, 250 * MS + 3);
	assert_int_equal(clear->t.total_ns, 250 * MS + 3);
}

// As before, and the next stall is live before the figure of the first has been seen.
static void test_stall_torn_order_then_stall(void **state)
{
	const struct sim_told *clear;

	(void)state;
	sim_init(&sim, 1, 50 * MS);
	sim_absent(&sim, 0, T0 + S, T0 + S + 250 * MS);
	sim_absent(&sim, 0, T0 + S + 251 * MS, T0 + S + 651 * MS);
	sim_run(&sim, T0 + S + 200 * MS);
	sim.lanes[0].is_torn = true;
	sim_step(&sim, T0 + S + 251 * MS);
	sim_run(&sim, T0 + 5 * S);
	assert_told(PMDP_T_RAISE, STALL, 1);
	clear = sim_find(&sim, PMDP_T_CLEAR, STALL, 0);
	assert_int_equal(clear->t.n_stalls, 2);
	assert_int_equal(clear->t.length_ns, 400 * MS);
	assert_int_equal(clear->t.total_ns, 650 * MS);
}

// The counters first, the beat a look later: not two stalls, and no third one of the time between.
static void test_stall_counters_before_beat(void **state)
{
	struct pmdp_lane_look *look;
	const struct sim_told *clear;

	(void)state;
	sim_init(&sim, 1, 50 * MS);
	sim_absent(&sim, 0, T0 + S, T0 + S + 250 * MS);
	sim_run(&sim, T0 + S + 249 * MS);
	look = &sim.lanes[0].look;
	look->n_gaps++, look->n_records++, look->gap_ns += 250 * MS,
		look->longest_gap_ns = 250 * MS;
	look->n_stalls++, look->stall_ns += 250 * MS, look->last_stall_ns = 250 * MS;
	sim_judge(&sim, T0 + S + 250 * MS);
	sim.lanes[0].last_ns = sim.lanes[0].done_ns = T0 + S + 250 * MS;
	sim.lanes[0].next = 1;
	sim_run(&sim, T0 + 5 * S);
	assert_told(PMDP_T_RAISE, STALL, 1);
	clear = sim_find(&sim, PMDP_T_CLEAR, STALL, 0);
	assert_int_equal(clear->t.n_stalls, 1);
	assert_int_equal(clear->t.length_ns, 250 * MS);
}

static void test_stall_flapping(void **state)
{
	const struct sim_told *clear;
	uint32_t n = 100;

	(void)state;
	sim_init(&sim, 1, 50 * MS);
	for (uint32_t i = 0; i < n; i++)
		sim_absent(&sim, 0, T0 + S + i * 200 * MS, T0 + S + i * 200 * MS + 110 * MS + i);
	sim_run(&sim, T0 + 40 * S);
	assert_told(PMDP_T_RAISE, STALL, 1);
	assert_told(PMDP_T_CLEAR, STALL, 1);
	// 20 s of it: the first end at once, then one a second.
	assert_in_range(sim_count(&sim, PMDP_T_UPDATE, STALL), 18, 22);
	clear = sim_find(&sim, PMDP_T_CLEAR, STALL, 0);
	assert_int_equal(clear->t.n_stalls, n);
	assert_int_equal(clear->t.length_ns, 110 * MS + n - 1);
	assert_int_equal(clear->t.total_ns, n * 110 * MS + n * (n - 1) / 2);
	assert_int_equal(clear->t.begin_ns, T0 + S);
	assert_int_equal(clear->at_ns, clear->t.end_ns + S);
}

// The same, seen by a watcher that looks once in two seconds: the lane's own count is exact.
static void test_stall_flapping_seen_seldom(void **state)
{
	const struct sim_told *clear;
	uint32_t n = 100;

	(void)state;
	sim_init(&sim, 1, 50 * MS);
	sim.limits.late_ns = 100 * S;
	sim.limits.hold_ns = 3 * S;
	sim_step(&sim, T0);
	for (uint32_t i = 0; i < n; i++)
		sim_absent(&sim, 0, T0 + S + i * 200 * MS, T0 + S + i * 200 * MS + 110 * MS);
	for (uint64_t at_ns = T0 + S + 90 * MS; at_ns < T0 + 40 * S; at_ns += 2 * S)
		sim_step(&sim, at_ns);
	assert_told(PMDP_T_RAISE, STALL, 1);
	assert_told(PMDP_T_CLEAR, STALL, 1);
	clear = sim_find(&sim, PMDP_T_CLEAR, STALL, 0);
	assert_int_equal(clear->t.n_stalls, n);
	assert_int_equal(clear->t.total_ns, n * 110 * MS);
	assert_int_equal(clear->t.length_ns, 110 * MS);
}

static void test_stall_that_lasts(void **state)
{
	const struct sim_told *t;

	(void)state;
	sim_init(&sim, 1, 5 * MS);
	sim_absent(&sim, 0, T0 + S, T0 + 61 * S + 500 * MS);
	sim_run(&sim, T0 + 61 * S);
	assert_told(PMDP_T_RAISE, STALL, 1);
	assert_in_range(sim_count(&sim, PMDP_T_UPDATE, STALL), 58, 60);
	for (uint32_t i = 0; (t = sim_find(&sim, PMDP_T_UPDATE, STALL, i)); i++) {
		assert_int_equal(t->t.length_ns, t->at_ns - (T0 + S));
		assert_int_equal(t->t.end_ns, 0);
		assert_int_equal(t->t.n_stalls, 1);
		if (i)
			assert_true(t->at_ns >=
				    sim_find(&sim, PMDP_T_UPDATE, STALL, i - 1)->at_ns + S);
	}
	sim_run(&sim, T0 + 70 * S);
	assert_told(PMDP_T_CLEAR, STALL, 1);
	t = sim_find(&sim, PMDP_T_CLEAR, STALL, 0);
	assert_int_equal(t->t.length_ns, 60 * S + 500 * MS);
	// Its end was told at the first look after it, not a second later.
	t = sim_find(&sim, PMDP_T_UPDATE, STALL, sim_count(&sim, PMDP_T_UPDATE, STALL) - 1);
	assert_int_equal(t->t.end_ns, T0 + 61 * S + 500 * MS);
	assert_true(t->at_ns <= T0 + 61 * S + 511 * MS);
}

// 5 % of the time, in slices of half a millisecond: no gap comes near the stall limit.
static void test_starved(void **state)
{
	const struct sim_told *raise, *clear;

	(void)state;
	sim_init(&sim, 2, 50 * MS);
	for (uint32_t i = 0; i < 500; i++)
		sim_absent(&sim, 0, T0 + 10 * S + i * 10 * MS,
			   T0 + 10 * S + i * 10 * MS + 9500 * US);
	sim_run(&sim, T0 + 30 * S);
	assert_told(PMDP_T_RAISE, STALL, 0);
	assert_told(PMDP_T_RAISE, STARVED, 1);
	raise = sim_find(&sim, PMDP_T_RAISE, STARVED, 0);
	assert_int_equal(raise->t.lane, 0);
	assert_true(raise->at_ns <= T0 + 12 * S + 200 * MS);
	assert_int_equal(raise->t.worst_state, PMDP_STATE_MISSING);
	assert_told(PMDP_T_CLEAR, STARVED, 1);
	clear = sim_find(&sim, PMDP_T_CLEAR, STARVED, 0);
	assert_in_range(clear->t.length_ns, 4 * S, 6 * S + 500 * MS);
	assert_in_range(clear->t.total_ns, 4 * S, 4750 * MS); // lost, not elapsed
	assert_in_range(clear->t.n_stalls, 420, 500);
}

static void test_starved_control_thread_is_not(void **state)
{
	(void)state;
	sim_init(&sim, 1, 50 * MS);
	sim_run(&sim, T0 + S);
	pmdp_detector_set_kind(&sim.detector, 0, PMDP_LANE_CONTROL);
	for (uint32_t i = 0; i < 1000; i++)
		sim_absent(&sim, 0, T0 + S + i * 20 * MS, T0 + S + i * 20 * MS + 19 * MS);
	sim_run(&sim, T0 + 30 * S);
	assert_told(PMDP_T_RAISE, 0, 0);
}

// A quarter of the time lost is below the limit; stalls are not counted twice as starvation.
static void test_starved_below_share(void **state)
{
	(void)state;
	sim_init(&sim, 1, 50 * MS);
	for (uint32_t i = 0; i < 1000; i++)
		sim_absent(&sim, 0, T0 + S + i * 20 * MS, T0 + S + i * 20 * MS + 5 * MS);
	sim_run(&sim, T0 + 25 * S);
	assert_told(PMDP_T_RAISE, 0, 0);
	sim.lanes[0].n_absences = sim.lanes[0].next = 0;
	for (uint32_t i = 0; i < 10; i++)
		sim_absent(&sim, 0, T0 + 30 * S + i * S, T0 + 30 * S + i * S + 700 * MS);
	sim_run(&sim, T0 + 45 * S);
	assert_told(PMDP_T_RAISE, STALL, 1);
	assert_told(PMDP_T_RAISE, STARVED, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stall_live_then_completed),
		cmocka_unit_test(test_stall_between_two_looks),
		cmocka_unit_test(test_stall_gaps_below_limit_are_none),
		cmocka_unit_test(test_stall_torn_order),
		cmocka_unit_test(test_stall_torn_order_then_stall),
		cmocka_unit_test(test_stall_counters_before_beat),
		cmocka_unit_test(test_stall_flapping),
		cmocka_unit_test(test_stall_flapping_seen_seldom),
		cmocka_unit_test(test_stall_that_lasts),
		cmocka_unit_test(test_starved),
		cmocka_unit_test(test_starved_control_thread_is_not),
		cmocka_unit_test(test_starved_below_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
