// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_book.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ag_log.h"
#include "ag_loop.h"
#include "ag_merge.h"
#include "ag_sink.h"
#include "pmdp_clock.h"

// How long the raises of one look may be held up by searches for their causes.
#define AG_SEARCH_NS UINT64_C(300000)

// Room for one more, doubling. false: no memory, which is told once; the event is still published.
static bool grow(struct ag_book *book, void **array, uint32_t n, uint32_t *n_max, size_t item_size)
{
	if (n < *n_max)
		return true;
	uint32_t wanted = *n_max ? *n_max * 2 : 16;
	void *bigger = realloc(*array, wanted * item_size);
	if (!bigger) {
		if (!book->is_memory_told)
			ag_log(AG_ERROR, "no memory: incidents stand in the incident segment only");
		book->is_memory_told = true;
		return false;
	}
	*array = bigger;
	*n_max = wanted;
	return true;
}

static struct ag_open *find_open(struct ag_book *book, uint64_t key)
{
	for (uint32_t i = 0; i < book->n_opens; i++)
		if (book->opens[i].key == key)
			return &book->opens[i];
	return NULL;
}

static struct ag_open *add_open(struct ag_book *book, uint64_t key,
				const struct pmdp_incident *incident)
{
	if (!grow(book, (void **)&book->opens, book->n_opens, &book->n_opens_max,
		  sizeof(book->opens[0])))
		return NULL;
	struct ag_open *open = &book->opens[book->n_opens++];
	memset(open, 0, sizeof(*open));
	open->key = key;
	open->incident = *incident;
	open->is_explainable = incident->kind == PMDP_KIND_PMD_STALL ||
			       incident->kind == PMDP_KIND_PMD_STARVED ||
			       incident->kind == PMDP_KIND_THREAD_GONE;
	return open;
}

static void remove_open(struct ag_book *book, struct ag_open *open)
{
	*open = book->opens[--book->n_opens];
}

// Open incidents beyond the table of the segment: all is told as ever, but a restart forgets them.
static void tell_overflow(struct ag_book *book)
{
	uint64_t n = pmdp_incident_log_overflows(book->log);

	if (n && !book->is_overflow_told)
		ag_log(AG_WARNING,
		       "more than %u incidents are open: a restart of the agent would not know "
		       "those beyond; see what they have in common",
		       pmdp_incident_log_slots(book->log));
	book->is_overflow_told |= n > 0;
}

static void publish(struct ag_book *book, struct pmdp_incident *incident)
{
	pmdp_incident_compose(incident);
	pmdp_incident_log_publish(book->log, incident);
	tell_overflow(book);
	book->n_events++;
	if (grow(book, (void **)&book->outbox, book->n_outbox, &book->n_outbox_max,
		 sizeof(book->outbox[0])))
		book->outbox[book->n_outbox++] = *incident;
}

AG_HOT static void deliver(struct ag_book *book)
{
	for (uint32_t i = 0; i < book->n_outbox; i++)
		ag_sinks_event(book->sinks, &book->outbox[i]);
	book->n_outbox = 0;
}

// Take over which stall an event speaks of. A new stall of an open incident is explained anew.
static void note_stall(struct ag_open *open, const struct pmdp_watch_event *event)
{
	if (!event->begin_ns)
		return;
	if (event->begin_ns != open->what.begin_ns || event->end_ns != open->what.end_ns)
		open->has_final = false;
	open->what.lane = event->lane;
	open->what.begin_ns = event->begin_ns;
	open->what.end_ns = event->end_ns;
	open->what.crumb = event->crumb;
	open->what.is_starved = event->incident.kind == PMDP_KIND_PMD_STARVED;
}

/*
 * Ask for the cause of the stall noted last. Returns true when cause or culprit changed. A cause
 * that is known is not given up for one that isn't, nor for the cause of a shorter stall.
 */
static bool explain(struct ag_book *book, struct ag_open *open)
{
	struct pmdp_incident found = open->incident;
	uint64_t retry_ns = 0;

	if (!open->is_explainable || !open->what.begin_ns || open->has_final)
		return false;
	open->what.now_ns = pmdp_mono_now_ns();
	bool is_more = ag_diag_explain(book->diag, &open->what, &found, &retry_ns);
	open->retry_ns =
		is_more ? (retry_ns > open->what.now_ns ? retry_ns : open->what.now_ns + 1000000)
			: 0;
	open->has_final = open->what.end_ns && !is_more;
	book->search_ns = (3 * book->search_ns + (pmdp_mono_now_ns() - open->what.now_ns)) / 4;

	uint64_t end_ns = open->what.end_ns ? open->what.end_ns : open->what.now_ns;
	uint64_t length_ns = end_ns > open->what.begin_ns ? end_ns - open->what.begin_ns : 0;
	bool is_better = found.cause != PMDP_CAUSE_UNKNOWN && length_ns >= open->cause_length_ns;
	if (!is_better && open->incident.cause != PMDP_CAUSE_UNKNOWN)
		return false;
	bool is_changed = ag_merge_differs(&open->incident, &found);
	open->incident = found;
	if (is_better)
		open->cause_length_ns = length_ns;
	return is_changed;
}

int ag_book_open(struct ag_book *book, struct pmdp_incident_log *log, struct ag_diag *diag,
		 struct ag_sinks *sinks, struct pmdp_watch *watch)
{
	*book = (struct ag_book){.log = log, .diag = diag, .sinks = sinks};
	pmdp_watch_tell_attach(watch, pmdp_incident_log_followed(log));
	for (uint32_t slot = 0; slot < pmdp_incident_log_slots(log); slot++) {
		const struct pmdp_incident *incident = pmdp_incident_log_open_at(log, slot);

		if (!incident)
			continue;
		ag_log(AG_INFO, "%s: open since an earlier run, adopted: %s", incident->id,
		       incident->message);
		if (!add_open(book, pmdp_watch_adopt(watch, incident), incident)) {
			ag_book_close(book);
			return -ENOMEM;
		}
	}
	return 0;
}

void ag_book_close(struct ag_book *book)
{
	deliver(book);
	free(book->opens);
	free(book->outbox);
	book->opens = NULL;
	book->outbox = NULL;
	book->n_opens = book->n_opens_max = book->n_outbox_max = 0;
}

static void raise_incident(struct ag_book *book, const struct pmdp_watch_event *event)
{
	struct pmdp_incident incident = event->incident;

	if (incident.kind == PMDP_KIND_AGENT_LATE)
		book->n_late++;
	// OKAY: good news, over as soon as it is told.
	struct ag_open *open = incident.severity == PMDP_SEVERITY_OKAY
				       ? NULL
				       : add_open(book, event->key, &incident);
	if (!open) {
		publish(book, &incident);
		return;
	}
	note_stall(open, event);
	// The first look for a cause takes some 100 us: worth it, the raise mostly names the
	// culprit then. When many threads stall at once, the later ones must not wait for all the
	// searches.
	if (!book->look_began_ns)
		book->look_began_ns = pmdp_mono_now_ns();
	open->is_fresh = pmdp_mono_now_ns() - book->look_began_ns + book->search_ns > AG_SEARCH_NS;
	if (!open->is_fresh)
		explain(book, open);
	publish(book, &open->incident);
}

void ag_book_event(struct ag_book *book, const struct pmdp_watch_event *event)
{
	struct ag_open *open;

	if (event->incident.phase == PMDP_PHASE_RAISE) {
		raise_incident(book, event);
		return;
	}
	open = find_open(book, event->key);
	if (!open) {
		// Its raise was told without being kept (no memory), or it was good news.
		struct pmdp_incident incident = event->incident;

		publish(book, &incident);
		return;
	}
	struct pmdp_incident merged = event->incident;
	ag_merge(&merged, &open->incident);
	open->incident = merged;
	note_stall(open, event);
	explain(book, open);
	open->is_fresh = false;
	publish(book, &open->incident);
	if (event->incident.phase == PMDP_PHASE_CLEAR)
		remove_open(book, open);
}

// What the search found after the last event was told.
static void tell_found(struct ag_book *book, struct ag_open *open)
{
	struct pmdp_incident *incident = &open->incident;

	incident->phase = PMDP_PHASE_UPDATE;
	incident->severity =
		pmdp_incident_severity(incident->kind, incident->phase, incident->state);
	if (!open->what.end_ns && open->what.now_ns - open->what.begin_ns > incident->duration_ns)
		incident->duration_ns = open->what.now_ns - open->what.begin_ns;
	publish(book, incident);
}

uint64_t ag_book_settle(struct ag_book *book)
{
	uint64_t retry_ns = 0;

	if (!book->n_opens && !book->n_outbox)
		return 0;
	book->look_began_ns = 0;
	deliver(book);
	for (uint32_t i = 0; i < book->n_opens; i++) {
		struct ag_open *open = &book->opens[i];
		bool is_due = open->is_fresh ||
			      (open->retry_ns && open->retry_ns <= pmdp_mono_now_ns());

		open->is_fresh = false;
		if (is_due && explain(book, open))
			tell_found(book, open);
		if (open->retry_ns && (!retry_ns || open->retry_ns < retry_ns))
			retry_ns = open->retry_ns;
	}
	deliver(book);
	return retry_ns;
}
