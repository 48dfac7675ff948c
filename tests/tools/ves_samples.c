// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Print incidents of every kind and phase, with plain and with hostile names, one a line:
 * {"incident": {...}, "ves": {...}, "state_change": {...} or null}; last a {"heartbeat": {...}}. A
 * test validates them against the schema.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmdp_json.h"
#include "pmdp_names.h"
#include "pmdp_ves.h"

#define N_ELEMENTS(table) (sizeof(table) / sizeof(table)[0])
#define X63 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static const char *const names[] = {
	"pmd-c01/id:2",
	"a.b",
	"a-b",
	"a\"b",
	"a\\b",
	"\xc3\xbc",
	"a/b",
	X63,
	"\xff\xfe\xc3",
	"line\nbreak\x01\x7f",
	"\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
	"\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82",
	"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\""
	"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"",
};

static void add_evidence(struct pmdp_incident *incident, const char *text)
{
	char key[PMDP_EVIDENCE_KEY_BYTES];

	// Names that the documents have already.
	pmdp_evidence_text(incident, "state", "R");
	pmdp_evidence_int(incident, "culprit_pid", 1);
	pmdp_evidence_text(incident, "port", "another");
	for (int i = 0; i < PMDP_N_EVIDENCE + 1; i++) {
		snprintf(key, sizeof(key), "evidence_%d", i);
		switch (i % 3) {
		case 0:
			pmdp_evidence_int(incident, key, INT64_MIN);
			break;
		case 1:
			pmdp_evidence_real(incident, key, -1.7976931348623157e308);
			break;
		default:
			pmdp_evidence_text(incident, key, text);
			break;
		}
	}
}

static void make(struct pmdp_incident *incident, uint32_t kind, uint32_t phase, const char *name)
{
	bool has_port = kind == PMDP_KIND_LINK || kind == PMDP_KIND_DROPS;

	pmdp_incident_init(incident, "default", kind, phase);
	snprintf(incident->id, sizeof(incident->id), "default-1764500000000-%u", kind);
	incident->seq = 100 * (uint64_t)kind + phase;
	incident->started_realtime_us = 1764500000123456;
	incident->detected_realtime_us = 1764500000223456;
	incident->emitted_realtime_us = 1764500000223999 + phase;
	incident->duration_ns = UINT64_C(301000001);
	incident->state = PMDP_STATE_DEAD;
	incident->severity = pmdp_incident_severity(kind, phase, incident->state);
	incident->cause = PMDP_CAUSE_PREEMPTED;
	if (has_port)
		snprintf(incident->object, sizeof(incident->object), "%s", name);
	else if (kind <= PMDP_KIND_THREAD_GONE)
		pmdp_incident_thread(incident, name, 4242, 1);
	pmdp_incident_culprit(incident, name, 4343, 4344, "SCHED_FIFO", UINT64_C(300000000));
	add_evidence(incident, name);
	pmdp_incident_compose(incident);
}

static void no_memory(void)
{
	fprintf(stderr, "no memory\n");
	exit(1);
}

static void print(const struct pmdp_incident *incident, const char *host, uint64_t n_lost)
{
	const struct pmdp_ves_source source = {
		.host = host, .reporter = "pmdpulse-agent", .n_lost = n_lost};
	char *json = pmdp_json_incident_line(incident);
	char *ves = pmdp_ves_fault(incident, &source);
	char *state = pmdp_ves_state_change(incident, &source);

	if (!json || !ves || !state != !pmdp_ves_is_state_change(incident))
		no_memory();
	printf("{\"incident\": %s, \"ves\": %s, \"state_change\": %s}\n", json, ves,
	       state ? state : "null");
	free(json);
	free(ves);
	free(state);
}

static void print_heartbeat(void)
{
	const struct pmdp_ves_source source = {.host = names[5], .reporter = "pmdpulse-ves"};
	struct pmdp_ves_field fields[N_ELEMENTS(names)];
	struct pmdp_ves_heartbeat heartbeat = {
		.id = "heartbeat-1",
		.seq = 7,
		.realtime_us = 1764500000123456,
		.interval_s = 60,
		.fields = fields,
		.n_fields = N_ELEMENTS(names),
	};

	for (size_t i = 0; i < N_ELEMENTS(names); i++)
		fields[i] = (struct pmdp_ves_field){.key = names[i], .value = names[i]};
	char *text = pmdp_ves_heartbeat(&heartbeat, &source);
	if (!text)
		no_memory();
	printf("{\"heartbeat\": %s}\n", text);
	free(text);
}

int main(void)
{
	struct pmdp_incident incident;

	for (uint32_t kind = 1; kind < PMDP_N_KINDS; kind++) {
		for (uint32_t phase = PMDP_PHASE_RAISE; phase <= PMDP_PHASE_CLEAR; phase++) {
			for (size_t i = 0; i < N_ELEMENTS(names); i++) {
				make(&incident, kind, phase, names[i]);
				print(&incident, i % 2 ? names[i] : "host1.example", i % 3);
			}
		}
	}
	// Whatever a segment may hold, made safe.
	for (unsigned int seed = 1; seed <= 2000; seed++) {
		unsigned char *bytes = (unsigned char *)&incident;

		srandom(seed);
		for (size_t i = 0; i < sizeof(incident); i++)
			bytes[i] = (unsigned char)random();
		memcpy(incident.evidence[1].key, incident.evidence[0].key,
		       sizeof(incident.evidence[0].key));
		pmdp_incident_sanitize(&incident);
		print(&incident, "host1", UINT64_MAX);
	}
	print_heartbeat();
	return 0;
}
