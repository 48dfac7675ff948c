// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// What the domains of VES events share. Internal to lib/.
#pragma once

#include "pmdp_json.h"
#include "pmdp_ves.h"

#pragma GCC visibility push(hidden)

struct pmdp_ves_header {
	const char *domain;   // "fault"
	const char *event_id; // the same for all phases of a fault
	const char *name;     // what follows "pmdpulse_" in the event's name
	const char *priority; // "High", "Medium", "Normal", "Low"
	uint64_t start_us, last_us;
	uint64_t sequence;
};

// {"event": {"commonEventHeader": {...}: both maps stay open.
int pmdp_ves_open(yajl_gen gen, const struct pmdp_ves_header *header,
		  const struct pmdp_ves_source *source);
// Close them. The malloc'd text, or NULL when rc says that something was refused before.
char *pmdp_ves_close(yajl_gen gen, int rc);

// "key": value, cut to max_bytes, in one line of valid text.
int pmdp_ves_text(yajl_gen gen, const char *key, const char *value, size_t max_bytes);
// Numbers as the map of additional fields wants them: texts.
int pmdp_ves_u64(yajl_gen gen, const char *key, uint64_t value);
int pmdp_ves_seconds(yajl_gen gen, const char *key, uint64_t ns);

// The port, thread or instance that an incident is about.
const char *pmdp_ves_interface(const struct pmdp_incident *incident);

#pragma GCC visibility pop
