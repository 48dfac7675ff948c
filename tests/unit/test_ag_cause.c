// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Evidence in, cause out: one row a case.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ag_cause.h"

#define MS UINT64_C(1000000)

struct row {
	const char *what;
	struct ag_evidence e;
	uint32_t cause;
	pid_t culprit_tid; // 0: none
	bool is_inferred;
};

// What most rows share: a live stall of 100 ms, switch records that cover it, a fair thread.
#define SEEN .window_ns = 100 * MS, .covered_ns = 100 * MS, .has_switches = true, .is_fair = true
// The same of a real-time thread, for 50 ms.
#define RT_SEEN                                                                             \
	.window_ns = 50 * MS, .covered_ns = 50 * MS, .has_switches = true, .is_live = true, \
	.state = 'R'
// A stall of 100 ms between two looks at /proc, without switch records.
#define BY_PROC .window_ns = 100 * MS, .is_fair = true, .has_runtime = true, .fuzz_ns = 8 * MS
#define TASK(comm_, class_, tid_, ms_, irq_)                                        \
	{                                                                           \
		.comm = comm_, .sched_class = class_, .pid = (tid_), .tid = (tid_), \
		.took_ns = (ms_)*MS, .is_irq = (irq_)                               \
	}

static const struct row rows[] = {
	{"a FIFO task took all of it",
	 {SEEN, .is_live = true, .state = 'R', .waited_ns = 99 * MS, .ran_ns = 1 * MS, .n_tasks = 1,
	  .tasks = {TASK("hog", "SCHED_FIFO", 7, 99, false)}},
	 PMDP_CAUSE_PREEMPTED,
	 7,
	 false},
	{"the one with most time of several",
	 {SEEN, .waited_ns = 100 * MS, .n_tasks = 3,
	  .tasks = {TASK("b", "SCHED_OTHER", 8, 60, false), TASK("a", "SCHED_OTHER", 7, 30, false),
		    TASK("c", "SCHED_OTHER", 9, 10, false)}},
	 PMDP_CAUSE_PREEMPTED,
	 8,
	 false},
	{"preempted for 5 %, own code for 95 %",
	 {SEEN, .is_live = true, .state = 'R', .waited_ns = 5 * MS, .ran_ns = 95 * MS, .n_tasks = 1,
	  .tasks = {TASK("hog", "SCHED_FIFO", 7, 5, false)}},
	 PMDP_CAUSE_OWN_CODE,
	 0,
	 false},
	{"a kernel thread",
	 {SEEN, .waited_ns = 90 * MS, .ran_ns = 10 * MS, .n_tasks = 1,
	  .tasks = {TASK("migration/1", "SCHED_FIFO", 20, 90, false)}},
	 PMDP_CAUSE_PREEMPTED,
	 20,
	 false},
	{"ksoftirqd is irq",
	 {SEEN, .waited_ns = 90 * MS, .ran_ns = 10 * MS, .n_tasks = 2,
	  .tasks = {TASK("ksoftirqd/1", "SCHED_OTHER", 21, 80, true),
		    TASK("x", "SCHED_OTHER", 22, 10, false)}},
	 PMDP_CAUSE_IRQ,
	 21,
	 false},
	{"interrupts in its own time, by ticks",
	 {SEEN, .ran_ns = 100 * MS, .has_cpu_stat = true, .irq_ns = 80 * MS},
	 PMDP_CAUSE_IRQ,
	 0,
	 false},
	{"stopped by a signal",
	 {SEEN, .is_live = true, .state = 'T', .blocked_ns = 100 * MS},
	 PMDP_CAUSE_STOPPED,
	 0,
	 false},
	{"stopped by a debugger",
	 {SEEN, .is_live = true, .state = 't', .blocked_ns = 100 * MS, .tracer_pid = 77,
	  .tracer_comm = "gdb"},
	 PMDP_CAUSE_STOPPED,
	 77,
	 false},
	{"stopped, and runs again when asked",
	 {SEEN, .state = 'T', .blocked_ns = 99 * MS, .ran_ns = MS},
	 PMDP_CAUSE_STOPPED,
	 0,
	 false},
	{"stopped while another task is on the CPU: not its fault",
	 {SEEN, .is_live = true, .state = 'T', .blocked_ns = 90 * MS, .waited_ns = 10 * MS,
	  .n_tasks = 1, .tasks = {TASK("x", "SCHED_OTHER", 9, 10, false)}},
	 PMDP_CAUSE_STOPPED,
	 0,
	 false},
	{"asleep in the kernel",
	 {SEEN, .is_live = true, .state = 'S', .wchan = "pipe_read", .blocked_ns = 100 * MS},
	 PMDP_CAUSE_BLOCKED,
	 0,
	 false},
	{"was away, nobody looked then",
	 {SEEN, .blocked_ns = 100 * MS},
	 PMDP_CAUSE_BLOCKED,
	 0,
	 true},
	{"waits for a disk",
	 {SEEN, .is_live = true, .state = 'D', .wchan = "folio_wait_bit", .blocked_ns = 100 * MS},
	 PMDP_CAUSE_BLOCKED,
	 0,
	 false},
	{"waits for its page from a disk",
	 {SEEN, .is_live = true, .state = 'D', .wchan = "folio_wait_bit", .blocked_ns = 100 * MS,
	  .has_faults = true, .n_maj_faults = 2},
	 PMDP_CAUSE_PAGE_FAULT,
	 0,
	 false},
	{"waits for a page of userfaultfd",
	 {SEEN, .is_live = true, .state = 'S', .wchan = "handle_userfault", .blocked_ns = 100 * MS},
	 PMDP_CAUSE_PAGE_FAULT,
	 0,
	 false},
	{"frozen, by its cgroup",
	 {SEEN, .is_live = true, .state = 'S', .is_frozen = true, .blocked_ns = 100 * MS},
	 PMDP_CAUSE_FROZEN,
	 0,
	 false},
	{"frozen, by its place of waiting",
	 {SEEN, .is_live = true, .state = 'D', .wchan = "__refrigerator", .blocked_ns = 100 * MS},
	 PMDP_CAUSE_FROZEN,
	 0,
	 false},
	{"quota used up, CPU idle, over",
	 {SEEN, .state = 'R', .idle_ns = 95 * MS, .ran_ns = 5 * MS, .has_quota = true,
	  .n_throttled = 1, .throttled_ns = 95 * MS},
	 PMDP_CAUSE_CPU_QUOTA,
	 0,
	 false},
	{"quota used up, another task has the CPU, over",
	 {SEEN, .state = 'R', .waited_ns = 95 * MS, .ran_ns = 5 * MS, .has_quota = true,
	  .n_throttled = 1, .throttled_ns = 94 * MS, .n_tasks = 1,
	  .tasks = {TASK("cc1", "SCHED_OTHER", 9, 95, false)}},
	 PMDP_CAUSE_CPU_QUOTA,
	 0,
	 false},
	{"quota used up, a task that is gone had the CPU, over",
	 {SEEN, .state = 'R', .waited_ns = 60 * MS, .idle_ns = 40 * MS, .has_quota = true,
	  .n_throttled = 1, .throttled_ns = 96 * MS, .n_tasks = 1,
	  .tasks = {TASK("cc1", "", 9, 60, false)}},
	 PMDP_CAUSE_CPU_QUOTA,
	 0,
	 false},
	{"quota used up, not booked yet",
	 {SEEN, .is_live = true, .state = 'R', .idle_ns = 95 * MS, .has_quota = true},
	 PMDP_CAUSE_CPU_QUOTA,
	 0,
	 true},
	{"a FIFO task while the cgroup has a quota",
	 {SEEN, .is_live = true, .state = 'R', .waited_ns = 100 * MS, .has_quota = true,
	  .was_throttled = true, .n_tasks = 1, .tasks = {TASK("hog", "SCHED_FIFO", 7, 100, false)}},
	 PMDP_CAUSE_PREEMPTED,
	 7,
	 false},
	{"stopped while the cgroup has a quota",
	 {SEEN, .is_live = true, .state = 'T', .blocked_ns = 100 * MS, .has_quota = true,
	  .n_throttled = 1, .throttled_ns = 40 * MS},
	 PMDP_CAUSE_STOPPED,
	 0,
	 false},
	{"a real-time thread gives way to idle",
	 {RT_SEEN, .idle_ns = 50 * MS},
	 PMDP_CAUSE_RT_THROTTLED,
	 0,
	 false},
	{"a real-time thread gives way to a fair task",
	 {RT_SEEN, .waited_ns = 50 * MS, .n_tasks = 1,
	  .tasks = {TASK("cc1", "SCHED_OTHER", 9, 50, false)}},
	 PMDP_CAUSE_RT_THROTTLED,
	 9,
	 false},
	{"a real-time thread gives way to a higher one",
	 {RT_SEEN, .waited_ns = 50 * MS, .n_tasks = 1,
	  .tasks = {TASK("hog", "SCHED_FIFO", 9, 50, false)}},
	 PMDP_CAUSE_PREEMPTED,
	 9,
	 false},
	{"steal, by ticks",
	 {SEEN, .ran_ns = 100 * MS, .is_virtual = true, .has_cpu_stat = true, .steal_ns = 90 * MS},
	 PMDP_CAUSE_STEAL,
	 0,
	 false},
	{"steal, by missing run time",
	 {SEEN, .ran_ns = 100 * MS, .is_virtual = true, .has_runtime = true, .is_polling = true,
	  .span_ns = 120 * MS, .span_ran_ns = 25 * MS, .fuzz_ns = 8 * MS},
	 PMDP_CAUSE_STEAL,
	 0,
	 true},
	{"no hypervisor, no steal",
	 {SEEN, .ran_ns = 100 * MS, .has_cpu_stat = true, .steal_ns = 90 * MS},
	 PMDP_CAUSE_OWN_CODE,
	 0,
	 false},
	{"steal ticks of before, samples of now",
	 {SEEN, .ran_ns = 100 * MS, .is_virtual = true, .has_cpu_stat = true, .steal_ns = 100 * MS,
	  .n_samples = 20},
	 PMDP_CAUSE_OWN_CODE,
	 0,
	 false},
	{"spins",
	 {SEEN, .is_live = true, .state = 'R', .ran_ns = 100 * MS, .n_samples = 20,
	  .function = "stuck"},
	 PMDP_CAUSE_OWN_CODE,
	 0,
	 false},
	{"the thread is gone",
	 {SEEN, .is_live = true, .is_thread_gone = true},
	 PMDP_CAUSE_EXITED,
	 0,
	 false},
	{"the process is gone",
	 {SEEN, .is_live = true, .is_thread_gone = true, .is_process_gone = true},
	 PMDP_CAUSE_PROCESS_DIED,
	 0,
	 false},
	{"nothing is known",
	 {.window_ns = 100 * MS, .is_fair = true},
	 PMDP_CAUSE_UNKNOWN,
	 0,
	 false},
	{"able to run, CPU idle, no quota",
	 {SEEN, .is_live = true, .state = 'R', .idle_ns = 100 * MS},
	 PMDP_CAUSE_UNKNOWN,
	 0,
	 false},
	{"records cover a fifth",
	 {.window_ns = 100 * MS,
	  .covered_ns = 20 * MS,
	  .has_switches = true,
	  .is_fair = true,
	  .waited_ns = 20 * MS,
	  .n_lost = 900,
	  .n_tasks = 1,
	  .tasks = {TASK("x", "SCHED_OTHER", 9, 20, false)}},
	 PMDP_CAUSE_UNKNOWN,
	 0,
	 false},
	{"starved: the tasks that had the rest",
	 {SEEN, .is_starved = true, .ran_ns = 60 * MS, .waited_ns = 40 * MS, .n_tasks = 1,
	  .tasks = {TASK("x", "SCHED_OTHER", 9, 40, false)}},
	 PMDP_CAUSE_PREEMPTED,
	 9,
	 false},
	{"starved by itself",
	 {SEEN, .is_starved = true, .ran_ns = 99 * MS, .waited_ns = 1 * MS, .n_tasks = 1,
	  .tasks = {TASK("x", "SCHED_OTHER", 9, 1, false)}},
	 PMDP_CAUSE_OWN_CODE,
	 0,
	 false},
	// Without switch records.
	{"/proc: waits, live",
	 {BY_PROC, .is_live = true, .state = 'R', .is_polling = true, .span_ns = 600 * MS,
	  .span_ran_ns = 500 * MS, .n_tasks = 1,
	  .tasks = {TASK("hog", "SCHED_FIFO", 7, 100, false)}},
	 PMDP_CAUSE_PREEMPTED,
	 7,
	 true},
	{"/proc: waited, over",
	 {BY_PROC, .state = 'R', .is_polling = true, .span_ns = 600 * MS, .span_ran_ns = 500 * MS,
	  .span_delay_ns = 99 * MS},
	 PMDP_CAUSE_PREEMPTED,
	 0,
	 true},
	{"/proc: stopped",
	 {BY_PROC, .is_live = true, .state = 'T', .is_polling = true, .span_ns = 600 * MS,
	  .span_ran_ns = 502 * MS},
	 PMDP_CAUSE_STOPPED,
	 0,
	 false},
	{"/proc: runs",
	 {BY_PROC, .is_live = true, .state = 'R', .is_polling = true, .span_ns = 600 * MS,
	  .span_ran_ns = 596 * MS},
	 PMDP_CAUSE_OWN_CODE,
	 0,
	 true},
	{"/proc: looks inside the stall only",
	 {BY_PROC, .is_live = true, .state = 'R', .is_polling = true, .span_ns = 50 * MS,
	  .span_ran_ns = 0},
	 PMDP_CAUSE_PREEMPTED,
	 0,
	 true},
	{"/proc: a thread that sleeps much, over; it ran for little and waited for most",
	 {BY_PROC, .state = 'R', .span_ns = 2000 * MS, .span_ran_ns = 10 * MS,
	  .span_delay_ns = 85 * MS},
	 PMDP_CAUSE_PREEMPTED,
	 0,
	 true},
	{"/proc: a thread that sleeps much, over; it slept",
	 {BY_PROC, .state = 'S', .span_ns = 2000 * MS, .span_ran_ns = 10 * MS},
	 PMDP_CAUSE_BLOCKED,
	 0,
	 false},
	{"/proc: only a state",
	 {.window_ns = 100 * MS, .is_fair = true, .is_live = true, .state = 'S'},
	 PMDP_CAUSE_BLOCKED,
	 0,
	 false},
};

static void test_ag_cause_table(void **state)
{
	struct ag_verdict v;
	size_t i;
	uint32_t n_wrong = 0;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		pid_t tid;

		ag_cause_decide(&row->e, &v);
		tid = v.has_culprit ? v.culprit.tid : 0;
		if (v.cause == row->cause && tid == row->culprit_tid &&
		    v.is_inferred == row->is_inferred)
			continue;
		n_wrong++;
		print_error("%s: %s, culprit %d, inferred %d; expected %s, %d, %d\n", row->what,
			    pmdp_cause_name(v.cause), tid, v.is_inferred,
			    pmdp_cause_name(row->cause), row->culprit_tid, row->is_inferred);
	}
	assert_int_equal(n_wrong, 0);
}

// Shares never add up to more than the stall, whatever the counters claim.
static void test_ag_cause_shares_are_bounded(void **state)
{
	struct ag_verdict v;
	struct ag_evidence e;
	uint64_t sum_ns, x = 88172645463325252u;
	uint32_t i, j;

	(void)state;
	for (i = 0; i < 200000; i++) {
		uint64_t part[4], left = 100 * MS;

		memset(&e, 0, sizeof(e));
		for (j = 0; j < 4; j++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			part[j] = x % (left + 1);
			left -= part[j];
		}
		e = (struct ag_evidence){
			SEEN,
			.ran_ns = part[0],
			.waited_ns = part[1],
			.idle_ns = part[2],
			.blocked_ns = part[3],
			.is_virtual = x & 1,
			.has_cpu_stat = x & 2,
			.steal_ns = x >> 20 & 0xfffffff,
			.irq_ns = x >> 24 & 0xfffffff,
			.has_runtime = x & 4,
			.span_ns = x >> 12 & 0xfffffff,
			.span_ran_ns = x >> 30 & 0xfffffff,
			.span_delay_ns = x >> 33 & 0xfffffff,
			.n_throttled = x >> 40 & 3,
			.throttled_ns = x >> 28 & 0xfffffff,
			.is_live = x & 8,
			.state = "RSDTt"[x % 5],
			.is_starved = x & 16,
			.n_tasks = x >> 50 & 3,
			.tasks = {{.took_ns = part[1], .tid = 5}},
		};
		e.has_switches = x & 32;
		e.is_fair = x & 64;
		e.covered_ns = part[0] + part[1] + part[2] + part[3];
		ag_cause_decide(&e, &v);
		sum_ns = 0;
		for (j = 0; j < PMDP_N_CAUSES; j++)
			sum_ns += v.share_ns[j];
		assert_true(sum_ns <= e.window_ns);
		assert_true(v.cause < PMDP_N_CAUSES);
	}
}

static void test_ag_cause_render_replaces(void **state)
{
	struct ag_evidence own = {SEEN,
				  .is_live = true,
				  .state = 'R',
				  .ran_ns = 100 * MS,
				  .n_samples = 20,
				  .function = "stuck",
				  .file = "prog"};
	struct ag_evidence hog = {SEEN, .state = 'R', .waited_ns = 100 * MS, .n_tasks = 2,
				  .tasks = {TASK("hog", "SCHED_RR", 7, 90, false),
					    TASK("dog", "SCHED_RR", 8, 10, false)}};
	struct pmdp_incident incident = {.n_evidence = 0};
	struct ag_verdict v;

	(void)state;
	pmdp_evidence_int(&incident, "loops", 3); // somebody else's
	ag_cause_decide(&own, &v);
	ag_cause_render(&own, &v, &incident);
	assert_string_equal(pmdp_evidence_find(&incident, "function")->text, "stuck");
	assert_int_equal(incident.culprit_pid, 0);
	ag_cause_decide(&hog, &v);
	ag_cause_render(&hog, &v, &incident);
	assert_null(pmdp_evidence_find(&incident, "function"));
	assert_int_equal(pmdp_evidence_find(&incident, "loops")->integer, 3);
	assert_int_equal(incident.cause, PMDP_CAUSE_PREEMPTED);
	assert_string_equal(incident.culprit_comm, "hog");
	assert_string_equal(incident.culprit_class, "SCHED_RR");
	assert_int_equal(incident.culprit_took_ns, 90 * MS);
	assert_string_equal(pmdp_evidence_find(&incident, "culprit2")->text, "dog/8 0.010000 s");
	ag_cause_decide(&own, &v);
	ag_cause_render(&own, &v, &incident);
	assert_int_equal(incident.culprit_pid, 0);
	assert_string_equal(incident.culprit_comm, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ag_cause_table),
		cmocka_unit_test(test_ag_cause_shares_are_bounded),
		cmocka_unit_test(test_ag_cause_render_replaces),
	};

	return cmocka_run_group_tests_name("ag_cause", tests, NULL, NULL);
}
