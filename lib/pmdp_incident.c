// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "pmdp_incident.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "pmdp_clock.h"
#include "pmdp_text.h"

// Above this a realtime is no date that a calendar function takes (year 9999).
#define MAX_REALTIME_US (UINT64_C(253402300799) * 1000000)

uint32_t pmdp_incident_severity(uint32_t kind, uint32_t phase, uint32_t state)
{
	if (phase == PMDP_PHASE_CLEAR)
		return PMDP_SEVERITY_OKAY;
	switch (kind) {
	case PMDP_KIND_SWITCH_STOPPED:
	case PMDP_KIND_SWITCH_BACK:
		return PMDP_SEVERITY_OKAY;
	case PMDP_KIND_PMD_STALL:
		return state == PMDP_STATE_MISSING ? PMDP_SEVERITY_WARNING : PMDP_SEVERITY_FAILURE;
	case PMDP_KIND_PMD_NO_PROGRESS:
	case PMDP_KIND_THREAD_GONE:
	case PMDP_KIND_SWITCH_GONE:
	case PMDP_KIND_CONTROL_STUCK:
		return PMDP_SEVERITY_FAILURE;
	default:
		return PMDP_SEVERITY_WARNING;
	}
}

void pmdp_incident_init(struct pmdp_incident *incident, const char *instance, uint32_t kind,
			uint32_t phase)
{
	memset(incident, 0, sizeof(*incident));
	incident->kind = kind;
	incident->phase = phase;
	incident->severity = pmdp_incident_severity(kind, phase, 0);
	incident->thread_core = -1;
	pmdp_text_copy(incident->instance, sizeof(incident->instance), instance);
}

void pmdp_incident_thread(struct pmdp_incident *incident, const char *name, uint32_t tid,
			  int32_t core)
{
	pmdp_text_copy(incident->thread_name, sizeof(incident->thread_name), name);
	incident->thread_tid = tid;
	incident->thread_core = core;
}

void pmdp_incident_culprit(struct pmdp_incident *incident, const char *comm, uint32_t pid,
			   uint32_t tid, const char *sched_class, uint64_t took_ns)
{
	pmdp_text_copy(incident->culprit_comm, sizeof(incident->culprit_comm), comm);
	pmdp_text_copy(incident->culprit_class, sizeof(incident->culprit_class), sched_class);
	incident->culprit_pid = pid;
	incident->culprit_tid = tid;
	incident->culprit_took_ns = took_ns;
}

static struct pmdp_evidence *find(struct pmdp_incident *incident, const char *key)
{
	uint32_t n = incident->n_evidence < PMDP_N_EVIDENCE ? incident->n_evidence
							    : PMDP_N_EVIDENCE;

	for (uint32_t i = 0; i < n; i++) {
		if (!strncmp(incident->evidence[i].key, key, sizeof(incident->evidence[i].key) - 1))
			return &incident->evidence[i];
	}
	return NULL;
}

static struct pmdp_evidence *find_or_add(struct pmdp_incident *incident, const char *key,
					 uint32_t type)
{
	struct pmdp_evidence *evidence = find(incident, key);

	if (!evidence) {
		if (incident->n_evidence >= PMDP_N_EVIDENCE)
			return NULL;
		evidence = &incident->evidence[incident->n_evidence++];
	}
	memset(evidence, 0, sizeof(*evidence));
	pmdp_text_copy(evidence->key, sizeof(evidence->key), key);
	evidence->type = type;
	return evidence;
}

int pmdp_evidence_int(struct pmdp_incident *incident, const char *key, int64_t value)
{
	struct pmdp_evidence *evidence = find_or_add(incident, key, PMDP_EVIDENCE_INT);

	if (!evidence)
		return -ENOSPC;
	evidence->integer = value;
	return 0;
}

int pmdp_evidence_real(struct pmdp_incident *incident, const char *key, double value)
{
	struct pmdp_evidence *evidence = find_or_add(incident, key, PMDP_EVIDENCE_REAL);

	if (!evidence)
		return -ENOSPC;
	evidence->real = value;
	return 0;
}

int pmdp_evidence_text(struct pmdp_incident *incident, const char *key, const char *value)
{
	struct pmdp_evidence *evidence = find_or_add(incident, key, PMDP_EVIDENCE_TEXT);

	if (!evidence)
		return -ENOSPC;
	pmdp_text_copy(evidence->text, sizeof(evidence->text), value);
	return 0;
}

const struct pmdp_evidence *pmdp_evidence_find(const struct pmdp_incident *incident,
					       const char *key)
{
	return find((struct pmdp_incident *)incident, key);
}

static void terminate(char *text, size_t size)
{
	size_t len = strnlen(text, size - 1);

	// What stands behind the end may be anybody's bytes: none of it is passed on.
	memset(text + len, 0, size - len);
}

static void clamp_realtime(uint64_t *realtime_us)
{
	if (*realtime_us > MAX_REALTIME_US)
		*realtime_us = MAX_REALTIME_US;
}

// Keys become names in a document: valid UTF-8, whatever else they are.
static void sanitize_key(char *key, size_t size)
{
	size_t len, n;

	terminate(key, size);
	len = strlen(key);
	for (size_t i = 0; i < len; i += n ? n : 1) {
		n = pmdp_utf8_sequence(key + i, len - i);
		if (!n)
			key[i] = '?';
	}
}

// The first of a name counts: a document with a name twice means another thing to each reader.
static bool is_repeated(const struct pmdp_incident *incident, uint32_t index)
{
	for (uint32_t i = 0; i < index; i++) {
		if (!strcmp(incident->evidence[i].key, incident->evidence[index].key))
			return true;
	}
	return false;
}

static void sanitize_evidence(struct pmdp_evidence *evidence)
{
	sanitize_key(evidence->key, sizeof(evidence->key));
	terminate(evidence->text, sizeof(evidence->text));
	if (evidence->type > PMDP_EVIDENCE_TEXT)
		evidence->type = PMDP_EVIDENCE_NONE;
}

void pmdp_incident_sanitize(struct pmdp_incident *incident)
{
	terminate(incident->id, sizeof(incident->id));
	terminate(incident->instance, sizeof(incident->instance));
	terminate(incident->thread_name, sizeof(incident->thread_name));
	terminate(incident->culprit_comm, sizeof(incident->culprit_comm));
	terminate(incident->culprit_class, sizeof(incident->culprit_class));
	terminate(incident->message, sizeof(incident->message));
	terminate(incident->object, sizeof(incident->object));
	if (incident->kind >= PMDP_N_KINDS)
		incident->kind = 0;
	if (incident->phase < PMDP_PHASE_RAISE || incident->phase > PMDP_PHASE_CLEAR)
		incident->phase = PMDP_PHASE_UPDATE;
	if (incident->severity != PMDP_SEVERITY_FAILURE && incident->severity != PMDP_SEVERITY_OKAY)
		incident->severity = PMDP_SEVERITY_WARNING;
	if (incident->cause >= PMDP_N_CAUSES)
		incident->cause = PMDP_CAUSE_UNKNOWN;
	if (incident->state >= PMDP_N_STATES)
		incident->state = PMDP_STATE_UNUSED;
	if (incident->thread_core < -1)
		incident->thread_core = -1;
	if (incident->n_evidence > PMDP_N_EVIDENCE)
		incident->n_evidence = PMDP_N_EVIDENCE;
	for (uint32_t i = 0; i < PMDP_N_EVIDENCE; i++)
		sanitize_evidence(&incident->evidence[i]);
	for (uint32_t i = 0; i < PMDP_N_EVIDENCE; i++) {
		if (is_repeated(incident, i))
			incident->evidence[i].type = PMDP_EVIDENCE_NONE;
	}
	clamp_realtime(&incident->started_realtime_us);
	clamp_realtime(&incident->detected_realtime_us);
	clamp_realtime(&incident->emitted_realtime_us);
}

uint64_t pmdp_realtime_us(uint64_t mono_ns)
{
	uint64_t now_ns = pmdp_mono_now_ns(), now_us = pmdp_realtime_now_us();

	if (mono_ns >= now_ns)
		return now_us + (mono_ns - now_ns) / 1000;
	return (now_ns - mono_ns) / 1000 < now_us ? now_us - (now_ns - mono_ns) / 1000 : 0;
}

// Writes the time without its offset and returns that, in minutes east of UTC.
static long local_time(uint64_t realtime_us, char *out, size_t size)
{
	time_t seconds =
		(time_t)((realtime_us < MAX_REALTIME_US ? realtime_us : MAX_REALTIME_US) / 1000000);
	char date[32] = "1970-01-01T00:00:00";
	struct tm tm = {0};

	if (localtime_r(&seconds, &tm))
		strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out, size, "%s.%06u", date, (unsigned int)(realtime_us % 1000000));
	return tm.tm_gmtoff / 60;
}

char *pmdp_rfc3339(uint64_t realtime_us, char *out, size_t size)
{
	long offset_min = local_time(realtime_us, out, size);
	size_t len = strlen(out);

	snprintf(out + len, size - len, "%c%02ld:%02ld", offset_min < 0 ? '-' : '+',
		 (offset_min < 0 ? -offset_min : offset_min) / 60 % 100,
		 (offset_min < 0 ? -offset_min : offset_min) % 60);
	return out;
}

char *pmdp_incident_line(const struct pmdp_incident *incident, char *out, size_t size)
{
	char id[3 * PMDP_ID_BYTES], message[3 * PMDP_MESSAGE_BYTES];
	char at[40];
	size_t used = 0;

	pmdp_text_clean(id, sizeof(id), incident->id);
	pmdp_text_clean(message, sizeof(message), incident->message);
	local_time(incident->emitted_realtime_us, at, sizeof(at));
	out[0] = 0;
	pmdp_text_append(out, size, &used, "%s %s %s %s %s: %s", at,
			 pmdp_severity_name(incident->severity), pmdp_phase_name(incident->phase),
			 id, pmdp_kind_name(incident->kind), message);
	return out;
}
