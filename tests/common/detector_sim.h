// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Threads and a clock for the detector's tests: each lane beats without a pause except during the
 * absences that the test gives it, and counts its own gaps as a publisher's lane does. Nothing here
 * reads a real clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pmdp_detector.h"
#include "pmdp_names.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)

#define T0 (10000 * S) // when it begins

#define SIM_LANES 4
#define SIM_ABSENCES 4096
#define SIM_LOG 16384

struct sim_lane {
	struct pmdp_lane_look look; // what a reader sees
	uint64_t last_ns;           // last beat or announcement
	uint64_t done_ns;           // simulated up to here
	uint64_t stall_limit_ns;
	bool is_torn; // the next look shows the counters of the look before, with the beats of now
	struct {
		uint64_t begin_ns, end_ns;
	} absences[SIM_ABSENCES];
	uint32_t n_absences, next;
};

struct sim_told {
	uint64_t at_ns;
	struct pmdp_transition t;
};

struct sim {
	struct pmdp_detector detector;
	struct pmdp_detector_lane judged[SIM_LANES];
	struct pmdp_limits limits;
	struct sim_lane lanes[SIM_LANES];
	struct pmdp_lane_look looks[SIM_LANES];
	struct pmdp_look look;
	uint64_t now_ns; // of the watcher
	uint64_t due_ns;
	uint32_t n_steps;
	struct sim_told log[SIM_LOG];
	uint32_t n_log;
};

// n_lanes of kind PMD, polling from time 10000 s on. interval_ns is the publisher's.
void sim_init(struct sim *sim, uint32_t n_lanes, uint64_t interval_ns);

// The thread does not run in [begin, end). In order of time.
void sim_absent(struct sim *sim, uint32_t lane, uint64_t begin_ns, uint64_t end_ns);

// Let the threads run to the time, unseen.
void sim_advance(struct sim *sim, uint64_t to_ns);

void sim_announce(struct sim *sim, uint32_t lane, uint32_t announce, uint32_t reason,
		  uint64_t deadline_ns);

// Threads run to the time, then one look and one step at it.
void sim_step(struct sim *sim, uint64_t at_ns);
// One step of the lanes as they stand, with any clock.
void sim_judge(struct sim *sim, uint64_t now_ns);

// Steps at the times that the detector asks for, up to and at the time.
void sim_run(struct sim *sim, uint64_t to_ns);

// Transitions told so far: how many of a sort, and the n-th of it (NULL: not so many). kind 0: any.
uint32_t sim_count(const struct sim *sim, uint32_t what, uint32_t kind);
const struct sim_told *sim_find(const struct sim *sim, uint32_t what, uint32_t kind, uint32_t n);

// Print the log, for a test that failed.
void sim_print(const struct sim *sim);

// For cmocka tests that call theirs sim: so many transitions of a kind (0: any) were told.
#define assert_told(what, kind, expected)                                \
	do {                                                             \
		if (sim_count(&sim, what, kind) != (uint32_t)(expected)) \
			sim_print(&sim);                                 \
		assert_int_equal(sim_count(&sim, what, kind), expected); \
	} while (0)
