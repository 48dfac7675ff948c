// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The watch on real segments: processes and threads that are killed, stopped, replaced; links.
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "test_dir.h"
#include "watching.h"

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

static void test_watch_tells_of_an_attach(void **state)
{
	const struct pmdp_watch_event *up;
	uint64_t generation;

	(void)state;
	pmdp_watch_tell_attach(watch, 0);
	run_for(150);
	assert_int_equal(n_events, 0);
	start();
	up = await_event(PMDP_KIND_SWITCH_BACK, PMDP_PHASE_RAISE);
	assert_int_equal(up->incident.severity, PMDP_SEVERITY_OKAY);
	generation = pmdp_watch_info(watch)->generation;
	assert_int_equal(pmdp_evidence_find(&up->incident, "generation")->integer, generation);
	assert_int_equal(pmdp_evidence_find(&up->incident, "pid")->integer, pub.pid);
	run_for(300);
	assert_int_equal(n_events, 1);

	// The next run of the agent knows this one, but not a switch of which it saw no end.
	pmdp_watch_free(watch);
	new_watch();
	pmdp_watch_tell_attach(watch, generation);
	await_status(PMDP_WATCH_UP);
	run_for(300);
	assert_int_equal(n_events, 0);
	pmdp_watch_free(watch);
	new_watch();
	pmdp_watch_tell_attach(watch, generation - 1);
	await_event(PMDP_KIND_SWITCH_BACK, PMDP_PHASE_RAISE);
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

// In another pid namespace its number means nothing here; the lock on the file tells.
static void test_watch_other_pid_namespace(void **state)
{
	(void)state;
	if (geteuid() != 0)
		test_skip("a pid namespace can be made by root only");
	pub.is_foreign = true;
	start_and_attach();
	assert_int_equal(pmdp_watch_fd(watch), -1);
	assert_false(pmdp_watch_info(watch)->is_same_pidns);
	run_for(600);
	assert_int_equal(n_events, 0);
	test_publisher_tell(&pub, "stall 1000");
	await_event(PMDP_KIND_PMD_STALL, PMDP_PHASE_CLEAR);
	assert_int_equal(count(PMDP_KIND_THREAD_GONE, 0), 0);
	test_publisher_kill(&pub);
	await_event(PMDP_KIND_SWITCH_GONE, PMDP_PHASE_RAISE);
	assert_int_equal(pmdp_watch_status(watch), PMDP_WATCH_GONE);
	start();
	await_event(PMDP_KIND_SWITCH_BACK, PMDP_PHASE_RAISE);
}

// /proc without the processes of others, and a user who may not trace them. False: can't be had.
static bool hide_processes(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("proc", "/proc", "proc", 0, "hidepid=2,gid=12345") == 0 &&
	       setgroups(0, NULL) == 0 && setresuid(65534, 65534, 65534) == 0;
}

// In a process of its own: 0, 77 (can't be had) or the number of the line that failed.
#define must(condition)                        \
	do {                                   \
		if (!(condition))              \
			return __LINE__ % 200; \
	} while (0)

static int watch_hidden(void)
{
	uint64_t end_ns = test_now_ns() + 20000 * MS;
	char path[32];

	if (!hide_processes())
		return 77;
	snprintf(path, sizeof(path), "/proc/%d", (int)pub.pid);
	must(access(path, F_OK) < 0);
	while (pmdp_watch_status(watch) != PMDP_WATCH_UP && test_now_ns() < end_ns)
		step();
	must(pmdp_watch_status(watch) == PMDP_WATCH_UP);
	run_for(250);
	must(pmdp_watch_thread_alive(pmdp_watch_reader(watch), pmdp_watch_lane(watch, 0)) ==
	     -EACCES);
	test_publisher_tell(&pub, "stall 1000");
	while (!count(PMDP_KIND_PMD_STALL, PMDP_PHASE_CLEAR) && test_now_ns() < end_ns)
		step();
	must(count(PMDP_KIND_PMD_STALL, PMDP_PHASE_RAISE) == 1);
	must(count(PMDP_KIND_PMD_STALL, PMDP_PHASE_CLEAR) == 1);
	test_publisher_tell(&pub, "sleep"); // looked for in /proc once a second
	run_for(1300);
	must(count(PMDP_KIND_THREAD_GONE, 0) == 0 && count(PMDP_KIND_SWITCH_GONE, 0) == 0);
	must(pmdp_watch_status(watch) == PMDP_WATCH_UP);
	return 0;
}

// Where /proc hides it, nobody can say that a thread or the process is gone.
static void test_watch_hidden_process(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		test_skip("hiding processes of others in a mount namespace takes root");
	assert_int_equal(chmod(test_dir_path(""), 0755), 0);
	start();
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(watch_hidden());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		test_skip("no mount namespace with hidepid=2 is to be had here");
	assert_int_equal(WEXITSTATUS(status), 0);
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
	run_for(1400);                             // a new port is found within a second
	test_publisher_tell(&pub, "port p2 down"); // was never up
	test_publisher_tell(&pub, "port p1 up");
	run_for(600);
	assert_int_equal(n_events, 0);
	test_publisher_tell(&pub, "port p1 unknown");
	run_for(600);
	test_publisher_tell(&pub, "port p1 down");
	raise = await_event(PMDP_KIND_LINK, PMDP_PHASE_RAISE);
	assert_string_equal(raise->incident.object, "p1");
	assert_int_equal(raise->incident.severity, PMDP_SEVERITY_WARNING);
	test_publisher_tell(&pub, "port p1 unknown");
	run_for(600);
	assert_int_equal(n_events, 1);
	test_publisher_tell(&pub, "port p1 up");
	clear = await_event(PMDP_KIND_LINK, PMDP_PHASE_CLEAR);
	assert_int_equal(clear->key, raise->key);
	assert_string_equal(clear->incident.object, "p1");
	assert_true(clear->incident.duration_ns >= 600 * MS);
	test_publisher_tell(&pub, "port p1 down");
	run_for(600);
	test_publisher_tell(&pub, "unport p1"); // removed while down
	run_for(600);
	assert_int_equal(count(PMDP_KIND_LINK, PMDP_PHASE_RAISE), 2);
	assert_int_equal(count(PMDP_KIND_LINK, PMDP_PHASE_CLEAR), 2);
	assert_non_null(pmdp_evidence_find(&events[n_events - 1].incident, "removed"));
	assert_int_equal(n_events, 4);
}

#define watch_test(name) cmocka_unit_test_setup_teardown(name, watching_setup, watching_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		watch_test(test_watch_killed_and_back),
		watch_test(test_watch_tells_of_an_attach),
		watch_test(test_watch_killed_while_stalled),
		watch_test(test_watch_restarted_unseen),
		watch_test(test_watch_stopped_cleanly),
		watch_test(test_watch_process_stopped_is_not_gone),
		watch_test(test_watch_other_pid_namespace),
		watch_test(test_watch_hidden_process),
		watch_test(test_watch_thread_gone),
		watch_test(test_watch_sleeping_thread_gone),
		watch_test(test_watch_released_and_claimed_anew),
		watch_test(test_watch_control_stuck),
		watch_test(test_watch_links),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
