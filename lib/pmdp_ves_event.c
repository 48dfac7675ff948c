// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The frame of every VES event, and the domains that are no faults.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmdp_text.h"
#include "pmdp_ves_internal.h"

#define NAME_BYTES 256

int pmdp_ves_text(yajl_gen gen, const char *key, const char *value, size_t max_bytes)
{
	char text[3 * PMDP_MESSAGE_BYTES];

	pmdp_text_clean(text, max_bytes < sizeof(text) ? max_bytes : sizeof(text), value);
	return pmdp_json_kv_text(gen, key, text);
}

int pmdp_ves_u64(yajl_gen gen, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return pmdp_json_kv_text(gen, key, text);
}

int pmdp_ves_seconds(yajl_gen gen, const char *key, uint64_t ns)
{
	char text[40];

	snprintf(text, sizeof(text), "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
	return pmdp_json_kv_text(gen, key, text);
}

const char *pmdp_ves_interface(const struct pmdp_incident *incident)
{
	if (incident->object[0])
		return incident->object;
	return incident->thread_name[0] ? incident->thread_name : incident->instance;
}

// "Fault", "Heartbeat", "StateChange": how names of events begin.
static void event_name(const struct pmdp_ves_header *header, char *out, size_t size)
{
	snprintf(out, size, "%s_pmdpulse_%s", header->domain, header->name);
	if (out[0] >= 'a' && out[0] <= 'z')
		out[0] = (char)(out[0] - 'a' + 'A');
}

int pmdp_ves_open(yajl_gen gen, const struct pmdp_ves_header *header,
		  const struct pmdp_ves_source *source)
{
	const char *host = source->host && source->host[0] ? source->host : "unknown";
	const char *reporter = source->reporter && source->reporter[0] ? source->reporter
								       : "pmdpulse";
	char name[64];
	int rc = yajl_gen_map_open(gen) != yajl_gen_status_ok;

	event_name(header, name, sizeof(name));
	rc = rc ? rc : pmdp_json_key(gen, "event");
	rc = rc ? rc : yajl_gen_map_open(gen) != yajl_gen_status_ok;
	rc = rc ? rc : pmdp_json_key(gen, "commonEventHeader");
	rc = rc ? rc : yajl_gen_map_open(gen) != yajl_gen_status_ok;
	rc = rc ? rc : pmdp_json_kv_text(gen, "domain", header->domain);
	rc = rc ? rc : pmdp_json_kv_text(gen, "eventId", header->event_id);
	rc = rc ? rc : pmdp_json_kv_text(gen, "eventName", name);
	rc = rc ? rc : pmdp_json_kv_text(gen, "eventType", "platform");
	rc = rc ? rc : pmdp_json_kv_u64(gen, "startEpochMicrosec", header->start_us);
	rc = rc ? rc : pmdp_json_kv_u64(gen, "lastEpochMicrosec", header->last_us);
	rc = rc ? rc : pmdp_json_kv_text(gen, "priority", header->priority);
	rc = rc ? rc : pmdp_ves_text(gen, "reportingEntityName", reporter, 128);
	rc = rc ? rc : pmdp_json_kv_u64(gen, "sequence", header->sequence);
	rc = rc ? rc : pmdp_ves_text(gen, "sourceName", host, NAME_BYTES);
	rc = rc ? rc : pmdp_json_kv_text(gen, "version", "4.1");
	rc = rc ? rc : pmdp_json_kv_text(gen, "vesEventListenerVersion", "7.2.1");
	return rc ? rc : yajl_gen_map_close(gen) != yajl_gen_status_ok;
}

char *pmdp_ves_close(yajl_gen gen, int rc)
{
	const unsigned char *text = NULL;
	char *copy = NULL;
	size_t len = 0;

	rc = rc ? rc : yajl_gen_map_close(gen) != yajl_gen_status_ok;
	rc = rc ? rc : yajl_gen_map_close(gen) != yajl_gen_status_ok;
	if (!rc && yajl_gen_get_buf(gen, &text, &len) == yajl_gen_status_ok)
		copy = strndup((const char *)text, len);
	yajl_gen_free(gen);
	return copy;
}

// States of the interface before and after; false: the incident changes none.
static bool states_of(const struct pmdp_incident *incident, const char **out_old,
		      const char **out_new)
{
	static const char in_service[] = "inService", out_of_service[] = "outOfService";
	bool is_raise = incident->phase == PMDP_PHASE_RAISE;

	if (!is_raise && (incident->kind != PMDP_KIND_LINK || incident->phase != PMDP_PHASE_CLEAR))
		return false;
	*out_old = in_service;
	*out_new = out_of_service;
	switch (incident->kind) {
	case PMDP_KIND_LINK:
		if (is_raise)
			return true;
		*out_old = out_of_service;
		*out_new = in_service;
		// A port that was removed did not come back.
		return !pmdp_evidence_find(incident, "removed");
	case PMDP_KIND_SWITCH_GONE:
		return true;
	case PMDP_KIND_SWITCH_STOPPED:
		*out_new = "maintenance"; // on purpose
		return true;
	case PMDP_KIND_SWITCH_BACK:
		*out_old = out_of_service;
		*out_new = in_service;
		return true;
	default:
		return false;
	}
}

bool pmdp_ves_is_state_change(const struct pmdp_incident *incident)
{
	const char *before, *after;

	return states_of(incident, &before, &after);
}

static int state_fields(yajl_gen gen, const struct pmdp_incident *incident, const char *before,
			const char *after, const struct pmdp_ves_source *source)
{
	int rc = pmdp_json_key(gen, "stateChangeFields");

	rc = rc ? rc : yajl_gen_map_open(gen) != yajl_gen_status_ok;
	rc = rc ? rc : pmdp_json_kv_text(gen, "stateChangeFieldsVersion", "4.0");
	rc = rc ? rc
		: pmdp_ves_text(gen, "stateInterface", pmdp_ves_interface(incident), NAME_BYTES);
	rc = rc ? rc : pmdp_json_kv_text(gen, "oldState", before);
	rc = rc ? rc : pmdp_json_kv_text(gen, "newState", after);
	rc = rc ? rc : pmdp_json_key(gen, "additionalFields");
	rc = rc ? rc : yajl_gen_map_open(gen) != yajl_gen_status_ok;
	rc = rc ? rc : pmdp_json_kv_text(gen, "instance", incident->instance);
	rc = rc ? rc : pmdp_json_kv_text(gen, "kind", pmdp_kind_name(incident->kind));
	rc = rc ? rc : pmdp_json_kv_text(gen, "faultId", incident->id);
	if (source->n_lost)
		rc = rc ? rc : pmdp_ves_u64(gen, PMDP_VES_LOST_KEY, source->n_lost);
	rc = rc ? rc : pmdp_ves_text(gen, "message", incident->message, 3 * PMDP_MESSAGE_BYTES);
	rc = rc ? rc : yajl_gen_map_close(gen) != yajl_gen_status_ok;
	return rc ? rc : yajl_gen_map_close(gen) != yajl_gen_status_ok;
}

char *pmdp_ves_state_change(const struct pmdp_incident *incident,
			    const struct pmdp_ves_source *source)
{
	char id[PMDP_ID_BYTES + 8];
	const struct pmdp_ves_header header = {
		.domain = "stateChange",
		.event_id = id,
		.name = pmdp_kind_name(incident->kind),
		.priority = incident->severity == PMDP_SEVERITY_OKAY ? "Normal" : "High",
		.start_us = incident->started_realtime_us,
		.last_us = incident->emitted_realtime_us,
		.sequence = incident->seq,
	};
	const char *before, *after;
	yajl_gen gen;
	int rc;

	if (!states_of(incident, &before, &after))
		return NULL;
	gen = yajl_gen_alloc(NULL);
	if (!gen)
		return NULL;
	snprintf(id, sizeof(id), "%s-%s", incident->id,
		 incident->phase == PMDP_PHASE_RAISE ? "down" : "up");
	rc = pmdp_ves_open(gen, &header, source);
	rc = rc ? rc : state_fields(gen, incident, before, after, source);
	return pmdp_ves_close(gen, rc);
}

char *pmdp_ves_heartbeat(const struct pmdp_ves_heartbeat *heartbeat,
			 const struct pmdp_ves_source *source)
{
	const struct pmdp_ves_header header = {
		.domain = "heartbeat",
		.event_id = heartbeat->id,
		.name = "ves",
		.priority = "Normal",
		.start_us = heartbeat->realtime_us,
		.last_us = heartbeat->realtime_us,
		.sequence = heartbeat->seq,
	};
	yajl_gen gen = yajl_gen_alloc(NULL);
	int rc;

	if (!gen)
		return NULL;
	rc = pmdp_ves_open(gen, &header, source);
	rc = rc ? rc : pmdp_json_key(gen, "heartbeatFields");
	rc = rc ? rc : yajl_gen_map_open(gen) != yajl_gen_status_ok;
	rc = rc ? rc : pmdp_json_kv_text(gen, "heartbeatFieldsVersion", "3.0");
	rc = rc ? rc : pmdp_json_kv_u64(gen, "heartbeatInterval", heartbeat->interval_s);
	rc = rc ? rc : pmdp_json_key(gen, "additionalFields");
	rc = rc ? rc : yajl_gen_map_open(gen) != yajl_gen_status_ok;
	for (uint32_t i = 0; !rc && i < heartbeat->n_fields; i++)
		rc = pmdp_ves_text(gen, heartbeat->fields[i].key, heartbeat->fields[i].value,
				   NAME_BYTES);
	rc = rc ? rc : yajl_gen_map_close(gen) != yajl_gen_status_ok;
	rc = rc ? rc : yajl_gen_map_close(gen) != yajl_gen_status_ok;
	return pmdp_ves_close(gen, rc);
}
