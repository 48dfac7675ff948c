// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Who has a CPU, without the right to perf: the tasks whose last CPU it is and whose run time
 * grows.
 *
 * Reads one file of every task of the machine and waits some milliseconds between two looks: only
 * the helper thread of the diagnosis calls this. What it finds is a conclusion, never seen.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define AG_SCAN_TASKS 4

struct ag_scan_task {
	pid_t pid, tid;
	char comm[16];
	uint32_t part_ppm; // of the time that all tasks found had
};

struct ag_scan {
	uint32_t n_tasks;
	struct ag_scan_task tasks[AG_SCAN_TASKS]; // largest part first
};

void ag_scan_core(int core, pid_t but_tid, struct ag_scan *out_scan);
