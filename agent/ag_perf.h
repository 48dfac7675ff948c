// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Context-switch records of one CPU: who ran on it, since when, and whether the task before could
 * have run on.
 *
 * The kernel writes them into a ring that runs backwards and overwrites its oldest part, so that
 * nothing is read until there is a question and the newest past is always there. drain() turns what
 * is new into runs in our own memory, which hold some thousand switches more. What was overwritten
 * before it was read is a hole in the runs, counted, and never guessed.
 *
 * Needs CAP_PERFMON (or perf_event_paranoid < 1). One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define AG_PERF_N_RUNS 8192 // a power of two

#define AG_TID_IDLE 0
#define AG_TID_UNKNOWN (-1)

struct ag_run {
	uint64_t since_ns;
	pid_t pid;
	pid_t tid;         // has the CPU from then on, until the next run
	bool was_runnable; // the task before could have run on
};

struct ag_runs {
	struct ag_run *ring; // AG_PERF_N_RUNS
	uint64_t n;          // runs ever added; number i stands at i % AG_PERF_N_RUNS
	uint64_t n_lost;     // records overwritten before they were read
	uint64_t upto_ns;    // everything up to here is in
};

struct ag_perf;

// -EACCES, -EPERM: not allowed; -ENOSYS; -ENOMEM; -EINVAL, -ENODEV: no such CPU or an old kernel.
int ag_perf_open(int core, struct ag_perf **out_perf);
void ag_perf_close(struct ag_perf *perf);

// Bytes of records that wait to be read; a plain load.
size_t ag_perf_pending(const struct ag_perf *perf);
#define AG_PERF_RING_BYTES ((size_t)128 * 1024)

// Take what is new into the runs. Some 10 ns a record.
void ag_perf_drain(struct ag_perf *perf, uint64_t now_ns);
const struct ag_runs *ag_perf_runs(const struct ag_perf *perf);

// ---------------------------------------------------------------------------------------------
// What happened in a window (ag_perf_sum.c). Pure.

#define AG_SUM_TASKS 8

struct ag_sum_task {
	pid_t pid;
	pid_t tid;
	uint64_t took_ns;
};

struct ag_sum {
	uint64_t covered_ns; // of the window; the rest lies before the oldest run or in holes
	uint64_t ran_ns;
	uint64_t waited_ns;  // others had the CPU although the thread could run
	uint64_t idle_ns;    // nobody had it although the thread could run
	uint64_t blocked_ns; // the thread had given the CPU away
	uint64_t unsure_ns;  // away, and its last leaving lies before the oldest run
	uint32_t n_switches; // times the thread left the CPU inside the window
	uint32_t n_tasks;
	struct ag_sum_task tasks[AG_SUM_TASKS]; // those of waited_ns and unsure_ns, longest first
	// the longest time of blocked_ns in one piece
	uint64_t stretch_begin_ns, stretch_end_ns;
	struct ag_sum_task now; // who has the CPU at the end of the window
	bool is_out;            // at the end: the thread is off the CPU
	bool is_out_runnable;   // and could run
};

/*
 * woken_ns: for how long the thread could run already when its longest blocked time ended. Records
 * of switches don't tell when a sleeping thread was woken; the run-queue wait in schedstat does. 0:
 * not known.
 */
void ag_perf_sum(const struct ag_runs *runs, pid_t tid, uint64_t begin_ns, uint64_t end_ns,
		 uint64_t woken_ns, struct ag_sum *out_sum);

// ---------------------------------------------------------------------------------------------
// Names of tasks by tid (ag_perf_names.c): noted when first asked for, kept when the task is gone.

struct ag_names;

struct ag_name {
	char comm[16];
	char sched_class[16];
	pid_t pid;
	bool is_kernel;
};

int ag_names_new(struct ag_names **out_names); // -ENOMEM
void ag_names_free(struct ag_names *names);

/*
 * Look up a task now and note what is found. is_on_cpu: the class that it has now is the one that
 * it ran with, and replaces an earlier one. For a task that is gone: what was noted, else the
 * records of task starts, else "?". Reads two files of /proc at most; cheap.
 */
void ag_names_get(struct ag_names *names, pid_t pid, pid_t tid, bool is_on_cpu, uint64_t now_ns,
		  struct ag_name *out_name);
