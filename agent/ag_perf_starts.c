// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_perf_starts.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ag_perf_ring.h"

#define RING_BYTES ((size_t)16 * 1024)
#define N_KEPT 2048 // names read so far, a power of two
#define MAX_CPUS 1024
#define MAX_STEPS 4 // parents asked for a name

struct start {
	uint64_t time_ns;
	pid_t tid;
	pid_t parent_tid; // 0: comm stands
	char comm[16];
};

struct ag_starts {
	struct ag_perf_ring *rings;
	uint32_t n_rings;
	struct start kept[N_KEPT];
	uint64_t n_kept;
};

struct comm_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	char comm[];
};

struct task_record {
	struct perf_event_header header;
	uint32_t pid, parent_pid, tid, parent_tid;
};

int ag_starts_new(struct ag_starts **out_starts)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.comm = 1,
		.task = 1,
	};
	long n_cpus = sysconf(_SC_NPROCESSORS_CONF), cpu;
	struct ag_starts *starts = calloc(1, sizeof(*starts));
	int rc = -ENODEV, one;

	if (n_cpus < 1 || n_cpus > MAX_CPUS)
		n_cpus = n_cpus < 1 ? 1 : MAX_CPUS;
	if (starts)
		starts->rings = calloc((size_t)n_cpus, sizeof(*starts->rings));
	if (!starts || !starts->rings) {
		free(starts);
		return -ENOMEM;
	}
	for (cpu = 0; cpu < n_cpus; cpu++) {
		one = ag_perf_ring_open(&attr, -1, (int)cpu, RING_BYTES,
					&starts->rings[starts->n_rings]);
		if (one == 0)
			starts->n_rings++;
		else if (one != -ENODEV) // a CPU that is offline
			rc = one;
	}
	if (starts->n_rings == 0) {
		ag_starts_free(starts);
		return rc;
	}
	*out_starts = starts;
	return 0;
}

void ag_starts_free(struct ag_starts *starts)
{
	uint32_t i;

	if (!starts)
		return;
	for (i = 0; i < starts->n_rings; i++)
		ag_perf_ring_close(&starts->rings[i]);
	free(starts->rings);
	free(starts);
}

// With TID | TIME | CPU asked for, each record ends with pid, tid, time, cpu and a hole.
static uint64_t time_of(const struct perf_event_header *header)
{
	uint64_t time_ns;

	memcpy(&time_ns, (const uint8_t *)header + header->size - 16, sizeof(time_ns));
	return time_ns;
}

static void keep(struct ag_starts *starts, const struct perf_event_header *header)
{
	struct start *start = &starts->kept[starts->n_kept % N_KEPT];

	if (header->type == PERF_RECORD_COMM && header->size >= sizeof(*header) + 8 + 24) {
		const struct comm_record *r = (const void *)header;
		size_t max =
			header->size - sizeof(*header) - 8 - 24; // cut to a multiple of 8 bytes

		*start = (struct start){.tid = (pid_t)r->tid, .time_ns = time_of(header)};
		snprintf(start->comm, sizeof(start->comm), "%.*s", (int)max, r->comm);
		starts->n_kept++;
	} else if (header->type == PERF_RECORD_FORK && header->size >= sizeof(struct task_record)) {
		const struct task_record *r = (const void *)header;

		*start = (struct start){.tid = (pid_t)r->tid,
					.parent_tid = (pid_t)r->parent_tid,
					.time_ns = time_of(header)};
		starts->n_kept++;
	}
}

static void read_all(struct ag_starts *starts)
{
	struct ag_perf_batch batch;
	uint32_t cpu;
	size_t i;

	for (cpu = 0; cpu < starts->n_rings; cpu++) {
		ag_perf_ring_read(&starts->rings[cpu], &batch);
		for (i = batch.n_records; i-- > 0;)
			keep(starts, (const void *)(batch.bytes + batch.offsets[i]));
	}
}

// Starts and renames of one task can stand in the rings of several CPUs.
static const struct start *newest(const struct ag_starts *starts, pid_t tid)
{
	uint64_t oldest = starts->n_kept > N_KEPT ? starts->n_kept - N_KEPT : 0, i;
	const struct start *found = NULL, *start;

	for (i = starts->n_kept; i-- > oldest;) {
		start = &starts->kept[i % N_KEPT];
		if (start->tid == tid && (!found || start->time_ns > found->time_ns))
			found = start;
	}
	return found;
}

static bool is_alive(pid_t tid, char *out_comm, size_t size)
{
	char path[32];
	FILE *f;
	bool is_read;

	snprintf(path, sizeof(path), "/proc/%d/comm", tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	is_read = fgets(out_comm, (int)size, f) != NULL;
	out_comm[strcspn(out_comm, "\n")] = 0;
	fclose(f);
	return is_read;
}

int ag_starts_find(struct ag_starts *starts, pid_t tid, uint64_t since_ns, char *out_comm,
		   size_t size)
{
	const struct start *start;
	int step;

	read_all(starts);
	for (step = 0; step < MAX_STEPS; step++) {
		start = newest(starts, tid);
		if (!start || (step == 0 && start->time_ns < since_ns))
			return -ENOENT;
		if (start->parent_tid == 0) {
			snprintf(out_comm, size, "%s", start->comm);
			return 0;
		}
		tid = start->parent_tid;
		if (is_alive(tid, out_comm, size))
			return 0;
	}
	return -ENOENT;
}
