// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The one line that an operator reads: who, where, how long, why, by whom.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pmdp_incident.h"
#include "pmdp_text.h"

struct line {
	char *text;
	size_t size, used;
};

#define add(line, ...) pmdp_text_append((line)->text, (line)->size, &(line)->used, __VA_ARGS__)

static const char *const cause_phrases[PMDP_N_CAUSES] = {
	[PMDP_CAUSE_UNKNOWN] = "cause unknown",
	[PMDP_CAUSE_PREEMPTED] = "preempted",
	[PMDP_CAUSE_CPU_QUOTA] = "throttled by the CPU quota of its cgroup",
	[PMDP_CAUSE_RT_THROTTLED] = "throttled by the kernel's real-time limit",
	[PMDP_CAUSE_STOPPED] = "stopped by a signal or a debugger",
	[PMDP_CAUSE_FROZEN] = "frozen by its cgroup",
	[PMDP_CAUSE_BLOCKED] = "blocked in the kernel",
	[PMDP_CAUSE_PAGE_FAULT] = "waited for a page fault",
	[PMDP_CAUSE_IRQ] = "its CPU served interrupts",
	[PMDP_CAUSE_STEAL] = "the hypervisor took its CPU away",
	[PMDP_CAUSE_OWN_CODE] = "busy in its own code",
	[PMDP_CAUSE_EXITED] = "the thread exited",
	[PMDP_CAUSE_PROCESS_DIED] = "the process died",
};

static int64_t evidence_int(const struct pmdp_incident *incident, const char *key,
			    int64_t otherwise)
{
	const struct pmdp_evidence *evidence = pmdp_evidence_find(incident, key);

	return evidence && evidence->type == PMDP_EVIDENCE_INT ? evidence->integer : otherwise;
}

static uint64_t evidence_ns(const struct pmdp_incident *incident, const char *key)
{
	const struct pmdp_evidence *evidence = pmdp_evidence_find(incident, key);

	if (!evidence || evidence->type != PMDP_EVIDENCE_REAL)
		return 0;
	return evidence->real > 0 && evidence->real < 1e9 ? (uint64_t)(evidence->real * 1e9 + 0.5)
							  : 0;
}

static void add_evidence_text(struct line *line, const struct pmdp_incident *incident,
			      const char *before, const char *key)
{
	const struct pmdp_evidence *evidence = pmdp_evidence_find(incident, key);
	char clean[3 * PMDP_EVIDENCE_TEXT_BYTES];

	if (!evidence || evidence->type != PMDP_EVIDENCE_TEXT || !evidence->text[0])
		return;
	pmdp_text_clean(clean, sizeof(clean), evidence->text);
	add(line, "%s%s", before, clean);
}

static void add_duration(struct line *line, const char *before, uint64_t ns)
{
	char text[32];

	add(line, "%s%s", before, pmdp_text_duration(ns, text, sizeof(text)));
}

static void add_thread(struct line *line, const struct pmdp_incident *incident)
{
	char name[3 * PMDP_LANE_NAME_BYTES];

	pmdp_text_clean(name, sizeof(name), incident->thread_name);
	if (name[0])
		add(line, "%s", name);
	else
		add(line, "thread %" PRIu32, incident->thread_tid);
	if (incident->thread_core >= 0)
		add(line, " (core %" PRId32 ")", incident->thread_core);
}

static void add_culprit(struct line *line, const struct pmdp_incident *incident)
{
	char comm[3 * PMDP_COMM_BYTES], class[3 * PMDP_CLASS_BYTES];

	if (!incident->culprit_comm[0] && !incident->culprit_pid)
		return;
	pmdp_text_clean(comm, sizeof(comm), incident->culprit_comm);
	pmdp_text_clean(class, sizeof(class), incident->culprit_class);
	add(line, " by %s", comm[0] ? comm : "a task");
	if (incident->culprit_pid)
		add(line, " (pid %" PRIu32 "%s%s)", incident->culprit_pid, class[0] ? ", " : "",
		    class);
	else if (class[0])
		add(line, " (%s)", class);
	if (incident->culprit_took_ns)
		add_duration(line, " for ", incident->culprit_took_ns);
}

static void add_cause(struct line *line, const struct pmdp_incident *incident)
{
	uint32_t cause = incident->cause < PMDP_N_CAUSES ? incident->cause : PMDP_CAUSE_UNKNOWN;

	add(line, ": %s", cause_phrases[cause]);
	add_culprit(line, incident);
	if (cause == PMDP_CAUSE_BLOCKED)
		add_evidence_text(line, incident, " in ", "wchan");
	if (cause == PMDP_CAUSE_OWN_CODE)
		add_evidence_text(line, incident, " in ", "function");
	if (cause == PMDP_CAUSE_OWN_CODE || cause == PMDP_CAUSE_UNKNOWN)
		add_evidence_text(line, incident, ", last seen in ", "where");
	add_evidence_text(line, incident, ", broke the deadline of ", "deadline_of");
}

// How it is now that it is over: running, or not looked at any more.
static void add_end(struct line *line, const struct pmdp_incident *incident, const char *well)
{
	if (!pmdp_evidence_find(incident, "ended")) {
		add(line, " %s", well);
		return;
	}
	add_evidence_text(line, incident, " is not watched any more (", "ended");
	add(line, ")");
}

static void compose_stall(struct line *line, const struct pmdp_incident *incident)
{
	bool is_ongoing = evidence_int(incident, "ongoing", 0) &&
			  incident->phase != PMDP_PHASE_CLEAR;
	int64_t n = evidence_int(incident, "stalls", 1);

	add_thread(line, incident);
	if (incident->phase == PMDP_PHASE_CLEAR) {
		add_end(line, incident, "runs again");
		add(line, ", was");
	} else if (is_ongoing) {
		add(line, " is");
	}
	add_duration(line, " stalled for ", incident->duration_ns);
	if (is_ongoing)
		add(line, " so far");
	if (n > 1) {
		add(line, " (longest of %" PRId64, n);
		add_duration(line, ", together ", evidence_ns(incident, "stalled_s"));
		add(line, ")");
	}
	add_cause(line, incident);
}

static void compose_starved(struct line *line, const struct pmdp_incident *incident)
{
	add_thread(line, incident);
	if (incident->phase == PMDP_PHASE_CLEAR) {
		add_end(line, incident, "has its CPU again");
		add(line, ", was");
	}
	add_duration(line, " starved for ", incident->duration_ns);
	if (evidence_ns(incident, "lost_s"))
		add_duration(line, ", lost ", evidence_ns(incident, "lost_s"));
	add_cause(line, incident);
}

static void compose_thread_gone(struct line *line, const struct pmdp_incident *incident)
{
	add_thread(line, incident);
	if (incident->phase == PMDP_PHASE_CLEAR) {
		add(line, " was gone and has been replaced or removed");
		return;
	}
	add(line, " is gone: thread %" PRIu32 " left the process without saying so",
	    incident->thread_tid);
}

static void add_switch(struct line *line, const struct pmdp_incident *incident)
{
	char name[3 * PMDP_INSTANCE_BYTES];
	int64_t pid = evidence_int(incident, "pid", 0);

	pmdp_text_clean(name, sizeof(name), incident->instance);
	add(line, "switch %s", name);
	if (pid > 0)
		add(line, " (pid %" PRId64 ")", pid);
}

static void compose_switch(struct line *line, const struct pmdp_incident *incident)
{
	bool is_clear = incident->phase == PMDP_PHASE_CLEAR;

	add_switch(line, incident);
	switch (incident->kind) {
	case PMDP_KIND_SWITCH_GONE:
		if (is_clear)
			add_duration(line, " was gone for ", incident->duration_ns);
		else
			add(line, " is gone: its process died without a clean stop");
		break;
	case PMDP_KIND_SWITCH_STOPPED:
		add(line, " was stopped cleanly");
		break;
	case PMDP_KIND_SWITCH_BACK:
		if (incident->duration_ns)
			add_duration(line, " is back, away for ", incident->duration_ns);
		else
			add(line, " is up");
		break;
	default: // control-stuck
		if (is_clear)
			add_duration(line, ": its control thread runs again, was stuck for ",
				     incident->duration_ns);
		else
			add_duration(line, ": its PMDs run but its control thread is stuck for ",
				     incident->duration_ns);
		break;
	}
}

static void compose_port(struct line *line, const struct pmdp_incident *incident)
{
	char name[3 * PMDP_NAME_BYTES];

	pmdp_text_clean(name, sizeof(name), incident->object);
	if (incident->kind == PMDP_KIND_DROPS) {
		add(line, "port %s drops packets%s", name,
		    incident->phase == PMDP_PHASE_CLEAR ? " no more" : "");
		add_evidence_text(line, incident, ": ", "reason");
		return;
	}
	if (incident->phase != PMDP_PHASE_CLEAR) {
		add(line, "link of port %s is down", name);
		return;
	}
	if (evidence_int(incident, "removed", 0))
		add(line, "port %s was removed, its link was", name);
	else
		add(line, "link of port %s is up again, was", name);
	add_duration(line, " down for ", incident->duration_ns);
}

static void compose_version(struct line *line, const struct pmdp_incident *incident)
{
	add_switch(line, incident);
	if (incident->phase == PMDP_PHASE_CLEAR) {
		add(line, ": its segment can be read again");
		return;
	}
	add(line, " can't be watched: its segment has another version");
	add_evidence_text(line, incident, " (", "reason");
	if (pmdp_evidence_find(incident, "reason"))
		add(line, ")");
	add(line, "; install switch and agent of one version");
}

static void compose_late(struct line *line, const struct pmdp_incident *incident)
{
	if (incident->phase == PMDP_PHASE_CLEAR)
		add_duration(line, "agent is in time again, was late by ", incident->duration_ns);
	else
		add_duration(line, "agent looked too late, by ", incident->duration_ns);
	add(line, ": no thread is judged for that time");
}

void pmdp_incident_compose(struct pmdp_incident *incident)
{
	char text[sizeof(incident->message)] = "";
	struct line line = {.text = text, .size = sizeof(text)};

	switch (incident->kind) {
	case PMDP_KIND_PMD_STALL:
		compose_stall(&line, incident);
		break;
	case PMDP_KIND_PMD_STARVED:
		compose_starved(&line, incident);
		break;
	case PMDP_KIND_THREAD_GONE:
		compose_thread_gone(&line, incident);
		break;
	case PMDP_KIND_SWITCH_GONE:
	case PMDP_KIND_SWITCH_STOPPED:
	case PMDP_KIND_SWITCH_BACK:
	case PMDP_KIND_CONTROL_STUCK:
		compose_switch(&line, incident);
		break;
	case PMDP_KIND_LINK:
	case PMDP_KIND_DROPS:
		compose_port(&line, incident);
		break;
	case PMDP_KIND_AGENT_LATE:
		compose_late(&line, incident);
		break;
	case PMDP_KIND_VERSION_MISMATCH:
		compose_version(&line, incident);
		break;
	default:
		if (incident->thread_tid || incident->thread_name[0])
			add_thread(&line, incident);
		else
			add_switch(&line, incident);
		add(&line, ": %s", pmdp_kind_name(incident->kind));
		if (incident->duration_ns)
			add_duration(&line, " for ", incident->duration_ns);
		break;
	}
	memcpy(incident->message, text, sizeof(text));
}
