// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// /proc/PID/stat, as kernels write it and as they never should.
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "pmdp_stat.h"

static void test_fields(void **state)
{
	static const char text[] =
		"1234 (a) R (b)) S 1 1234 1234 0 -1 4194560 11 22 33 44 55 66 7 8 -20 0 3 0 987654 "
		"1000 200 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 6 50 1 0 0 0 0 0 0 0 0\n";
	struct pmdp_stat stat;

	(void)state;
	assert_int_equal(pmdp_stat_parse(text, &stat), 0);
	assert_string_equal(stat.comm, "a) R (b)");
	assert_int_equal(stat.state, 'S');
	assert_int_equal(stat.flags, 4194560);
	assert_int_equal(stat.n_maj_faults, 33);
	assert_int_equal(stat.user_ticks, 55);
	assert_int_equal(stat.system_ticks, 66);
	assert_int_equal(stat.n_threads, 3);
	assert_int_equal(stat.start_ticks, 987654);
	assert_int_equal(stat.vsize_bytes, 1000);
	assert_int_equal(stat.rss_pages, 200);
	assert_int_equal(stat.processor, 6);
	assert_int_equal(stat.policy, 1);
}

static void test_long_name_is_cut(void **state)
{
	char text[512];
	struct pmdp_stat stat;

	(void)state;
	snprintf(text, sizeof(text),
		 "2 (kworker/u4:1-events_unbound) I 2 0 0 0 -1 %u 0 0 0 0 0 5 0 0 20 0 1 0 9 0 0 "
		 "18446744073709551615 0 0 0 0 0 0 0 2147483647 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0",
		 PMDP_STAT_KTHREAD);
	assert_int_equal(pmdp_stat_parse(text, &stat), 0);
	assert_string_equal(stat.comm, "kworker/u4:1-ev");
	assert_int_equal(stat.flags, PMDP_STAT_KTHREAD);
}

static void test_nonsense_is_refused(void **state)
{
	static const char *const texts[] = {
		"",   "1234 (x", "1234 (x)",    "1234 (x) ", "1234 (x) S 1 2 3",
		")(", "x) S 1",  "1234 (x)S 1",
	};
	struct pmdp_stat stat = {.comm = "before"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(pmdp_stat_parse(texts[i], &stat), -EBADMSG);
	assert_string_equal(stat.comm, "before");
}

static void test_of_living_and_dead(void **state)
{
	uint32_t pid = (uint32_t)getpid(), tid = (uint32_t)gettid();
	struct pmdp_stat self, process, thread;
	siginfo_t info;
	pid_t child;

	(void)state;
	prctl(PR_SET_NAME, ") Z 1 (");
	assert_int_equal(pmdp_stat_read(0, 0, &self), 0);
	assert_int_equal(pmdp_stat_read(pid, 0, &process), 0);
	assert_int_equal(pmdp_stat_read(pid, tid, &thread), 0);
	assert_string_equal(thread.comm, ") Z 1 (");
	assert_int_equal(self.state, 'R');
	assert_true(self.start_ticks > 0);
	assert_int_equal(process.start_ticks, self.start_ticks);
	assert_int_equal(thread.start_ticks, self.start_ticks); // the first thread
	assert_int_equal(self.policy, sched_getscheduler(0));
	assert_true(self.rss_pages > 0 && self.vsize_bytes > self.rss_pages);

	child = fork();
	if (child == 0)
		_exit(0);
	// Ended and not yet waited for.
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(pmdp_stat_read((uint32_t)child, 0, &process), 0);
	assert_int_equal(process.state, 'Z');
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(pmdp_stat_read((uint32_t)child, 0, &process), -ESRCH);
	assert_int_equal(pmdp_stat_read(pid, (uint32_t)child, &process), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_long_name_is_cut),
		cmocka_unit_test(test_nonsense_is_refused),
		cmocka_unit_test(test_of_living_and_dead),
	};

	return cmocka_run_group_tests_name("stat", tests, NULL, NULL);
}
