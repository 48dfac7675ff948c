// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ag_perf.h"
#include "ag_perf_ring.h"
#include "ag_perf_starts.h"
#include "pmdp_stat.h"

#define N_WAYS 4
#define N_SETS 64
struct entry {
	pid_t tid; // 0: free
	uint64_t noted_ns;
	bool is_class_seen; // it had the CPU when its class was read
	struct ag_name name;
};

struct ag_names {
	struct entry sets[N_SETS][N_WAYS];
	struct ag_starts *starts; // NULL: not allowed
};

int ag_names_new(struct ag_names **out_names)
{
	struct ag_names *names = calloc(1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	if (ag_starts_new(&names->starts))
		names->starts = NULL;
	*out_names = names;
	return 0;
}

void ag_names_free(struct ag_names *names)
{
	if (!names)
		return;
	ag_starts_free(names->starts);
	free(names);
}

static struct entry *find(struct ag_names *names, pid_t tid)
{
	struct entry *set = names->sets[(uint32_t)tid % N_SETS], *oldest = set;
	int i;

	for (i = 0; i < N_WAYS; i++) {
		if (set[i].tid == tid)
			return &set[i];
		if (set[i].noted_ns < oldest->noted_ns)
			oldest = &set[i];
	}
	memset(oldest, 0, sizeof(*oldest));
	oldest->tid = tid;
	return oldest;
}

static const char *class_of(pid_t tid)
{
	int policy = sched_getscheduler(tid);

	if (policy < 0)
		return NULL;
	switch (policy & ~SCHED_RESET_ON_FORK) {
	case SCHED_OTHER:
		return "SCHED_OTHER";
	case SCHED_FIFO:
		return "SCHED_FIFO";
	case SCHED_RR:
		return "SCHED_RR";
	case SCHED_BATCH:
		return "SCHED_BATCH";
	case SCHED_IDLE:
		return "SCHED_IDLE";
	case SCHED_DEADLINE:
		return "SCHED_DEADLINE";
	case 7:
		return "SCHED_EXT";
	default:
		return "unknown";
	}
}

static int look_up(pid_t tid, struct ag_name *out_name)
{
	struct pmdp_stat stat;
	int rc = tid > 0 ? pmdp_stat_read((uint32_t)tid, 0, &stat) : -ESRCH; // 0 would be ourselves

	if (rc)
		return rc;
	memcpy(out_name->comm, stat.comm, sizeof(out_name->comm));
	out_name->is_kernel = stat.flags & PMDP_STAT_KTHREAD;
	return 0;
}

void ag_names_get(struct ag_names *names, pid_t pid, pid_t tid, bool is_on_cpu, uint64_t now_ns,
		  struct ag_name *out_name)
{
	struct entry *entry = find(names, tid);
	struct ag_name *name = &entry->name;
	const char *class;

	// The same number, another task.
	if (pid > 0 && name->pid > 0 && name->pid != pid)
		*entry = (struct entry){.tid = tid};
	if (pid > 0)
		name->pid = pid;
	// Tasks rename themselves, and tids are used again: what is alive is looked up each time.
	if (look_up(tid, name) == 0)
		entry->noted_ns = now_ns;
	else if (names->starts) // gone, and perhaps renamed since it was seen
		ag_starts_find(names->starts, tid, entry->noted_ns, name->comm, sizeof(name->comm));
	// A hog may be a real-time task only while it spins: what it was on the CPU counts.
	class = is_on_cpu || !entry->is_class_seen ? class_of(tid) : NULL;
	if (class)
		snprintf(name->sched_class, sizeof(name->sched_class), "%s", class);
	if (class && is_on_cpu)
		entry->is_class_seen = true;
	*out_name = *name;
	if (!out_name->comm[0])
		snprintf(out_name->comm, sizeof(out_name->comm), "?");
}
