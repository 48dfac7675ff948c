// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <string.h>

#include "pmdp_detector_internal.h"

#define STARVE_MIN_GAPS 3 // fewer are a hiccup, however long

static void count_stall(struct pmdp_detector_incident *stall, uint64_t begin_ns, uint64_t n)
{
	if (!stall->n)
		stall->begin_ns = begin_ns;
	stall->running_begin_ns = begin_ns;
	stall->n += n;
	stall->is_pending = true;
}

void pmdp_stall_begin(struct pmdp_judgement *j, struct pmdp_detector_lane *lane,
		      const struct pmdp_lane_look *look, uint32_t state)
{
	struct pmdp_detector_incident *stall = &lane->stall;

	(void)j;
	count_stall(stall, lane->beat_ns, 1);
	stall->is_running = true;
	stall->is_self_timed = false;
	stall->crumb = look->crumb;
	stall->reason = look->announce == PMDP_ANNOUNCE_DOZING ? look->reason : PMDP_REASON_NONE;
	pmdp_stall_worsen(stall, state);
}

void pmdp_stall_worsen(struct pmdp_detector_incident *stall, uint32_t state)
{
	if (stall->worst_state == PMDP_STATE_DEAD || stall->worst_state == state)
		return;
	stall->is_urgent = stall->worst_state != 0;
	stall->worst_state = state;
}

// The longest stall of those that the lane has counted since the last look. Exact up to two of
// them.
static uint64_t longest_of(const struct pmdp_lane_look *look, const struct pmdp_lane_delta *delta)
{
	uint64_t others_ns = pmdp_sub_sat(delta->stall_ns, look->last_stall_ns);

	if (delta->n_stalls == 1)
		return look->last_stall_ns;
	others_ns = pmdp_max_u64(others_ns / (delta->n_stalls - 1),
				 pmdp_min_u64(delta->new_longest_ns, others_ns));
	return pmdp_max_u64(look->last_stall_ns, others_ns);
}

// A stall that the lane did not count as one: its gap fields may still tell its length.
static uint64_t length_by_gaps(const struct pmdp_lane_delta *delta, uint64_t estimate_ns)
{
	if (delta->n_gaps == 1)
		return delta->gap_ns;
	if (delta->new_longest_ns)
		return delta->new_longest_ns;
	return estimate_ns;
}

/*
 * The thread is back from a stall that was seen live and counted then. Its own figure replaces
 * ours, within what we saw: it showed no life from the basis to the previous look, and none before
 * its last beat. Without a figure yet (beats became visible before the counters) the estimate is
 * owed.
 */
void pmdp_stall_end(struct pmdp_judgement *j, struct pmdp_detector_lane *lane,
		    const struct pmdp_lane_look *look, const struct pmdp_lane_delta *delta)
{
	struct pmdp_detector_incident *stall = &lane->stall;
	uint64_t most_ns = pmdp_sub_sat(j->seen_ns, lane->floor_ns);
	uint64_t least_ns = pmdp_min_u64(pmdp_sub_sat(j->prev_ns, lane->basis_ns), most_ns);
	uint64_t n_further = delta->n_stalls ? delta->n_stalls - 1 : 0;
	uint64_t longest_ns, total_ns;

	if (delta->n_stalls)
		longest_ns = longest_of(look, delta);
	else
		longest_ns =
			length_by_gaps(delta, pmdp_sub_sat(j->now_ns, stall->running_begin_ns));
	longest_ns = pmdp_min_u64(pmdp_max_u64(longest_ns, least_ns), most_ns);
	total_ns = n_further ? pmdp_max_u64(delta->stall_ns, longest_ns) : longest_ns;
	stall->is_owed = !delta->n_stalls;
	stall->owed_ns = longest_ns;
	stall->owed_most_ns = most_ns;
	stall->owed_longest_ns = stall->longest_ns;
	stall->n += n_further;
	stall->total_ns += total_ns;
	stall->longest_ns = pmdp_max_u64(stall->longest_ns, longest_ns);
	stall->last_end_ns = pmdp_min_u64(stall->running_begin_ns + longest_ns, j->seen_ns);
	if (n_further)
		stall->last_end_ns = j->seen_ns;
	stall->hold_from_ns = delta->n_stalls == 1 ? stall->last_end_ns : j->seen_ns;
	stall->is_running = false;
	stall->is_pending = true;
	stall->is_urgent |= stall->n == 1 || longest_ns >= j->update_ns;
}

/*
 * Counters that come a look after the beats: the figure of a stall that was ended by an estimate.
 * They were written before those beats, so they are here at the next life at the latest; if another
 * stall has begun and ended since, a single new figure is that one's.
 */
void pmdp_stall_settle(struct pmdp_detector_lane *lane, const struct pmdp_lane_look *look,
		       struct pmdp_lane_delta *delta)
{
	struct pmdp_detector_incident *stall = &lane->stall;
	uint64_t length_ns = look->last_stall_ns;
	bool is_paid = stall->is_owed && delta->n_stalls > (stall->is_running ? 1 : 0);

	stall->is_owed = false;
	if (!is_paid)
		return;
	if (delta->n_stalls > 1) // it is the first of them
		length_ns = pmdp_sub_sat(delta->stall_ns, length_ns) / (delta->n_stalls - 1);
	length_ns = pmdp_min_u64(length_ns, stall->owed_most_ns);
	stall->total_ns = stall->total_ns - stall->owed_ns + length_ns;
	stall->longest_ns = pmdp_max_u64(stall->owed_longest_ns, length_ns);
	stall->is_pending |= length_ns != stall->owed_ns;
	delta->n_stalls--;
	delta->stall_ns = pmdp_sub_sat(delta->stall_ns, length_ns);
}

/*
 * As long as the watcher was away: it may have been up to a threshold before its due time when the
 * machine stood still, and the thread may come back up to a threshold after it.
 */
static bool is_excused(const struct pmdp_judgement *j, const struct pmdp_detector_lane *lane,
		       uint64_t length_ns)
{
	return lane->excused_ns && length_ns + j->threshold_ns / 2 >= lane->excused_ns &&
	       length_ns <= lane->excused_ns + 2 * j->threshold_ns;
}

/*
 * Stalls that began and ended since the last look. Those that this watcher would not call stalls
 * (its threshold is longer than the publisher's) are left out; so is one that fills the whole time
 * that the watcher itself was away.
 */
void pmdp_stall_self_timed(struct pmdp_judgement *j, struct pmdp_detector_lane *lane,
			   const struct pmdp_lane_look *look, const struct pmdp_lane_delta *seen)
{
	struct pmdp_detector_incident *stall = &lane->stall;
	uint64_t most_ns = pmdp_sub_sat(j->seen_ns, lane->floor_ns) + j->interval_ns / 4;
	struct pmdp_lane_delta delta = *seen;
	uint64_t longest_ns, n;

	if (!delta.n_stalls)
		return;
	longest_ns = pmdp_min_u64(longest_of(look, &delta), most_ns);
	if (is_excused(j, lane, longest_ns)) {
		if (--delta.n_stalls == 0)
			return;
		delta.stall_ns = pmdp_sub_sat(delta.stall_ns, longest_ns);
		longest_ns = pmdp_min_u64(pmdp_max_u64(look->last_stall_ns,
						       delta.stall_ns / delta.n_stalls),
					  delta.stall_ns);
	}
	if (longest_ns < 2 * j->interval_ns)
		return;
	n = delta.stall_ns / (2 * j->interval_ns);
	n = pmdp_max_u64(pmdp_min_u64(delta.n_stalls, n), 1);
	stall->total_ns += n > 1 ? delta.stall_ns : longest_ns;
	stall->longest_ns = pmdp_max_u64(stall->longest_ns, longest_ns);
	count_stall(stall, lane->beat_ns, n);
	stall->last_end_ns = n > 1 ? j->seen_ns : lane->beat_ns + longest_ns;
	stall->last_end_ns = pmdp_min_u64(pmdp_max_u64(stall->last_end_ns, j->prev_ns), j->seen_ns);
	stall->hold_from_ns = j->seen_ns;
	stall->is_self_timed = true;
	stall->crumb = look->crumb;
	stall->reason = PMDP_REASON_NONE;
	stall->worst_state = PMDP_STATE_DEAD;
}

void pmdp_starve_restart(const struct pmdp_judgement *j, struct pmdp_detector_lane *lane,
			 const struct pmdp_lane_look *look)
{
	lane->window_begin_ns = j->now_ns;
	lane->window_n_gaps = look->n_gaps;
	lane->window_gap_ns = look->gap_ns;
	lane->window_stall_ns = look->stall_ns;
}

static void starve_end(struct pmdp_judgement *j, struct pmdp_detector_lane *lane)
{
	struct pmdp_detector_incident *starve = &lane->starve;

	if (!starve->is_running)
		return;
	starve->is_running = false;
	starve->last_end_ns = pmdp_max_u64(lane->window_begin_ns, starve->running_begin_ns);
	starve->hold_from_ns = starve->last_end_ns;
	starve->longest_ns =
		pmdp_max_u64(starve->longest_ns, starve->last_end_ns - starve->running_begin_ns);
	starve->is_pending = true;
	starve->is_urgent = starve->last_end_ns - starve->running_begin_ns >= j->update_ns;
}

/*
 * A window has gaps (from the publisher's gap limit on) and stalls; stalls have their own incident,
 * so their time belongs neither to the lost nor to the possible time.
 */
void pmdp_starve_window(struct pmdp_judgement *j, struct pmdp_detector_lane *lane,
			const struct pmdp_lane_look *look)
{
	struct pmdp_detector_incident *starve = &lane->starve;
	uint64_t elapsed_ns = j->now_ns - lane->window_begin_ns;
	uint64_t stall_ns, gap_ns, n_gaps;

	if (lane->kind == PMDP_LANE_CONTROL || look->announce != PMDP_ANNOUNCE_POLLING) {
		starve_end(j, lane);
		return;
	}
	if (lane->stall.is_running || elapsed_ns < j->starve_window_ns)
		return;
	stall_ns = look->stall_ns - lane->window_stall_ns;
	gap_ns = look->gap_ns - lane->window_gap_ns;
	n_gaps = look->n_gaps - lane->window_n_gaps;
	// Gaps are told when they end: the first one may have begun before the window.
	if (gap_ns < stall_ns || gap_ns > elapsed_ns + 2 * j->interval_ns ||
	    stall_ns >= elapsed_ns) {
		pmdp_starve_restart(j, lane, look);
		return;
	}
	gap_ns = pmdp_min_u64(gap_ns - stall_ns, elapsed_ns - stall_ns);
	if (n_gaps < STARVE_MIN_GAPS || gap_ns < (elapsed_ns - stall_ns) / 100 * j->starve_pct) {
		starve_end(j, lane);
		pmdp_starve_restart(j, lane, look);
		return;
	}
	if (!starve->is_running) {
		starve->running_begin_ns = lane->window_begin_ns;
		starve->is_running = true;
		starve->crumb = look->crumb;
		starve->worst_state = PMDP_STATE_MISSING;
		if (!starve->n)
			starve->begin_ns = lane->window_begin_ns;
	}
	starve->n += n_gaps;
	starve->total_ns += gap_ns;
	starve->is_pending = true;
	pmdp_starve_restart(j, lane, look);
}

static void tell(struct pmdp_judgement *j, uint32_t what, uint32_t index, uint32_t old_state,
		 uint32_t kind, struct pmdp_detector_incident *incident)
{
	struct pmdp_transition *t = pmdp_judge_emit(j, what, index, old_state);
	uint64_t running_ns = pmdp_sub_sat(j->now_ns, incident->running_begin_ns);

	t->kind = kind;
	t->worst_state = incident->worst_state;
	t->begin_ns = incident->begin_ns;
	t->stall_begin_ns = incident->running_begin_ns;
	t->end_ns = incident->is_running ? 0 : incident->last_end_ns;
	t->length_ns = incident->longest_ns;
	t->total_ns = incident->total_ns;
	t->n_stalls = incident->n;
	t->crumb = incident->crumb;
	t->reason = incident->reason;
	t->is_self_timed = incident->is_self_timed;
	if (incident->is_running) {
		t->length_ns = pmdp_max_u64(t->length_ns, running_ns);
		if (kind == PMDP_KIND_PMD_STALL)
			t->total_ns += running_ns;
	}
	incident->told_ns = j->now_ns;
	incident->is_open = what != PMDP_T_CLEAR;
	incident->is_pending = false;
	incident->is_urgent = false;
	if (what == PMDP_T_CLEAR)
		memset(incident, 0, sizeof(*incident));
}

static void tell_incident(struct pmdp_judgement *j, uint32_t index, uint32_t old_state,
			  uint32_t kind, struct pmdp_detector_incident *incident)
{
	if (!incident->n)
		return;
	if (!incident->is_open)
		tell(j, PMDP_T_RAISE, index, old_state, kind, incident);
	else if (!incident->is_running && j->now_ns >= incident->hold_from_ns + j->hold_ns)
		tell(j, PMDP_T_CLEAR, index, old_state, kind, incident);
	else if (incident->is_urgent || ((incident->is_pending || incident->is_running) &&
					 j->now_ns >= incident->told_ns + j->update_ns))
		tell(j, PMDP_T_UPDATE, index, old_state, kind, incident);
	if (!incident->n)
		return;
	if (incident->is_running || incident->is_pending)
		j->due_ns = pmdp_min_u64(j->due_ns, incident->told_ns + j->update_ns);
	if (!incident->is_running)
		j->due_ns =
			pmdp_min_u64(j->due_ns, pmdp_max_u64(incident->hold_from_ns + j->hold_ns,
							     j->now_ns + 1));
}

void pmdp_judge_tell(struct pmdp_judgement *j, uint32_t index, uint32_t old_state)
{
	struct pmdp_detector_lane *lane = &j->detector->lanes[index];

	tell_incident(j, index, old_state, PMDP_KIND_PMD_STALL, &lane->stall);
	tell_incident(j, index, old_state, PMDP_KIND_PMD_STARVED, &lane->starve);
}

// The thread is not judged any more: what is open ends here.
static void drop(struct pmdp_judgement *j, uint32_t index, uint32_t old_state, uint32_t kind,
		 struct pmdp_detector_incident *incident)
{
	if (incident->is_running) {
		uint64_t length_ns = pmdp_sub_sat(j->now_ns, incident->running_begin_ns);

		incident->is_running = false;
		incident->last_end_ns = j->now_ns;
		incident->longest_ns = pmdp_max_u64(incident->longest_ns, length_ns);
		if (kind == PMDP_KIND_PMD_STALL)
			incident->total_ns += length_ns;
	}
	if (incident->is_open)
		tell(j, PMDP_T_CLEAR, index, old_state, kind, incident);
	memset(incident, 0, sizeof(*incident));
}

void pmdp_judge_drop(struct pmdp_judgement *j, uint32_t index, uint32_t old_state)
{
	struct pmdp_detector_lane *lane = &j->detector->lanes[index];

	drop(j, index, old_state, PMDP_KIND_PMD_STALL, &lane->stall);
	drop(j, index, old_state, PMDP_KIND_PMD_STARVED, &lane->starve);
}
