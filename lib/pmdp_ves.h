// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * ONAP VES 7.2.1 events, {"event": {"commonEventHeader", ...}}, Common Event Format 30.2.1.
 *
 *   fault        any incident. eventId and startEpochMicrosec are those of the raise for every
 *                phase, sequence is the incident's seq, NORMAL clears
 *   stateChange  a port's link, or the switch itself, beside the fault
 *   heartbeat    of whoever posts the events
 *
 * Texts are malloc'd; NULL without memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "pmdp_incident.h"

// Additional field that tells how many events before this one were lost for the collector.
#define PMDP_VES_LOST_KEY "events_lost_before"

struct pmdp_ves_source {
	const char *host;     // sourceName
	const char *reporter; // reportingEntityName, e.g. "pmdpulse-agent"
	uint64_t n_lost;      // not 0: told in PMDP_VES_LOST_KEY
};

// At most 3000 bytes (evidence is left out first).
char *pmdp_ves_fault(const struct pmdp_incident *incident, const struct pmdp_ves_source *source);

/*
 * Does this event change the state of a port or of the switch? link: raise and clear; switch-gone,
 * switch-stopped, switch-back: raise.
 */
bool pmdp_ves_is_state_change(const struct pmdp_incident *incident);
// NULL also when it does not.
char *pmdp_ves_state_change(const struct pmdp_incident *incident,
			    const struct pmdp_ves_source *source);

struct pmdp_ves_field {
	const char *key, *value;
};

struct pmdp_ves_heartbeat {
	const char *id;
	uint64_t seq;
	uint64_t realtime_us;
	uint64_t interval_s;
	const struct pmdp_ves_field *fields; // additionalFields
	uint32_t n_fields;
};

char *pmdp_ves_heartbeat(const struct pmdp_ves_heartbeat *heartbeat,
			 const struct pmdp_ves_source *source);
