// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// What is told of the switch as a whole.
#include "pmdp_watch_internal.h"

void pmdp_watch_raise_version(struct pmdp_watch *watch, uint64_t now_ns)
{
	struct pmdp_watch_event event;

	if (watch->version_key)
		return;
	pmdp_watch_begin(watch, 0, PMDP_KIND_VERSION_MISMATCH, PMDP_PHASE_RAISE, &event);
	pmdp_evidence_text(&event.incident, "reason", watch->reason);
	watch->version_key = pmdp_watch_raise(watch, &event, now_ns);
}

void pmdp_watch_raise_gone(struct pmdp_watch *watch, uint64_t now_ns)
{
	uint64_t begin_ns =
		watch->last_life_ns && watch->last_life_ns < now_ns ? watch->last_life_ns : now_ns;
	struct pmdp_watch_event event;

	if (watch->gone_key) { // died again before it was seen alive
		pmdp_watch_begin(watch, watch->gone_key, PMDP_KIND_SWITCH_GONE, PMDP_PHASE_UPDATE,
				 &event);
		pmdp_evidence_int(&event.incident, "pid", (int64_t)watch->last_pid);
		pmdp_watch_update(watch, &event);
		return;
	}
	pmdp_watch_begin(watch, 0, PMDP_KIND_SWITCH_GONE, PMDP_PHASE_RAISE, &event);
	event.incident.cause = PMDP_CAUSE_PROCESS_DIED;
	event.incident.duration_ns = now_ns - begin_ns;
	pmdp_evidence_int(&event.incident, "pid", (int64_t)watch->last_pid);
	watch->gone_key = pmdp_watch_raise(watch, &event, begin_ns);
}

void pmdp_watch_tell_news(struct pmdp_watch *watch, uint32_t kind, uint64_t begin_ns,
			  uint64_t duration_ns)
{
	struct pmdp_watch_event event;

	pmdp_watch_begin(watch, 0, kind, PMDP_PHASE_RAISE, &event);
	event.incident.duration_ns = duration_ns;
	pmdp_evidence_int(&event.incident, "pid", (int64_t)watch->last_pid);
	if (kind == PMDP_KIND_SWITCH_BACK)
		pmdp_evidence_int(&event.incident, "generation",
				  (int64_t)watch->followed_generation);
	pmdp_watch_raise(watch, &event, begin_ns);
}

void pmdp_watch_tell_attach(struct pmdp_watch *watch, uint64_t followed_generation)
{
	watch->is_attach_told = true;
	watch->followed_generation = followed_generation;
}
