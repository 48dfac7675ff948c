// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_merge.h"

#include <string.h>

#include "pmdp_incident.h"

static void keep_evidence(struct pmdp_incident *event, const struct pmdp_evidence *evidence)
{
	if (pmdp_evidence_find(event, evidence->key))
		return;
	switch (evidence->type) {
	case PMDP_EVIDENCE_INT:
		pmdp_evidence_int(event, evidence->key, evidence->integer);
		break;
	case PMDP_EVIDENCE_REAL:
		pmdp_evidence_real(event, evidence->key, evidence->real);
		break;
	case PMDP_EVIDENCE_TEXT:
		pmdp_evidence_text(event, evidence->key, evidence->text);
		break;
	default:
		break;
	}
}

static void keep_cause(struct pmdp_incident *event, const struct pmdp_incident *earlier)
{
	if (event->cause != PMDP_CAUSE_UNKNOWN)
		return;
	event->cause = earlier->cause;
	if (event->culprit_pid || event->culprit_comm[0])
		return;
	memcpy(event->culprit_comm, earlier->culprit_comm, sizeof(event->culprit_comm));
	memcpy(event->culprit_class, earlier->culprit_class, sizeof(event->culprit_class));
	event->culprit_pid = earlier->culprit_pid;
	event->culprit_tid = earlier->culprit_tid;
	event->culprit_took_ns = earlier->culprit_took_ns;
}

void ag_merge(struct pmdp_incident *event, const struct pmdp_incident *earlier)
{
	memcpy(event->id, earlier->id, sizeof(event->id));
	event->started_realtime_us = earlier->started_realtime_us;
	event->detected_realtime_us = earlier->detected_realtime_us;
	if (!event->thread_tid && !event->thread_name[0]) {
		memcpy(event->thread_name, earlier->thread_name, sizeof(event->thread_name));
		event->thread_tid = earlier->thread_tid;
		event->thread_core = earlier->thread_core;
	}
	if (!event->object[0])
		memcpy(event->object, earlier->object, sizeof(event->object));
	keep_cause(event, earlier);
	for (uint32_t i = 0; i < earlier->n_evidence && i < PMDP_N_EVIDENCE; i++)
		keep_evidence(event, &earlier->evidence[i]);
}

bool ag_merge_differs(const struct pmdp_incident *a, const struct pmdp_incident *b)
{
	const struct pmdp_evidence *in_a = pmdp_evidence_find(a, "function");
	const struct pmdp_evidence *in_b = pmdp_evidence_find(b, "function");

	if (a->cause != b->cause || a->culprit_pid != b->culprit_pid ||
	    a->culprit_tid != b->culprit_tid)
		return true;
	return (in_a ? in_a->type : 0) != (in_b ? in_b->type : 0) ||
	       (in_a && strcmp(in_a->text, in_b->text));
}
