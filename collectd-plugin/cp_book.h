// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Book of the incidents that are open at one source (the agent, or the plugin's own detector), and
 * the way from an event to a notification: count, choose, hand over. The look thread's alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cp_instance.h"
#include "pmdp_incident.h"

#define CP_BOOK_MAX 1024 // beyond, the oldest entry is forgotten

struct cp_book_entry {
	uint64_t key;                  // own detector: pmdp_watch_event.key
	bool is_told;                  // a raise was handed over, so a clear is owed
	bool is_present;               // scratch of a comparison with the agent's table
	struct pmdp_incident incident; // newest event
};

struct cp_book {
	struct cp_book_entry *entries;
	size_t n, n_max;
};

struct cp_book_entry *cp_book_find_id(struct cp_book *book, const char *id);
struct cp_book_entry *cp_book_find_key(struct cp_book *book, uint64_t key);
// NULL without memory. Pointers to other entries become invalid.
struct cp_book_entry *cp_book_add(struct cp_book *book, const struct pmdp_incident *incident);
void cp_book_remove(struct cp_book *book, struct cp_book_entry *entry);
void cp_book_clear(struct cp_book *book);

// Will an event of this kind be followed by a clear?
bool cp_book_is_lasting(const struct pmdp_incident *incident);

// Publish which kinds and causes are open, for the metrics.
void cp_book_publish(const struct cp_book *book, struct cp_relay_numbers *numbers);

/*
 * Tell an event: counts it (a raise by kind, a clear by cause) and hands it to the dispatch thread
 * when its thread is selected. Never waits.
 */
void cp_tell(struct cp_instance *instance, const struct pmdp_incident *incident);
