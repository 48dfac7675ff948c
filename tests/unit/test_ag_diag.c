// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The diagnosis of a real child process, with whatever rights the test has.
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "ag_diag.h"
#include "pmdp_clock.h"

#define MS UINT64_C(1000000)
#define PATIENCE_NS (10000 * MS)

// A child that spins until it is killed, or ends by itself should the test fail before that.
static pid_t start_spinner(int *out_core)
{
	cpu_set_t cpus;
	pid_t pid;

	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	for (*out_core = CPU_SETSIZE - 1; !CPU_ISSET(*out_core, &cpus); --*out_core)
		;
	pid = fork();
	if (pid != 0)
		return pid;
	alarm(10);
	CPU_ZERO(&cpus);
	CPU_SET(*out_core, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	for (;;)
		pmdp_mono_now_ns();
}

static char state_of(pid_t pid)
{
	char path[32], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (f)
		fclose(f);
	return state;
}

static void wait_state(pid_t pid, const char *states)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	uint64_t until_ns = pmdp_mono_now_ns() + PATIENCE_NS;

	while (!strchr(states, state_of(pid)) && pmdp_mono_now_ns() < until_ns)
		nanosleep(&pause, NULL);
	assert_non_null(strchr(states, state_of(pid)));
}

static void sleep_until(uint64_t at_ns)
{
	struct timespec ts = {.tv_sec = (time_t)(at_ns / 1000000000u),
			      .tv_nsec = (long)(at_ns % 1000000000u)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

// The calls of one stall, from the raise to the end. The last one speaks of a beginning that
// differs a little, as the lane's own clock tells it.
static void test_ag_diag_stop_is_remembered(void **state)
{
	struct pmdp_incident incident = {.n_evidence = 0};
	struct ag_explain what = {.lane = 3};
	struct ag_diag *diag;
	struct ag_thread thread;
	uint64_t retry_ns;
	int core, status;
	pid_t pid = start_spinner(&core);

	(void)state;
	thread = (struct ag_thread){pid, pid, core, "spinner"};
	assert_int_equal(ag_diag_new(&diag), 0);
	assert_int_equal(ag_diag_watch(diag, 3, &thread), 0);
	sleep_until(pmdp_mono_now_ns() + 50 * MS);
	ag_diag_tick(diag, pmdp_mono_now_ns());

	what.begin_ns = pmdp_mono_now_ns();
	kill(pid, SIGSTOP);
	wait_state(pid, "T");
	sleep_until(what.begin_ns + 60 * MS);
	what.now_ns = pmdp_mono_now_ns();
	ag_diag_explain(diag, &what, &incident, &retry_ns);
	assert_int_equal(incident.cause, PMDP_CAUSE_STOPPED);
	assert_string_equal(pmdp_evidence_find(&incident, "task_state")->text, "T");

	sleep_until(what.begin_ns + 120 * MS);
	what.end_ns = pmdp_mono_now_ns();
	kill(pid, SIGCONT);
	wait_state(pid, "R");
	what.begin_ns += 70000;
	what.now_ns = pmdp_mono_now_ns();
	ag_diag_explain(diag, &what, &incident, &retry_ns);
	assert_int_equal(incident.cause, PMDP_CAUSE_STOPPED);
	assert_int_equal(incident.culprit_pid, 0);

	// What holds for one stall is not taken over into the next.
	sleep_until(pmdp_mono_now_ns() + 20 * MS);
	what.begin_ns = what.end_ns + 1 * MS;
	what.end_ns = 0;
	what.now_ns = pmdp_mono_now_ns();
	ag_diag_explain(diag, &what, &incident, &retry_ns);
	assert_int_not_equal(incident.cause, PMDP_CAUSE_STOPPED);

	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	what.now_ns = pmdp_mono_now_ns();
	assert_false(ag_diag_explain(diag, &what, &incident, &retry_ns));
	assert_int_equal(incident.cause, PMDP_CAUSE_PROCESS_DIED);
	ag_diag_free(diag);
}

static void test_ag_diag_unknown_lane(void **state)
{
	struct pmdp_incident incident = {.cause = PMDP_CAUSE_STOPPED};
	struct ag_explain what = {.lane = 7, .begin_ns = 1, .now_ns = 2};
	struct ag_thread thread = {0x3ffffffe, 0x3fffffff, -1, "never"};
	struct ag_diag *diag;
	uint64_t retry_ns;

	(void)state;
	assert_int_equal(ag_diag_new(&diag), 0);
	assert_false(ag_diag_explain(diag, &what, &incident, &retry_ns));
	assert_int_equal(incident.cause, PMDP_CAUSE_UNKNOWN);
	// A thread that is gone by the time it is to be watched.
	assert_int_equal(ag_diag_watch(diag, 7, &thread), 0);
	assert_false(ag_diag_explain(diag, &what, &incident, &retry_ns));
	assert_int_equal(incident.cause, PMDP_CAUSE_PROCESS_DIED);
	ag_diag_forget(diag, 7);
	ag_diag_forget(diag, 7);
	ag_diag_forget(diag, 4000);
	ag_diag_free(diag);
	ag_diag_free(NULL);
}

static void test_ag_diag_rights(void **state)
{
	const char *names[16];
	struct ag_diag *diag;
	uint32_t n, i;

	(void)state;
	assert_int_equal(ag_diag_new(&diag), 0);
	n = ag_diag_rights(diag, names, 16);
	assert_true(n >= 5);
	for (i = 0; i < n; i++) {
		// A missing right tells what it takes, and what is lost without it.
		if (names[i][0] == '-')
			assert_non_null(strchr(names[i], ':'));
	}
	assert_int_equal(ag_diag_rights(diag, names, 1), 1);
	ag_diag_free(diag);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ag_diag_stop_is_remembered),
		cmocka_unit_test(test_ag_diag_unknown_lane),
		cmocka_unit_test(test_ag_diag_rights),
	};

	return cmocka_run_group_tests_name("ag_diag", tests, NULL, NULL);
}
