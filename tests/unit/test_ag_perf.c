// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Runs of a CPU in, sums of a window out; and names of tasks that are here and gone.
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "ag_perf.h"
#include "ag_perf_starts.h"
#include "pmdp_clock.h"

#define PMD 100
#define HOG 200

static struct ag_run ring[AG_PERF_N_RUNS];
static struct ag_runs runs;

static void add(uint64_t since_ns, pid_t tid, bool was_runnable)
{
	runs.ring[runs.n++ % AG_PERF_N_RUNS] = (struct ag_run){since_ns, tid, tid, was_runnable};
}

static int set_up(void **state)
{
	(void)state;
	memset(ring, 0, sizeof(ring));
	memset(&runs, 0, sizeof(runs));
	runs.ring = ring;
	return 0;
}

static void test_ag_perf_sum_preempted(void **state)
{
	struct ag_sum sum;

	(void)state;
	add(0, PMD, false);
	add(1000, HOG, true);
	add(4000, 300, true);
	add(5000, PMD, true);
	ag_perf_sum(&runs, PMD, 500, 6000, 0, &sum);
	assert_int_equal(sum.covered_ns, 5500);
	assert_int_equal(sum.ran_ns, 1500);
	assert_int_equal(sum.waited_ns, 4000);
	assert_int_equal(sum.blocked_ns + sum.idle_ns + sum.unsure_ns, 0);
	assert_int_equal(sum.n_switches, 1);
	assert_int_equal(sum.n_tasks, 2);
	assert_int_equal(sum.tasks[0].tid, HOG);
	assert_int_equal(sum.tasks[0].took_ns, 3000);
	assert_int_equal(sum.tasks[1].took_ns, 1000);
	assert_int_equal(sum.now.tid, PMD);
	assert_false(sum.is_out);
}

static void test_ag_perf_sum_clips(void **state)
{
	struct ag_sum sum;

	(void)state;
	add(0, PMD, false);
	add(1000, HOG, true);
	add(9000, PMD, true);
	// The window lies inside the hog's run: what it had before and after is not counted.
	ag_perf_sum(&runs, PMD, 2000, 5000, 0, &sum);
	assert_int_equal(sum.waited_ns, 3000);
	assert_int_equal(sum.tasks[0].took_ns, 3000);
	assert_true(sum.is_out);
	assert_true(sum.is_out_runnable);
	assert_int_equal(sum.now.tid, HOG);
}

static void test_ag_perf_sum_adds_up_bursts(void **state)
{
	struct ag_sum sum;
	int i;

	(void)state;
	add(0, PMD, false);
	for (i = 0; i < 100; i++) {
		add((uint64_t)i * 100 + 50, i & 1 ? HOG : HOG + 1, true);
		add((uint64_t)i * 100 + 90, PMD, true);
	}
	ag_perf_sum(&runs, PMD, 0, 10000, 0, &sum);
	assert_int_equal(sum.n_switches, 100);
	assert_int_equal(sum.n_tasks, 2);
	assert_int_equal(sum.waited_ns, 4000);
	assert_int_equal(sum.tasks[0].took_ns, 2000);
	assert_int_equal(sum.ran_ns, 6000);
}

static void test_ag_perf_sum_blocked_and_idle(void **state)
{
	struct ag_sum sum;

	(void)state;
	add(0, PMD, false);
	add(1000, 0, false);   // gave the CPU away
	add(2000, HOG, false); // takes nothing from a thread that sleeps
	add(3000, PMD, true);
	add(4000, 0, true); // could run, and yet idle
	add(6000, PMD, false);
	ag_perf_sum(&runs, PMD, 0, 7000, 0, &sum);
	assert_int_equal(sum.blocked_ns, 2000);
	assert_int_equal(sum.idle_ns, 2000);
	assert_int_equal(sum.waited_ns, 0);
	assert_int_equal(sum.n_tasks, 0);
}

// It slept, was woken while the hog was there, and came back only when that left.
static void test_ag_perf_sum_woken(void **state)
{
	struct ag_sum sum;

	(void)state;
	add(0, PMD, false);
	add(1000, 0, false);
	add(2000, HOG, false);
	add(9000, PMD, true);
	ag_perf_sum(&runs, PMD, 0, 10000, 6500, &sum);
	assert_int_equal(sum.waited_ns, 6500);
	assert_int_equal(sum.blocked_ns, 1500);
	assert_int_equal(sum.tasks[0].tid, HOG);
	assert_int_equal(sum.tasks[0].took_ns, 6500);
	assert_int_equal(sum.ran_ns, 2000);
	// More than it can be: what was booked came from elsewhere, too.
	ag_perf_sum(&runs, PMD, 0, 10000, 60000, &sum);
	assert_int_equal(sum.waited_ns, 7000);
	assert_int_equal(sum.idle_ns, 1000);
	assert_int_equal(sum.blocked_ns, 0);
}

static void test_ag_perf_sum_unsure_and_holes(void **state)
{
	struct ag_sum sum;

	(void)state;
	add(1000, HOG, false); // why the thread left is older than the records
	add(3000, PMD, true);
	add(4000, AG_TID_UNKNOWN, true);
	add(6000, HOG, true);
	add(7000, PMD, true);
	ag_perf_sum(&runs, PMD, 0, 8000, 0, &sum);
	assert_int_equal(sum.covered_ns, 5000);
	assert_int_equal(sum.unsure_ns, 3000);
	assert_int_equal(sum.ran_ns, 2000);
	assert_int_equal(sum.tasks[0].took_ns, 3000);
}

static void test_ag_perf_sum_none(void **state)
{
	struct ag_sum sum;

	(void)state;
	ag_perf_sum(&runs, PMD, 0, 8000, 0, &sum);
	assert_int_equal(sum.covered_ns, 0);
	assert_int_equal(sum.now.tid, AG_TID_UNKNOWN);
	assert_false(sum.is_out);
	add(9000, HOG, true); // all after the window
	ag_perf_sum(&runs, PMD, 0, 8000, 0, &sum);
	assert_int_equal(sum.covered_ns, 0);
}

// The store goes round: the oldest runs are gone, and the window says how much is left.
static void test_ag_perf_sum_lapped(void **state)
{
	struct ag_sum sum;
	uint64_t i, n = AG_PERF_N_RUNS * 2 + 10;

	(void)state;
	for (i = 0; i < n; i++)
		add(i * 10, i & 1 ? HOG : PMD, true);
	ag_perf_sum(&runs, PMD, 0, n * 10, 0, &sum);
	assert_int_equal(sum.covered_ns, (uint64_t)AG_PERF_N_RUNS * 10);
	assert_int_equal(sum.ran_ns + sum.waited_ns + sum.unsure_ns, sum.covered_ns);
}

static void test_ag_perf_sum_many_tasks(void **state)
{
	struct ag_sum sum;
	int i;

	(void)state;
	add(0, PMD, false);
	for (i = 0; i < 500; i++)
		add((uint64_t)i * 10 + 10, 1000 + i, true);
	ag_perf_sum(&runs, PMD, 0, 5010, 0, &sum);
	assert_int_equal(sum.waited_ns, 5000);
	assert_int_equal(sum.n_tasks, 500);
}

static _Atomic int sleeper_tid;
static _Atomic uint64_t n_wakes;
static _Atomic bool is_ending;

static void *be_sleeper(void *core)
{
	const struct timespec pause = {.tv_nsec = 500000};
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(*(int *)core, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	sleeper_tid = gettid();
	while (!is_ending) {
		nanosleep(&pause, NULL);
		n_wakes++;
	}
	return NULL;
}

// Every coming back of a thread that sleeps is in the runs: also from idle, whose leaving the
// kernel doesn't record.
static void test_ag_perf_sees_each_wake(void **state)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	struct ag_perf *perf;
	const struct ag_runs *r;
	uint64_t before, after = 0, i, n = 0;
	pthread_t thread;
	int core = sched_getcpu(), rc = ag_perf_open(core, &perf);

	(void)state;
	if (rc) {
		print_message("skipped: perf_event_open: %s\n", strerror(-rc));
		skip();
	}
	assert_int_equal(pthread_create(&thread, NULL, be_sleeper, &core), 0);
	while (!sleeper_tid)
		sched_yield();
	ag_perf_drain(perf, pmdp_mono_now_ns());
	before = n_wakes;
	r = ag_perf_runs(perf);
	i = r->n;
	// In small steps: what else runs on this core may switch thousands of times a second.
	for (unsigned int step = 0; step < 30; step++) {
		nanosleep(&pause, NULL);
		after = n_wakes;
		ag_perf_drain(perf, pmdp_mono_now_ns());
		for (; i < r->n; i++)
			n += r->ring[i % AG_PERF_N_RUNS].tid == sleeper_tid;
	}
	is_ending = true;
	pthread_join(thread, NULL);
	assert_int_equal(r->n_lost, 0);
	ag_perf_close(perf);
	assert_true(after - before > 50);
	// It may have been preempted and come back more often than it slept.
	assert_in_range(n + 1, after - before, 2 * (after - before));
}

// A child with a name of its own; it ends by itself, should a test fail before it is killed.
static pid_t start_child(void)
{
	int fds[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_NAME, "named-child");
		alarm(10);
		close(fds[1]);
		close(fds[0]);
		pause();
		_exit(0);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &byte, 1), 0); // closed by the child: it has its name
	close(fds[0]);
	return pid;
}

static void test_ag_names(void **state)
{
	struct ag_names *names;
	struct ag_name alive, gone, never;
	pid_t pid = start_child();
	int status;

	(void)state;
	assert_int_equal(ag_names_new(&names), 0);
	ag_names_get(names, pid, pid, true, 1000, &alive);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	ag_names_get(names, 0, pid, false, UINT64_C(10000000000), &gone);
	ag_names_get(names, 0, 0x3fffffff, false, 2000, &never);
	ag_names_free(names);
	assert_string_equal(alive.comm, "named-child");
	assert_string_equal(alive.sched_class, "SCHED_OTHER");
	assert_int_equal(alive.pid, pid);
	assert_false(alive.is_kernel);
	assert_string_equal(gone.comm, "named-child");
	assert_int_equal(gone.pid, pid);
	assert_string_equal(never.comm, "?");
}

// A task that came and went before anybody asked: only the records of renames know it.
static void test_ag_names_of_the_dead(void **state)
{
	struct ag_names *names;
	struct ag_starts *starts;
	struct ag_name name;
	int status, rc = ag_starts_new(&starts);
	pid_t pid;

	(void)state;
	if (rc) {
		print_message("skipped: perf_event_open: %s\n", strerror(-rc));
		skip();
	}
	ag_starts_free(starts);
	assert_int_equal(ag_names_new(&names), 0);
	pid = start_child();
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	ag_names_get(names, 0, pid, false, 1000, &name);
	ag_names_free(names);
	assert_string_equal(name.comm, "named-child");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_ag_perf_sum_preempted, set_up),
		cmocka_unit_test_setup(test_ag_perf_sum_clips, set_up),
		cmocka_unit_test_setup(test_ag_perf_sum_adds_up_bursts, set_up),
		cmocka_unit_test_setup(test_ag_perf_sum_blocked_and_idle, set_up),
		cmocka_unit_test_setup(test_ag_perf_sum_woken, set_up),
		cmocka_unit_test_setup(test_ag_perf_sum_unsure_and_holes, set_up),
		cmocka_unit_test_setup(test_ag_perf_sum_none, set_up),
		cmocka_unit_test_setup(test_ag_perf_sum_lapped, set_up),
		cmocka_unit_test_setup(test_ag_perf_sum_many_tasks, set_up),
		cmocka_unit_test(test_ag_perf_sees_each_wake),
		cmocka_unit_test(test_ag_names),
		cmocka_unit_test(test_ag_names_of_the_dead),
	};

	return cmocka_run_group_tests_name("ag_perf", tests, NULL, NULL);
}
