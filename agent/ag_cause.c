// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_cause.h"

#include <string.h>

// Steal below this part of the window is not worth a sentence; irq ticks are as coarse.
#define AG_MIN_PART(window_ns) ((window_ns) / 2)

// What is left of the window after each cause took its part.
struct ag_split {
	uint64_t own_ns, waited_ns, idle_ns, blocked_ns;
};

static uint64_t take(uint64_t *from_ns, uint64_t want_ns)
{
	uint64_t part_ns = want_ns < *from_ns ? want_ns : *from_ns;

	*from_ns -= part_ns;
	return part_ns;
}

// Whether a task of this class would have to give way to a real-time thread.
static bool is_fair_class(const char *name)
{
	return strcmp(name, "SCHED_OTHER") == 0 || strcmp(name, "SCHED_BATCH") == 0 ||
	       strcmp(name, "SCHED_IDLE") == 0 || strcmp(name, "SCHED_EXT") == 0;
}

static bool is_rt_class(const char *name)
{
	return strcmp(name, "SCHED_FIFO") == 0 || strcmp(name, "SCHED_RR") == 0 ||
	       strcmp(name, "SCHED_DEADLINE") == 0;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t scale(uint64_t value, uint64_t to, uint64_t from)
{
	return (uint64_t)((double)value * (double)to / (double)from);
}

/*
 * How long the thread was off the CPU, by its booked run time alone. A polling thread runs all the
 * time outside its stalls: what is missing in a span around the window was lost inside it. Of any
 * other thread, what it ran in the span is at most what it ran in the window.
 */
uint64_t ag_cause_away_ns(const struct ag_evidence *e)
{
	uint64_t away_ns = e->span_ns > e->span_ran_ns ? e->span_ns - e->span_ran_ns : 0;

	if (!e->is_polling)
		return e->window_ns > e->span_ran_ns ? e->window_ns - e->span_ran_ns : 0;
	if (e->span_ns > 0 && e->span_ns < e->window_ns)
		away_ns = scale(away_ns, e->window_ns, e->span_ns);
	return smaller(away_ns, e->window_ns);
}

/*
 * Without switch records: run time and run-queue wait of the thread. The kernel books the wait only
 * when it ends, so of a stall that still lasts only the missing run time is known.
 */
static void split_by_runtime(const struct ag_evidence *e, struct ag_split *s, struct ag_verdict *v)
{
	uint64_t away_ns = ag_cause_away_ns(e);

	v->is_inferred = true;
	if (!e->has_runtime) {
		// The state alone: somewhere to begin.
		if (e->state && e->state != 'R')
			s->blocked_ns = e->window_ns;
		return;
	}
	if (away_ns <= smaller(e->fuzz_ns, e->window_ns / 2))
		away_ns = 0;
	s->own_ns = e->window_ns - away_ns;
	if (e->state && e->state != 'R') {
		s->blocked_ns = away_ns;
		return;
	}
	s->waited_ns = take(&away_ns, e->span_delay_ns);
	if (e->is_live && e->state == 'R')
		s->waited_ns += take(&away_ns, away_ns);
	s->blocked_ns = away_ns;
}

static void split_by_switches(const struct ag_evidence *e, struct ag_split *s)
{
	s->own_ns = e->ran_ns;
	s->waited_ns = e->waited_ns;
	s->idle_ns = e->idle_ns;
	s->blocked_ns = e->blocked_ns;
}

/*
 * A throttled thread is off the CPU, whoever else is on it then, and in whatever state it left. Its
 * cgroup's counters step when the period ends, so a stall that still lasts is concluded: it has a
 * quota, could run, and the CPU idles or is with tasks that would not keep it from a fair thread.
 */
static void share_quota(const struct ag_evidence *e, struct ag_split *s, struct ag_verdict *v)
{
	uint64_t want_ns = e->throttled_ns, got_ns;
	bool is_stopped = e->state == 'T' || e->state == 't' || e->is_frozen;
	bool is_fair_task = e->n_tasks == 0 || !is_rt_class(e->tasks[0].sched_class);

	if (is_stopped)
		return;
	if (e->has_quota && e->state == 'R' && (e->is_live || want_ns == 0)) {
		if (want_ns == 0)
			v->is_inferred = true;
		want_ns += s->idle_ns;
		if (e->is_live && e->was_throttled && is_fair_task)
			want_ns += s->waited_ns;
	}
	got_ns = take(&s->idle_ns, want_ns);
	got_ns += take(&s->blocked_ns, want_ns - got_ns);
	if (is_fair_task)
		got_ns += take(&s->waited_ns, want_ns - got_ns);
	v->share_ns[PMDP_CAUSE_CPU_QUOTA] = got_ns;
}

static uint32_t blocked_cause(const struct ag_evidence *e)
{
	if (e->is_frozen || strcmp(e->wchan, "__refrigerator") == 0)
		return PMDP_CAUSE_FROZEN;
	if (e->state == 'T' || e->state == 't')
		return PMDP_CAUSE_STOPPED;
	if (strstr(e->wchan, "userfault"))
		return PMDP_CAUSE_PAGE_FAULT;
	if (e->has_faults && e->n_maj_faults > 0 && e->state != 'S')
		return PMDP_CAUSE_PAGE_FAULT;
	return PMDP_CAUSE_BLOCKED;
}

static void share_tasks(const struct ag_evidence *e, struct ag_split *s, struct ag_verdict *v)
{
	uint64_t irq_ns = 0;
	uint32_t i;

	for (i = 0; i < AG_N_TASKS && i < e->n_tasks; i++)
		if (e->tasks[i].is_irq)
			irq_ns += e->tasks[i].took_ns;
	v->share_ns[PMDP_CAUSE_IRQ] += take(&s->waited_ns, irq_ns);
	// A real-time thread gives way to idle or to a fair task only when its class is throttled.
	if (!e->is_fair) {
		v->share_ns[PMDP_CAUSE_RT_THROTTLED] += take(&s->idle_ns, s->idle_ns);
		for (i = 0; i < AG_N_TASKS && i < e->n_tasks; i++)
			if (!e->tasks[i].is_irq && is_fair_class(e->tasks[i].sched_class))
				v->share_ns[PMDP_CAUSE_RT_THROTTLED] +=
					take(&s->waited_ns, e->tasks[i].took_ns);
	}
	v->share_ns[PMDP_CAUSE_PREEMPTED] = s->waited_ns;
}

/*
 * Time on the CPU by the switch records was the thread's own only as far as the kernel booked it:
 * the run time leaves out what the hypervisor took, exact to a tick; the steal counter steps by 10
 * ms.
 */
static void share_own(const struct ag_evidence *e, struct ag_split *s, struct ag_verdict *v)
{
	uint64_t steal_ns = 0, missing_ns = 0, known_ns;

	if (e->is_virtual && e->has_cpu_stat)
		steal_ns = smaller(e->steal_ns, s->own_ns);
	if (e->is_virtual && e->has_switches && e->has_runtime) {
		known_ns = e->span_ran_ns + e->span_away_ns + e->fuzz_ns;
		missing_ns = e->span_ns > known_ns ? e->span_ns - known_ns : 0;
		if (e->span_ns > 0 && e->span_ns < e->window_ns)
			missing_ns = scale(missing_ns, e->window_ns, e->span_ns);
		missing_ns = smaller(missing_ns, s->own_ns);
	}
	if (missing_ns > steal_ns && missing_ns >= AG_MIN_PART(e->window_ns)) {
		steal_ns = missing_ns;
		v->is_inferred = true;
	}
	// Samples are taken on the CPU: where they arrived it was not away for the time between
	// them.
	if (e->n_samples >= 8 && missing_ns < AG_MIN_PART(e->window_ns))
		steal_ns = smaller(steal_ns, s->own_ns / 4);
	v->share_ns[PMDP_CAUSE_STEAL] = take(&s->own_ns, steal_ns);
	if (e->has_cpu_stat && e->irq_ns >= AG_MIN_PART(e->window_ns))
		v->share_ns[PMDP_CAUSE_IRQ] += take(&s->own_ns, e->irq_ns);
	v->share_ns[PMDP_CAUSE_OWN_CODE] = s->own_ns;
}

static uint32_t largest_share(const struct ag_evidence *e, const struct ag_verdict *v)
{
	uint32_t cause = PMDP_CAUSE_UNKNOWN, i;
	uint64_t lost_ns = 0;

	for (i = 0; i < PMDP_N_CAUSES; i++) {
		if (i == PMDP_CAUSE_OWN_CODE && e->is_starved)
			continue;
		if (v->share_ns[i] > v->share_ns[cause])
			cause = i;
		lost_ns += v->share_ns[i];
	}
	// Short gaps that nobody else made are the thread's own.
	if (e->is_starved && lost_ns < e->window_ns / 8 && v->share_ns[PMDP_CAUSE_OWN_CODE] > 0)
		cause = PMDP_CAUSE_OWN_CODE;
	return cause;
}

static void name_culprit(const struct ag_evidence *e, struct ag_verdict *v)
{
	bool want_irq = v->cause == PMDP_CAUSE_IRQ;
	uint32_t i;

	if (v->cause == PMDP_CAUSE_STOPPED && e->tracer_pid > 0) {
		v->has_culprit = true;
		v->culprit.pid = v->culprit.tid = e->tracer_pid;
		memcpy(v->culprit.comm, e->tracer_comm, sizeof(v->culprit.comm));
		memcpy(v->culprit.sched_class, e->tracer_class, sizeof(v->culprit.sched_class));
		v->culprit.took_ns = v->share_ns[PMDP_CAUSE_STOPPED];
		return;
	}
	if (v->cause != PMDP_CAUSE_PREEMPTED && v->cause != PMDP_CAUSE_RT_THROTTLED && !want_irq)
		return;
	for (i = 0; i < AG_N_TASKS && i < e->n_tasks; i++) {
		if (e->tasks[i].is_irq != want_irq || e->tasks[i].tid <= 0)
			continue;
		// Whoever got a moment of a throttled thread's pause didn't take it.
		if (v->cause == PMDP_CAUSE_RT_THROTTLED &&
		    e->tasks[i].took_ns < v->share_ns[PMDP_CAUSE_RT_THROTTLED] / 2)
			continue;
		v->has_culprit = true;
		v->culprit = e->tasks[i];
		return;
	}
}

// Seen or concluded? Each cause rests on another part of the evidence.
static void settle_inferred(const struct ag_evidence *e, struct ag_verdict *v)
{
	bool is_away_seen = e->state != 0 && e->state != 'R';

	switch (v->cause) {
	case PMDP_CAUSE_STOPPED:
	case PMDP_CAUSE_FROZEN:
	case PMDP_CAUSE_BLOCKED:
	case PMDP_CAUSE_PAGE_FAULT:
		// A thread that was away and is back left no state behind to tell why.
		v->is_inferred = !is_away_seen;
		break;
	case PMDP_CAUSE_PREEMPTED:
	case PMDP_CAUSE_IRQ:
	case PMDP_CAUSE_RT_THROTTLED:
		v->is_inferred = !e->has_switches;
		break;
	case PMDP_CAUSE_OWN_CODE:
		v->is_inferred = !e->has_switches && e->n_samples == 0;
		break;
	case PMDP_CAUSE_UNKNOWN:
		v->is_inferred = false;
		break;
	default:
		break;
	}
}

void ag_cause_decide(const struct ag_evidence *e, struct ag_verdict *v)
{
	struct ag_split split = {0};

	memset(v, 0, sizeof(*v));
	if (e->is_process_gone || e->is_thread_gone) {
		v->cause = e->is_process_gone ? PMDP_CAUSE_PROCESS_DIED : PMDP_CAUSE_EXITED;
		v->share_ns[v->cause] = e->window_ns;
		return;
	}
	if (e->has_switches)
		split_by_switches(e, &split);
	else
		split_by_runtime(e, &split, v);
	share_quota(e, &split, v);
	v->share_ns[blocked_cause(e)] += split.blocked_ns;
	share_tasks(e, &split, v);
	share_own(e, &split, v);
	// Able to run, CPU idle, no reason known; and what no record covers.
	v->share_ns[PMDP_CAUSE_UNKNOWN] += split.idle_ns;
	if (e->has_switches && e->covered_ns < e->window_ns)
		v->share_ns[PMDP_CAUSE_UNKNOWN] += e->window_ns - e->covered_ns;
	v->cause = largest_share(e, v);
	settle_inferred(e, v);
	name_culprit(e, v);
}
