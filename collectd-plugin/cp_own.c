// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "cp_own.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cp_config.h"
#include "cp_log.h"

#define HOUR_NS UINT64_C(3600000000000)

static uint64_t realtime_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000u;
}

// Silent looks come when they come: lateness is nobody's business then.
static struct pmdp_limits limits_of(bool is_telling)
{
	struct pmdp_limits limits = {
		.interval_ns = cp_config.keepalive_interval_ns,
		.late_ns = is_telling ? 0 : HOUR_NS,
	};

	return limits;
}

int cp_own_init(struct cp_own *own, struct cp_instance *instance)
{
	struct pmdp_watch_opts opts = {
		.rundir = cp_config.rundir,
		.publisher_uid = cp_config.publisher_uid,
		.has_publisher_uid = cp_config.has_publisher_uid,
		.limits = limits_of(false),
	};

	memset(own, 0, sizeof(*own));
	own->instance = instance;
	own->generation = realtime_us() / 1000;
	return pmdp_watch_new(instance->name, &opts, &own->watch);
}

void cp_own_fini(struct cp_own *own)
{
	pmdp_watch_free(own->watch);
	cp_book_clear(&own->book);
}

static void give_id(struct cp_own *own, struct pmdp_incident *incident)
{
	snprintf(incident->id, sizeof(incident->id), "%s-%llu-%llu-c", own->instance->name,
		 (unsigned long long)own->generation, (unsigned long long)++own->n_ids);
}

static void tell(struct cp_own *own, const struct pmdp_incident *incident, uint32_t phase)
{
	struct pmdp_incident event = *incident;

	event.phase = phase;
	event.seq = ++own->seq;
	event.emitted_realtime_us = realtime_us();
	if (phase == PMDP_PHASE_CLEAR)
		event.severity = PMDP_SEVERITY_OKAY;
	if (event.message[0] == 0)
		pmdp_incident_compose(&event);
	cp_tell(own->instance, &event);
}

static void on_raise(struct cp_own *own, const struct pmdp_watch_event *event)
{
	struct pmdp_incident incident = event->incident;
	struct cp_book_entry *entry;

	give_id(own, &incident);
	if (own->is_telling)
		tell(own, &incident, PMDP_PHASE_RAISE);
	if (!cp_book_is_lasting(&incident))
		return;
	entry = cp_book_add(&own->book, &incident);
	if (entry == NULL)
		return;
	entry->key = event->key;
	entry->is_told = own->is_telling;
}

static void on_event(void *ctx, const struct pmdp_watch_event *event)
{
	struct cp_own *own = ctx;
	struct cp_book_entry *entry = cp_book_find_key(&own->book, event->key);
	struct pmdp_incident incident;

	if (event->incident.phase == PMDP_PHASE_RAISE) {
		on_raise(own, event);
		return;
	}
	if (entry == NULL)
		return;
	incident = event->incident;
	memcpy(incident.id, entry->incident.id, sizeof(incident.id));
	if (own->is_telling && entry->is_told)
		tell(own, &incident, event->incident.phase);
	if (event->incident.phase == PMDP_PHASE_CLEAR)
		cp_book_remove(&own->book, entry);
	else
		entry->incident = incident;
}

uint64_t cp_own_step(struct cp_own *own, uint64_t now_ns)
{
	if (now_ns < own->due_ns)
		return own->due_ns;
	own->due_ns = pmdp_watch_step(own->watch, on_event, own);
	if (!own->is_telling)
		own->due_ns = (now_ns / CP_OWN_SILENT_NS + 1) * CP_OWN_SILENT_NS;
	if (own->is_telling)
		cp_book_publish(&own->book, &own->instance->numbers);
	return own->due_ns;
}

void cp_own_begin(struct cp_own *own)
{
	struct pmdp_limits limits = limits_of(true);

	// A last silent look: the detector would take the pause between two of them for lateness.
	own->due_ns = pmdp_watch_step(own->watch, on_event, own);
	own->is_telling = true;
	pmdp_watch_set_limits(own->watch, &limits);
	for (size_t i = 0; i < own->book.n; i++) {
		struct cp_book_entry *entry = &own->book.entries[i];

		tell(own, &entry->incident, PMDP_PHASE_RAISE);
		entry->is_told = true;
	}
}

void cp_own_end(struct cp_own *own)
{
	struct pmdp_limits limits = limits_of(false);

	own->is_telling = false;
	pmdp_watch_set_limits(own->watch, &limits);
	for (size_t i = 0; i < own->book.n; i++) {
		struct cp_book_entry *entry = &own->book.entries[i];
		struct pmdp_incident event = entry->incident;

		if (!entry->is_told)
			continue;
		snprintf(event.message, sizeof(event.message),
			 "%s %s: handed over, the agent judges again", event.instance,
			 event.thread_name[0] != 0 ? event.thread_name
						   : pmdp_kind_name(event.kind));
		tell(own, &event, PMDP_PHASE_CLEAR);
		entry->is_told = false;
		// Should the agent die again while this lasts, it is another incident.
		give_id(own, &entry->incident);
	}
}

void cp_own_agent_gone(struct cp_own *own, uint64_t since_ns, const char *why)
{
	struct pmdp_incident *incident = &own->agent_gone;

	if (incident->id[0] != 0)
		return;
	pmdp_incident_init(incident, own->instance->name, PMDP_KIND_AGENT_GONE, PMDP_PHASE_RAISE);
	give_id(own, incident);
	incident->severity = PMDP_SEVERITY_WARNING;
	incident->detected_realtime_us = realtime_us();
	incident->started_realtime_us = since_ns != 0 ? pmdp_realtime_us(since_ns)
						      : incident->detected_realtime_us;
	snprintf(incident->message, sizeof(incident->message),
		 "agent of %s %s: collectd judges by itself, without causes, until it is back",
		 own->instance->name, why);
	cp_log(LOG_WARNING, "%s", incident->message);
	tell(own, incident, PMDP_PHASE_RAISE);
}

void cp_own_agent_back(struct cp_own *own)
{
	struct pmdp_incident *incident = &own->agent_gone;

	if (incident->id[0] == 0)
		return;
	incident->duration_ns = (realtime_us() - incident->started_realtime_us) * 1000;
	snprintf(incident->message, sizeof(incident->message),
		 "agent of %s is back: collectd relays its incidents", own->instance->name);
	cp_log(LOG_NOTICE, "%s", incident->message);
	tell(own, incident, PMDP_PHASE_CLEAR);
	memset(incident, 0, sizeof(*incident));
}
