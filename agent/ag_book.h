// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The book of one instance's incidents: takes what the watch saw, keeps what is open together with
 * its cause and evidence, publishes to the incident segment, then to the sinks.
 *
 * Every event of a stall is explained before it is published. The first search for a cause takes
 * some 100 us; what takes longer comes with a retry, and follows as an UPDATE. So does the first
 * search itself for those of many raises at once that would have to wait for it.
 *
 * Call order: open (adopts what an earlier agent left open), ag_book_event for each event of a
 * look, ag_book_settle after the look and when its time has come, close.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ag_diag.h"
#include "ag_loop.h"
#include "pmdp_incident.h"
#include "pmdp_watch.h"

struct ag_sinks;

struct ag_open {
	uint64_t key; // the watch's
	struct pmdp_incident incident;
	struct ag_explain what;
	bool is_explainable;
	bool is_fresh;            // raised in this look, not yet explained
	bool has_final;           // explained with the stall's end
	uint64_t retry_ns;        // 0: nothing more to learn for now
	uint64_t cause_length_ns; // length of the stall that the present cause explains
};

struct ag_book {
	struct pmdp_incident_log *log;
	struct ag_diag *diag;
	struct ag_sinks *sinks;
	struct ag_open *opens;
	uint32_t n_opens, n_opens_max;
	struct pmdp_incident *outbox; // published, not yet at the sinks
	uint32_t n_outbox, n_outbox_max;
	uint64_t n_late;        // agent-late events so far
	uint64_t n_events;      // all events so far
	uint64_t search_ns;     // how long searches take of late; raises do not wait for slow ones
	uint64_t look_began_ns; // first raise of this look, 0: none
	bool is_memory_told;
	bool is_overflow_told;
};

/*
 * log, diag and sinks stay the caller's. Hands every incident that is open in the log to the watch.
 * -ENOMEM.
 */
int ag_book_open(struct ag_book *book, struct pmdp_incident_log *log, struct ag_diag *diag,
		 struct ag_sinks *sinks, struct pmdp_watch *watch);
void ag_book_close(struct ag_book *book);

void ag_book_event(struct ag_book *book, const struct pmdp_watch_event *event);

/*
 * Deliver to the sinks, search for the causes that are due, deliver again. Returns the
 * CLOCK_MONOTONIC time at which there is more to learn, 0 for never.
 */
AG_HOT uint64_t ag_book_settle(struct ag_book *book);
