// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pmdp_json.h"

static int map_open(yajl_gen gen)
{
	return yajl_gen_map_open(gen) == yajl_gen_status_ok ? 0 : -EIO;
}

static int map_close(yajl_gen gen)
{
	return yajl_gen_map_close(gen) == yajl_gen_status_ok ? 0 : -EIO;
}

static int kv_time(yajl_gen gen, const char *key, uint64_t realtime_us)
{
	char text[48];

	if (!realtime_us)
		return pmdp_json_kv_null(gen, key);
	return pmdp_json_kv_text(gen, key, pmdp_rfc3339(realtime_us, text, sizeof(text)));
}

// Key with a text that may be absent: null then.
static int kv_text_or_null(yajl_gen gen, const char *key, const char *value)
{
	return pmdp_json_kv_text(gen, key, value[0] ? value : NULL);
}

static int kv_thread(yajl_gen gen, const struct pmdp_incident *incident)
{
	int rc;

	if (!incident->thread_tid && !incident->thread_name[0])
		return pmdp_json_kv_null(gen, "thread");
	rc = pmdp_json_key(gen, "thread");
	rc = rc ? rc : map_open(gen);
	rc = rc ? rc : pmdp_json_kv_text(gen, "name", incident->thread_name);
	rc = rc ? rc : pmdp_json_kv_u64(gen, "tid", incident->thread_tid);
	if (!rc && incident->thread_core < 0)
		rc = pmdp_json_kv_null(gen, "core");
	else if (!rc)
		rc = pmdp_json_kv_int(gen, "core", incident->thread_core);
	return rc ? rc : map_close(gen);
}

int pmdp_json_culprit(yajl_gen gen, const struct pmdp_incident *incident)
{
	int rc;

	if (!incident->culprit_pid && !incident->culprit_comm[0])
		return pmdp_json_text(gen, NULL);
	rc = map_open(gen);
	rc = rc ? rc : pmdp_json_kv_text(gen, "comm", incident->culprit_comm);
	rc = rc ? rc : pmdp_json_kv_u64(gen, "pid", incident->culprit_pid);
	rc = rc ? rc : pmdp_json_kv_u64(gen, "tid", incident->culprit_tid);
	rc = rc ? rc : kv_text_or_null(gen, "class", incident->culprit_class);
	rc = rc ? rc : pmdp_json_kv_seconds(gen, "took_s", incident->culprit_took_ns);
	return rc ? rc : map_close(gen);
}

#define PORT_KEY "port"

static int put_evidence(yajl_gen gen, const struct pmdp_evidence *evidence)
{
	switch (evidence->type) {
	case PMDP_EVIDENCE_INT:
		return pmdp_json_kv_int(gen, evidence->key, evidence->integer);
	case PMDP_EVIDENCE_REAL:
		return pmdp_json_kv_real(gen, evidence->key, evidence->real);
	case PMDP_EVIDENCE_TEXT:
		return pmdp_json_kv_text(gen, evidence->key, evidence->text);
	default:
		return 0;
	}
}

static int kv_evidence(yajl_gen gen, const struct pmdp_incident *incident)
{
	uint32_t n = incident->n_evidence < PMDP_N_EVIDENCE ? incident->n_evidence
							    : PMDP_N_EVIDENCE;
	int rc = pmdp_json_key(gen, "evidence");

	rc = rc ? rc : map_open(gen);
	if (!rc && incident->object[0])
		rc = pmdp_json_kv_text(gen, PORT_KEY, incident->object);
	for (uint32_t i = 0; !rc && i < n; i++) {
		if (!incident->object[0] || strcmp(incident->evidence[i].key, PORT_KEY))
			rc = put_evidence(gen, &incident->evidence[i]);
	}
	return rc ? rc : map_close(gen);
}

int pmdp_json_incident(yajl_gen gen, const struct pmdp_incident *incident)
{
	int rc = map_open(gen);

	rc = rc ? rc : pmdp_json_kv_text(gen, "id", incident->id);
	rc = rc ? rc : pmdp_json_kv_u64(gen, "seq", incident->seq);
	rc = rc ? rc : pmdp_json_kv_text(gen, "kind", pmdp_kind_name(incident->kind));
	rc = rc ? rc : pmdp_json_kv_text(gen, "phase", pmdp_phase_name(incident->phase));
	rc = rc ? rc : pmdp_json_kv_text(gen, "severity", pmdp_severity_name(incident->severity));
	rc = rc ? rc : pmdp_json_kv_text(gen, "instance", incident->instance);
	rc = rc ? rc : kv_thread(gen, incident);
	rc = rc ? rc : kv_time(gen, "started_at", incident->started_realtime_us);
	rc = rc ? rc : kv_time(gen, "detected_at", incident->detected_realtime_us);
	rc = rc ? rc : kv_time(gen, "emitted_at", incident->emitted_realtime_us);
	rc = rc ? rc : pmdp_json_kv_seconds(gen, "duration_s", incident->duration_ns);
	rc = rc ? rc : pmdp_json_kv_text(gen, "state", pmdp_state_name(incident->state));
	rc = rc ? rc : pmdp_json_kv_text(gen, "cause", pmdp_cause_name(incident->cause));
	rc = rc ? rc : pmdp_json_key(gen, "culprit");
	rc = rc ? rc : pmdp_json_culprit(gen, incident);
	rc = rc ? rc : kv_evidence(gen, incident);
	rc = rc ? rc : pmdp_json_kv_text(gen, "message", incident->message);
	return rc ? rc : map_close(gen);
}

char *pmdp_json_incident_line(const struct pmdp_incident *incident)
{
	yajl_gen gen = yajl_gen_alloc(NULL);
	const unsigned char *text;
	char *line = NULL;
	size_t len;

	if (!gen)
		return NULL;
	if (!pmdp_json_incident(gen, incident) &&
	    yajl_gen_get_buf(gen, &text, &len) == yajl_gen_status_ok)
		line = strndup((const char *)text, len);
	yajl_gen_free(gen);
	return line;
}
