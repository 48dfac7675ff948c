// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// States, announcements, settings and due times of the detector, with a fed clock.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "detector_sim.h"

#define STALL PMDP_KIND_PMD_STALL
#define STARVED PMDP_KIND_PMD_STARVED

static struct sim sim;

static void assert_nothing_told(void)
{
	if (sim_count(&sim, PMDP_T_RAISE, 0) || sim_count(&sim, PMDP_T_LATE, 0)) {
		sim_print(&sim);
		fail_msg("something was raised");
	}
}

static void test_detector_healthy(void **state)
{
	(void)state;
	sim_init(&sim, 2, 50 * MS);
	sim_run(&sim, T0 + 60 * S);
	assert_nothing_told();
	assert_int_equal(sim_count(&sim, PMDP_T_STATE, 0), 2);
	assert_int_equal(pmdp_detector_state(&sim.detector, 0), PMDP_STATE_ALIVE);
	assert_int_equal(pmdp_detector_state(&sim.detector, 2), PMDP_STATE_UNUSED);
	assert_int_equal(pmdp_detector_state(&sim.detector, 99), PMDP_STATE_UNUSED);
	// Oldest beat plus threshold, and not more often: once per two intervals.
	assert_in_range(sim.n_steps, 595, 605);
}

static void test_detector_steps_missing(void **state)
{
	(void)state;
	sim_init(&sim, 1, 50 * MS);
	sim.limits.notify_missing = true;
	sim_run(&sim, T0 + 60 * S);
	assert_nothing_told();
	assert_in_range(sim.n_steps, 1195, 1205);
}

static void test_detector_steps_idle(void **state)
{
	(void)state;
	sim_init(&sim, 1, 5 * MS);
	sim_announce(&sim, 0, PMDP_ANNOUNCE_SLEEP, PMDP_REASON_NO_QUEUE, 0);
	sim_run(&sim, T0 + 60 * S);
	assert_nothing_told();
	assert_in_range(sim.n_steps, 238, 245); // 250 ms
}

static void test_detector_never_beat(void **state)
{
	const struct sim_told *raise;

	(void)state;
	sim_init(&sim, 1, 50 * MS);
	sim.lanes[0].look.beats = 0;
	sim.lanes[0].look.beat_ns = 0;
	sim_absent(&sim, 0, T0, T0 + 100 * S);
	sim_run(&sim, T0 + 5 * S);
	assert_int_equal(sim_count(&sim, PMDP_T_RAISE, STALL), 1);
	raise = sim_find(&sim, PMDP_T_RAISE, STALL, 0);
	assert_int_equal(raise->at_ns, T0 + 100 * MS);
	assert_int_equal(raise->t.begin_ns, T0);
	assert_int_equal(raise->t.new_state, PMDP_STATE_DEAD);
	assert_int_equal(pmdp_detector_state(&sim.detector, 0), PMDP_STATE_DEAD);
}

// A claim starts as DOZING with reason start; a thread that never comes out of it is told.
static void test_detector_start_deadline(void **state)
{
	const struct sim_told *raise;

	(void)state;
	sim_init(&sim, 1, 50 * MS);
	sim.lanes[0].look.beats = 0;
	sim.lanes[0].look.beat_ns = 0;
	sim_announce(&sim, 0, PMDP_ANNOUNCE_DOZING, PMDP_REASON_START, T0 + 10 * S);
	sim_run(&sim, T0 + 12 * S);
	raise = sim_find(&sim, PMDP_T_RAISE, STALL, 0);
	assert_non_null(raise);
	assert_int_equal(raise->at_ns, T0 + 10 * S);
	assert_int_equal(raise->t.reason, PMDP_REASON_START);
}

static void test_detector_attach_to_dead_thread(void **state)
{
	const struct sim_told *raise;

	(void)state;
	sim_init(&sim, 1, 50 * MS);
	sim.lanes[0].look.beat_ns = T0 - 7 * S; // stalled before anybody looked
	sim_absent(&sim, 0, T0 - 7 * S, T0 + 100 * S);
	sim_run(&sim, T0 + S);
	raise = sim_find(&sim, PMDP_T_RAISE, STALL, 0);
	assert_non_null(raise);
	assert_int_equal(raise->at_ns, T0 + 100 * MS); // the watcher saw two intervals for itself
	assert_int_equal(raise->t.begin_ns, T0 - 7 * S);
}

static void test_detector_doze_kept(void **state)
{
	(void)state;
	sim_init(&sim, 2, 50 * MS);
	sim_run(&sim, T0 + S);
	for (uint32_t i = 0; i < 20; i++) {
		uint64_t at_ns = T0 + S + i * 700 * MS;

		sim_run(&sim, at_ns);
		sim_announce(&sim, 0, PMDP_ANNOUNCE_DOZING, PMDP_REASON_RECONFIGURATION,
			     at_ns + 500 * MS);
		sim_run(&sim, at_ns + 480 * MS);
		assert_int_equal(pmdp_detector_state(&sim.detector, 0), PMDP_STATE_DOZING);
		sim_advance(&sim, at_ns + 499 * MS);
		sim_announce(&sim, 0, PMDP_ANNOUNCE_POLLING, 0, 0);
	}
	sim_run(&sim, T0 + 20 * S);
	assert_nothing_told();
}

static void test_detector_doze_broken(void **state)
{
	const struct sim_told *raise, *clear;

	(void)state;
	sim_init(&sim, 2, 50 * MS);
	sim_run(&sim, T0 + S);
	sim_announce(&sim, 0, PMDP_ANNOUNCE_DOZING, PMDP_REASON_RECONFIGURATION, T0 + S + 300 * MS);
	sim_run(&sim, T0 + S + 299 * MS);
	assert_nothing_told();
	sim_run(&sim, T0 + S + 800 * MS);
	raise = sim_find(&sim, PMDP_T_RAISE, STALL, 0);
	assert_non_null(raise);
	assert_int_equal(raise->at_ns, T0 + S + 300 * MS);
	assert_int_equal(raise->t.old_state, PMDP_STATE_DOZING);
	assert_int_equal(raise->t.new_state, PMDP_STATE_DEAD);
	assert_int_equal(raise->t.reason, PMDP_REASON_RECONFIGURATION);
	sim_announce(&sim, 0, PMDP_ANNOUNCE_POLLING, 0, 0);
	sim_run(&sim, T0 + 5 * S);
	assert_int_equal(sim_count(&sim, PMDP_T_RAISE, 0), 1);
	assert_int_equal(sim_count(&sim, PMDP_T_CLEAR, STALL), 1);
	clear = sim_find(&sim, PMDP_T_CLEAR, STALL, 0);
	assert_in_range(clear->t.length_ns, 700 * MS, 900 * MS);
}

// A thread that says again that it dozes is alive; one that sleeps has no deadline.
static void test_detector_sleep_and_wake(void **state)
{
	const struct sim_told *raise;

	(void)state;
	sim_init(&sim, 1, 5 * MS);
	sim_run(&sim, T0 + S);
	sim_announce(&sim, 0, PMDP_ANNOUNCE_SLEEP, PMDP_REASON_NO_QUEUE, 0);
	sim_run(&sim, T0 + 100 * S);
	assert_int_equal(pmdp_detector_state(&sim.detector, 0), PMDP_STATE_SLEEP);
	sim_announce(&sim, 0, PMDP_ANNOUNCE_POLLING, 0, 0);
	sim_run(&sim, T0 + 110 * S);
	assert_nothing_told();
	assert_int_equal(pmdp_detector_state(&sim.detector, 0), PMDP_STATE_ALIVE);
	// Woken, and stuck before its first beat.
	sim_announce(&sim, 0, PMDP_ANNOUNCE_SLEEP, PMDP_REASON_NO_QUEUE, 0);
	sim_run(&sim, T0 + 120 * S);
	sim_announce(&sim, 0, PMDP_ANNOUNCE_POLLING, 0, 0);
	sim_absent(&sim, 0, T0 + 120 * S, T0 + 200 * S);
	sim_run(&sim, T0 + 121 * S);
	raise = sim_find(&sim, PMDP_T_RAISE, STALL, 0);
	assert_non_null(raise);
	assert_true(raise->at_ns - (T0 + 120 * S) <= 250 * MS + 10 * MS);
	assert_true(raise->t.begin_ns >= T0 + 120 * S);
}

static void test_detector_exit_ends_incident(void **state)
{
	(void)state;
	sim_init(&sim, 1, 50 * MS);
	sim_absent(&sim, 0, T0 + S, T0 + 100 * S);
	sim_run(&sim, T0 + 2 * S);
	assert_int_equal(sim_count(&sim, PMDP_T_RAISE, STALL), 1);
	sim_announce(&sim, 0, PMDP_ANNOUNCE_EXITED, PMDP_REASON_STOP, 0);
	sim_step(&sim, T0 + 2 * S + MS);
	assert_int_equal(sim_count(&sim, PMDP_T_CLEAR, STALL), 1);
	assert_int_equal(pmdp_detector_state(&sim.detector, 0), PMDP_STATE_UNUSED);
	sim_run(&sim, T0 + 20 * S);
	assert_int_equal(sim_count(&sim, PMDP_T_RAISE, 0), 1);
}

static void test_detector_missing_is_published(void **state)
{
	const struct sim_told *t;

	(void)state;
	sim_init(&sim, 1, 50 * MS);
	sim_absent(&sim, 0, T0 + S, T0 + S + 90 * MS);
	sim_run(&sim, T0 + S - 10 * MS);
	sim_step(&sim, T0 + S + 60 * MS);
	assert_int_equal(pmdp_detector_state(&sim.detector, 0), PMDP_STATE_MISSING);
	assert_int_equal(sim.due_ns, T0 + S + 100 * MS);
	sim_run(&sim, T0 + 3 * S);
	t = sim_find(&sim, PMDP_T_STATE, 0, 1);
	assert_int_equal(t->t.new_state, PMDP_STATE_MISSING);
	assert_nothing_told(); // notify = dead
}

static void test_detector_notify_missing(void **state)
{
	const struct sim_told *raise, *update;

	(void)state;
	sim_init(&sim, 1, 50 * MS);
	sim.limits.notify_missing = true;
	sim_absent(&sim, 0, T0 + S, T0 + S + 80 * MS);
	sim_absent(&sim, 0, T0 + 10 * S, T0 + 10 * S + 300 * MS);
	sim_run(&sim, T0 + 5 * S);
	raise = sim_find(&sim, PMDP_T_RAISE, STALL, 0);
	assert_int_equal(raise->at_ns, T0 + S + 50 * MS);
	assert_int_equal(raise->t.new_state, PMDP_STATE_MISSING);
	assert_int_equal(raise->t.worst_state, PMDP_STATE_MISSING);
	assert_int_equal(sim_count(&sim, PMDP_T_UPDATE, STALL), 1); // its end
	update = sim_find(&sim, PMDP_T_UPDATE, STALL, 0);
	assert_int_equal(update->t.end_ns, T0 + S + 80 * MS); // by the gap fields: no stall of the
							      // lane's
	assert_int_equal(update->t.length_ns, 80 * MS);
	assert_int_equal(sim_count(&sim, PMDP_T_CLEAR, STALL), 1);
	assert_int_equal(sim_find(&sim, PMDP_T_CLEAR, STALL, 0)->t.n_stalls, 1);

	sim_run(&sim, T0 + 15 * S);
	raise = sim_find(&sim, PMDP_T_RAISE, STALL, 1);
	assert_int_equal(raise->at_ns, T0 + 10 * S + 50 * MS);
	assert_int_equal(raise->t.worst_state, PMDP_STATE_MISSING);
	update = sim_find(&sim, PMDP_T_UPDATE, STALL, 1);
	assert_int_equal(update->at_ns, T0 + 10 * S + 100 * MS); // at once, whatever the damper
	assert_int_equal(update->t.worst_state, PMDP_STATE_DEAD);
	update = sim_find(&sim, PMDP_T_UPDATE, STALL, 2);
	assert_int_equal(update->t.length_ns, 300 * MS);
	assert_int_equal(update->t.n_stalls, 1);
	assert_int_equal(sim_count(&sim, PMDP_T_UPDATE, STALL), 3);
	assert_int_equal(sim_count(&sim, PMDP_T_CLEAR, STALL), 2);
}

static void test_detector_keepalive_off_and_on(void **state)
{
	(void)state;
	sim_init(&sim, 2, 50 * MS);
	sim_absent(&sim, 1, T0 + S, T0 + 40 * S);
	sim_run(&sim, T0 + 2 * S);
	assert_int_equal(sim_count(&sim, PMDP_T_RAISE, STALL), 1);
	sim.look.is_keepalive = false;
	sim_step(&sim, T0 + 2 * S + 10 * MS);
	assert_int_equal(sim_count(&sim, PMDP_T_CLEAR, STALL), 1);
	assert_int_equal(pmdp_detector_state(&sim.detector, 0), PMDP_STATE_UNUSED);
	// No beats for half a minute; the first one after it must not look like a stall.
	for (uint32_t i = 0; i < 2; i++) {
		sim.lanes[i].n_absences = 0;
		sim.lanes[i].next = 0;
		sim_absent(&sim, i, T0 + 2 * S + 10 * MS, T0 + 30 * S + 20 * MS);
	}
	sim_run(&sim, T0 + 30 * S);
	sim.look.is_keepalive = true;
	sim_run(&sim, T0 + 40 * S);
	assert_int_equal(sim_count(&sim, PMDP_T_RAISE, 0), 1);
	assert_int_equal(pmdp_detector_state(&sim.detector, 1), PMDP_STATE_ALIVE);
}

static void test_detector_interval_changes(void **state)
{
	const struct sim_told *raise;

	(void)state;
	sim_init(&sim, 1, S);
	sim_absent(&sim, 0, T0 + 10 * S, T0 + 10 * S + 1500 * MS);
	sim_absent(&sim, 0, T0 + 20 * S, T0 + 20 * S + 40 * MS);
	sim_absent(&sim, 0, T0 + 40 * S, T0 + 40 * S + 1500 * MS);
	sim_run(&sim, T0 + 15 * S);
	assert_nothing_told();
	sim.look.keepalive_interval_ns = 10 * MS;
	sim.lanes[0].stall_limit_ns = 20 * MS;
	sim_run(&sim, T0 + 30 * S);
	raise = sim_find(&sim, PMDP_T_RAISE, STALL, 0);
	assert_non_null(raise);
	assert_int_equal(raise->at_ns, T0 + 20 * S + 20 * MS);
	sim.look.keepalive_interval_ns = S;
	sim.lanes[0].stall_limit_ns = 2 * S;
	sim_run(&sim, T0 + 50 * S);
	assert_int_equal(sim_count(&sim, PMDP_T_RAISE, 0), 1);
	assert_int_equal(sim_count(&sim, PMDP_T_LATE, 0), 0);
}

// The watcher's own interval wins over the publisher's.
static void test_detector_own_interval(void **state)
{
	(void)state;
	sim_init(&sim, 1, 50 * MS);
	sim.limits.interval_ns = S;
	sim_absent(&sim, 0, T0 + 10 * S, T0 + 10 * S + 500 * MS); // a stall for the publisher only
	sim_absent(&sim, 0, T0 + 20 * S, T0 + 20 * S + 3 * S);
	sim_run(&sim, T0 + 30 * S);
	assert_int_equal(sim_count(&sim, PMDP_T_RAISE, 0), 1);
	assert_int_equal(sim_find(&sim, PMDP_T_CLEAR, STALL, 0)->t.length_ns, 3 * S);
	assert_int_equal(sim_find(&sim, PMDP_T_CLEAR, STALL, 0)->t.n_stalls, 1);
}

static void test_detector_claimed_anew(void **state)
{
	const struct sim_told *clear;

	(void)state;
	sim_init(&sim, 1, 50 * MS);
	sim_absent(&sim, 0, T0 + S, T0 + 3 * S);
	sim_run(&sim, T0 + 2 * S);
	assert_int_equal(sim_count(&sim, PMDP_T_RAISE, STALL), 1);
	// Another thread takes the lane between two looks: counters begin anew.
	sim.lanes[0].look = (struct pmdp_lane_look){
		.is_claimed = true,
		.announce = PMDP_ANNOUNCE_POLLING,
		.incarnation = 2,
	};
	sim.lanes[0].n_absences = 0;
	sim.lanes[0].next = 0;
	sim.lanes[0].last_ns = sim.lanes[0].done_ns = sim.now_ns;
	sim_step(&sim, T0 + 2 * S + 20 * MS);
	clear = sim_find(&sim, PMDP_T_CLEAR, STALL, 0);
	assert_non_null(clear);
	assert_int_equal(clear->t.incarnation, 1);
	sim_run(&sim, T0 + 10 * S);
	assert_int_equal(sim_count(&sim, PMDP_T_RAISE, 0), 1);
	assert_int_equal(pmdp_detector_state(&sim.detector, 0), PMDP_STATE_ALIVE);
	// Released: nobody is judged.
	sim.lanes[0].look.is_claimed = false;
	sim_run(&sim, T0 + 20 * S);
	assert_int_equal(sim_count(&sim, PMDP_T_RAISE, 0), 1);
	assert_int_equal(pmdp_detector_state(&sim.detector, 0), PMDP_STATE_UNUSED);
}

// The same pid and lane in a new segment: the caller resets, nothing of before counts.
static void test_detector_reset(void **state)
{
	(void)state;
	sim_init(&sim, 1, 50 * MS);
	sim_absent(&sim, 0, T0 + S, T0 + 20 * S);
	sim_run(&sim, T0 + 2 * S);
	assert_int_equal(sim_count(&sim, PMDP_T_RAISE, STALL), 1);
	pmdp_detector_reset(&sim.detector);
	sim.lanes[0].look.beats = 5;
	sim.lanes[0].look.beat_ns = T0 + 2 * S;
	sim.lanes[0].look.n_stalls = 77;
	sim.lanes[0].look.stall_ns = 99 * S;
	sim.lanes[0].n_absences = 0;
	sim.lanes[0].next = 0;
	sim.lanes[0].last_ns = sim.lanes[0].done_ns = sim.now_ns;
	sim.due_ns = 0;
	sim_run(&sim, T0 + 10 * S);
	assert_int_equal(sim_count(&sim, PMDP_T_RAISE, 0), 1);
	assert_int_equal(sim_count(&sim, PMDP_T_CLEAR, 0), 0);
	assert_int_equal(sim_count(&sim, PMDP_T_LATE, 0), 0);
}

static void test_detector_lane_state(void **state)
{
	struct pmdp_look look = {
		.now_ns = T0, .keepalive_interval_ns = 50 * MS, .is_keepalive = true};
	struct pmdp_lane_look lane = {
		.is_claimed = true, .announce = PMDP_ANNOUNCE_POLLING, .beat_ns = T0 - 10 * MS};

	(void)state;
	assert_int_equal(pmdp_lane_state(&lane, &look, 0), PMDP_STATE_ALIVE);
	lane.beat_ns = T0 - 50 * MS;
	assert_int_equal(pmdp_lane_state(&lane, &look, 0), PMDP_STATE_MISSING);
	assert_int_equal(pmdp_lane_state(&lane, &look, S), PMDP_STATE_ALIVE);
	lane.beat_ns = T0 - 100 * MS;
	assert_int_equal(pmdp_lane_state(&lane, &look, 0), PMDP_STATE_DEAD);
	lane.beat_ns = T0 + 100 * MS; // a beat after the look
	assert_int_equal(pmdp_lane_state(&lane, &look, 0), PMDP_STATE_ALIVE);
	lane.beat_ns = 0;
	assert_int_equal(pmdp_lane_state(&lane, &look, 0), PMDP_STATE_MISSING);
	lane.announce = PMDP_ANNOUNCE_DOZING;
	lane.deadline_ns = T0 + 1;
	assert_int_equal(pmdp_lane_state(&lane, &look, 0), PMDP_STATE_DOZING);
	lane.deadline_ns = T0;
	assert_int_equal(pmdp_lane_state(&lane, &look, 0), PMDP_STATE_DEAD);
	lane.announce = PMDP_ANNOUNCE_SLEEP;
	assert_int_equal(pmdp_lane_state(&lane, &look, 0), PMDP_STATE_SLEEP);
	lane.announce = PMDP_ANNOUNCE_EXITED;
	assert_int_equal(pmdp_lane_state(&lane, &look, 0), PMDP_STATE_UNUSED);
	lane.announce = 0xff;
	assert_int_equal(pmdp_lane_state(&lane, &look, 0), PMDP_STATE_UNUSED);
	lane.announce = PMDP_ANNOUNCE_POLLING;
	look.is_keepalive = false;
	assert_int_equal(pmdp_lane_state(&lane, &look, 0), PMDP_STATE_UNUSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_detector_healthy),
		cmocka_unit_test(test_detector_steps_missing),
		cmocka_unit_test(test_detector_steps_idle),
		cmocka_unit_test(test_detector_never_beat),
		cmocka_unit_test(test_detector_start_deadline),
		cmocka_unit_test(test_detector_attach_to_dead_thread),
		cmocka_unit_test(test_detector_doze_kept),
		cmocka_unit_test(test_detector_doze_broken),
		cmocka_unit_test(test_detector_sleep_and_wake),
		cmocka_unit_test(test_detector_exit_ends_incident),
		cmocka_unit_test(test_detector_missing_is_published),
		cmocka_unit_test(test_detector_notify_missing),
		cmocka_unit_test(test_detector_keepalive_off_and_on),
		cmocka_unit_test(test_detector_interval_changes),
		cmocka_unit_test(test_detector_own_interval),
		cmocka_unit_test(test_detector_claimed_anew),
		cmocka_unit_test(test_detector_reset),
		cmocka_unit_test(test_detector_lane_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
