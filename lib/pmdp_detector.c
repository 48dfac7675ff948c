// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "pmdp_detector.h"

#include <string.h>

#include "pmdp_clock.h"
#include "pmdp_detector_internal.h"

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)
#define DEFAULT_STARVE_PCT 30
#define IDLE_LOOK_NS (250 * NS_PER_MS) // something may have begun to poll meanwhile

void pmdp_detector_init(struct pmdp_detector *detector, struct pmdp_detector_lane *lanes,
			uint32_t n_lanes)
{
	memset(detector, 0, sizeof(*detector));
	detector->lanes = lanes;
	detector->n_lanes = n_lanes;
	pmdp_detector_reset(detector);
}

void pmdp_detector_reset(struct pmdp_detector *detector)
{
	if (detector->n_lanes)
		memset(detector->lanes, 0, detector->n_lanes * sizeof(*detector->lanes));
	detector->last_now_ns = 0;
	detector->due_ns = 0;
}

void pmdp_detector_set_kind(struct pmdp_detector *detector, uint32_t lane, uint32_t kind)
{
	if (lane < detector->n_lanes)
		detector->lanes[lane].kind = kind;
}

uint32_t pmdp_detector_state(const struct pmdp_detector *detector, uint32_t lane)
{
	return lane < detector->n_lanes ? detector->lanes[lane].state : PMDP_STATE_UNUSED;
}

static void resolve_limits(struct pmdp_judgement *j, const struct pmdp_limits *limits)
{
	j->interval_ns = pmdp_usable_interval_ns(
		limits->interval_ns ? limits->interval_ns : j->look->keepalive_interval_ns);
	j->notify_missing = limits->notify_missing;
	j->threshold_ns = j->interval_ns * (limits->notify_missing ? 1 : 2);
	j->hold_ns = limits->hold_ns ? limits->hold_ns : NS_PER_S;
	j->update_ns = limits->update_ns ? limits->update_ns : NS_PER_S;
	j->starve_pct = limits->starve_pct ? limits->starve_pct : DEFAULT_STARVE_PCT;
	j->starve_window_ns = limits->starve_window_ns ? limits->starve_window_ns : NS_PER_S;
	// One gap below the stall limit must not fill a window.
	j->starve_window_ns = pmdp_max_u64(j->starve_window_ns, 8 * j->interval_ns);
}

struct pmdp_transition *pmdp_judge_emit(struct pmdp_judgement *j, uint32_t what, uint32_t index,
					uint32_t old_state)
{
	struct pmdp_transition *t = &j->out[j->n_out++];

	memset(t, 0, sizeof(*t));
	t->what = what;
	t->lane = index;
	if (index < j->detector->n_lanes) {
		t->old_state = old_state;
		t->new_state = j->detector->lanes[index].state;
		t->incarnation = j->detector->lanes[index].incarnation;
	}
	return t;
}

static void judge_lateness(struct pmdp_judgement *j, const struct pmdp_limits *limits)
{
	uint64_t late_ns = limits->late_ns ? limits->late_ns : j->threshold_ns;
	struct pmdp_transition *t;

	if (!j->detector->due_ns || pmdp_sub_sat(j->now_ns, j->detector->due_ns) <= late_ns)
		return;
	j->late_by_ns = j->now_ns - j->detector->due_ns;
	t = pmdp_judge_emit(j, PMDP_T_LATE, UINT32_MAX, 0);
	t->begin_ns = j->detector->due_ns;
	t->end_ns = j->now_ns;
	t->length_ns = j->late_by_ns;
	t->total_ns = j->late_by_ns;
}

uint32_t pmdp_detector_step(struct pmdp_detector *detector, const struct pmdp_look *look,
			    uint64_t now_ns, const struct pmdp_limits *limits,
			    struct pmdp_transition *out, uint64_t *out_due_ns)
{
	struct pmdp_judgement j = {
		.detector = detector,
		.look = look,
		.now_ns = pmdp_max_u64(now_ns, detector->last_now_ns),
		.prev_ns = detector->last_now_ns,
		.out = out,
	};

	j.seen_ns = pmdp_max_u64(look->now_ns, j.now_ns);
	resolve_limits(&j, limits);
	judge_lateness(&j, limits);
	j.due_ns = j.now_ns + pmdp_max_u64(j.threshold_ns, IDLE_LOOK_NS);
	for (uint32_t i = 0; i < detector->n_lanes; i++)
		pmdp_judge_lane(&j, i);
	detector->last_now_ns = j.now_ns;
	detector->due_ns = j.due_ns;
	*out_due_ns = j.due_ns;
	return j.n_out;
}

uint32_t pmdp_lane_state(const struct pmdp_lane_look *lane, const struct pmdp_look *look,
			 uint64_t interval_ns)
{
	uint64_t age_ns;

	if (!lane->is_claimed || !look->is_keepalive)
		return PMDP_STATE_UNUSED;
	switch (lane->announce) {
	case PMDP_ANNOUNCE_SLEEP:
		return PMDP_STATE_SLEEP;
	case PMDP_ANNOUNCE_DOZING:
		if (lane->deadline_ns)
			return look->now_ns < lane->deadline_ns ? PMDP_STATE_DOZING
								: PMDP_STATE_DEAD;
		break;
	case PMDP_ANNOUNCE_POLLING:
		break;
	default:
		return PMDP_STATE_UNUSED;
	}
	if (!lane->beat_ns) // never beat: nothing tells how old it is
		return PMDP_STATE_MISSING;
	interval_ns =
		pmdp_usable_interval_ns(interval_ns ? interval_ns : look->keepalive_interval_ns);
	age_ns = pmdp_sub_sat(look->now_ns, lane->beat_ns);
	if (age_ns >= 2 * interval_ns)
		return PMDP_STATE_DEAD;
	return age_ns >= interval_ns ? PMDP_STATE_MISSING : PMDP_STATE_ALIVE;
}
