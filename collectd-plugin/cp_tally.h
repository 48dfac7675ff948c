// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * What stopped each thread: its incidents that are over, by cause and culprit.
 *
 * A row is CAUSE or CAUSE:CULPRIT of one thread. The rows only grow in number, each stays where it
 * is, and its names never change, so the values thread walks them without a lock. Culprits have any
 * name, and every row is a series for ever after: beyond CP_TALLY_CULPRITS of one thread they are
 * "other", beyond CP_TALLY_ROWS in all nothing more is told (incidents_cause still counts).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cp_label.h"
#include "pmdpulse.h"

#define CP_TALLY_ROWS 256
#define CP_TALLY_CULPRITS 8
#define CP_TALLY_ZEROS 2 // two, so that a scrape that is as frequent as the reads misses none

// W: look thread, before n_rows counts it (release/acquire); n_zeros: the values thread's.
struct cp_tally_row {
	char thread_name[PMDP_LANE_NAME_BYTES];
	char detail[64];
	uint32_t cause;
	bool has_culprit;
	uint32_t n_zeros;    // still to be dispatched
	_Atomic uint64_t n;  // W: look thread. R: values thread. Relaxed.
	_Atomic uint64_t ns; // the same
};

struct cp_tally {
	_Atomic size_t n_rows;
	struct cp_tally_row rows[CP_TALLY_ROWS];
};

// Count an incident that is over. Passes over one without a thread. The look thread's.
void cp_tally_add(struct cp_tally *tally, const struct pmdp_incident *incident);

size_t cp_tally_count(const struct cp_tally *tally);

/*
 * The numbers of a row as they are to be dispatched. One with a culprit is 0 for its first times,
 * so that the series begins there and Prometheus sees the first increase; those without one are
 * dispatched from the start. The values thread's.
 */
void cp_tally_take(struct cp_tally_row *row, uint64_t *out_n, uint64_t *out_ns);
