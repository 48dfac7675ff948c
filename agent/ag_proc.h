// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * What /proc says about one thread, its cgroup and its CPU.
 *
 * Files are opened once and read again by pread: an open file of /proc is bound to the task itself,
 * so that a recycled pid can never be read by mistake (the read fails instead). Parsers are apart
 * from the reading and pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pmdp_stat.h"

// ---------------------------------------------------------------------------------------------
// A thread (ag_proc.c, ag_proc_parse.c)

struct ag_proc_thread {
	pid_t pid;
	pid_t tid;
	int status_fd, stat_fd, schedstat_fd, wchan_fd, leader_fd; // -1: not allowed or absent
};

struct ag_proc_status {
	char state; // R S D T t Z X I P, 0 unknown
	pid_t tracer_pid;
};

struct ag_proc_runtime {
	uint64_t ran_ns;   // on the CPU, as far as booked
	uint64_t delay_ns; // waited on a run queue, booked when the wait ends
};

// -ESRCH: no such thread. Files that may not be opened are left out.
int ag_proc_open(pid_t pid, pid_t tid, struct ag_proc_thread *out_thread);
void ag_proc_close(struct ag_proc_thread *thread);

// 0, -ESRCH: the thread is gone; -EBADF: not readable; -EBADMSG.
int ag_proc_read_status(const struct ag_proc_thread *thread, struct ag_proc_status *out_status);
int ag_proc_read_runtime(const struct ag_proc_thread *thread, struct ag_proc_runtime *out_runtime);
int ag_proc_read_stat(const struct ag_proc_thread *thread, struct pmdp_stat *out_stat);
// Empty where the thread doesn't wait in the kernel or the right is missing.
void ag_proc_read_wchan(const struct ag_proc_thread *thread, char *out, size_t size);
// The thread is gone: is its whole process?
bool ag_proc_is_process_gone(const struct ag_proc_thread *thread);

int ag_proc_parse_status(const char *text, struct ag_proc_status *out_status);
int ag_proc_parse_runtime(const char *text, struct ag_proc_runtime *out_runtime);

// An open file of /proc from its start, cut at size - 1 and terminated. Length or negative errno.
ssize_t ag_proc_read_fd(int fd, char *out, size_t size);

// ---------------------------------------------------------------------------------------------
// The cgroups of a thread: cpu controller and freezer, v1 and v2 (ag_proc_cgroup.c)

#define AG_CGROUP_LEVELS 8

struct ag_cgroup {
	// cpu.stat and cpu.max (v1: cpu.cfs_quota_us), from the thread's own cgroup upwards
	int stat_fds[AG_CGROUP_LEVELS], limit_fds[AG_CGROUP_LEVELS];
	uint32_t n_levels;
	int freezer_fd;
	bool is_v2_freezer;
	uint64_t hash; // of /proc/PID/cgroup when it was opened, 0: never
};

struct ag_cgroup_stat {
	uint64_t n_throttled;
	uint64_t throttled_ns;
};

// Where the controllers are mounted; found once.
struct ag_cgroup_mounts {
	char cpu_v1[128], freezer_v1[128], v2[128]; // empty: not mounted
};

int ag_cgroup_find_mounts(struct ag_cgroup_mounts *out_mounts); // -ENOENT: none has cpu
void ag_cgroup_parse_mounts(char *mountinfo, struct ag_cgroup_mounts *out_mounts);
// The path of a controller in the text of /proc/PID/cgroup; controller NULL: v2.
int ag_cgroup_parse_path(const char *text, const char *controller, char *out, size_t size);

void ag_cgroup_init(struct ag_cgroup *cgroup);
// Open the thread's cgroups, or again when it has moved. Returns true when it is another cgroup.
bool ag_cgroup_follow(struct ag_cgroup *cgroup, const struct ag_cgroup_mounts *mounts, pid_t pid,
		      pid_t tid);
void ag_cgroup_close(struct ag_cgroup *cgroup);

// Sum over the levels. -ENOENT: no cgroup with a quota counter; -ENODEV: the cgroup was removed.
int ag_cgroup_read(const struct ag_cgroup *cgroup, struct ag_cgroup_stat *out_stat);
// Is a quota set on one of the levels?
bool ag_cgroup_has_limit(const struct ag_cgroup *cgroup);
int ag_cgroup_parse_stat(const char *text, struct ag_cgroup_stat *out_stat);
bool ag_cgroup_is_frozen(const struct ag_cgroup *cgroup);

// ---------------------------------------------------------------------------------------------
// The CPU (ag_proc_cpu.c). Counters of ticks of 10 ms.

struct ag_cpu_stat {
	uint64_t steal_ns, irq_ns, idle_ns, busy_ns;
};

// text of /proc/stat
int ag_cpu_parse(const char *text, int core, struct ag_cpu_stat *out_stat);
bool ag_cpu_is_virtual(void);
bool ag_cpu_is_tickless(int core); // nohz_full: run times are booked once a second only
