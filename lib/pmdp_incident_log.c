// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The writer of NAME.incidents. Event number n (from 0) has seq n + 1 for good: the numbers go on
 * from one agent to the next, so that a follower's place stays valid when it opens the new file.
 *
 * Order, for a crash in between: a RAISE is in the table of open incidents before it is in the
 * ring, a CLEAR is in the ring before it leaves the table. So nothing that was told can be left
 * open for ever; what was cleared already is found in the ring when the table is carried over.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "pmdp_clock.h"
#include "pmdp_incident.h"
#include "pmdp_segment.h"
#include "pmdp_shm.h"

#define DEFAULT_N_EVENTS 512
// With 64 PMDs and 256 ports all can be open: two a PMD, one a port, a few of the whole switch.
#define DEFAULT_N_INCIDENTS 512
#define SUFFIX "incidents"

struct open_incident {
	bool is_used;
	struct pmdp_incident incident;
};

struct pmdp_incident_log {
	struct pmdp_segment seg;
	struct pmdp_event_shm *events; // the ring
	struct pmdp_event_shm *table;
	struct open_incident *opens; // private copy of the table
	uint32_t n_ring, n_table;
	uint32_t n_high; // slots from here up were never used
	// Open ones without a slot, oldest first: each gets the next slot that is free.
	struct pmdp_incident *waiting;
	uint32_t n_waiting, n_waiting_max;
	uint64_t n_overflows;
	uint64_t n_events;
	uint64_t n_ids;
	uint64_t followed_generation;
	char instance[PMDP_INSTANCE_BYTES];
};

static void store_open(struct pmdp_incident_log *log, uint32_t slot)
{
	struct pmdp_event_shm *shm = &log->table[slot];
	uint64_t seq = pmdp_seq_write_begin(&shm->seq);

	atomic_store_explicit(&shm->in_use, log->opens[slot].is_used, memory_order_relaxed);
	pmdp_words_store(&shm->body, &log->opens[slot].incident, sizeof(shm->body));
	pmdp_seq_write_end(&shm->seq, seq);
}

// Slot of the incident, or the first free one; n_table: neither.
static uint32_t find_slot(const struct pmdp_incident_log *log, const char *id)
{
	uint32_t slot = log->n_high;

	for (uint32_t i = 0; i < log->n_high; i++) {
		if (!log->opens[i].is_used)
			slot = slot < i ? slot : i;
		else if (!strcmp(log->opens[i].incident.id, id))
			return i;
	}
	return slot;
}

static struct pmdp_incident *find_waiting(struct pmdp_incident_log *log, const char *id)
{
	for (uint32_t i = 0; i < log->n_waiting; i++) {
		if (!strcmp(log->waiting[i].id, id))
			return &log->waiting[i];
	}
	return NULL;
}

// The table is full: the event is in the ring all the same.
static void keep_waiting(struct pmdp_incident_log *log, const struct pmdp_incident *incident)
{
	struct pmdp_incident *waiting = find_waiting(log, incident->id);
	uint32_t n_max = log->n_waiting_max ? 2 * log->n_waiting_max : 16;

	if (waiting) {
		*waiting = *incident;
		return;
	}
	log->n_overflows++;
	if (log->n_waiting == log->n_waiting_max) {
		waiting = realloc(log->waiting, n_max * sizeof(*waiting));
		if (!waiting)
			return;
		log->waiting = waiting;
		log->n_waiting_max = n_max;
	}
	log->waiting[log->n_waiting++] = *incident;
}

static void drop_waiting(struct pmdp_incident_log *log, struct pmdp_incident *waiting)
{
	size_t n_after = (size_t)(&log->waiting[log->n_waiting] - waiting) - 1;

	memmove(waiting, waiting + 1, n_after * sizeof(*waiting));
	log->n_waiting--;
}

static void keep_open(struct pmdp_incident_log *log, const struct pmdp_incident *incident)
{
	uint32_t slot = find_slot(log, incident->id);

	if (slot == log->n_table) {
		keep_waiting(log, incident);
		return;
	}
	if (slot == log->n_high)
		log->n_high++;
	log->opens[slot].is_used = true;
	log->opens[slot].incident = *incident;
	store_open(log, slot);
}

static void drop_open(struct pmdp_incident_log *log, const char *id)
{
	struct pmdp_incident *waiting = find_waiting(log, id);
	uint32_t slot = find_slot(log, id);

	if (waiting)
		drop_waiting(log, waiting);
	if (slot == log->n_high || !log->opens[slot].is_used)
		return;
	if (log->n_waiting) {
		log->opens[slot].incident = log->waiting[0];
		drop_waiting(log, log->waiting);
	} else {
		memset(&log->opens[slot], 0, sizeof(log->opens[slot]));
	}
	store_open(log, slot);
}

static void note_followed(struct pmdp_incident_log *log, const struct pmdp_incident *incident)
{
	const struct pmdp_evidence *generation = pmdp_evidence_find(incident, "generation");

	if (incident->kind == PMDP_KIND_SWITCH_BACK && generation &&
	    generation->type == PMDP_EVIDENCE_INT)
		log->followed_generation = (uint64_t)generation->integer;
}

static void push_event(struct pmdp_incident_log *log, const struct pmdp_incident *incident)
{
	struct pmdp_event_shm *shm = &log->events[log->n_events % log->n_ring];

	note_followed(log, incident);
	pmdp_ring_write(&shm->seq, &shm->body, incident, sizeof(*incident),
			&log->seg.header->n_events, log->n_events);
	log->n_events++;
}

// Events of the predecessor, under their own numbers. The new ring may be smaller or larger.
static int carry_events(struct pmdp_incident_log *log, struct pmdp_reader *reader)
{
	uint64_t cursor = UINT64_MAX, before;
	struct pmdp_incident incident;
	int rc;

	for (;;) {
		before = cursor;
		rc = pmdp_reader_events(reader, &cursor, &incident, 1, NULL);
		if (rc < 0)
			return rc;
		if (rc == 0 && cursor == before)
			return 0;
		if (cursor >= INT64_MAX)
			return -EBADMSG; // no agent counts that far
		log->n_events = cursor;
		if (rc == 0)
			continue; // nothing whole there; its number stays unused
		log->n_events--;
		pmdp_incident_sanitize(&incident);
		incident.seq = cursor;
		push_event(log, &incident);
		if (incident.phase == PMDP_PHASE_CLEAR)
			drop_open(log, incident.id);
	}
}

static int carry_open(struct pmdp_incident_log *log, struct pmdp_reader *reader)
{
	uint32_t n = pmdp_reader_info(reader)->n_incidents;
	struct pmdp_incident incident;

	for (uint32_t i = 0; i < n; i++) {
		int rc = pmdp_reader_incident(reader, i, &incident);

		if (rc == -EBADMSG || rc == -EIO)
			return rc;
		if (rc < 0)
			continue; // free, or the agent died while it wrote this one
		pmdp_incident_sanitize(&incident);
		if (incident.id[0])
			keep_open(log, &incident);
	}
	return 0;
}

// The table first: the ring then takes out of it what was cleared.
static int carry_over(struct pmdp_incident_log *log, const char *rundir, const char *instance)
{
	const struct pmdp_reader_opts opts = {.rundir = rundir, .suffix = SUFFIX};
	struct pmdp_reader *reader;
	int rc = pmdp_reader_open(instance, &opts, &reader);

	if (rc < 0)
		return rc;
	rc = carry_open(log, reader);
	if (rc == 0)
		rc = carry_events(log, reader);
	pmdp_reader_close(reader);
	return rc;
}

static void forget_all(struct pmdp_incident_log *log)
{
	log->n_events = 0;
	log->followed_generation = 0;
	atomic_store_explicit(&log->seg.header->n_events, 0, memory_order_relaxed);
	for (uint32_t i = 0; i < log->n_ring; i++)
		atomic_store_explicit(&log->events[i].seq, 0, memory_order_relaxed);
	for (uint32_t i = 0; i < log->n_table; i++) {
		memset(&log->opens[i], 0, sizeof(log->opens[i]));
		store_open(log, i);
	}
	log->n_high = log->n_waiting = 0;
}

static int create_segment(struct pmdp_incident_log *log, const char *instance,
			  const struct pmdp_incident_log_opts *opts)
{
	struct pmdp_segment_opts seg_opts = {
		.rundir = opts->rundir,
		.instance = instance,
		.suffix = SUFFIX,
		.group = opts->group,
		.publisher_uid = opts->publisher_uid,
		.has_publisher_uid = opts->has_publisher_uid,
		.mode = opts->mode,
		.segment_kind = PMDP_SEGMENT_INCIDENTS,
		.clock_kind = PMDP_CLOCK_MONOTONIC,
		.ticks_hz = PMDP_NS_PER_S,
		.is_damaged_kept = true,
		.n_sections = 2,
		.sections =
			{
				{PMDP_SECTION_EVENTS,
				 opts->n_events ? opts->n_events : DEFAULT_N_EVENTS,
				 sizeof(struct pmdp_event_shm)},
				{PMDP_SECTION_INCIDENTS,
				 opts->n_incidents ? opts->n_incidents : DEFAULT_N_INCIDENTS,
				 sizeof(struct pmdp_event_shm)},
			},
	};
	int rc = pmdp_segment_create(&seg_opts, &log->seg);

	if (rc < 0)
		return rc;
	log->events = pmdp_segment_section(&log->seg, PMDP_SECTION_EVENTS, &log->n_ring);
	log->table = pmdp_segment_section(&log->seg, PMDP_SECTION_INCIDENTS, &log->n_table);
	log->opens = calloc(log->n_table, sizeof(*log->opens));
	return log->opens ? 0 : -ENOMEM;
}

static void destroy(struct pmdp_incident_log *log)
{
	pmdp_segment_close(&log->seg, false);
	free(log->opens);
	free(log->waiting);
	free(log);
}

int pmdp_incident_log_open(const char *instance, const struct pmdp_incident_log_opts *opts,
			   struct pmdp_incident_log **out_log, bool *out_was_bad)
{
	static const struct pmdp_incident_log_opts no_opts;
	struct pmdp_incident_log *log;
	int rc;

	opts = opts ? opts : &no_opts;
	if (opts->n_events > PMDP_MAX_EVENTS || opts->n_incidents > PMDP_MAX_EVENTS)
		return -EINVAL;
	log = calloc(1, sizeof(*log));
	if (!log)
		return -ENOMEM;
	rc = create_segment(log, instance, opts);
	if (rc < 0)
		goto fail;
	snprintf(log->instance, sizeof(log->instance), "%s", instance);
	rc = carry_over(log, opts->rundir, instance);
	// Damaged inside, of another version, another's or not to be read: kept for whoever can.
	log->seg.is_unreadable = rc < 0 && rc != -ENOENT;
	if (rc < 0)
		forget_all(log);
	rc = pmdp_segment_publish(&log->seg);
	if (rc < 0)
		goto fail;
	if (out_was_bad)
		*out_was_bad = log->seg.was_damaged;
	*out_log = log;
	return 0;

fail:
	destroy(log);
	return rc;
}

void pmdp_incident_log_close(struct pmdp_incident_log *log)
{
	if (!log)
		return;
	atomic_store_explicit(&log->seg.header->stopped_ns, pmdp_mono_now_ns(),
			      memory_order_release);
	destroy(log);
}

void pmdp_incident_log_alive(struct pmdp_incident_log *log)
{
	pmdp_segment_alive(&log->seg);
}

static void give_id(struct pmdp_incident_log *log, struct pmdp_incident *incident)
{
	if (incident->id[0])
		return;
	snprintf(incident->id, sizeof(incident->id), "%s-%" PRIu64 "-%" PRIu64, log->instance,
		 log->seg.header->generation, ++log->n_ids);
}

void pmdp_incident_log_publish(struct pmdp_incident_log *log, struct pmdp_incident *incident)
{
	bool is_over = incident->phase == PMDP_PHASE_CLEAR;

	give_id(log, incident);
	incident->seq = log->n_events + 1;
	incident->emitted_realtime_us = pmdp_realtime_now_us();
	// Good news (OKAY) is over as soon as it is told.
	if (!is_over && incident->severity != PMDP_SEVERITY_OKAY)
		keep_open(log, incident);
	push_event(log, incident);
	// Wakes followers that wait by inotify (IN_ATTRIB). By name: the fd's own name is that of
	// the unnamed file it was opened as, and it is that one which inotify would give.
	utimensat(log->seg.dir_fd, log->seg.name, NULL, AT_SYMLINK_NOFOLLOW);
	if (is_over)
		drop_open(log, incident->id);
}

uint32_t pmdp_incident_log_slots(const struct pmdp_incident_log *log)
{
	return log->n_table;
}

const struct pmdp_incident *pmdp_incident_log_open_at(const struct pmdp_incident_log *log,
						      uint32_t slot)
{
	return slot < log->n_table && log->opens[slot].is_used ? &log->opens[slot].incident : NULL;
}

uint64_t pmdp_incident_log_overflows(const struct pmdp_incident_log *log)
{
	return log->n_overflows;
}

uint64_t pmdp_incident_log_followed(const struct pmdp_incident_log *log)
{
	return log->followed_generation;
}

uint64_t pmdp_incident_log_generation(const struct pmdp_incident_log *log)
{
	return log->seg.header->generation;
}
