// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The watch on real segments: a publisher in a process of its own that is stalled, killed, stopped and
// restarted. Waits are for events, with a deadline.
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "pmdp_names.h"
#include "pmdp_watch.h"
#include "publisher.h"
#include "test_dir.h"

#define MS UINT64_C(1000000)
#define INTERVAL_NS (200 * MS) // a thread is dead after 400 ms
#define HOLD_NS (300 * MS)
#define PATIENCE_MS 20000
#define MAX_EVENTS 256
#define NAME "w"

static struct pmdp_watch *watch;
static struct test_publisher pub;
static struct pmdp_watch_event events[MAX_EVENTS];
static uint32_t n_events;
static uint64_t last_event_ns;

static void on_event(void *ctx, const struct pmdp_watch_event *event)
{
	(void)ctx;
	assert_true(n_events < MAX_EVENTS);
	events[n_events] = *event;
	last_event_ns = test_now_ns();
	pmdp_incident_compose(&events[n_events].incident);
	print_message("  %s %s %s: %s\n", pmdp_severity_name(event->incident.severity),
		      pmdp_phase_name(event->incident.phase), pmdp_kind_name(event->incident.kind),
		      events[n_events].incident.message);
	n_events++;
}

static const struct pmdp_watch_event *find(uint32_t kind, uint32_t phase)
{
	for (uint32_t i = 0; i < n_events; i++) {
		if (events[i].incident.kind == kind && events[i].incident.phase == phase)
			return &events[i];
	}
	return NULL;
}

static uint32_t count(uint32_t kind, uint32_t phase)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_events; i++)
		n += events[i].incident.kind == kind &&
		     (!phase || events[i].incident.phase == phase);
	return n;
}

static void step(void)
{
	struct pollfd poll_fd = {.fd = -1, .events = POLLIN};
	uint64_t due_ns = pmdp_watch_step(watch, on_event, NULL), now_ns = test_now_ns();
	int wait_ms = due_ns > now_ns ? (int)((due_ns - now_ns) / MS) + 1 : 0;

	poll_fd.fd = pmdp_watch_fd(watch);
	assert_true(wait_ms <= 1000);
	poll(&poll_fd, 1, wait_ms);
}

static void run_for(uint32_t ms)
{
	uint64_t end_ns = test_now_ns() + ms * MS;

	while (test_now_ns() < end_ns)
		step();
}

static void await_status(uint32_t status)
{
	uint64_t end_ns = test_now_ns() + PATIENCE_MS * MS;

	while (pmdp_watch_status(watch) != status) {
		if (test_now_ns() > end_ns)
			fail_msg("status %u instead of %u", pmdp_watch_status(watch), status);
		step();
	}
}

static const struct pmdp_watch_event *await_event(uint32_t kind, uint32_t phase)
{
	uint64_t end_ns = test_now_ns() + PATIENCE_MS * MS;

	while (!find(kind, phase)) {
		if (test_now_ns() > end_ns)
			fail_msg("no %s of %s", pmdp_phase_name(phase), pmdp_kind_name(kind));
		step();
	}
	return find(kind, phase);
}

static void new_watch(void)
{
	struct pmdp_watch_opts opts = {
		.rundir = test_dir_path(""),
		.limits = {.hold_ns = HOLD_NS},
	};

	n_events = 0;
	assert_int_equal(pmdp_watch_new(NAME, &opts, &watch), 0);
}

static int setup(void **state)
{
	if (test_dir_setup(state))
		return -1;
	new_watch();
	return 0;
}

static int teardown(void **state)
{
	test_publisher_kill(&pub);
	pmdp_watch_free(watch);
	return test_dir_teardown(state);
}

static void start(void)
{
	test_publisher_start(&pub, test_dir_path(""), NAME, INTERVAL_NS);
}

static void start_and_attach(void)
{
	start();
	await_status(PMDP_WATCH_UP);
	run_for(250); // names are known
}

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
	assert_int_equal(n_events, 0); // a switch that appears is no event
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
	const struct pmdp_watch_event *raise;
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
	await_event(PMDP_KIND_PMD_STALL, PMDP_PHASE_CLEAR);
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

static void test_watch_killed_and_back(void **state)
{
	const struct pmdp_watch_event *gone, *back, *clear;
	uint64_t killed_ns;

	(void)state;
	start_and_attach();
	step();
	killed_ns = test_now_ns();
	test_publisher_kill(&pub);
	gone = await_event(PMDP_KIND_SWITCH_GONE, PMDP_PHASE_RAISE);
	print_message("  told %.3f ms after the kill\n", (double)(last_event_ns - killed_ns) / 1e6);
	assert_int_equal(gone->incident.severity, PMDP_SEVERITY_FAILURE);
	assert_int_equal(gone->incident.cause, PMDP_CAUSE_PROCESS_DIED);
	assert_int_equal(pmdp_watch_status(watch), PMDP_WATCH_GONE);
	run_for(1000);
	assert_int_equal(n_events, 1); // no stall, no thread-gone, and told once
	assert_null(pmdp_watch_look(watch));

	start();
	clear = await_event(PMDP_KIND_SWITCH_GONE, PMDP_PHASE_CLEAR);
	assert_int_equal(clear->key, gone->key);
	assert_true(clear->incident.duration_ns >= 1000 * MS);
	back = await_event(PMDP_KIND_SWITCH_BACK, PMDP_PHASE_RAISE);
	assert_int_equal(back->incident.severity, PMDP_SEVERITY_OKAY);
	assert_int_equal(pmdp_watch_status(watch), PMDP_WATCH_UP);
	run_for(800);
	assert_int_equal(n_events, 3);
}

static void test_watch_killed_while_stalled(void **state)
{
	(void)state;
	start_and_attach();
	test_publisher_tell(&pub, "stall 60000");
	await_event(PMDP_KIND_PMD_STALL, PMDP_PHASE_RAISE);
	test_publisher_kill(&pub);
	await_event(PMDP_KIND_SWITCH_GONE, PMDP_PHASE_RAISE);
	assert_int_equal(count(PMDP_KIND_PMD_STALL, PMDP_PHASE_CLEAR), 1);
	assert_int_equal(events[n_events - 1].incident.kind, PMDP_KIND_SWITCH_GONE);
	assert_int_equal(count(PMDP_KIND_THREAD_GONE, 0), 0);
}

// Killed and started again between two looks: another process, and the alarm is raised and cleared.
static void test_watch_restarted_unseen(void **state)
{
	(void)state;
	start_and_attach();
	test_publisher_kill(&pub);
	start();
	await_event(PMDP_KIND_SWITCH_BACK, PMDP_PHASE_RAISE);
	assert_int_equal(count(PMDP_KIND_SWITCH_GONE, PMDP_PHASE_RAISE), 1);
	assert_int_equal(count(PMDP_KIND_SWITCH_GONE, PMDP_PHASE_CLEAR), 1);
	assert_int_equal(pmdp_watch_info(watch)->writer_pid, pub.pid);
	run_for(800);
	assert_int_equal(n_events, 3);
}

static void test_watch_stopped_cleanly(void **state)
{
	(void)state;
	start_and_attach();
	test_publisher_tell(&pub, "stop");
	await_event(PMDP_KIND_SWITCH_STOPPED, PMDP_PHASE_RAISE);
	assert_int_equal(events[0].incident.severity, PMDP_SEVERITY_OKAY);
	assert_int_equal(pmdp_watch_status(watch), PMDP_WATCH_STOPPED);
	run_for(600);
	assert_int_equal(n_events, 1); // and no alarm
	test_publisher_kill(&pub);
	start();
	await_event(PMDP_KIND_SWITCH_BACK, PMDP_PHASE_RAISE);
	run_for(600);
	assert_int_equal(n_events, 2);
}

static void test_watch_process_stopped_is_not_gone(void **state)
{
	(void)state;
	start_and_attach();
	kill(pub.pid, SIGSTOP);
	await_event(PMDP_KIND_PMD_STALL, PMDP_PHASE_RAISE);
	run_for(6000); // longer than the control thread may be silent
	assert_int_equal(pmdp_watch_status(watch), PMDP_WATCH_UP);
	kill(pub.pid, SIGCONT);
	await_event(PMDP_KIND_PMD_STALL, PMDP_PHASE_CLEAR);
	run_for(500);
	assert_int_equal(count(PMDP_KIND_SWITCH_GONE, 0), 0);
	assert_int_equal(count(PMDP_KIND_THREAD_GONE, 0), 0);
	assert_int_equal(count(PMDP_KIND_CONTROL_STUCK, 0), 0);
}

static void test_watch_thread_gone(void **state)
{
	const struct pmdp_watch_event *gone;

	(void)state;
	start_and_attach();
	test_publisher_tell(&pub, "exit");
	gone = await_event(PMDP_KIND_THREAD_GONE, PMDP_PHASE_RAISE);
	assert_int_equal(gone->incident.severity, PMDP_SEVERITY_FAILURE);
	assert_int_equal(gone->incident.cause, PMDP_CAUSE_EXITED);
	assert_int_equal(gone->incident.state, PMDP_STATE_GONE);
	assert_string_equal(gone->incident.thread_name, "pmd-c01/id:1");
	assert_int_equal(pmdp_watch_lane_state(watch, 0), PMDP_STATE_GONE);
	run_for(1000);
	assert_int_equal(count(PMDP_KIND_PMD_STALL, 0), 0);
	assert_int_equal(n_events, 1);
	test_publisher_tell(&pub, "stop");
	await_event(PMDP_KIND_SWITCH_STOPPED, PMDP_PHASE_RAISE);
	assert_int_equal(count(PMDP_KIND_THREAD_GONE, PMDP_PHASE_CLEAR), 1);
}

static void test_watch_sleeping_thread_gone(void **state)
{
	(void)state;
	start_and_attach();
	test_publisher_tell(&pub, "sleep");
	run_for(300);
	test_publisher_tell(&pub, "exit"); // wakes it; it may beat once before it leaves
	await_event(PMDP_KIND_THREAD_GONE, PMDP_PHASE_RAISE);
	assert_int_equal(count(PMDP_KIND_PMD_STALL, 0), 0);
}

static void test_watch_released_and_claimed_anew(void **state)
{
	(void)state;
	start_and_attach();
	for (int i = 0; i < 5; i++) {
		test_publisher_tell(&pub, "release");
		test_publisher_tell(&pub, "claim");
		run_for(300);
		assert_int_equal(pmdp_watch_lane(watch, 0)->tid, pub.tid);
	}
	test_publisher_tell(&pub, "release");
	run_for(1200);
	assert_int_equal(n_events, 0);
	assert_int_equal(pmdp_watch_lane_state(watch, 0), PMDP_STATE_UNUSED);
}

static void test_watch_control_stuck(void **state)
{
	const struct pmdp_watch_event *raise;

	(void)state;
	start_and_attach();
	test_publisher_tell(&pub, "stuck");
	raise = await_event(PMDP_KIND_CONTROL_STUCK, PMDP_PHASE_RAISE);
	assert_true(raise->incident.duration_ns >= 5000 * MS);
	test_publisher_tell(&pub, "unstuck");
	await_event(PMDP_KIND_CONTROL_STUCK, PMDP_PHASE_CLEAR);
	assert_int_equal(n_events, 2);
}

static void test_watch_links(void **state)
{
	const struct pmdp_watch_event *raise, *clear;

	(void)state;
	start_and_attach();
	test_publisher_tell(&pub, "port p1 down"); // as it is found
	test_publisher_tell(&pub, "port p2 unknown");
	run_for(400);
	test_publisher_tell(&pub, "port p2 down"); // was never up
	test_publisher_tell(&pub, "port p1 up");
	run_for(400);
	assert_int_equal(n_events, 0);
	test_publisher_tell(&pub, "port p1 unknown");
	run_for(300);
	test_publisher_tell(&pub, "port p1 down");
	raise = await_event(PMDP_KIND_LINK, PMDP_PHASE_RAISE);
	assert_string_equal(raise->incident.object, "p1");
	assert_int_equal(raise->incident.severity, PMDP_SEVERITY_WARNING);
	test_publisher_tell(&pub, "port p1 unknown");
	run_for(400);
	assert_int_equal(n_events, 1);
	test_publisher_tell(&pub, "port p1 up");
	clear = await_event(PMDP_KIND_LINK, PMDP_PHASE_CLEAR);
	assert_int_equal(clear->key, raise->key);
	assert_string_equal(clear->incident.object, "p1");
	assert_true(clear->incident.duration_ns >= 400 * MS);
	test_publisher_tell(&pub, "port p1 down");
	run_for(400);
	test_publisher_tell(&pub, "unport p1"); // removed while down
	run_for(400);
	assert_int_equal(count(PMDP_KIND_LINK, PMDP_PHASE_RAISE), 2);
	assert_int_equal(count(PMDP_KIND_LINK, PMDP_PHASE_CLEAR), 2);
	assert_non_null(pmdp_evidence_find(&events[n_events - 1].incident, "removed"));
	assert_int_equal(n_events, 4);
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

// The agent restarts while a stall lasts: the same incident goes on, nothing is counted twice.
static void test_watch_adopts_what_lasts(void **state)
{
	struct pmdp_incident before;
	uint64_t key;

	(void)state;
	start_and_attach();
	test_publisher_tell(&pub, "stall 3000");
	before = await_event(PMDP_KIND_PMD_STALL, PMDP_PHASE_RAISE)->incident;
	before.cause = PMDP_CAUSE_PREEMPTED;
	before.emitted_realtime_us = pmdp_realtime_us(test_now_ns());
	pmdp_watch_free(watch);
	new_watch();
	key = pmdp_watch_adopt(watch, &before);
	assert_true(key != 0);
	await_event(PMDP_KIND_PMD_STALL, PMDP_PHASE_CLEAR);
	assert_int_equal(count(PMDP_KIND_PMD_STALL, PMDP_PHASE_RAISE), 0);
	assert_int_equal(count(PMDP_KIND_PMD_STALL, PMDP_PHASE_CLEAR), 1);
	for (uint32_t i = 0; i < n_events; i++) {
		assert_int_equal(events[i].key, key);
		assert_int_equal(events[i].incident.started_realtime_us,
				 before.started_realtime_us);
		assert_int_equal(pmdp_evidence_find(&events[i].incident, "stalls")->integer, 1);
	}
	assert_int_equal(events[n_events - 1].incident.cause, PMDP_CAUSE_PREEMPTED);
	assert_true(events[n_events - 1].incident.duration_ns >= 3000 * MS);
	assert_true(events[n_events - 1].incident.duration_ns <= 6000 * MS);
	run_for(500);
	assert_int_equal(count(PMDP_KIND_PMD_STALL, PMDP_PHASE_CLEAR), 1);
}

static void adopt(uint32_t kind, uint32_t tid, const char *object)
{
	struct pmdp_incident incident;

	pmdp_incident_init(&incident, NAME, kind, PMDP_PHASE_RAISE);
	incident.thread_tid = tid;
	snprintf(incident.object, sizeof(incident.object), "%s", object);
	incident.started_realtime_us = pmdp_realtime_us(test_now_ns()) - 1000000;
	assert_true(pmdp_watch_adopt(watch, &incident) != 0);
}

static void test_watch_adopts_what_is_over(void **state)
{
	(void)state;
	start();
	test_publisher_tell(&pub, "port up-again up");
	test_publisher_tell(&pub, "port still-down down");
	adopt(PMDP_KIND_PMD_STALL, (uint32_t)pub.tid, ""); // it beats again
	adopt(PMDP_KIND_PMD_STALL, 1, "");                 // it is not there any more
	adopt(PMDP_KIND_THREAD_GONE, 2, "");
	adopt(PMDP_KIND_LINK, 0, "up-again");
	adopt(PMDP_KIND_LINK, 0, "still-down");
	adopt(PMDP_KIND_LINK, 0, "removed");
	adopt(PMDP_KIND_SWITCH_GONE, 0, "");
	adopt(PMDP_KIND_AGENT_LATE, 0, "");
	adopt(PMDP_KIND_VERSION_MISMATCH, 0, "");
	adopt(PMDP_KIND_PMD_NO_PROGRESS, (uint32_t)pub.tid, ""); // a kind of later versions
	run_for(3500);
	for (uint32_t i = 0; i < n_events; i++) {
		if (events[i].incident.kind != PMDP_KIND_SWITCH_BACK)
			assert_int_equal(events[i].incident.phase, PMDP_PHASE_CLEAR);
		assert_string_not_equal(events[i].incident.object, "still-down");
	}
	assert_int_equal(count(PMDP_KIND_SWITCH_BACK, PMDP_PHASE_RAISE), 1);
	assert_int_equal(n_events, 9 + 1);
	test_publisher_tell(&pub, "port still-down up");
	await_event(PMDP_KIND_LINK, PMDP_PHASE_CLEAR);
	run_for(300);
	assert_int_equal(n_events, 9 + 2);
}

static void test_watch_adopts_gone(void **state)
{
	(void)state;
	start();
	test_publisher_kill(&pub);
	adopt(PMDP_KIND_SWITCH_GONE, 0, "");
	adopt(PMDP_KIND_PMD_STALL, 5, "");
	run_for(500);
	assert_int_equal(pmdp_watch_status(watch), PMDP_WATCH_GONE);
	assert_int_equal(count(PMDP_KIND_SWITCH_GONE, PMDP_PHASE_UPDATE), 1);
	assert_int_equal(count(PMDP_KIND_PMD_STALL, PMDP_PHASE_CLEAR), 1);
	assert_int_equal(n_events, 2);
}

static void write_file(const char *name, const void *bytes, size_t size)
{
	FILE *file = fopen(test_dir_path(name), "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	fclose(file);
}

static void test_watch_refuses(void **state)
{
	static const char garbage[8192] = "nothing of ours";

	(void)state;
	write_file(NAME ".ring", garbage, sizeof(garbage));
	run_for(300);
	assert_int_equal(pmdp_watch_status(watch), PMDP_WATCH_REFUSED);
	assert_true(pmdp_watch_reason(watch)[0]);
	print_message("  reason: %s\n", pmdp_watch_reason(watch));
	assert_int_equal(n_events, 0);
	unlink(test_dir_path(NAME ".ring"));
	run_for(300);
	assert_int_equal(pmdp_watch_status(watch), PMDP_WATCH_ABSENT);
	start_and_attach();
	assert_int_equal(n_events, 0);
}

static void test_watch_other_version(void **state)
{
	struct pmdp_header_shm header;
	FILE *file;

	(void)state;
	start();
	file = fopen(test_dir_path(NAME ".ring"), "r+");
	assert_non_null(file);
	assert_int_equal(fread(&header, 1, sizeof(header), file), sizeof(header));
	header.abi_version = 99;
	rewind(file);
	assert_int_equal(fwrite(&header, 1, offsetof(struct pmdp_header_shm, segment_kind), file),
			 offsetof(struct pmdp_header_shm, segment_kind));
	fclose(file);
	run_for(500);
	assert_int_equal(pmdp_watch_status(watch), PMDP_WATCH_REFUSED);
	assert_int_equal(count(PMDP_KIND_VERSION_MISMATCH, PMDP_PHASE_RAISE), 1);
	assert_int_equal(n_events, 1); // however often it looks
	test_publisher_kill(&pub);
	unlink(test_dir_path(NAME ".ring"));
	start_and_attach();
	assert_int_equal(count(PMDP_KIND_VERSION_MISMATCH, PMDP_PHASE_CLEAR), 1);
	assert_int_equal(n_events, 2);
}

static void test_watch_truncated_while_attached(void **state)
{
	(void)state;
	start_and_attach();
	test_publisher_tell(&pub, "stall 60000");
	await_event(PMDP_KIND_PMD_STALL, PMDP_PHASE_RAISE);
	kill(pub.pid, SIGSTOP); // it would die of SIGBUS
	assert_int_equal(truncate(test_dir_path(NAME ".ring"), 100), 0);
	await_status(PMDP_WATCH_REFUSED);
	run_for(300);
	assert_int_equal(pmdp_watch_status(watch), PMDP_WATCH_REFUSED);
	assert_int_equal(count(PMDP_KIND_PMD_STALL, PMDP_PHASE_CLEAR), 1);
	assert_true(pmdp_watch_reason(watch)[0]);
}

// Any bytes in the changing part of a living segment.
static void test_watch_garbage_in_segment(void **state)
{
	uint64_t seed = test_seed("test_watch_garbage_in_segment");
	struct stat st;
	FILE *file;

	(void)state;
	start_and_attach();
	kill(pub.pid, SIGSTOP);
	file = fopen(test_dir_path(NAME ".ring"), "r+");
	assert_non_null(file);
	setbuf(file, NULL);
	assert_int_equal(fstat(fileno(file), &st), 0);
	for (int i = 0; i < 3000; i++) {
		uint64_t word = test_random(&seed) >> test_random(&seed) % 64;
		long offset =
			512 + (long)(test_random(&seed) % ((uint64_t)st.st_size - 512)) / 8 * 8;

		if (offset == (long)offsetof(struct pmdp_header_shm, stopped_ns))
			continue;
		assert_int_equal(fseek(file, offset, SEEK_SET), 0);
		assert_int_equal(fwrite(&word, 8, 1, file), 1);
		if (i % 8 == 0) {
			n_events = 0;
			pmdp_watch_step(watch, on_event, NULL);
		}
	}
	fclose(file);
	assert_true(pmdp_watch_status(watch) <= PMDP_WATCH_REFUSED);
}

#define watch_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		watch_test(test_watch_arguments),
		watch_test(test_watch_before_and_after),
		watch_test(test_watch_stall),
		watch_test(test_watch_stall_not_seen_live),
		watch_test(test_watch_doze),
		watch_test(test_watch_sleep_and_keepalive_off),
		watch_test(test_watch_killed_and_back),
		watch_test(test_watch_killed_while_stalled),
		watch_test(test_watch_restarted_unseen),
		watch_test(test_watch_stopped_cleanly),
		watch_test(test_watch_process_stopped_is_not_gone),
		watch_test(test_watch_thread_gone),
		watch_test(test_watch_sleeping_thread_gone),
		watch_test(test_watch_released_and_claimed_anew),
		watch_test(test_watch_control_stuck),
		watch_test(test_watch_links),
		watch_test(test_watch_agent_late),
		watch_test(test_watch_adopts_what_lasts),
		watch_test(test_watch_adopts_what_is_over),
		watch_test(test_watch_adopts_gone),
		watch_test(test_watch_refuses),
		watch_test(test_watch_other_version),
		watch_test(test_watch_truncated_while_attached),
		watch_test(test_watch_garbage_in_segment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
