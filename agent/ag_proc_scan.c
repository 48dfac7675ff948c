// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_proc_scan.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ag_proc.h"

#define N_CANDIDATES 256
#define BETWEEN_NS 9000000 // run times are booked at ticks: more than two of them

struct candidate {
	pid_t pid, tid;
	char comm[16];
	uint64_t ran_ns, grown_ns;
};

static int read_runtime(pid_t pid, pid_t tid, uint64_t *out_ns)
{
	struct ag_proc_runtime runtime;
	char path[64], text[128];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	if (pmdp_read_small(path, text, sizeof(text)) <= 0 || ag_proc_parse_runtime(text, &runtime))
		return -1;
	*out_ns = runtime.ran_ns;
	return 0;
}

static void consider(pid_t pid, pid_t tid, int core, struct candidate *list, uint32_t *n)
{
	struct pmdp_stat stat;
	struct candidate *c = &list[*n];

	if (pmdp_stat_read((uint32_t)pid, (uint32_t)tid, &stat))
		return;
	if (stat.processor != core || *n == N_CANDIDATES || read_runtime(pid, tid, &c->ran_ns))
		return;
	c->pid = pid;
	c->tid = tid;
	memcpy(c->comm, stat.comm, sizeof(c->comm));
	++*n;
}

static void list_threads(pid_t pid, pid_t but_tid, int core, struct candidate *list, uint32_t *n)
{
	struct dirent *entry;
	char path[32];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]) && atoi(entry->d_name) != but_tid)
			consider(pid, atoi(entry->d_name), core, list, n);
	if (dir)
		closedir(dir);
}

static int longer_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->grown_ns < y->grown_ns ? 1 : x->grown_ns > y->grown_ns ? -1 : 0;
}

void ag_scan_core(int core, pid_t but_tid, struct ag_scan *out_scan)
{
	struct candidate *list = calloc(N_CANDIDATES + 1, sizeof(*list));
	const struct timespec between = {.tv_nsec = BETWEEN_NS};
	DIR *dir = opendir("/proc");
	uint64_t total_ns = 0, ran_ns;
	struct dirent *entry;
	uint32_t n = 0, i;

	memset(out_scan, 0, sizeof(*out_scan));
	while (list && dir && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			list_threads(atoi(entry->d_name), but_tid, core, list, &n);
	if (dir)
		closedir(dir);
	if (n > 0)
		nanosleep(&between, NULL);
	for (i = 0; i < n; i++) {
		if (read_runtime(list[i].pid, list[i].tid, &ran_ns) == 0 && ran_ns > list[i].ran_ns)
			list[i].grown_ns = ran_ns - list[i].ran_ns;
		total_ns += list[i].grown_ns;
	}
	if (n > 0)
		qsort(list, n, sizeof(*list), longer_first);
	for (i = 0; i < n && i < AG_SCAN_TASKS && list[i].grown_ns > 0; i++) {
		struct ag_scan_task *task = &out_scan->tasks[out_scan->n_tasks++];

		task->pid = list[i].pid;
		task->tid = list[i].tid;
		memcpy(task->comm, list[i].comm, sizeof(task->comm));
		task->part_ppm = (uint32_t)(list[i].grown_ns * 1000000 / total_ns);
	}
	free(list);
}
