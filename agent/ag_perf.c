// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_perf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ag_perf_ring.h"
#include "pmdp_clock.h"

// Record of a switch on a CPU, with sample_id_all and TID | TIME | CPU.
struct switch_record {
	struct perf_event_header header;
	uint32_t other_pid, other_tid; // who comes (on leaving), who was there (on coming)
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
};

struct ag_perf {
	struct ag_perf_ring ring;
	struct ag_runs runs;
	uint64_t open_ns;
	int core;
};

int ag_perf_open(int core, struct ag_perf **out_perf)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.context_switch = 1,
	};
	struct ag_perf *perf = calloc(1, sizeof(*perf));
	int rc;

	if (!perf)
		return -ENOMEM;
	perf->core = core;
	perf->runs.ring = calloc(AG_PERF_N_RUNS, sizeof(*perf->runs.ring));
	rc = perf->runs.ring ? ag_perf_ring_open(&attr, -1, core, AG_PERF_RING_BYTES, &perf->ring)
			     : -ENOMEM;
	if (rc) {
		free(perf->runs.ring);
		free(perf);
		return rc;
	}
	perf->open_ns = perf->runs.upto_ns = pmdp_mono_now_ns();
	*out_perf = perf;
	return 0;
}

void ag_perf_close(struct ag_perf *perf)
{
	if (!perf)
		return;
	ag_perf_ring_close(&perf->ring);
	free(perf->runs.ring);
	free(perf);
}

size_t ag_perf_pending(const struct ag_perf *perf)
{
	return ag_perf_ring_pending(&perf->ring);
}

const struct ag_runs *ag_perf_runs(const struct ag_perf *perf)
{
	return &perf->runs;
}

static void add_run(struct ag_runs *runs, uint64_t since_ns, uint32_t pid, uint32_t tid,
		    bool was_runnable)
{
	struct ag_run *run = &runs->ring[runs->n++ % AG_PERF_N_RUNS];

	run->since_ns = since_ns;
	run->pid = (pid_t)pid;
	run->tid = (pid_t)tid;
	run->was_runnable = was_runnable;
}

/*
 * A switch gives two records: of the task that leaves (with the one that comes, and whether it
 * could have run on) and of the one that comes (with the one that was there). The idle task's
 * leaving is not recorded; so a coming counts when no leaving has told of it.
 */
static void add_record(struct ag_perf *perf, const struct switch_record *r)
{
	bool is_out = r->header.misc & PERF_RECORD_MISC_SWITCH_OUT;
	struct ag_runs *runs = &perf->runs;
	const struct ag_run *last;

	if (runs->n == 0)
		add_run(runs, perf->open_ns, is_out ? r->pid : r->other_pid,
			is_out ? r->tid : r->other_tid, false);
	last = &runs->ring[(runs->n - 1) % AG_PERF_N_RUNS];
	if (is_out)
		add_run(runs, r->time_ns, r->other_pid, r->other_tid,
			r->header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
	else if (last->tid != (pid_t)r->tid)
		add_run(runs, r->time_ns, r->pid, r->tid, true);
}

void ag_perf_drain(struct ag_perf *perf, uint64_t now_ns)
{
	struct ag_perf_batch batch;
	const struct perf_event_header *header;
	size_t i;

	if (ag_perf_ring_pending(&perf->ring) == 0) {
		perf->runs.upto_ns = now_ns;
		return;
	}
	ag_perf_ring_read(&perf->ring, &batch);
	if (batch.lost_bytes > 0) {
		// Nobody knows who ran between the last look and the oldest record that is left.
		perf->runs.n_lost += batch.lost_bytes / sizeof(struct switch_record) / 2 + 1;
		add_run(&perf->runs, perf->runs.upto_ns, 0, (uint32_t)AG_TID_UNKNOWN, true);
	}
	for (i = batch.n_records; i-- > 0;) {
		header = (const void *)(batch.bytes + batch.offsets[i]);
		if (header->type == PERF_RECORD_SWITCH_CPU_WIDE &&
		    header->size >= offsetof(struct switch_record, reserved))
			add_record(perf, (const void *)header);
	}
	perf->runs.upto_ns = now_ns;
}
