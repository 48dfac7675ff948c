// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <stdio.h>
#include <string.h>

#include "ag_cause.h"

// All keys that this file writes, so that a later call leaves no stale one behind.
static const char *const keys[] = {
	"ran_s",        "waited_s",     "idle_s",   "blocked_s", "switches",     "n_tasks",
	"lost_records", "task_state",   "wchan",    "culprit2",  "tracer_pid",   "run_delay_s",
	"throttled",    "throttled_s",  "steal_s",  "irq_s",     "function",     "file",
	"samples",      "major_faults", "inferred", "covered_s", AG_KEY_MISSING,
};

static bool is_ours(const char *key)
{
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(key, keys[i]) == 0)
			return true;
	return false;
}

static void forget_old(struct pmdp_incident *incident)
{
	uint32_t n = 0, i;

	if (incident->n_evidence > PMDP_N_EVIDENCE)
		incident->n_evidence = PMDP_N_EVIDENCE;
	for (i = 0; i < incident->n_evidence; i++)
		if (!is_ours(incident->evidence[i].key))
			incident->evidence[n++] = incident->evidence[i];
	memset(incident->evidence + n, 0, (PMDP_N_EVIDENCE - n) * sizeof(incident->evidence[0]));
	incident->n_evidence = n;
}

static void add_s(struct pmdp_incident *incident, const char *key, uint64_t ns)
{
	pmdp_evidence_real(incident, key, (double)ns / 1e9);
}

// The table of evidence is small: the parts of the answer first, context after.
static void render_answer(const struct ag_evidence *e, const struct ag_verdict *v,
			  struct pmdp_incident *incident)
{
	char state[2] = {e->state, 0};

	if (v->is_inferred)
		pmdp_evidence_int(incident, "inferred", 1);
	if (e->has_switches) {
		add_s(incident, "ran_s", e->ran_ns);
		add_s(incident, "waited_s", e->waited_ns);
	} else if (e->has_runtime) {
		add_s(incident, "ran_s", e->window_ns - ag_cause_away_ns(e));
		add_s(incident, "run_delay_s", e->span_delay_ns);
	}
	if (e->state)
		pmdp_evidence_text(incident, "task_state", state);
	if (e->wchan[0])
		pmdp_evidence_text(incident, "wchan", e->wchan);
	if (e->tracer_pid > 0)
		pmdp_evidence_int(incident, "tracer_pid", e->tracer_pid);
	if (v->share_ns[PMDP_CAUSE_STEAL] > 0)
		add_s(incident, "steal_s", v->share_ns[PMDP_CAUSE_STEAL]);
	if (e->n_throttled > 0 || e->throttled_ns > 0) {
		pmdp_evidence_int(incident, "throttled", (int64_t)e->n_throttled);
		add_s(incident, "throttled_s", e->throttled_ns);
	}
	if (e->n_samples > 0 && v->cause == PMDP_CAUSE_OWN_CODE) {
		if (e->function[0])
			pmdp_evidence_text(incident, "function", e->function);
		if (e->file[0])
			pmdp_evidence_text(incident, "file", e->file);
		pmdp_evidence_int(incident, "samples", e->n_samples);
	}
}

static void render_context(const struct ag_evidence *e, const struct ag_verdict *v,
			   struct pmdp_incident *incident)
{
	char text[PMDP_EVIDENCE_TEXT_BYTES];
	const struct ag_task *second = NULL;
	uint32_t i;

	if (e->has_switches) {
		pmdp_evidence_int(incident, "switches", e->n_switches);
		if (e->n_tasks > 0)
			pmdp_evidence_int(incident, "n_tasks", e->n_tasks);
		if (e->blocked_ns > 0)
			add_s(incident, "blocked_s", e->blocked_ns);
		if (e->idle_ns > 0)
			add_s(incident, "idle_s", e->idle_ns);
		if (e->covered_ns < e->window_ns / 100 * 99)
			add_s(incident, "covered_s", e->covered_ns);
	}
	for (i = 0; i < AG_N_TASKS && i < e->n_tasks && !second; i++)
		if (e->tasks[i].tid > 0 && (!v->has_culprit || e->tasks[i].tid != v->culprit.tid))
			second = &e->tasks[i];
	if (second) {
		snprintf(text, sizeof(text), "%s/%d %.6f s", second->comm, second->tid,
			 (double)second->took_ns / 1e9);
		pmdp_evidence_text(incident, "culprit2", text);
	}
	if (v->share_ns[PMDP_CAUSE_IRQ] > 0)
		add_s(incident, "irq_s", v->share_ns[PMDP_CAUSE_IRQ]);
	if (e->n_maj_faults > 0)
		pmdp_evidence_int(incident, "major_faults", (int64_t)e->n_maj_faults);
	if (e->n_lost > 0)
		pmdp_evidence_int(incident, "lost_records", (int64_t)e->n_lost);
}

void ag_cause_render(const struct ag_evidence *e, const struct ag_verdict *v,
		     struct pmdp_incident *incident)
{
	const struct ag_task *c = &v->culprit;

	forget_old(incident);
	incident->cause = v->cause;
	if (v->has_culprit)
		pmdp_incident_culprit(incident, c->comm, (uint32_t)c->pid, (uint32_t)c->tid,
				      c->sched_class, c->took_ns);
	else
		pmdp_incident_culprit(incident, "", 0, 0, "", 0);
	render_answer(e, v, incident);
	render_context(e, v, incident);
}
