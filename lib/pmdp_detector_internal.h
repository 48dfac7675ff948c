// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Between the detector's own files: one step with its limits resolved.
 *
 * pmdp_detector.c runs the step, pmdp_detector_lane.c judges a lane's life and state,
 * pmdp_detector_stall.c keeps the books of its incidents and decides what is told when.
 */
#pragma once

#include "pmdp_detector.h"
#include "pmdp_names.h"

struct pmdp_judgement {
	struct pmdp_detector *detector;
	const struct pmdp_look *look;
	uint64_t now_ns;  // before the table was read; never goes back
	uint64_t seen_ns; // after it: no sign of life in the table is younger
	uint64_t prev_ns; // now_ns of the step before
	uint64_t interval_ns;
	uint64_t threshold_ns; // raise: one interval or two
	uint64_t hold_ns, update_ns, starve_window_ns;
	uint32_t starve_pct;
	bool notify_missing;
	uint64_t late_by_ns; // 0: in time
	uint64_t due_ns;     // of the next step, as far as known
	struct pmdp_transition *out;
	uint32_t n_out;
};

// What a lane did since the last look.
struct pmdp_lane_delta {
	bool is_life; // any sign of it
	uint64_t n_gaps, gap_ns, n_stalls, stall_ns;
	uint64_t new_longest_ns; // 0: the longest gap did not grow
};

static inline uint64_t pmdp_sub_sat(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static inline uint64_t pmdp_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t pmdp_max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void pmdp_judge_lane(struct pmdp_judgement *j, uint32_t index);

struct pmdp_transition *pmdp_judge_emit(struct pmdp_judgement *j, uint32_t what, uint32_t index,
					uint32_t old_state);

// Books of the stalls.
void pmdp_stall_begin(struct pmdp_judgement *j, struct pmdp_detector_lane *lane,
		      const struct pmdp_lane_look *look, uint32_t state);
void pmdp_stall_worsen(struct pmdp_detector_incident *stall, uint32_t state);
void pmdp_stall_end(struct pmdp_judgement *j, struct pmdp_detector_lane *lane,
		    const struct pmdp_lane_look *look, const struct pmdp_lane_delta *delta);
void pmdp_stall_settle(struct pmdp_detector_lane *lane, const struct pmdp_lane_look *look,
		       struct pmdp_lane_delta *delta);
void pmdp_stall_self_timed(struct pmdp_judgement *j, struct pmdp_detector_lane *lane,
			   const struct pmdp_lane_look *look, const struct pmdp_lane_delta *delta);
// Books of the starvation: a window has passed, or must begin anew.
void pmdp_starve_restart(const struct pmdp_judgement *j, struct pmdp_detector_lane *lane,
			 const struct pmdp_lane_look *look);
void pmdp_starve_window(struct pmdp_judgement *j, struct pmdp_detector_lane *lane,
			const struct pmdp_lane_look *look);
// Tell what is to be told of both, once per step; or end both at once.
void pmdp_judge_tell(struct pmdp_judgement *j, uint32_t index, uint32_t old_state);
void pmdp_judge_drop(struct pmdp_judgement *j, uint32_t index, uint32_t old_state);
