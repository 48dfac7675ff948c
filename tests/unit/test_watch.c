// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The watch on real segments: stalls, pauses, starvation, its own lateness.
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "test_dir.h"
#include "watching.h"

static void test_watch_arguments(void **state)
{
	struct pmdp_watch_opts opts = {.limits = {.interval_ns = 1000}};
	struct pmdp_watch *other;

	(void)state;
	assert_int_equal(pmdp_watch_new("a/b", NULL, &other), -EINVAL);
	assert_int_equal(pmdp_watch_new("", NULL, &other), -EINVAL);
	assert_int_equal(pmdp_watch_new("a", &opts, &other), -EINVAL);
	pmdp_watch_free(NULL);
}

static void test_watch_before_and_after(void **state)
{
	(void)state;
	run_for(250);
	assert_int_equal(pmdp_watch_status(watch), PMDP_WATCH_ABSENT);
	assert_null(pmdp_watch_look(watch));
	assert_null(pmdp_watch_info(watch));
	assert_int_equal(pmdp_watch_fd(watch), -1);
	start_and_attach();
	assert_int_equal(n_events, 0); // who was not asked to tell of it does not
	assert_non_null(pmdp_watch_look(watch));
	assert_int_equal(pmdp_watch_info(watch)->writer_pid, pub.pid);
	assert_true(pmdp_watch_fd(watch) >= 0);
	assert_string_equal(pmdp_watch_lane(watch, 0)->name, "pmd-c01/id:1");
	assert_int_equal(pmdp_watch_lane(watch, 0)->tid, pub.tid);
	assert_int_equal(pmdp_watch_lane_state(watch, 0), PMDP_STATE_ALIVE);
	assert_null(pmdp_watch_lane(watch, 1));
	assert_int_equal(pmdp_watch_lane_state(watch, 1), PMDP_STATE_UNUSED);
}

static void test_watch_stall(void **state)
{
	const struct pmdp_watch_event *raise, *update, *clear;

	(void)state;
	start_and_attach();
	test_publisher_tell(&pub, "stall 1000");
	raise = await_event(PMDP_KIND_PMD_STALL, PMDP_PHASE_RAISE);
	assert_int_equal(raise->incident.severity, PMDP_SEVERITY_FAILURE);
	assert_string_equal(raise->incident.thread_name, "pmd-c01/id:1");
	assert_int_equal(raise->incident.thread_tid, pub.tid);
	assert_int_equal(raise->incident.thread_core, 1);
	assert_int_equal(raise->incident.state, PMDP_STATE_DEAD);
	assert_int_equal(raise->lane, 0);
	assert_int_equal(raise->end_ns, 0);
	assert_true(raise->incident.duration_ns >= 2 * INTERVAL_NS);
	assert_string_equal(pmdp_evidence_find(&raise->incident, "where")->text,
			    "rx of port 7 queue 3");
	assert_int_equal(pmdp_watch_lane_state(watch, 0), PMDP_STATE_DEAD);
	update = await_event(PMDP_KIND_PMD_STALL, PMDP_PHASE_UPDATE);
	assert_int_equal(update->key, raise->key);
	clear = await_event(PMDP_KIND_PMD_STALL, PMDP_PHASE_CLEAR);
	assert_int_equal(clear->key, raise->key);
	assert_int_equal(clear->incident.severity, PMDP_SEVERITY_OKAY);
	assert_int_equal(clear->incident.started_realtime_us, raise->incident.started_realtime_us);
	assert_int_equal(clear->incident.detected_realtime_us,
			 raise->incident.detected_realtime_us);
	assert_true(clear->incident.duration_ns >= 1000 * MS);
	assert_true(clear->end_ns - clear->begin_ns == clear->incident.duration_ns);
	assert_int_equal(pmdp_evidence_find(&clear->incident, "stalls")->integer, 1);
	assert_int_equal(count(PMDP_KIND_PMD_STALL, PMDP_PHASE_RAISE), 1);
	assert_int_equal(count(PMDP_KIND_PMD_STALL, PMDP_PHASE_CLEAR), 1);
	assert_int_equal(pmdp_watch_lane_state(watch, 0), PMDP_STATE_ALIVE);
}

// The watch slept while it happened: the lane's record gives begin, length and place.
static void test_watch_stall_not_seen_live(void **state)
{
	const struct pmdp_watch_event *raise, *clear;
	struct pmdp_limits limits = {.hold_ns = HOLD_NS, .late_ns = 3600000 * MS};
	uint64_t before_ns;

	(void)state;
	start_and_attach();
	pmdp_watch_set_limits(watch, &limits);
	step();
	before_ns = test_now_ns();
	test_publisher_tell(&pub, "stall 600");
	while (test_now_ns() < before_ns + 1500 * MS)
		usleep(10000);
	raise = await_event(PMDP_KIND_PMD_STALL, PMDP_PHASE_RAISE);
	assert_true(raise->begin_ns >= before_ns - 50 * MS);
	assert_true(raise->end_ns <= before_ns + 1500 * MS);
	assert_int_equal(raise->end_ns - raise->begin_ns, raise->incident.duration_ns);
	assert_true(raise->incident.duration_ns >= 600 * MS);
	assert_int_equal(pmdp_evidence_find(&raise->incident, "self_timed")->integer, 1);
	assert_int_equal(raise->crumb, PMDP_CRUMB(PMDP_STAGE_RX, 7, 3));
	clear = await_event(PMDP_KIND_PMD_STALL, PMDP_PHASE_CLEAR);
	assert_int_equal(clear->begin_ns, raise->begin_ns); // no other stall to be explained anew
	assert_int_equal(clear->end_ns, raise->end_ns);
	assert_int_equal(clear->crumb, raise->crumb);
}

static void test_watch_doze(void **state)
{
	(void)state;
	start_and_attach();
	test_publisher_tell(&pub, "doze 5000 900");
	run_for(1500);
	assert_int_equal(count(PMDP_KIND_PMD_STALL, 0), 0);
	test_publisher_tell(&pub, "doze 100 900");
	await_event(PMDP_KIND_PMD_STALL, PMDP_PHASE_RAISE);
	assert_string_equal(pmdp_evidence_find(&events[0].incident, "deadline_of")->text,
			    "reconfiguration");
	await_event(PMDP_KIND_PMD_STALL, PMDP_PHASE_CLEAR);
}

static void test_watch_sleep_and_keepalive_off(void **state)
{
	(void)state;
	start_and_attach();
	test_publisher_tell(&pub, "sleep");
	run_for(1200);
	assert_int_equal(pmdp_watch_lane_state(watch, 0), PMDP_STATE_SLEEP);
	test_publisher_tell(&pub, "wake");
	run_for(500);
	test_publisher_tell(&pub, "keepalive off");
	run_for(300);
	assert_int_equal(pmdp_watch_lane_state(watch, 0), PMDP_STATE_UNUSED);
	test_publisher_tell(&pub, "keepalive on");
	run_for(500);
	assert_int_equal(pmdp_watch_lane_state(watch, 0), PMDP_STATE_ALIVE);
	assert_int_equal(n_events, 0);
}

// The last CPU that this test may use; bound to it.
static unsigned int bind_to_last_core(void)
{
	unsigned int core = CPU_SETSIZE - 1;
	cpu_set_t cpus;

	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	while (!CPU_ISSET(core, &cpus))
		core--;
	CPU_ZERO(&cpus);
	CPU_SET(core, &cpus);
	assert_int_equal(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
	return core;
}

// A neighbour on its CPU leaves it a tenth of the time: no gap comes near the stall limit.
static void test_watch_starved(void **state)
{
	const struct pmdp_watch_event *raise;
	unsigned int core = CPU_SETSIZE;
	int fds[2];
	pid_t neighbour;

	(void)state;
	start_and_attach();
	assert_int_equal(pipe(fds), 0);
	fflush(NULL);
	neighbour = fork();
	if (neighbour == 0) {
		core = bind_to_last_core();
		alarm(15);
		if (write(fds[1], &core, sizeof(core)) != sizeof(core))
			_exit(1);
		for (;;)
			;
	}
	assert_int_equal(read(fds[0], &core, sizeof(core)), sizeof(core));
	test_publisher_tell(&pub, "nice 10 %u", core);
	test_publisher_tell(&pub, "rest 0"); // it spins now, when it may
	raise = await_event(PMDP_KIND_PMD_STARVED, PMDP_PHASE_RAISE);
	kill(neighbour, SIGKILL);
	waitpid(neighbour, NULL, 0);
	test_publisher_tell(&pub, "rest 500");
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(raise->incident.severity, PMDP_SEVERITY_WARNING);
	assert_true(pmdp_evidence_find(&raise->incident, "gaps")->integer >= 3);
	assert_true(pmdp_evidence_find(&raise->incident, "lost_s")->real > 0.3);
	await_event(PMDP_KIND_PMD_STARVED, PMDP_PHASE_CLEAR);
	assert_int_equal(count(PMDP_KIND_PMD_STARVED, PMDP_PHASE_RAISE), 1);
}

// A program that rests as long between its beats does so by itself.
static void test_watch_resting_is_not_starved(void **state)
{
	(void)state;
	start_and_attach();
	test_publisher_tell(&pub, "rest 30000");
	run_for(6000);
	assert_int_equal(n_events, 0);
}

static void test_watch_agent_late(void **state)
{
	const struct pmdp_watch_event *late;

	(void)state;
	start_and_attach();
	usleep(3000000); // this watcher is away
	late = await_event(PMDP_KIND_AGENT_LATE, PMDP_PHASE_RAISE);
	assert_true(late->incident.duration_ns >= 2000 * MS);
	await_event(PMDP_KIND_AGENT_LATE, PMDP_PHASE_CLEAR);
	assert_int_equal(n_events, 2); // nobody is blamed
}

#define watch_test(name) cmocka_unit_test_setup_teardown(name, watching_setup, watching_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		watch_test(test_watch_arguments),  watch_test(test_watch_before_and_after),
		watch_test(test_watch_stall),      watch_test(test_watch_stall_not_seen_live),
		watch_test(test_watch_doze),       watch_test(test_watch_sleep_and_keepalive_off),
		watch_test(test_watch_starved),    watch_test(test_watch_resting_is_not_starved),
		watch_test(test_watch_agent_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
