// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * /proc/PID/stat and /proc/PID/task/TID/stat (proc(5)). Not installed: for our own rooms.
 *
 * Reading may block as long as a file-system call does.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Of flags, from the kernel's sched.h. On its way out, or waiting for a core dump:
#define PMDP_STAT_EXITING 0x4u
#define PMDP_STAT_POSTCOREDUMP 0x8u
#define PMDP_STAT_DUMPCORE 0x200u
#define PMDP_STAT_KTHREAD 0x200000u // a user task may call itself ksoftirqd/0

struct pmdp_stat {
	char comm[16]; // cut; kernel threads have longer ones
	char state;    // R S D T t Z X I
	int processor; // where it runs, or ran last
	uint32_t flags;
	uint32_t policy; // SCHED_*
	uint32_t n_threads;
	uint64_t n_maj_faults;
	uint64_t user_ticks, system_ticks, start_ticks; // of sysconf(_SC_CLK_TCK); start since boot
	uint64_t vsize_bytes, rss_pages;
};

#pragma GCC visibility push(hidden)

// 0 or -EBADMSG; the output is untouched then.
int pmdp_stat_parse(const char *text, struct pmdp_stat *out_stat);

// Of a process (pid 0: this one), or of one of its threads (tid not 0).
// -ESRCH: no such process or thread. -EBADMSG: an unknown format. -errno of open and read.
int pmdp_stat_read(uint32_t pid, uint32_t tid, struct pmdp_stat *out_stat);
int pmdp_stat_read_path(const char *path, struct pmdp_stat *out_stat);

// What fits of a small file, NUL terminated. Returns its length or -errno.
ssize_t pmdp_read_small(const char *path, char *out, size_t size);

#pragma GCC visibility pop
