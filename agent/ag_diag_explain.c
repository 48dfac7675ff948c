// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <string.h>

#include "ag_diag.h"
#include "ag_diag_private.h"

#define MAX_RETRIES 12
// A stall that goes on is looked at now and then: what holds the thread may change.
#define SLOW_MS 500

/*
 * Another stall than at the last call: what was seen then is history, its newest look a baseline.
 * The beginning of one stall may be told a little differently when it is over, by the thread's own
 * clock: it is the same one as long as it began before what was last seen of it.
 */
static void begin_stall(struct ag_watched *lane, const struct ag_explain *what)
{
	struct ag_case *at = &lane->cases[what->is_starved];
	const struct ag_look *first = &at->live[0],
			     *last = &at->live[at->n_live > 0 ? at->n_live - 1 : 0];
	bool is_same = at->seen.begin_ns == what->begin_ns;

	lane->at = at;
	if (!is_same && at->n_live > 0 && at->seen.n_ended_calls == 0)
		is_same = what->begin_ns < last->time_ns &&
			  (what->end_ns == 0 || what->end_ns > first->time_ns);
	if (is_same) {
		at->seen.begin_ns = what->begin_ns;
		return;
	}
	if (at->n_live > 0)
		ag_look_base(lane, last);
	memset(at, 0, sizeof(*at));
	at->seen.begin_ns = what->begin_ns;
	at->seen.is_thread_gone = at->seen.is_process_gone = !lane->is_open;
}

// Does the CPU take ticks? A sample is not asked of one that the hypervisor holds back.
static bool is_cpu_alive(const struct ag_diag *diag, const struct ag_watched *lane,
			 const struct ag_evidence *e)
{
	const struct ag_look *first = &lane->at->live[0],
			     *last = &lane->at->live[lane->at->n_live - 1];

	if (!diag->is_virtual || (lane->cpu && lane->cpu->is_tickless))
		return true;
	if (e->has_runtime && e->window_ns >= 4 * AG_KERNEL_TICK_NS &&
	    e->span_ran_ns + e->span_away_ns + e->fuzz_ns >= e->span_ns)
		return true;
	return lane->at->n_live > 1 && first->has_runtime && last->has_runtime &&
	       last->runtime.ran_ns > first->runtime.ran_ns;
}

static bool ask(struct ag_diag *diag, const struct ag_watched *lane, const struct ag_explain *what,
		int kind)
{
	struct ag_job job = {
		.kind = kind,
		.lane = what->lane,
		.pid = lane->pid,
		.tid = lane->tid,
		.core = lane->core,
		.asked_ns = what->now_ns,
	};

	lane->at->has_asked = true;
	return diag->worker && ag_worker_ask(diag->worker, &job);
}

static bool retry_in(const struct ag_explain *what, uint64_t ms, uint64_t *out_retry_ns)
{
	*out_retry_ns = what->now_ns + ms * 1000000;
	return true;
}

// When to look again at a stall that lasts, in milliseconds; SLOW_MS: nothing more to be found out
// soon.
static uint64_t next_live_ms(struct ag_diag *diag, struct ag_watched *lane,
			     const struct ag_explain *what, const struct ag_evidence *e,
			     const struct ag_verdict *v)
{
	uint32_t n = lane->at->seen.n_calls;

	if (n > MAX_RETRIES)
		return SLOW_MS;
	switch (v->cause) {
	case PMDP_CAUSE_OWN_CODE:
	case PMDP_CAUSE_STEAL:
		if (e->n_samples > 0 || !diag->can_sample)
			return n < 3 ? 10 : SLOW_MS;
		if (is_cpu_alive(diag, lane, e))
			ask(diag, lane, what, AG_JOB_SAMPLE);
		return 5;
	case PMDP_CAUSE_PREEMPTED:
	case PMDP_CAUSE_IRQ:
		// It has its CPU back and yet doesn't beat: more is wrong than the culprit.
		if (e->is_on_cpu && n < MAX_RETRIES) {
			if (e->n_samples == 0 && diag->can_sample && is_cpu_alive(diag, lane, e))
				ask(diag, lane, what, AG_JOB_SAMPLE);
			return 5;
		}
		// A thread held back by a quota looks so, too, until its cgroup was read.
		if (e->has_switches || v->has_culprit || lane->core < 0)
			return n < 2 && e->is_fair ? 2 : SLOW_MS;
		ask(diag, lane, what, AG_JOB_SCAN);
		return 8;
	case PMDP_CAUSE_UNKNOWN:
	case PMDP_CAUSE_RT_THROTTLED:
		return n < 6 ? UINT64_C(1) << n : 64;
	case PMDP_CAUSE_BLOCKED:
		// A frozen thread looks blocked until its cgroup was read.
		return n < 2 ? 2 : n < 3 ? 50 : SLOW_MS;
	default:
		return SLOW_MS;
	}
}

static bool retry_ended(struct ag_diag *diag, struct ag_watched *lane,
			const struct ag_explain *what, const struct ag_verdict *v,
			uint64_t *out_retry_ns)
{
	uint32_t n = lane->at->seen.n_ended_calls;

	if (diag->worker && n < 6 && v->cause == PMDP_CAUSE_OWN_CODE &&
	    ag_worker_is_busy(diag->worker, what->lane, AG_JOB_SAMPLE))
		return retry_in(what, 5, out_retry_ns);
	// Steal shows in its counter a tick later, a quota at the end of its period.
	if (n <= 1 && (v->cause == PMDP_CAUSE_OWN_CODE || v->cause == PMDP_CAUSE_UNKNOWN ||
		       v->cause == PMDP_CAUSE_BLOCKED))
		return retry_in(what, 12, out_retry_ns);
	return false;
}

bool ag_diag_explain(struct ag_diag *diag, const struct ag_explain *what,
		     struct pmdp_incident *incident, uint64_t *out_retry_ns)
{
	struct ag_watched *lane;
	struct ag_evidence evidence;
	struct ag_verdict verdict;
	struct ag_look look;
	bool is_first;

	if (what->lane >= diag->n_lanes || !diag->lanes[what->lane].is_used) {
		incident->cause = PMDP_CAUSE_UNKNOWN;
		return false;
	}
	lane = &diag->lanes[what->lane];
	begin_stall(lane, what);
	is_first = lane->at->seen.n_calls++ == 0;
	if (what->end_ns)
		lane->at->seen.n_ended_calls++;
	if (!what->end_ns)
		ag_look_state(diag, lane, what->now_ns, is_first);
	// The raise itself must not wait for the slower files; whoever asks again gets them.
	ag_look_take(diag, lane, what->now_ns, is_first ? AG_LOOK_QUICK : AG_LOOK_FULL, &look);
	ag_look_live(lane, &look);
	// A thread may be moved out of its cgroup by the time its stall is over.
	if (!what->end_ns && look.has_quota && !lane->at->seen.has_quota &&
	    ag_cgroup_has_limit(&lane->cgroup)) {
		lane->at->seen.has_quota = true;
		lane->at->seen.was_throttled = look.quota.n_throttled > 0;
	}
	ag_gather(diag, lane, what, &evidence);
	ag_cause_decide(&evidence, &verdict);
	ag_cause_render(&evidence, &verdict, incident);
	if (verdict.cause == PMDP_CAUSE_UNKNOWN && lane->core >= 0 && !diag->can_perf)
		pmdp_evidence_text(incident, AG_KEY_MISSING, "perf");
	if (what->end_ns)
		return retry_ended(diag, lane, what, &verdict, out_retry_ns);
	if (verdict.cause == PMDP_CAUSE_EXITED || verdict.cause == PMDP_CAUSE_PROCESS_DIED)
		return false;
	return retry_in(what, next_live_ms(diag, lane, what, &evidence, &verdict), out_retry_ns);
}
