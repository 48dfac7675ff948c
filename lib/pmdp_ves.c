// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "pmdp_ves.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmdp_text.h"
#include "pmdp_ves_internal.h"

// Both as plain JSON text and when that text is escaped once more as a string: collectd's
// write_http cuts a notification at 4095 bytes.
#define MAX_BYTES 3000

// How much of it is told: less of the evidence until it fits.
struct extent {
	uint32_t n_evidence;
	bool has_culprit;
	size_t text_bytes; // of names and message
};

static const struct extent extents[] = {
	{PMDP_N_EVIDENCE, true, 768},
	{6, true, 768},
	{3, true, 768},
	{0, true, 768},
	{0, false, 384},
	{0, false, 128},
};

static const char *severity_of(const struct pmdp_incident *incident)
{
	if (incident->phase == PMDP_PHASE_CLEAR || incident->severity == PMDP_SEVERITY_OKAY)
		return "NORMAL";
	return incident->severity == PMDP_SEVERITY_FAILURE ? "CRITICAL" : "WARNING";
}

static const char *priority_of(const struct pmdp_incident *incident)
{
	if (incident->phase == PMDP_PHASE_CLEAR || incident->severity == PMDP_SEVERITY_OKAY)
		return "Normal";
	return incident->severity == PMDP_SEVERITY_FAILURE ? "High" : "Medium";
}

static const char *category_of(uint32_t kind)
{
	switch (kind) {
	case PMDP_KIND_LINK:
		return "link";
	case PMDP_KIND_DROPS:
		return "traffic";
	default:
		return "availability";
	}
}

static const char *source_type_of(uint32_t kind)
{
	switch (kind) {
	case PMDP_KIND_LINK:
	case PMDP_KIND_DROPS:
		return "port";
	case PMDP_KIND_AGENT_LATE:
		return "other";
	default:
		return "switch";
	}
}

// Names of additional() beside the evidence's. One that stands twice is read in two ways.
static bool is_taken(const char *key)
{
	static const char *const names[] = {
		"instance",
		"phase",
		PMDP_VES_LOST_KEY,
		"duration_s",
		"cause",
		"state",
		"tid",
		"core",
		"culprit",
		"culprit_pid",
		"culprit_tid",
		"culprit_class",
		"culprit_took_s",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(key, names[i]))
			return true;
	}
	return false;
}

// The schema's additional information is a map of strings.
static int kv_evidence(yajl_gen gen, const struct pmdp_evidence *evidence)
{
	char text[3 * PMDP_EVIDENCE_TEXT_BYTES];

	if (is_taken(evidence->key))
		return 0;
	switch (evidence->type) {
	case PMDP_EVIDENCE_INT:
		snprintf(text, sizeof(text), "%" PRId64, evidence->integer);
		break;
	case PMDP_EVIDENCE_REAL:
		snprintf(text, sizeof(text), "%.9g", evidence->real);
		break;
	case PMDP_EVIDENCE_TEXT:
		pmdp_text_clean(text, sizeof(text), evidence->text);
		break;
	default:
		return 0;
	}
	return pmdp_json_kv_text(gen, evidence->key, text);
}

static int additional(yajl_gen gen, const struct pmdp_incident *incident,
		      const struct pmdp_ves_source *source, const struct extent *extent)
{
	uint32_t n = incident->n_evidence < extent->n_evidence ? incident->n_evidence
							       : extent->n_evidence;
	int rc = pmdp_json_key(gen, "alarmAdditionalInformation");

	rc = rc ? rc : yajl_gen_map_open(gen) != yajl_gen_status_ok;
	rc = rc ? rc : pmdp_json_kv_text(gen, "instance", incident->instance);
	rc = rc ? rc : pmdp_json_kv_text(gen, "phase", pmdp_phase_name(incident->phase));
	if (source->n_lost)
		rc = rc ? rc : pmdp_ves_u64(gen, PMDP_VES_LOST_KEY, source->n_lost);
	rc = rc ? rc : pmdp_ves_seconds(gen, "duration_s", incident->duration_ns);
	rc = rc ? rc : pmdp_json_kv_text(gen, "cause", pmdp_cause_name(incident->cause));
	rc = rc ? rc : pmdp_json_kv_text(gen, "state", pmdp_state_name(incident->state));
	if (!rc && incident->thread_tid) {
		rc = pmdp_ves_u64(gen, "tid", incident->thread_tid);
		if (!rc && incident->thread_core >= 0)
			rc = pmdp_ves_u64(gen, "core", (uint64_t)incident->thread_core);
	}
	if (!rc && extent->has_culprit && (incident->culprit_pid || incident->culprit_comm[0])) {
		rc = pmdp_ves_text(gen, "culprit", incident->culprit_comm, 3 * PMDP_COMM_BYTES);
		rc = rc ? rc : pmdp_ves_u64(gen, "culprit_pid", incident->culprit_pid);
		rc = rc ? rc : pmdp_ves_u64(gen, "culprit_tid", incident->culprit_tid);
		rc = rc ? rc : pmdp_ves_text(gen, "culprit_class", incident->culprit_class, 64);
		rc = rc ? rc : pmdp_ves_seconds(gen, "culprit_took_s", incident->culprit_took_ns);
	}
	for (uint32_t i = 0; !rc && i < n; i++)
		rc = kv_evidence(gen, &incident->evidence[i]);
	return rc ? rc : yajl_gen_map_close(gen) != yajl_gen_status_ok;
}

static int fault(yajl_gen gen, const struct pmdp_incident *incident,
		 const struct pmdp_ves_source *source, const struct extent *extent)
{
	int rc = pmdp_json_key(gen, "faultFields");

	rc = rc ? rc : yajl_gen_map_open(gen) != yajl_gen_status_ok;
	rc = rc ? rc : pmdp_json_kv_text(gen, "faultFieldsVersion", "4.0");
	rc = rc ? rc : pmdp_json_kv_text(gen, "alarmCondition", pmdp_kind_name(incident->kind));
	rc = rc ? rc
		: pmdp_ves_text(gen, "alarmInterfaceA", pmdp_ves_interface(incident),
				extent->text_bytes);
	rc = rc ? rc : pmdp_json_kv_text(gen, "eventCategory", category_of(incident->kind));
	rc = rc ? rc : pmdp_json_kv_text(gen, "eventSeverity", severity_of(incident));
	rc = rc ? rc : pmdp_json_kv_text(gen, "eventSourceType", source_type_of(incident->kind));
	rc = rc ? rc : pmdp_ves_text(gen, "specificProblem", incident->message, extent->text_bytes);
	rc = rc ? rc : pmdp_json_kv_text(gen, "vfStatus", "Active");
	rc = rc ? rc : additional(gen, incident, source, extent);
	return rc ? rc : yajl_gen_map_close(gen) != yajl_gen_status_ok;
}

// Length of the text inside a JSON string: what escaping adds is a backslash for each quote and
// backslash (control characters have been replaced before).
static size_t escaped_len(const char *text, size_t len)
{
	size_t n = len;

	for (size_t i = 0; i < len; i++)
		n += text[i] == '"' || text[i] == '\\';
	return n;
}

static char *render(const struct pmdp_incident *incident, const struct pmdp_ves_source *source,
		    const struct extent *extent)
{
	const struct pmdp_ves_header header = {
		.domain = "fault",
		.event_id = incident->id,
		.name = pmdp_kind_name(incident->kind),
		.priority = priority_of(incident),
		.start_us = incident->started_realtime_us,
		.last_us = incident->emitted_realtime_us,
		.sequence = incident->seq,
	};
	yajl_gen gen = yajl_gen_alloc(NULL);
	int rc;

	if (!gen)
		return NULL;
	rc = pmdp_ves_open(gen, &header, source);
	rc = rc ? rc : fault(gen, incident, source, extent);
	return pmdp_ves_close(gen, rc);
}

char *pmdp_ves_fault(const struct pmdp_incident *incident, const struct pmdp_ves_source *source)
{
	char *text = NULL;

	for (size_t i = 0; i < sizeof(extents) / sizeof(*extents); i++) {
		text = render(incident, source, &extents[i]);
		if (!text || escaped_len(text, strlen(text)) <= MAX_BYTES)
			return text;
		if (i + 1 < sizeof(extents) / sizeof(*extents))
			free(text);
	}
	return text;
}
