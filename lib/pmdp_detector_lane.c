// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "pmdp_detector_internal.h"

#define NS_PER_MS UINT64_C(1000000)
#define MAX_EXCUSES 3 // late looks in a row that find a thread silent

static bool is_judged(const struct pmdp_judgement *j, uint32_t index)
{
	const struct pmdp_lane_look *look;

	if (index >= j->look->n_lanes || !j->look->is_keepalive)
		return false;
	look = &j->look->lanes[index];
	return look->is_claimed &&
	       (look->announce == PMDP_ANNOUNCE_POLLING || look->announce == PMDP_ANNOUNCE_DOZING ||
		look->announce == PMDP_ANNOUNCE_SLEEP);
}

// A counter's growth; one that went backwards (broken writer, corrected clock) did not grow.
static uint64_t growth(uint64_t now, uint64_t before)
{
	uint64_t n = now - before;

	return n >> 63 ? 0 : n;
}

static void remember(struct pmdp_detector_lane *lane, const struct pmdp_lane_look *look)
{
	lane->incarnation = look->incarnation;
	lane->beats = look->beats;
	lane->announce = look->announce;
	lane->reason = look->reason;
	lane->deadline_ns = look->deadline_ns;
	lane->n_gaps = look->n_gaps;
	lane->gap_ns = look->gap_ns;
	lane->n_stalls = look->n_stalls;
	lane->stall_ns = look->stall_ns;
	lane->longest_gap_ns = look->longest_gap_ns;
}

/*
 * Nothing of this thread has been seen before: its age counts from this look. For the length of a
 * stall the writer's word on its last beat is taken, unless an earlier look saw the lane without a
 * thread to judge (then that word is about the time before).
 */
static void first_sight(const struct pmdp_judgement *j, struct pmdp_detector_lane *lane,
			const struct pmdp_lane_look *look)
{
	if (look->incarnation != lane->incarnation)
		lane->kind = 0;
	lane->is_known = true;
	lane->basis_ns = j->seen_ns;
	lane->beat_ns = j->seen_ns;
	lane->grace_ns = 0;
	lane->excused_ns = 0;
	lane->n_excuses = 0;
	if (look->beat_ns && look->beat_ns >= j->prev_ns && look->beat_ns < j->seen_ns)
		lane->beat_ns = look->beat_ns;
	lane->floor_ns = lane->beat_ns;
	remember(lane, look);
	pmdp_starve_restart(j, lane, look);
}

static struct pmdp_lane_delta take_delta(const struct pmdp_judgement *j,
					 const struct pmdp_detector_lane *lane,
					 const struct pmdp_lane_look *look)
{
	uint64_t elapsed_ns = pmdp_sub_sat(j->seen_ns, lane->floor_ns) + j->interval_ns / 4 +
			      (lane->stall.is_owed ? lane->stall.owed_most_ns : 0);
	struct pmdp_lane_delta delta = {
		.n_gaps = growth(look->n_gaps, lane->n_gaps),
		.gap_ns = pmdp_min_u64(growth(look->gap_ns, lane->gap_ns), elapsed_ns),
		.n_stalls = growth(look->n_stalls, lane->n_stalls),
		.stall_ns = pmdp_min_u64(growth(look->stall_ns, lane->stall_ns), elapsed_ns),
	};

	if (look->longest_gap_ns > lane->longest_gap_ns)
		delta.new_longest_ns = pmdp_min_u64(look->longest_gap_ns, elapsed_ns);
	// No stall is shorter than two intervals of a millisecond: more of them than fit into the
	// time that passed is not a count.
	if (delta.n_stalls > elapsed_ns / (2 * NS_PER_MS) + 1)
		delta.n_stalls = 0;
	delta.is_life = look->beats != lane->beats || lane->announce != look->announce ||
			lane->reason != look->reason || lane->deadline_ns != look->deadline_ns;
	return delta;
}

/*
 * When the thread last showed life, at the earliest that this watcher can vouch for. A beat a
 * little older than the previous look is the difference between two clocks; much older is a clock
 * that stands still or lies, and an announcement is later than the last beat: then all that is
 * known is that it happened before this look.
 */
static uint64_t life_ns(const struct pmdp_judgement *j, const struct pmdp_detector_lane *lane,
			const struct pmdp_lane_look *look)
{
	if (look->beats == lane->beats)
		return j->seen_ns;
	if (look->beat_ns >= j->prev_ns)
		return pmdp_min_u64(look->beat_ns, j->seen_ns);
	return j->prev_ns - look->beat_ns <= j->interval_ns / 4 ? j->prev_ns : j->seen_ns;
}

static void observe(struct pmdp_judgement *j, struct pmdp_detector_lane *lane,
		    const struct pmdp_lane_look *look)
{
	struct pmdp_lane_delta delta = take_delta(j, lane, look);
	bool is_polling = lane->announce == PMDP_ANNOUNCE_POLLING &&
			  look->announce == PMDP_ANNOUNCE_POLLING;

	lane->excused_ns = pmdp_max_u64(lane->excused_ns, j->late_by_ns);
	// Counters are read together with the life that follows them: a thread that is interrupted
	// between the two has not come back yet.
	if (delta.is_life) {
		pmdp_stall_settle(lane, look, &delta);
		if (lane->stall.is_running)
			pmdp_stall_end(j, lane, look, &delta);
		else
			pmdp_stall_self_timed(j, lane, look, &delta);
		// Counters may come a look after their beats: a length may reach back one life
		// further.
		lane->floor_ns = pmdp_min_u64(lane->beat_ns, j->prev_ns);
		lane->beat_ns = life_ns(j, lane, look);
		lane->basis_ns = lane->beat_ns;
		lane->n_excuses = 0;
		lane->excused_ns = j->late_by_ns; // the life may be from before the absence
		remember(lane, look);
	}
	if (j->late_by_ns) {
		// Nobody is blamed for what lies before; a stall that was known before goes on. But
		// a watcher that is late every time must find a hang all the same.
		if (!lane->stall.is_running && lane->n_excuses++ < MAX_EXCUSES)
			lane->basis_ns = j->seen_ns;
		lane->grace_ns = j->seen_ns + j->threshold_ns;
	}
	// A window holds polling time only.
	if (j->late_by_ns || !is_polling)
		pmdp_starve_restart(j, lane, look);
}

static uint32_t state_of(const struct pmdp_judgement *j, const struct pmdp_detector_lane *lane,
			 const struct pmdp_lane_look *look)
{
	uint64_t age_ns = pmdp_sub_sat(j->now_ns, lane->basis_ns);

	if (lane->stall.is_running && lane->stall.worst_state == PMDP_STATE_DEAD)
		return PMDP_STATE_DEAD;
	if (look->announce == PMDP_ANNOUNCE_SLEEP)
		return PMDP_STATE_SLEEP;
	if (look->announce == PMDP_ANNOUNCE_DOZING && look->deadline_ns)
		return j->now_ns < pmdp_max_u64(look->deadline_ns, lane->grace_ns)
			       ? PMDP_STATE_DOZING
			       : PMDP_STATE_DEAD;
	if (age_ns >= 2 * j->interval_ns)
		return PMDP_STATE_DEAD;
	return age_ns >= j->interval_ns || lane->stall.is_running ? PMDP_STATE_MISSING
								  : PMDP_STATE_ALIVE;
}

static void judge_state(struct pmdp_judgement *j, struct pmdp_detector_lane *lane,
			const struct pmdp_lane_look *look)
{
	lane->state = state_of(j, lane, look);
	if (lane->state != PMDP_STATE_DEAD &&
	    !(lane->state == PMDP_STATE_MISSING && j->notify_missing))
		return;
	if (lane->stall.is_running)
		pmdp_stall_worsen(&lane->stall, lane->state);
	else
		pmdp_stall_begin(j, lane, look, lane->state);
}

// When this lane has to be looked at again.
static uint64_t due_of(const struct pmdp_judgement *j, const struct pmdp_detector_lane *lane,
		       const struct pmdp_lane_look *look)
{
	uint64_t again_ns = j->now_ns + j->threshold_ns;

	switch (lane->state) {
	case PMDP_STATE_DOZING:
		return pmdp_min_u64(pmdp_max_u64(look->deadline_ns, lane->grace_ns), again_ns);
	case PMDP_STATE_DEAD:
		return again_ns;
	case PMDP_STATE_MISSING:
		return lane->basis_ns + 2 * j->interval_ns;
	case PMDP_STATE_ALIVE:
		return lane->basis_ns + j->threshold_ns;
	default:
		return UINT64_MAX;
	}
}

// From this look on another thread's life counts, or none.
static void part(struct pmdp_judgement *j, uint32_t index, const struct pmdp_lane_look *look,
		 uint32_t old_state)
{
	struct pmdp_detector_lane *lane = &j->detector->lanes[index];

	if (!lane->is_known || (look && look->incarnation == lane->incarnation))
		return;
	lane->state = PMDP_STATE_UNUSED;
	pmdp_judge_drop(j, index, old_state);
	lane->is_known = false;
}

void pmdp_judge_lane(struct pmdp_judgement *j, uint32_t index)
{
	struct pmdp_detector_lane *lane = &j->detector->lanes[index];
	const struct pmdp_lane_look *look = is_judged(j, index) ? &j->look->lanes[index] : NULL;
	uint32_t old_state = lane->state;

	part(j, index, look, old_state);
	if (look) {
		if (lane->is_known)
			observe(j, lane, look);
		else
			first_sight(j, lane, look);
		judge_state(j, lane, look);
		pmdp_starve_window(j, lane, look);
		j->due_ns = pmdp_min_u64(j->due_ns, due_of(j, lane, look));
	} else {
		lane->state = PMDP_STATE_UNUSED;
	}
	if (lane->state != old_state)
		pmdp_judge_emit(j, PMDP_T_STATE, index, old_state);
	if (look)
		pmdp_judge_tell(j, index, old_state);
}
