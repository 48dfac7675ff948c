// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The agent's events, read from one incidents segment after another and told once each.
 *
 * What is told exactly once is decided by seq, which an agent carries over from its predecessor's
 * segment; the position in the ring only says where to read on. What stood in the ring at the first
 * attach is history and is not told; what is open then is told by a raise of its own
 * (cp_events_sync). The look thread's alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cp_book.h"
#include "cp_instance.h"
#include "pmdpulse.h"

#define CP_EVENTS_BATCH 16

struct cp_events {
	struct cp_instance *instance;
	struct pmdp_reader *reader; // NULL: no segment
	uint64_t cursor;
	uint64_t last_seq;
	uint64_t own_seq;     // of the newest clear made here
	uint64_t sync_due_ns; // 0: the book agrees with the agent's table
	bool is_primed;       // history was skipped once
	struct cp_book book;  // open at the agent, as told
	struct pmdp_incident batch[CP_EVENTS_BATCH];
};

void cp_events_fini(struct cp_events *events);

// Take over a reader just opened: skip history the first time, later go on after the newest seq.
void cp_events_attach(struct cp_events *events, struct pmdp_reader *reader);
void cp_events_detach(struct cp_events *events);

// Tell all that is new. Returns how many events were read, or -errno of the reader.
int cp_events_pump(struct cp_events *events, uint64_t now_ns);

/*
 * Compare the book with the agent's table of open incidents: raise what was missed, clear what is
 * no longer open. Needed after attach, loss, and the way back from own detection.
 */
void cp_events_sync(struct cp_events *events, uint64_t now_ns);
