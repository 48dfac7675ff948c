// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Texts of /proc and of cgroups, as kernels write them and as they never should.
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ag_proc.h"

static void test_ag_proc_status(void **state)
{
	struct ag_proc_status status;

	(void)state;
	assert_int_equal(ag_proc_parse_status("Name:\tpmd\nUmask:\t0022\nState:\tt (tracing stop)\n"
					      "Tgid:\t5\nPid:\t6\nPPid:\t1\nTracerPid:\t4242\n",
					      &status),
			 0);
	assert_int_equal(status.state, 't');
	assert_int_equal(status.tracer_pid, 4242);
	assert_int_equal(ag_proc_parse_status("", &status), -EBADMSG);
	assert_int_equal(ag_proc_parse_status("Name:\tState:\tR\n", &status), -EBADMSG);
	assert_int_equal(ag_proc_parse_status("Name:\tx\nState:\t", &status), -EBADMSG);
}

static void test_ag_proc_self(void **state)
{
	struct ag_proc_thread thread;
	struct ag_proc_status status;
	struct ag_proc_runtime before, after;
	struct pmdp_stat stat;
	char wchan[64];
	pid_t pid;
	int wstatus;

	(void)state;
	assert_int_equal(ag_proc_open(getpid(), gettid(), &thread), 0);
	assert_int_equal(ag_proc_read_status(&thread, &status), 0);
	assert_int_equal(status.state, 'R');
	assert_int_equal(ag_proc_read_runtime(&thread, &before), 0);
	assert_int_equal(ag_proc_read_stat(&thread, &stat), 0);
	assert_int_equal(stat.state, 'R');
	assert_int_equal(ag_proc_read_runtime(&thread, &after), 0);
	assert_true(after.ran_ns >= before.ran_ns);
	ag_proc_read_wchan(&thread, wchan, sizeof(wchan));
	assert_string_equal(wchan, "");
	assert_false(ag_proc_is_process_gone(&thread));
	ag_proc_close(&thread);

	pid = fork();
	if (pid == 0) {
		alarm(10);
		pause();
		_exit(0);
	}
	assert_int_equal(ag_proc_open(pid, pid, &thread), 0);
	kill(pid, SIGKILL);
	waitpid(pid, &wstatus, 0);
	// Whoever gets this pid next is not read by mistake.
	assert_int_equal(ag_proc_read_status(&thread, &status), -ESRCH);
	assert_true(ag_proc_is_process_gone(&thread));
	ag_proc_close(&thread);
	assert_int_equal(ag_proc_open(pid, pid, &thread), -ESRCH);
}

static void test_ag_cgroup_mounts(void **state)
{
	char v1[] = "24 1 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
		    "25 24 0:23 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu\n"
		    "26 24 0:24 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n"
		    "27 24 0:25 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
		    "28 24 0:26 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n"
		    "29 24 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
	char joined[] = "25 24 0:23 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct";
	char v2[] =
		"30 1 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n\n bad\n";
	struct ag_cgroup_mounts mounts;

	(void)state;
	ag_cgroup_parse_mounts(v1, &mounts);
	assert_string_equal(mounts.cpu_v1, "/sys/fs/cgroup/cpu");
	assert_string_equal(mounts.freezer_v1, "/sys/fs/cgroup/freezer");
	assert_string_equal(mounts.v2, "/sys/fs/cgroup/unified");
	ag_cgroup_parse_mounts(joined, &mounts);
	assert_string_equal(mounts.cpu_v1, "/cg/cpu,cpuacct");
	assert_string_equal(mounts.v2, "");
	ag_cgroup_parse_mounts(v2, &mounts);
	assert_string_equal(mounts.cpu_v1, "");
	assert_string_equal(mounts.v2, "/sys/fs/cgroup");
}

static void test_ag_cgroup_path(void **state)
{
	static const char text[] = "9:name=systemd:/s\n4:cpuset:/set\n3:freezer:/f/g\n"
				   "2:cpu,cpuacct:/a/b c\n0::/user.slice/x.scope\n";
	char path[64], small[4];

	(void)state;
	assert_int_equal(ag_cgroup_parse_path(text, "cpu", path, sizeof(path)), 0);
	assert_string_equal(path, "/a/b c");
	assert_int_equal(ag_cgroup_parse_path(text, "freezer", path, sizeof(path)), 0);
	assert_string_equal(path, "/f/g");
	assert_int_equal(ag_cgroup_parse_path(text, NULL, path, sizeof(path)), 0);
	assert_string_equal(path, "/user.slice/x.scope");
	assert_int_equal(ag_cgroup_parse_path(text, "memory", path, sizeof(path)), -ENOENT);
	assert_int_equal(ag_cgroup_parse_path("1:cpu:/a\n", NULL, path, sizeof(path)), -ENOENT);
	assert_int_equal(ag_cgroup_parse_path(text, "cpu", small, sizeof(small)), -ERANGE);
	assert_int_equal(ag_cgroup_parse_path("0::/\n", NULL, path, sizeof(path)), 0);
	assert_string_equal(path, "/");
}

static void test_ag_cgroup_stat(void **state)
{
	struct ag_cgroup_stat stat;

	(void)state;
	assert_int_equal(ag_cgroup_parse_stat("nr_periods 5\nnr_throttled 3\nthrottled_time 77\n"
					      "nr_bursts 0\nburst_time 0\nwait_sum 3\n",
					      &stat),
			 0);
	assert_int_equal(stat.n_throttled, 3);
	assert_int_equal(stat.throttled_ns, 77);
	assert_int_equal(ag_cgroup_parse_stat("usage_usec 5\nuser_usec 4\nsystem_usec 1\n"
					      "nr_periods 9\nnr_throttled 4\nthrottled_usec 12\n",
					      &stat),
			 0);
	assert_int_equal(stat.n_throttled, 4);
	assert_int_equal(stat.throttled_ns, 12000);
	// The controller is not enabled there.
	assert_int_equal(ag_cgroup_parse_stat("usage_usec 5\nuser_usec 4\n", &stat), -ENOENT);
}

static void test_ag_cpu(void **state)
{
	static const char text[] = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 1 0 0\n"
				   "cpu1 10 20 30 40 50 60 70 80 0 0\ncpu11 9 9 9 9 9 9 9 9 0 0\n"
				   "intr 1 2 3\n";
	struct ag_cpu_stat stat;
	uint64_t tick_ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);

	(void)state;
	assert_int_equal(ag_cpu_parse(text, 1, &stat), 0);
	assert_int_equal(stat.steal_ns, 80 * tick_ns);
	assert_int_equal(stat.irq_ns, 130 * tick_ns);
	assert_int_equal(stat.idle_ns, 90 * tick_ns);
	assert_int_equal(stat.busy_ns, 60 * tick_ns);
	assert_int_equal(ag_cpu_parse(text, 2, &stat), -ENOENT);
	assert_int_equal(ag_cpu_parse("cpu  1\ncpu1 1 2\n", 1, &stat), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ag_proc_status),   cmocka_unit_test(test_ag_proc_self),
		cmocka_unit_test(test_ag_cgroup_mounts), cmocka_unit_test(test_ag_cgroup_path),
		cmocka_unit_test(test_ag_cgroup_stat),   cmocka_unit_test(test_ag_cpu),
	};

	return cmocka_run_group_tests_name("ag_proc", tests, NULL, NULL);
}
