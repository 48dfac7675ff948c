// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// What must not fool the detector: clocks, counters, a late watcher, hostile lanes. Fed clock.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "detector_sim.h"

#define STALL PMDP_KIND_PMD_STALL

static struct sim sim;

// The fed clock steps an hour back and forth: no time passes until it is where it was.
static void test_odd_now_goes_back(void **state)
{
	(void)state;
	sim_init(&sim, 2, 50 * MS);
	sim_run(&sim, T0 + 10 * S);
	for (uint32_t i = 0; i < 10; i++) {
		sim.lanes[0].look.beats++;
		sim_judge(&sim, T0 + 10 * S - 3600 * S + i * 50 * MS);
		assert_true(sim.due_ns >= T0 + 10 * S); // not an hour of looks at full speed
	}
	assert_told(PMDP_T_RAISE, 0, 0);
	sim_run(&sim, T0 + 20 * S);
	assert_told(PMDP_T_RAISE, 0, 0);
	assert_told(PMDP_T_LATE, 0, 0);
}

// An hour forth at once is a watcher that was away for an hour: it is late, nobody is blamed.
static void test_odd_now_jumps(void **state)
{
	(void)state;
	sim_init(&sim, 2, 50 * MS);
	sim_run(&sim, T0 + 10 * S);
	sim_step(&sim, T0 + 3610 * S);
	assert_told(PMDP_T_LATE, 0, 1);
	sim_run(&sim, T0 + 3620 * S);
	assert_told(PMDP_T_RAISE, 0, 0);
	assert_told(PMDP_T_LATE, 0, 1);
}

static void test_odd_time_stands_still(void **state)
{
	(void)state;
	sim_init(&sim, 1, 50 * MS);
	sim_run(&sim, T0 + 10 * S);
	sim_absent(&sim, 0, T0 + 10 * S, T0 + 500 * S);
	for (uint32_t i = 0; i < 1000; i++)
		sim_judge(&sim, T0 + 10 * S);
	assert_told(PMDP_T_RAISE, 0, 0);
	sim_run(&sim, T0 + 11 * S);
	assert_told(PMDP_T_RAISE, STALL, 1);
}

// The lane's beat clock stands still, runs backwards, or is far ahead, while its beats move.
static void test_odd_beat_clock_lies(void **state)
{
	static const int64_t offsets_ns[] = {-3600 * (int64_t)S, 3600 * (int64_t)S, -(int64_t)T0};
	const struct sim_told *raise;

	(void)state;
	for (size_t k = 0; k < sizeof(offsets_ns) / sizeof(*offsets_ns); k++) {
		sim_init(&sim, 1, 50 * MS);
		for (uint64_t at_ns = T0; at_ns < T0 + 30 * S; at_ns += 100 * MS) {
			sim_advance(&sim, at_ns);
			sim.lanes[0].look.beat_ns = at_ns + (uint64_t)offsets_ns[k];
			if (k == 2)
				sim.lanes[0].look.beat_ns = 1; // stands still
			sim_judge(&sim, at_ns);
		}
		assert_told(PMDP_T_RAISE, 0, 0);
		// It can hide a stall no longer than one look.
		for (uint64_t at_ns = T0 + 30 * S; at_ns < T0 + 31 * S; at_ns += 100 * MS)
			sim_judge(&sim, at_ns);
		assert_told(PMDP_T_RAISE, STALL, 1);
		raise = sim_find(&sim, PMDP_T_RAISE, STALL, 0);
		assert_true(raise->at_ns <= T0 + 30 * S + 200 * MS);
		assert_true(raise->t.length_ns <= 300 * MS);
	}
}

static void test_odd_beats_wrap(void **state)
{
	static const uint64_t starts[] = {UINT64_MAX - 3, UINT64_MAX, UINT32_MAX, INT64_MAX};

	(void)state;
	for (size_t k = 0; k < sizeof(starts) / sizeof(*starts); k++) {
		sim_init(&sim, 1, 50 * MS);
		sim.lanes[0].look.beats = starts[k];
		sim_run(&sim, T0 + 5 * S);
		assert_told(PMDP_T_RAISE, 0, 0);
		// A count of 0 is not "never beat", and a jump back is a sign of life like any
		// other.
		sim.lanes[0].look.beats = 0;
		sim_run(&sim, T0 + 6 * S);
		sim.lanes[0].look.beats = starts[k] ^ UINT64_C(1) << 63;
		sim_run(&sim, T0 + 7 * S);
		assert_told(PMDP_T_RAISE, 0, 0);
		sim_absent(&sim, 0, T0 + 7 * S, T0 + 8 * S);
		sim_run(&sim, T0 + 8 * S);
		assert_told(PMDP_T_RAISE, STALL, 1);
	}
}

// Counters that jump, shrink or promise the impossible count nothing and hide nothing.
static void test_odd_counters_jump(void **state)
{
	static const uint64_t jumps[] = {UINT64_MAX, 1000000, UINT64_C(1) << 62, UINT64_C(1) << 63};

	(void)state;
	for (size_t k = 0; k < sizeof(jumps) / sizeof(*jumps); k++) {
		sim_init(&sim, 1, 50 * MS);
		sim_run(&sim, T0 + 5 * S);
		sim.lanes[0].look.n_stalls += jumps[k];
		sim.lanes[0].look.stall_ns += jumps[k];
		sim.lanes[0].look.n_gaps += jumps[k];
		sim.lanes[0].look.gap_ns += jumps[k];
		sim.lanes[0].look.n_records += jumps[k];
		sim.lanes[0].look.longest_gap_ns += jumps[k];
		sim.lanes[0].look.last_stall_ns += jumps[k];
		sim_run(&sim, T0 + 10 * S);
		assert_told(PMDP_T_RAISE, 0, 0);
		sim_absent(&sim, 0, T0 + 10 * S, T0 + 11 * S);
		sim_run(&sim, T0 + 15 * S);
		assert_told(PMDP_T_CLEAR, STALL, 1);
		assert_int_equal(sim_find(&sim, PMDP_T_CLEAR, STALL, 0)->t.n_stalls, 1);
		assert_in_range(sim_find(&sim, PMDP_T_CLEAR, STALL, 0)->t.length_ns, 900 * MS,
				1100 * MS);
	}
}

// Ten thresholds late: one LATE, nobody blamed, and a stall that begins then is found.
static void test_odd_watcher_late(void **state)
{
	const struct sim_told *late, *raise;

	(void)state;
	sim_init(&sim, 3, 50 * MS);
	sim_run(&sim, T0 + 5 * S);
	sim_absent(&sim, 1, T0 + 6 * S, T0 + 20 * S); // stuck while nobody looked, and after
	sim_step(&sim, T0 + 6 * S + 100 * MS);        // late by 1 s
	assert_told(PMDP_T_LATE, 0, 1);
	late = sim_find(&sim, PMDP_T_LATE, 0, 0);
	assert_int_equal(late->t.length_ns, S);
	assert_int_equal(late->t.lane, UINT32_MAX);
	assert_told(PMDP_T_RAISE, 0, 0);
	sim_run(&sim, T0 + 6 * S + 190 * MS);
	assert_told(PMDP_T_RAISE, 0, 0);
	sim_run(&sim, T0 + 7 * S);
	assert_told(PMDP_T_RAISE, 0, 1);
	raise = sim_find(&sim, PMDP_T_RAISE, STALL, 0);
	assert_int_equal(raise->at_ns, T0 + 6 * S + 200 * MS); // its windows restarted
	assert_int_equal(raise->t.lane, 1);
	assert_int_equal(raise->t.begin_ns, T0 + 6 * S); // but the last beat is what it is
	assert_told(PMDP_T_LATE, 0, 1);
}

// Late every time: who beats is not blamed, and who hangs is found after a few looks.
static void test_odd_watcher_always_late(void **state)
{
	(void)state;
	sim_init(&sim, 2, MS);
	sim_step(&sim, T0);
	for (uint32_t i = 0; i < 200; i++)
		sim_step(&sim, sim.due_ns + 6 * MS);
	assert_told(PMDP_T_LATE, 0, 200);
	assert_told(PMDP_T_RAISE, 0, 0);
	sim_absent(&sim, 1, sim.now_ns, sim.now_ns + 100 * S);
	for (uint32_t i = 0; i < 6; i++)
		sim_step(&sim, sim.due_ns + 6 * MS);
	assert_told(PMDP_T_RAISE, 0, 1);
	assert_int_equal(sim_find(&sim, PMDP_T_RAISE, STALL, 0)->t.lane, 1);
}

// A stall much longer than the lateness is the thread's own, seen live or not.
static void test_odd_stall_longer_than_lateness(void **state)
{
	const struct sim_told *clear;

	(void)state;
	sim_init(&sim, 2, MS);
	sim_step(&sim, T0);
	for (uint32_t i = 0; i < 50; i++)
		sim_step(&sim, sim.due_ns + 6 * MS);
	sim_absent(&sim, 1, sim.now_ns + MS, sim.now_ns + 17 * MS); // three late looks
	for (uint32_t i = 0; i < 200; i++)
		sim_step(&sim, sim.due_ns + 6 * MS);
	assert_told(PMDP_T_RAISE, STALL, 1);
	clear = sim_find(&sim, PMDP_T_CLEAR, STALL, 0);
	assert_non_null(clear);
	assert_int_equal(clear->t.length_ns, 16 * MS);
	assert_int_equal(clear->t.n_stalls, 1);
}

// A watcher that is late within its threshold is no event.
static void test_odd_watcher_a_little_late(void **state)
{
	(void)state;
	sim_init(&sim, 2, 50 * MS);
	for (uint32_t i = 0; i < 200; i++)
		sim_step(&sim, (sim.due_ns ? sim.due_ns : T0) + 99 * MS);
	assert_told(PMDP_T_LATE, 0, 0);
	assert_told(PMDP_T_RAISE, 0, 0);
}

// Suspended for 10 s: a stall of 300 ms in there was timed by the lane and is told.
static void test_odd_stall_while_suspended(void **state)
{
	const struct sim_told *raise;

	(void)state;
	sim_init(&sim, 2, 50 * MS);
	sim_run(&sim, T0 + 5 * S);
	sim_absent(&sim, 0, T0 + 9 * S, T0 + 9 * S + 300 * MS);
	sim_step(&sim, T0 + 15 * S);
	assert_told(PMDP_T_LATE, 0, 1);
	assert_told(PMDP_T_RAISE, 0, 1);
	raise = sim_find(&sim, PMDP_T_RAISE, STALL, 0);
	assert_int_equal(raise->t.length_ns, 300 * MS);
	assert_true(raise->t.is_self_timed);
}

// The machine stood still (VM pause): every thread and the watcher were away for the same time.
static void test_odd_machine_paused(void **state)
{
	(void)state;
	for (uint64_t pause_ns = 250 * MS; pause_ns < 100 * S; pause_ns = pause_ns * 3 / 2) {
		for (uint64_t phase_ns = 0; phase_ns < 100 * MS; phase_ns += 9 * MS) {
			uint64_t begin_ns = T0 + 5 * S + phase_ns;
			uint64_t end_ns = begin_ns + pause_ns;

			sim_init(&sim, 3, 50 * MS);
			sim_run(&sim, T0 + 5 * S);
			for (uint32_t i = 0; i < 3; i++) // one of them is scheduled a little later
				sim_absent(&sim, i, begin_ns, end_ns + i * 5 * MS);
			sim_step(&sim, end_ns + 2 * MS);
			sim_run(&sim, end_ns + 5 * S);
			assert_told(PMDP_T_LATE, 0, 1);
			assert_told(PMDP_T_RAISE, 0, 0);
		}
	}
}

// A deadline that passes while the watcher is away is given the time to be answered.
static void test_odd_late_with_doze(void **state)
{
	(void)state;
	sim_init(&sim, 1, 50 * MS);
	sim_run(&sim, T0 + 5 * S);
	sim_announce(&sim, 0, PMDP_ANNOUNCE_DOZING, PMDP_REASON_RECONFIGURATION, T0 + 6 * S);
	sim_run(&sim, T0 + 5 * S + 100 * MS);
	sim_judge(&sim, T0 + 50 * S);
	assert_told(PMDP_T_LATE, 0, 1);
	assert_told(PMDP_T_RAISE, 0, 0);
	sim.now_ns = T0 + 50 * S;
	sim_announce(&sim, 0, PMDP_ANNOUNCE_POLLING, 0, 0);
	sim_run(&sim, T0 + 60 * S);
	assert_told(PMDP_T_RAISE, 0, 0);
}

// Preempted between the clock and the table: threads look younger, never older.
static void test_odd_watcher_preempted_in_look(void **state)
{
	struct pmdp_transition out[PMDP_MAX_TRANSITIONS(SIM_LANES)];
	uint64_t due_ns = T0;

	(void)state;
	sim_init(&sim, 2, 50 * MS);
	for (uint32_t i = 0; i < 500; i++) {
		uint64_t before_ns = due_ns, after_ns = due_ns + (i % 7) * 13 * MS;
		uint32_t n;

		sim_advance(&sim, after_ns);
		for (uint32_t k = 0; k < SIM_LANES; k++)
			sim.looks[k] = sim.lanes[k].look;
		sim.look.now_ns = after_ns;
		n = pmdp_detector_step(&sim.detector, &sim.look, before_ns, &sim.limits, out,
				       &due_ns);
		for (uint32_t k = 0; k < n; k++)
			assert_int_equal(out[k].what, PMDP_T_STATE);
		if (due_ns < after_ns)
			due_ns = after_ns;
	}
}

// Any bytes for a lane, for long: no crash, and never more transitions than promised.
static void test_odd_garbage(void **state)
{
	unsigned int seed = 20261130;
	uint64_t now_ns = T0;

	(void)state;
	printf("seed %u\n", seed);
	sim_init(&sim, 1, 50 * MS);
	for (uint32_t i = 0; i < 200000; i++) {
		struct pmdp_lane_look *look = &sim.lanes[i % SIM_LANES].look;
		uint64_t *words = (uint64_t *)look;
		uint32_t word = (uint32_t)rand_r(&seed) % (sizeof(*look) / 8);

		if (word == 0) {
			look->is_claimed = rand_r(&seed) % 8;
			look->announce = (uint32_t)rand_r(&seed) % 6;
		} else {
			words[word] = (uint64_t)rand_r(&seed) << (rand_r(&seed) % 48);
			if (rand_r(&seed) % 16 == 0)
				words[word] = UINT64_MAX;
		}
		sim.look.is_keepalive = rand_r(&seed) % 64;
		sim.look.keepalive_interval_ns = (uint64_t)rand_r(&seed) << (rand_r(&seed) % 40);
		sim.look.n_lanes = (uint32_t)rand_r(&seed) % (SIM_LANES + 1);
		now_ns += (uint64_t)rand_r(&seed) % S;
		sim.n_log = 0;
		sim_judge(&sim, now_ns);
		assert_true(sim.due_ns > now_ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_odd_now_goes_back),
		cmocka_unit_test(test_odd_now_jumps),
		cmocka_unit_test(test_odd_time_stands_still),
		cmocka_unit_test(test_odd_beat_clock_lies),
		cmocka_unit_test(test_odd_beats_wrap),
		cmocka_unit_test(test_odd_counters_jump),
		cmocka_unit_test(test_odd_watcher_late),
		cmocka_unit_test(test_odd_watcher_always_late),
		cmocka_unit_test(test_odd_stall_longer_than_lateness),
		cmocka_unit_test(test_odd_watcher_a_little_late),
		cmocka_unit_test(test_odd_stall_while_suspended),
		cmocka_unit_test(test_odd_machine_paused),
		cmocka_unit_test(test_odd_late_with_doze),
		cmocka_unit_test(test_odd_watcher_preempted_in_look),
		cmocka_unit_test(test_odd_garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
