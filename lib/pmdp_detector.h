// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Detector: (state, look, now, limits) -> transitions. The judgement of the product, as a pure
 * function: no clock, no I/O, no allocation after init. The agent, the plugin and the command run
 * this one; the unit tests feed it a clock.
 *
 * Call order: init with caller's memory, then step at every look; sleep until the time that step
 * returns; reset when another segment was attached. One thread at a time.
 *
 * How a lane is judged (docs/states.md has the diagram):
 *  - The basis of its age is the writer's beat time, but only inside what the watcher has seen for
 *    itself: when the beat count changed since the last look, the beat time clamped to [previous
 *    look, now]; when it did not, the basis stays. A beat time from before the previous look
 *    although the count moved since is a clock that lies or stands still: then the look itself is
 *    the basis. Such a clock can therefore raise nothing, and hide nothing for longer than one
 *    look.
 *  - POLLING: age >= interval is MISSING, >= 2 intervals is DEAD. DOZING: DEAD from the deadline on
 *    (without one: judged like POLLING). SLEEP and EXITED: never judged. Keepalive off: UNUSED.
 *  - A stall that begins and ends between two looks is taken from the lane's self-timed n_stalls. A
 *    stall that was seen live and completed is counted once, with the lane's own length, even when
 *    the resumed beats become visible a look before the lane's stall counters.
 *  - Starved: the lane beats, but gaps below the stall limit took more than starve_pct of a window
 *    (three at least; a window is never shorter than eight intervals, so that one gap can't fill
 *    it). Lanes of kind control pause by design and are not judged so (pmdp_detector_set_kind).
 *  - Late: a step that comes more than one threshold after the time it was due. All windows restart
 *    at now, one LATE transition tells by how much, and nobody is blamed for what lies before (for
 *    a thread that stays silent, three times at most: a watcher that is always late finds a hang,
 *    too). Self-timed stalls that ended before or during the lateness are still told (the lane
 *    timed them), but for one that fills the watcher's whole absence: then the machine stood still,
 *    not the thread.
 *  - now going backwards or standing still is treated as no time passed.
 *  - An incident clears hold_ns after the thread's last stall of that kind; stalls meanwhile update
 *    it and count (the count is exact). UPDATEs are damped to one per update_ns, except three that
 *    are told at once: a worse state, the end of the first stall, the end of a stall longer than
 *    update_ns.
 *  - A thread that exits, a lane that is released or claimed anew, and keepalive switched off end
 *    what is open at once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "pmdpulse.h"

struct pmdp_limits {
	uint64_t interval_ns;      // 0: follow the look's keepalive_interval_ns
	bool notify_missing;       // raise after one interval (WARNING), else after two (FAILURE)
	uint64_t hold_ns;          // 0: 1 s
	uint64_t update_ns;        // 0: 1 s
	uint32_t starve_pct;       // 0: 30
	uint64_t starve_window_ns; // 0: 1 s
	uint64_t late_ns;          // 0: one threshold
};

#define PMDP_T_STATE 1  // the state of a lane changed (no incident by itself)
#define PMDP_T_RAISE 2  // kind tells what
#define PMDP_T_UPDATE 3 // a further stall, a worse state, a stall that lasts, or the end of one
#define PMDP_T_CLEAR 4
#define PMDP_T_LATE 5 // the watcher itself, lane UINT32_MAX; due at begin_ns, came length_ns later

struct pmdp_transition {
	uint32_t what; // PMDP_T_*
	uint32_t lane;
	uint32_t kind;      // PMDP_KIND_PMD_STALL or PMDP_KIND_PMD_STARVED
	uint32_t old_state; // PMDP_STATE_*
	uint32_t new_state;
	uint32_t worst_state; // of the incident: MISSING or DEAD
	uint64_t incarnation;
	uint64_t begin_ns;  // where the (first) stall began: the last beat
	uint64_t end_ns;    // where the newest stall ended, 0 while it lasts
	uint64_t length_ns; // stall: longest one, the lane's own figure, or now - begin while it
			    // lasts starved: how long the thread has been starved
	uint64_t total_ns;  // all stalls of the incident together; starved: the time lost in gaps
	uint64_t n_stalls;  // stalls of the incident; starved: gaps
	uint64_t stall_begin_ns; // where the newest stall began
	uint64_t crumb;          // breadcrumb at the stall
	uint32_t reason;         // PMDP_REASON_* of a broken DOZING deadline
	bool is_self_timed; // the newest stall was not seen live: begin is an estimate, length is
			    // exact
};

// Private to the detector; laid out here so that the caller can provide the memory.
struct pmdp_detector_incident {
	uint64_t begin_ns;         // first stall
	uint64_t running_begin_ns; // newest stall
	uint64_t last_end_ns;
	uint64_t hold_from_ns; // the latest that the last stall can have ended
	uint64_t longest_ns;   // of the completed ones
	uint64_t total_ns;     // of the completed ones
	uint64_t n;            // stalls, with the running one; 0: nothing to tell
	uint64_t told_ns;      // last RAISE or UPDATE
	uint64_t crumb;
	uint64_t owed_ns;         // estimate of a stall whose own figure has not been seen yet
	uint64_t owed_longest_ns; // longest_ns without that estimate
	uint64_t owed_most_ns;    // what it can have been at most
	uint32_t worst_state;
	uint32_t reason;
	bool is_open;    // RAISE was told
	bool is_running; // a stall lasts
	bool is_pending; // something to tell when the damper lets it
	bool is_urgent;  // something to tell now
	bool is_owed;
	bool is_self_timed;
};

struct pmdp_detector_lane {
	uint64_t incarnation, beats, deadline_ns;
	uint32_t announce, reason;
	uint64_t n_gaps, gap_ns, n_stalls, stall_ns, longest_gap_ns;
	uint64_t basis_ns;   // for its age
	uint64_t beat_ns;    // last sign of life; differs from the basis after a late step
	uint64_t floor_ns;   // no stall that is told from here on can have begun before
	uint64_t grace_ns;   // no deadline counts before (late step)
	uint64_t excused_ns; // how long the watcher was away, until the thread shows life again
	uint64_t window_begin_ns, window_n_gaps, window_gap_ns, window_stall_ns;
	uint32_t n_excuses; // late looks since its last sign of life
	uint32_t state;
	uint32_t kind; // PMDP_LANE_*, 0 = not told
	bool is_known;
	struct pmdp_detector_incident stall, starve;
};

struct pmdp_detector {
	struct pmdp_detector_lane *lanes; // the caller's memory
	uint32_t n_lanes;
	uint64_t last_now_ns;
	uint64_t due_ns; // 0 before the first step
};

// The number of transitions that one step can produce at most, for n lanes.
#define PMDP_MAX_TRANSITIONS(n_lanes) ((n_lanes)*6 + 1)

void pmdp_detector_init(struct pmdp_detector *detector, struct pmdp_detector_lane *lanes,
			uint32_t n_lanes);

// Forget everything (another segment). Open incidents are the caller's to clear.
void pmdp_detector_reset(struct pmdp_detector *detector);

// What a lane is (PMDP_LANE_*), when the caller knows it. Forgotten when the lane is claimed anew.
void pmdp_detector_set_kind(struct pmdp_detector *detector, uint32_t lane, uint32_t kind);

/*
 * Judge one look. now_ns is the clock read before the look was taken (look->now_ns, taken after it,
 * does as well for a caller that can't be preempted in between: a thread then seems as old as the
 * pause was long). out must hold PMDP_MAX_TRANSITIONS(n_lanes). Returns their number; *out_due_ns
 * receives the time at which the next step is due: the oldest beat plus its threshold, or the next
 * clear, update or deadline; never later than now + max(threshold, 250 ms).
 */
uint32_t pmdp_detector_step(struct pmdp_detector *detector, const struct pmdp_look *look,
			    uint64_t now_ns, const struct pmdp_limits *limits,
			    struct pmdp_transition *out, uint64_t *out_due_ns);

// State of a lane after the last step.
uint32_t pmdp_detector_state(const struct pmdp_detector *detector, uint32_t lane);

/*
 * A stateless judgement for a one-shot command: the state of a lane at one look, from its announced
 * state and beat age alone.
 */
uint32_t pmdp_lane_state(const struct pmdp_lane_look *lane, const struct pmdp_look *look,
			 uint64_t interval_ns);
