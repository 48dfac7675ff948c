// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "cp_events.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cp_log.h"
#include "pmdp_clock.h"
#include "pmdp_incident.h"

// An event reaches the ring before the table changes: a comparison in between is repeated after
// this.
#define CONFIRM_NS UINT64_C(100000000)
// How often a full table is looked at again.
#define FULL_NS UINT64_C(1000000000)

static void add(_Atomic uint64_t *number, uint64_t more)
{
	atomic_fetch_add_explicit(number, more, memory_order_relaxed);
}

void cp_events_fini(struct cp_events *events)
{
	pmdp_reader_close(events->reader);
	events->reader = NULL;
	cp_book_clear(&events->book);
}

// Lowest and highest seq that the ring holds; false when it is empty.
static bool range(struct cp_events *events, uint64_t *out_min, uint64_t *out_max)
{
	uint64_t cursor = UINT64_MAX, lost = 0;
	bool is_any = false;
	int n;

	while ((n = pmdp_reader_events(events->reader, &cursor, events->batch, CP_EVENTS_BATCH,
				       &lost)) > 0) {
		for (int i = 0; i < n; i++) {
			uint64_t seq = events->batch[i].seq;

			*out_min = !is_any || seq < *out_min ? seq : *out_min;
			*out_max = !is_any || seq > *out_max ? seq : *out_max;
			is_any = true;
		}
	}
	return is_any;
}

void cp_events_attach(struct cp_events *events, struct pmdp_reader *reader)
{
	uint64_t min = 0, max = 0;
	bool is_any;

	events->reader = reader;
	events->cursor = UINT64_MAX;
	is_any = range(events, &min, &max);
	if (!events->is_primed) {
		events->last_seq = max;
		events->is_primed = true;
	} else if (!is_any || max < events->last_seq) {
		events->last_seq = 0; // a new log that knows nothing of the old one
	} else if (min > events->last_seq + 1 && events->last_seq != 0) {
		add(&events->instance->numbers.n_events_lost, min - events->last_seq - 1);
	}
	events->sync_due_ns = 1;
}

void cp_events_detach(struct cp_events *events)
{
	pmdp_reader_close(events->reader);
	events->reader = NULL;
}

static void raise_once(struct cp_events *events, const struct pmdp_incident *incident)
{
	if (cp_book_is_lasting(incident)) {
		struct cp_book_entry *entry;

		if (cp_book_find_id(&events->book, incident->id) != NULL)
			return;
		entry = cp_book_add(&events->book, incident);
		if (entry != NULL)
			entry->is_told = entry->is_present = true;
	}
	cp_tell(events->instance, incident);
}

static void handle(struct cp_events *events, struct pmdp_incident *incident)
{
	struct cp_book_entry *entry = cp_book_find_id(&events->book, incident->id);

	if (incident->phase == PMDP_PHASE_RAISE) {
		if (incident->kind == PMDP_KIND_AGENT_LATE)
			add(&events->instance->numbers.n_agent_late, 1);
		raise_once(events, incident);
	} else if (incident->phase == PMDP_PHASE_UPDATE && entry == NULL) {
		incident->phase = PMDP_PHASE_RAISE; // its raise was overwritten
		raise_once(events, incident);
	} else if (incident->phase == PMDP_PHASE_UPDATE) {
		entry->incident = *incident;
		cp_tell(events->instance, incident);
	} else if (entry != NULL) {
		// A clear without an entry is told already, by cp_events_sync or before our time.
		cp_tell(events->instance, incident);
		cp_book_remove(&events->book, entry);
	}
}

int cp_events_pump(struct cp_events *events, uint64_t now_ns)
{
	uint64_t lost = 0;
	int n, total = 0;

	if (events->reader == NULL)
		return 0;
	while ((n = pmdp_reader_events(events->reader, &events->cursor, events->batch,
				       CP_EVENTS_BATCH, &lost)) > 0) {
		for (int i = 0; i < n; i++) {
			struct pmdp_incident *incident = &events->batch[i];

			if (incident->seq <= events->last_seq)
				continue;
			events->last_seq = incident->seq;
			pmdp_incident_sanitize(incident);
			handle(events, incident);
			total++;
		}
	}
	if (lost > 0) {
		add(&events->instance->numbers.n_events_lost, lost);
		cp_log(LOG_WARNING,
		       "instance %s: %llu events of the agent were overwritten before they "
		       "could be read",
		       events->instance->name, (unsigned long long)lost);
		events->sync_due_ns = now_ns;
	}
	if (total > 0) {
		add(&events->instance->numbers.n_agent_events, (uint64_t)total);
		cp_book_publish(&events->book, &events->instance->numbers);
	}
	return n < 0 ? n : total;
}

// Mark what the agent's table has, raise what it has and we have not. False: not all could be read.
static bool compare(struct cp_events *events, bool *is_changed, bool *is_full)
{
	uint32_t n_slots = pmdp_reader_info(events->reader)->n_incidents, n_used = 0;
	struct pmdp_incident *incident = &events->batch[0];
	bool is_whole = true;

	for (uint32_t slot = 0; slot < n_slots; slot++) {
		int rc = pmdp_reader_incident(events->reader, slot, incident);
		struct cp_book_entry *entry;

		if (rc == -ENOENT)
			continue;
		n_used++;
		if (rc < 0) {
			is_whole = false;
			continue;
		}
		pmdp_incident_sanitize(incident);
		entry = cp_book_find_id(&events->book, incident->id);
		if (entry == NULL) {
			incident->phase = PMDP_PHASE_RAISE;
			raise_once(events, incident);
			entry = cp_book_find_id(&events->book, incident->id);
			*is_changed = true;
		}
		if (entry != NULL)
			entry->is_present = true;
	}
	*is_full = n_used == n_slots;
	return is_whole;
}

// The agent's own clear was lost with its seq, and its numbers go on: what the plugin adds counts
// by the time in microseconds, which no agent's count reaches and no later collectd gives again.
static void number_own(struct cp_events *events, struct pmdp_incident *event)
{
	event->emitted_realtime_us = pmdp_realtime_now_us();
	events->own_seq = event->emitted_realtime_us > events->own_seq ? event->emitted_realtime_us
								       : events->own_seq + 1;
	event->seq = events->own_seq;
}

static void clear_absent(struct cp_events *events)
{
	for (size_t i = events->book.n; i > 0; i--) {
		struct cp_book_entry *entry = &events->book.entries[i - 1];
		struct pmdp_incident event = entry->incident;

		if (entry->is_present)
			continue;
		event.phase = PMDP_PHASE_CLEAR;
		event.severity = PMDP_SEVERITY_OKAY;
		event.state = 0;
		number_own(events, &event);
		if (pmdp_evidence_find(&event, "ongoing") != NULL)
			pmdp_evidence_int(&event, "ongoing", 0);
		snprintf(event.message, sizeof(event.message), "%s %s: no longer open at the agent",
			 event.instance,
			 event.thread_name[0] != 0 ? event.thread_name
						   : pmdp_kind_name(event.kind));
		cp_tell(events->instance, &event);
		cp_book_remove(&events->book, entry);
	}
}

void cp_events_sync(struct cp_events *events, uint64_t now_ns)
{
	bool is_changed = false, is_full = false, is_whole;

	if (events->reader == NULL)
		return;
	events->sync_due_ns = 0;
	cp_events_pump(events, now_ns);
	for (size_t i = 0; i < events->book.n; i++)
		events->book.entries[i].is_present = false;
	is_whole = compare(events, &is_changed, &is_full);
	cp_events_pump(events, now_ns); // clears that came meanwhile are told by themselves
	// A full table has no room for all that is open: what is absent may only wait for a slot.
	if (is_whole && !is_full)
		clear_absent(events);
	if (is_changed || !is_whole)
		events->sync_due_ns = now_ns + CONFIRM_NS;
	else if (is_full)
		events->sync_due_ns = now_ns + FULL_NS;
	cp_book_publish(&events->book, &events->instance->numbers);
}
