// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <stdlib.h>
#include <string.h>

#include "ag_perf.h"

#define N_TALLY 128 // more tasks than this in one window: the further ones are only counted

struct tally {
	struct ag_sum_task tasks[N_TALLY];
	uint32_t n;
	uint32_t n_more;
};

enum away {
	AWAY_NO,
	AWAY_RUNNABLE,
	AWAY_BLOCKED,
	AWAY_UNSURE
};

static void count_task(struct tally *tally, const struct ag_run *run, uint64_t took_ns)
{
	uint32_t i;

	for (i = 0; i < tally->n; i++)
		if (tally->tasks[i].tid == run->tid)
			break;
	if (i == N_TALLY) {
		tally->n_more++;
		return;
	}
	if (i == tally->n) {
		tally->n++;
		tally->tasks[i] = (struct ag_sum_task){.tid = run->tid};
	}
	// A task that ends has no pid any more in its last record.
	if (run->pid > 0)
		tally->tasks[i].pid = run->pid;
	tally->tasks[i].took_ns += took_ns;
}

static int longer_first(const void *a, const void *b)
{
	const struct ag_sum_task *x = a, *y = b;

	return x->took_ns < y->took_ns ? 1 : x->took_ns > y->took_ns ? -1 : 0;
}

// The state of the thread when run i of the runs begins, given its state before.
static enum away step_away(const struct ag_run *run, const struct ag_run *before, pid_t tid,
			   enum away away)
{
	if (run->tid == tid)
		return AWAY_NO;
	if (run->tid == AG_TID_UNKNOWN)
		return AWAY_UNSURE;
	if (before && before->tid == tid)
		return run->was_runnable ? AWAY_RUNNABLE : AWAY_BLOCKED;
	return away == AWAY_NO ? AWAY_UNSURE : away;
}

struct window {
	uint64_t begin_ns, end_ns;
	uint64_t woken_begin_ns,
		woken_end_ns; // part of a blocked time in which the thread could run
};

static void count_away(struct ag_sum *sum, struct tally *tally, const struct ag_run *run,
		       enum away away, uint64_t part_ns)
{
	if (away == AWAY_UNSURE)
		sum->unsure_ns += part_ns;
	else if (run->tid == AG_TID_IDLE)
		sum->idle_ns += part_ns;
	else
		sum->waited_ns += part_ns;
	if (run->tid != AG_TID_IDLE && part_ns > 0)
		count_task(tally, run, part_ns);
}

static uint64_t overlap_ns(uint64_t a_begin, uint64_t a_end, uint64_t b_begin, uint64_t b_end)
{
	uint64_t begin = a_begin > b_begin ? a_begin : b_begin, end = a_end < b_end ? a_end : b_end;

	return end > begin ? end - begin : 0;
}

static void count_part(struct ag_sum *sum, struct tally *tally, const struct ag_run *run,
		       enum away away, const struct window *window, uint64_t from_ns,
		       uint64_t upto_ns)
{
	uint64_t part_ns = upto_ns - from_ns, woken_ns;

	if (run->tid == AG_TID_UNKNOWN)
		return;
	sum->covered_ns += part_ns;
	if (away == AWAY_NO) {
		sum->ran_ns += part_ns;
		return;
	}
	if (away != AWAY_BLOCKED) {
		count_away(sum, tally, run, away, part_ns);
		return;
	}
	woken_ns = overlap_ns(from_ns, upto_ns, window->woken_begin_ns, window->woken_end_ns);
	sum->blocked_ns += part_ns - woken_ns;
	if (woken_ns > 0)
		count_away(sum, tally, run, AWAY_RUNNABLE, woken_ns);
}

// Blocked times that follow each other are one stretch, whoever had the CPU meanwhile.
static void note_stretch(struct ag_sum *sum, uint64_t *begin_ns, enum away away, uint64_t from_ns,
			 uint64_t upto_ns)
{
	if (away != AWAY_BLOCKED) {
		*begin_ns = 0;
		return;
	}
	if (*begin_ns == 0)
		*begin_ns = from_ns;
	if (upto_ns - *begin_ns > sum->stretch_end_ns - sum->stretch_begin_ns) {
		sum->stretch_begin_ns = *begin_ns;
		sum->stretch_end_ns = upto_ns;
	}
}

// Where to begin: at the last time that the thread had the CPU before the window, which tells how
// it left it; without one, at the oldest run.
static uint64_t first_run(const struct ag_runs *runs, pid_t tid, uint64_t begin_ns)
{
	uint64_t oldest = runs->n > AG_PERF_N_RUNS ? runs->n - AG_PERF_N_RUNS : 0;
	uint64_t low = oldest, high = runs->n, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (runs->ring[middle % AG_PERF_N_RUNS].since_ns <= begin_ns)
			low = middle + 1;
		else
			high = middle;
	}
	while (low > oldest && runs->ring[--low % AG_PERF_N_RUNS].tid != tid)
		;
	return low;
}

static void sum_window(const struct ag_runs *runs, pid_t tid, const struct window *window,
		       struct ag_sum *out_sum)
{
	uint64_t i = first_run(runs, tid, window->begin_ns), from_ns, upto_ns, stretch_ns = 0;
	const struct ag_run *run = NULL, *before = NULL;
	enum away away = AWAY_UNSURE;
	struct tally tally = {.n = 0};

	memset(out_sum, 0, sizeof(*out_sum));
	out_sum->now.tid = AG_TID_UNKNOWN;
	for (; i < runs->n; i++, before = run) {
		run = &runs->ring[i % AG_PERF_N_RUNS];
		if (run->since_ns >= window->end_ns)
			break;
		away = step_away(run, before, tid, away);
		upto_ns = i + 1 < runs->n ? runs->ring[(i + 1) % AG_PERF_N_RUNS].since_ns
					  : window->end_ns;
		if (upto_ns > window->end_ns)
			upto_ns = window->end_ns;
		if (upto_ns <= window->begin_ns)
			continue;
		from_ns = run->since_ns > window->begin_ns ? run->since_ns : window->begin_ns;
		if (before && before->tid == tid && run->tid != tid &&
		    run->since_ns >= window->begin_ns)
			out_sum->n_switches++;
		if (upto_ns > from_ns)
			count_part(out_sum, &tally, run, away, window, from_ns, upto_ns);
		note_stretch(out_sum, &stretch_ns, away, from_ns, upto_ns);
		out_sum->now = (struct ag_sum_task){run->pid, run->tid, upto_ns - from_ns};
	}
	out_sum->is_out = out_sum->now.tid != AG_TID_UNKNOWN && away != AWAY_NO;
	out_sum->is_out_runnable = out_sum->is_out && away == AWAY_RUNNABLE;
	out_sum->n_tasks = tally.n + tally.n_more;
	qsort(tally.tasks, tally.n, sizeof(tally.tasks[0]), longer_first);
	memcpy(out_sum->tasks, tally.tasks, sizeof(out_sum->tasks));
}

void ag_perf_sum(const struct ag_runs *runs, pid_t tid, uint64_t begin_ns, uint64_t end_ns,
		 uint64_t woken_ns, struct ag_sum *out_sum)
{
	struct window window = {begin_ns, end_ns, 0, 0};

	sum_window(runs, tid, &window, out_sum);
	if (woken_ns == 0 || out_sum->blocked_ns == 0)
		return;
	window.woken_end_ns = out_sum->stretch_end_ns;
	window.woken_begin_ns = window.woken_end_ns > woken_ns ? window.woken_end_ns - woken_ns : 0;
	sum_window(runs, tid, &window, out_sum);
}
