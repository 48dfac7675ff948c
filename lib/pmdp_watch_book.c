// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pmdp_watch_internal.h"

#define MIN_OPENS 32

int pmdp_watch_reserve(struct pmdp_watch *watch, uint32_t n)
{
	struct pmdp_watch_open *bigger;
	uint32_t n_used = 0, n_wanted;

	for (uint32_t i = 0; i < watch->n_opens; i++)
		n_used += watch->opens[i].key != 0;
	n_wanted = n_used + n > MIN_OPENS ? n_used + n : MIN_OPENS;
	if (n_wanted <= watch->n_opens)
		return 0;
	bigger = realloc(watch->opens, n_wanted * sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	memset(bigger + watch->n_opens, 0, (n_wanted - watch->n_opens) * sizeof(*bigger));
	watch->opens = bigger;
	watch->n_opens = n_wanted;
	return 0;
}

struct pmdp_watch_open *pmdp_watch_find(struct pmdp_watch *watch, uint64_t key)
{
	for (uint32_t i = 0; key && i < watch->n_opens; i++) {
		if (watch->opens[i].key == key)
			return &watch->opens[i];
	}
	return NULL;
}

static struct pmdp_watch_open *find_free(struct pmdp_watch *watch)
{
	for (uint32_t i = 0; i < watch->n_opens; i++) {
		if (!watch->opens[i].key)
			return &watch->opens[i];
	}
	return NULL;
}

struct pmdp_watch_open *pmdp_watch_adopted(struct pmdp_watch *watch, uint32_t kind, uint32_t tid,
					   const char *object)
{
	for (uint32_t i = 0; watch->has_adopted && i < watch->n_opens; i++) {
		struct pmdp_watch_open *open = &watch->opens[i];

		if (open->key && open->is_adopted && open->incident.kind == kind &&
		    open->incident.thread_tid == tid && !strcmp(open->incident.object, object))
			return open;
	}
	return NULL;
}

void pmdp_watch_begin(struct pmdp_watch *watch, uint64_t key, uint32_t kind, uint32_t phase,
		      struct pmdp_watch_event *out)
{
	const struct pmdp_watch_open *open = pmdp_watch_find(watch, key);

	memset(out, 0, sizeof(*out));
	out->key = key;
	out->lane = UINT32_MAX;
	if (!open) {
		pmdp_incident_init(&out->incident, watch->instance, kind, phase);
		return;
	}
	out->lane = open->lane;
	out->incident = open->incident;
	out->incident.phase = phase;
	out->incident.message[0] = 0;
}

static void hand_out(struct pmdp_watch *watch, const struct pmdp_watch_event *event)
{
	if (watch->cb)
		watch->cb(watch->ctx, event);
}

static void set_severity(struct pmdp_incident *incident)
{
	incident->severity =
		pmdp_incident_severity(incident->kind, incident->phase, incident->state);
}

// The adopted incident goes on: its times, and what was found out about it, stay.
static void take_adopted(struct pmdp_watch_open *open, struct pmdp_watch_event *event)
{
	struct pmdp_incident *incident = &event->incident;

	open->is_adopted = false;
	event->key = open->key;
	incident->phase = PMDP_PHASE_UPDATE;
	incident->started_realtime_us = open->incident.started_realtime_us;
	incident->detected_realtime_us = open->incident.detected_realtime_us;
	memcpy(incident->id, open->incident.id, sizeof(incident->id));
	if (incident->cause == PMDP_CAUSE_UNKNOWN) {
		incident->cause = open->incident.cause;
		pmdp_incident_culprit(incident, open->incident.culprit_comm,
				      open->incident.culprit_pid, open->incident.culprit_tid,
				      open->incident.culprit_class, open->incident.culprit_took_ns);
	}
	if (incident->duration_ns < open->incident.duration_ns)
		incident->duration_ns = open->incident.duration_ns;
	open->lane = event->lane;
	open->incident = *incident;
}

uint64_t pmdp_watch_raise(struct pmdp_watch *watch, struct pmdp_watch_event *event,
			  uint64_t begin_ns)
{
	struct pmdp_incident *incident = &event->incident;
	struct pmdp_watch_open *open =
		pmdp_watch_adopted(watch, incident->kind, incident->thread_tid, incident->object);

	set_severity(incident);
	if (!incident->started_realtime_us)
		incident->started_realtime_us = pmdp_realtime_us(begin_ns);
	incident->detected_realtime_us = pmdp_realtime_now_us();
	if (open) {
		take_adopted(open, event);
	} else {
		event->key = ++watch->last_key;
		open = incident->severity == PMDP_SEVERITY_OKAY ? NULL : find_free(watch);
		if (open) {
			memset(open, 0, sizeof(*open));
			open->key = event->key;
			open->begin_ns = begin_ns;
			open->lane = event->lane;
			open->incident = *incident;
		}
	}
	hand_out(watch, event);
	return event->key;
}

void pmdp_watch_update(struct pmdp_watch *watch, struct pmdp_watch_event *event)
{
	struct pmdp_watch_open *open = pmdp_watch_find(watch, event->key);

	if (!open)
		return;
	set_severity(&event->incident);
	open->incident = event->incident;
	hand_out(watch, event);
}

void pmdp_watch_clear(struct pmdp_watch *watch, struct pmdp_watch_event *event)
{
	struct pmdp_watch_open *open = pmdp_watch_find(watch, event->key);

	if (!open)
		return;
	set_severity(&event->incident);
	memset(open, 0, sizeof(*open));
	hand_out(watch, event);
}

void pmdp_watch_end(struct pmdp_watch *watch, uint64_t *key, uint64_t duration_ns)
{
	struct pmdp_watch_open *open = pmdp_watch_find(watch, *key);
	struct pmdp_watch_event event;

	if (open) {
		pmdp_watch_begin(watch, *key, open->incident.kind, PMDP_PHASE_CLEAR, &event);
		if (duration_ns)
			event.incident.duration_ns = duration_ns;
		if (pmdp_evidence_find(&event.incident, "ongoing"))
			pmdp_evidence_int(&event.incident, "ongoing", 0);
		event.incident.state = 0;
		pmdp_watch_clear(watch, &event);
	}
	*key = 0;
}

// A single stall that lasts until now is as long as it is now; else what was told last stands.
static bool is_single_and_lasts(const struct pmdp_incident *incident)
{
	const struct pmdp_evidence *ongoing = pmdp_evidence_find(incident, "ongoing");
	const struct pmdp_evidence *stalls = pmdp_evidence_find(incident, "stalls");

	return ongoing && ongoing->integer && (!stalls || stalls->integer <= 1);
}

void pmdp_watch_end_why(struct pmdp_watch *watch, uint64_t *key, const char *why)
{
	struct pmdp_watch_open *open = pmdp_watch_find(watch, *key);

	if (!open)
		return;
	pmdp_evidence_text(&open->incident, "ended", why);
	if (is_single_and_lasts(&open->incident))
		pmdp_watch_end_now(watch, key);
	else
		pmdp_watch_end(watch, key, 0);
}

void pmdp_watch_end_now(struct pmdp_watch *watch, uint64_t *key)
{
	const struct pmdp_watch_open *open = pmdp_watch_find(watch, *key);
	uint64_t now_ns = pmdp_mono_now_ns(), now_us = pmdp_realtime_now_us(), duration_ns = 0;

	if (open && open->begin_ns && open->begin_ns < now_ns)
		duration_ns = now_ns - open->begin_ns;
	else if (open && open->incident.started_realtime_us < now_us)
		duration_ns = (now_us - open->incident.started_realtime_us) * 1000;
	pmdp_watch_end(watch, key, duration_ns);
}

static uint64_t evidence_count(const struct pmdp_incident *incident, const char *key)
{
	const struct pmdp_evidence *evidence = pmdp_evidence_find(incident, key);

	return evidence && evidence->type == PMDP_EVIDENCE_INT && evidence->integer > 0
		       ? (uint64_t)evidence->integer
		       : 0;
}

static uint64_t evidence_ns(const struct pmdp_incident *incident, const char *key)
{
	const struct pmdp_evidence *evidence = pmdp_evidence_find(incident, key);
	double seconds = evidence && evidence->type == PMDP_EVIDENCE_REAL ? evidence->real : 0;

	return seconds > 0 && seconds < 1e9 ? (uint64_t)(seconds * 1e9 + 0.5) : 0;
}

uint64_t pmdp_watch_adopt(struct pmdp_watch *watch, const struct pmdp_incident *incident)
{
	struct pmdp_watch_open *open;

	if (pmdp_watch_reserve(watch, 1))
		return 0;
	open = find_free(watch);
	memset(open, 0, sizeof(*open));
	open->key = ++watch->last_key;
	open->lane = UINT32_MAX;
	open->is_adopted = true;
	open->incident = *incident;
	pmdp_incident_sanitize(&open->incident);
	open->base_n = evidence_count(&open->incident, "stalls");
	open->base_total_ns = evidence_ns(&open->incident, "stalled_s");
	open->base_longest_ns = open->incident.duration_ns;
	watch->has_adopted = true;
	return open->key;
}

static bool is_thread_there(const struct pmdp_watch *watch, uint32_t tid)
{
	for (uint32_t i = 0; i < watch->n_lanes; i++) {
		if (watch->lanes[i].has_body && watch->lanes[i].body.tid == tid)
			return true;
	}
	return false;
}

// How long after attach a reason that still holds must have been seen again.
static uint64_t patience_ns(const struct pmdp_watch *watch, const struct pmdp_incident *incident)
{
	uint64_t interval_ns = watch->limits.interval_ns ? watch->limits.interval_ns
							 : watch->look.keepalive_interval_ns;
	uint64_t hold_ns = watch->limits.hold_ns ? watch->limits.hold_ns : PMDP_NS_PER_S;

	switch (incident->kind) {
	case PMDP_KIND_PMD_STALL:
		return 3 * interval_ns + hold_ns;
	case PMDP_KIND_PMD_STARVED:
		return 16 * interval_ns + 3 * PMDP_NS_PER_S + hold_ns;
	case PMDP_KIND_CONTROL_STUCK:
		return 2 * PMDP_WATCH_STUCK_NS;
	case PMDP_KIND_THREAD_GONE:
	case PMDP_KIND_LINK:
		return 2 * PMDP_WATCH_SLOW_NS;
	default:
		return 0;
	}
}

static bool has_no_reason(const struct pmdp_watch *watch, const struct pmdp_watch_open *open,
			  uint64_t now_ns)
{
	const struct pmdp_incident *incident = &open->incident;

	if (watch->status == PMDP_WATCH_REFUSED)
		return incident->kind == PMDP_KIND_AGENT_LATE; // the others can't be known
	if (watch->status != PMDP_WATCH_UP)
		return true;
	if ((incident->kind == PMDP_KIND_PMD_STALL || incident->kind == PMDP_KIND_PMD_STARVED) &&
	    watch->has_look && !is_thread_there(watch, incident->thread_tid))
		return true;
	return now_ns - watch->attached_ns >= patience_ns(watch, incident);
}

static void end_adopted(struct pmdp_watch *watch, struct pmdp_watch_open *open, uint64_t now_ns)
{
	const struct pmdp_incident *incident = &open->incident;
	bool is_there = watch->status == PMDP_WATCH_UP &&
			now_ns - watch->attached_ns >= patience_ns(watch, incident);
	uint64_t key = open->key;

	if (incident->kind == PMDP_KIND_LINK)
		pmdp_evidence_int(&open->incident, "removed", 1);
	if ((incident->kind == PMDP_KIND_PMD_STALL || incident->kind == PMDP_KIND_PMD_STARVED) &&
	    !is_there)
		pmdp_watch_end_why(watch, &key, "the thread is no longer there");
	else
		pmdp_watch_end(watch, &key, 0);
}

void pmdp_watch_settle_adopted(struct pmdp_watch *watch, uint64_t now_ns)
{
	if (!watch->has_adopted)
		return;
	watch->has_adopted = false;
	for (uint32_t i = 0; i < watch->n_opens; i++) {
		struct pmdp_watch_open *open = &watch->opens[i];

		if (!open->key || !open->is_adopted)
			continue;
		if (!has_no_reason(watch, open, now_ns))
			watch->has_adopted = true;
		else
			end_adopted(watch, open, now_ns);
	}
}
