// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "detector_sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEAT_NS (10 * US)
#define GAP_LIMIT_NS (250 * US)
#define START_NS (10000 * S)

void sim_init(struct sim *sim, uint32_t n_lanes, uint64_t interval_ns)
{
	memset(sim, 0, sizeof(*sim));
	pmdp_detector_init(&sim->detector, sim->judged, SIM_LANES);
	sim->now_ns = START_NS;
	sim->look.keepalive_interval_ns = interval_ns;
	sim->look.gap_limit_ns = GAP_LIMIT_NS;
	sim->look.is_keepalive = true;
	sim->look.n_lanes = SIM_LANES;
	sim->look.lanes = sim->looks;
	for (uint32_t i = 0; i < n_lanes; i++) {
		struct sim_lane *lane = &sim->lanes[i];

		lane->stall_limit_ns = 2 * interval_ns;
		lane->last_ns = START_NS;
		lane->done_ns = START_NS;
		lane->look.is_claimed = true;
		lane->look.announce = PMDP_ANNOUNCE_POLLING;
		lane->look.incarnation = 1;
		lane->look.beats = 1;
		lane->look.beat_ns = START_NS;
	}
}

void sim_absent(struct sim *sim, uint32_t lane, uint64_t begin_ns, uint64_t end_ns)
{
	struct sim_lane *l = &sim->lanes[lane];

	if (l->n_absences == SIM_ABSENCES)
		abort();
	l->absences[l->n_absences].begin_ns = begin_ns;
	l->absences[l->n_absences++].end_ns = end_ns;
}

// As a publisher's lane: gap fields first, then the beat.
static void beat(struct sim_lane *l, uint64_t at_ns)
{
	uint64_t gap_ns = at_ns - l->last_ns;

	if (gap_ns >= GAP_LIMIT_NS) {
		l->look.n_gaps++;
		l->look.gap_ns += gap_ns;
		l->look.n_records++;
		if (gap_ns > l->look.longest_gap_ns)
			l->look.longest_gap_ns = gap_ns;
	}
	if (gap_ns >= l->stall_limit_ns) {
		l->look.n_stalls++;
		l->look.stall_ns += gap_ns;
		l->look.last_stall_ns = gap_ns;
	}
	l->last_ns = at_ns;
	l->look.beats++;
	l->look.beat_ns = at_ns;
}

static void polls(struct sim_lane *l, uint64_t to_ns)
{
	if (to_ns <= l->done_ns)
		return;
	if (l->look.announce == PMDP_ANNOUNCE_POLLING && to_ns > l->last_ns) {
		if (l->done_ns > l->last_ns) // the first beat after an absence
			beat(l, l->done_ns);
		l->look.beats += (to_ns - l->done_ns) / BEAT_NS + 1;
		l->look.beat_ns = to_ns;
		l->last_ns = to_ns;
	}
	l->done_ns = to_ns;
}

static void lane_advance(struct sim_lane *l, uint64_t to_ns)
{
	while (l->next < l->n_absences && l->absences[l->next].begin_ns < to_ns) {
		polls(l, l->absences[l->next].begin_ns);
		if (l->absences[l->next].end_ns > to_ns)
			return;
		l->done_ns = l->absences[l->next++].end_ns;
	}
	polls(l, to_ns);
}

void sim_advance(struct sim *sim, uint64_t to_ns)
{
	for (uint32_t i = 0; i < SIM_LANES; i++) {
		if (sim->lanes[i].look.is_claimed)
			lane_advance(&sim->lanes[i], to_ns);
	}
	sim->now_ns = to_ns;
}

void sim_announce(struct sim *sim, uint32_t lane, uint32_t announce, uint32_t reason,
		  uint64_t deadline_ns)
{
	struct sim_lane *l = &sim->lanes[lane];

	l->look.announce = announce;
	l->look.reason = reason;
	l->look.deadline_ns = deadline_ns;
	l->look.n_records++;
	l->last_ns = sim->now_ns;
	l->done_ns = sim->now_ns;
}

static void show(struct sim_lane *l, struct pmdp_lane_look *shown)
{
	struct pmdp_lane_look before = *shown;

	*shown = l->look;
	if (!l->is_torn)
		return;
	l->is_torn = false;
	shown->n_gaps = before.n_gaps;
	shown->gap_ns = before.gap_ns;
	shown->n_stalls = before.n_stalls;
	shown->stall_ns = before.stall_ns;
	shown->last_stall_ns = before.last_stall_ns;
	shown->longest_gap_ns = before.longest_gap_ns;
	shown->n_records = before.n_records;
}

void sim_judge(struct sim *sim, uint64_t now_ns)
{
	struct pmdp_transition out[PMDP_MAX_TRANSITIONS(SIM_LANES)];
	uint32_t n;

	for (uint32_t i = 0; i < SIM_LANES; i++)
		show(&sim->lanes[i], &sim->looks[i]);
	sim->look.now_ns = now_ns;
	n = pmdp_detector_step(&sim->detector, &sim->look, now_ns, &sim->limits, out, &sim->due_ns);
	sim->n_steps++;
	if (n > PMDP_MAX_TRANSITIONS(SIM_LANES) || sim->n_log + n > SIM_LOG)
		abort();
	for (uint32_t i = 0; i < n; i++) {
		sim->log[sim->n_log].at_ns = now_ns;
		sim->log[sim->n_log++].t = out[i];
	}
}

void sim_step(struct sim *sim, uint64_t at_ns)
{
	sim_advance(sim, at_ns);
	sim_judge(sim, at_ns);
}

void sim_run(struct sim *sim, uint64_t to_ns)
{
	while (sim->due_ns < to_ns)
		sim_step(sim, sim->due_ns ? sim->due_ns : sim->now_ns);
	sim_step(sim, to_ns);
}

static bool is_match(const struct sim_told *told, uint32_t what, uint32_t kind)
{
	return told->t.what == what && (!kind || told->t.kind == kind);
}

uint32_t sim_count(const struct sim *sim, uint32_t what, uint32_t kind)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < sim->n_log; i++)
		n += is_match(&sim->log[i], what, kind);
	return n;
}

const struct sim_told *sim_find(const struct sim *sim, uint32_t what, uint32_t kind, uint32_t n)
{
	for (uint32_t i = 0; i < sim->n_log; i++) {
		if (is_match(&sim->log[i], what, kind) && n-- == 0)
			return &sim->log[i];
	}
	return NULL;
}

void sim_print(const struct sim *sim)
{
	static const char *const whats[] = {"?", "state", "raise", "update", "clear", "late"};

	for (uint32_t i = 0; i < sim->n_log; i++) {
		const struct pmdp_transition *t = &sim->log[i].t;

		printf("%.6f %s lane %d kind %u %s->%s worst %s begin %.6f end %.6f length %.6f "
		       "total %.6f n %" PRIu64 "\n",
		       (double)sim->log[i].at_ns / 1e9, whats[t->what], (int)t->lane, t->kind,
		       pmdp_state_name(t->old_state), pmdp_state_name(t->new_state),
		       pmdp_state_name(t->worst_state), (double)t->begin_ns / 1e9,
		       (double)t->end_ns / 1e9, (double)t->length_ns / 1e9,
		       (double)t->total_ns / 1e9, t->n_stalls);
	}
}
