// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * An incident as an ONAP VES 7.2.1 fault event ({"event": {"commonEventHeader", "faultFields"}}),
 * Common Event Format 30.2.1. eventId and startEpochMicrosec are those of the raise for every phase,
 * sequence is the incident's seq, NORMAL clears.
 */
#pragma once

#include <stddef.h>

#include "pmdp_incident.h"

struct pmdp_ves_source {
	const char *host;     // sourceName
	const char *reporter; // reportingEntityName, e.g. "pmdpulse-agent"
};

// malloc'd JSON text of at most 3000 bytes (evidence is left out first), or NULL without memory.
char *pmdp_ves_fault(const struct pmdp_incident *incident, const struct pmdp_ves_source *source);
