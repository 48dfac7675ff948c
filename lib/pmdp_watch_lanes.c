// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pmdp_watch_internal.h"

static bool is_claimed(const struct pmdp_watch *watch, uint32_t index)
{
	return index < watch->look.n_lanes && watch->look.lanes[index].is_claimed;
}

// Who a lane is. A body that can't be read whole now is tried again at the next look.
static void read_body(struct pmdp_watch *watch, uint32_t index, bool is_slow)
{
	struct pmdp_watch_lane *lane = &watch->lanes[index];
	uint64_t incarnation = watch->look.lanes[index].incarnation;
	struct pmdp_lane_body body;

	if (lane->has_body && lane->incarnation == incarnation && !is_slow)
		return;
	if (lane->incarnation != incarnation) {
		lane->has_body = false;
		lane->recorded.stall_begin_ns = 0;
	}
	if (pmdp_reader_lane(watch->reader, index, &body))
		return;
	body.name[sizeof(body.name) - 1] = 0;
	lane->body = body;
	lane->has_body = true;
	lane->incarnation = incarnation;
	pmdp_detector_set_kind(&watch->detector, index, body.kind);
}

// A lane that was given up or claimed anew: nobody is gone from it any more.
static void settle_lane(struct pmdp_watch *watch, uint32_t index)
{
	struct pmdp_watch_lane *lane = &watch->lanes[index];

	if (is_claimed(watch, index) &&
	    (!lane->has_body || lane->incarnation == watch->look.lanes[index].incarnation))
		return;
	pmdp_watch_end(watch, &lane->gone_key, 0);
	lane->is_gone = false;
	lane->gone_seen_ns = 0;
	if (!is_claimed(watch, index))
		lane->has_body = false;
}

static void set_thread(const struct pmdp_watch *watch, uint32_t index,
		       struct pmdp_incident *incident)
{
	const struct pmdp_watch_lane *lane = &watch->lanes[index];
	char name[PMDP_LANE_NAME_BYTES];

	if (lane->has_body) {
		pmdp_incident_thread(incident, lane->body.name, lane->body.tid, lane->body.core);
		return;
	}
	snprintf(name, sizeof(name), "lane %" PRIu32, index);
	pmdp_incident_thread(incident, name, 0, -1);
}

static void set_where(struct pmdp_incident *incident, uint64_t crumb)
{
	uint32_t stage = (uint32_t)(crumb & 0xffff), port = (uint32_t)(crumb >> 16 & 0xffff);
	char text[PMDP_EVIDENCE_TEXT_BYTES];

	if (stage == PMDP_STAGE_NONE)
		return;
	if (stage == PMDP_STAGE_RX || stage == PMDP_STAGE_PROCESS || stage == PMDP_STAGE_TX)
		snprintf(text, sizeof(text), "%s of port %" PRIu32 " queue %" PRIu32,
			 pmdp_stage_name(stage), port, (uint32_t)(crumb >> 32 & 0xffff));
	else
		snprintf(text, sizeof(text), "%s", pmdp_stage_name(stage));
	pmdp_evidence_text(incident, "where", text);
}

static void fill_stall(struct pmdp_watch *watch, const struct pmdp_transition *t,
		       const struct pmdp_watch_open *base, struct pmdp_watch_event *event)
{
	struct pmdp_incident *incident = &event->incident;
	uint64_t n = t->n_stalls, total_ns = t->total_ns, length_ns = t->length_ns;

	if (base && base->base_n) {
		n += base->base_n;
		total_ns += base->base_total_ns;
		if (length_ns < base->base_longest_ns)
			length_ns = base->base_longest_ns;
	}
	event->begin_ns = t->stall_begin_ns;
	event->end_ns = t->end_ns;
	event->crumb = t->crumb;
	pmdp_watch_refine(watch, t, event);
	incident->duration_ns = length_ns;
	pmdp_evidence_int(incident, "ongoing", t->end_ns == 0);
	if (t->kind == PMDP_KIND_PMD_STARVED) {
		pmdp_evidence_int(incident, "gaps", (int64_t)n);
		pmdp_evidence_real(incident, "lost_s", (double)total_ns / 1e9);
		return;
	}
	pmdp_evidence_int(incident, "stalls", (int64_t)n);
	pmdp_evidence_real(incident, "stalled_s", (double)total_ns / 1e9);
	if (t->is_self_timed || pmdp_evidence_find(incident, "self_timed"))
		pmdp_evidence_int(incident, "self_timed", t->is_self_timed);
	set_where(incident, event->crumb);
	if (t->reason || pmdp_evidence_find(incident, "deadline_of"))
		pmdp_evidence_text(incident, "deadline_of",
				   t->reason ? pmdp_reason_name(t->reason) : "");
}

/*
 * What an earlier run counted, once the detector has found the incident again. A stall that began
 * before the last event of that run is in its count already.
 */
static void settle_base(struct pmdp_watch_open *open, const struct pmdp_transition *t)
{
	if (!open || !open->is_adopted || !open->base_n)
		return;
	if (pmdp_realtime_us(t->begin_ns) > open->incident.emitted_realtime_us)
		return;
	open->base_n--;
	open->base_total_ns = open->base_total_ns > open->base_longest_ns
				      ? open->base_total_ns - open->base_longest_ns
				      : 0;
}

static uint64_t *key_of(struct pmdp_watch *watch, const struct pmdp_transition *t)
{
	struct pmdp_watch_lane *lane = &watch->lanes[t->lane];

	return t->kind == PMDP_KIND_PMD_STALL ? &lane->stall_key : &lane->starve_key;
}

static void tell(struct pmdp_watch *watch, const struct pmdp_transition *t, bool is_late_raise)
{
	static const uint32_t phases[] = {
		[PMDP_T_RAISE] = PMDP_PHASE_RAISE,
		[PMDP_T_UPDATE] = PMDP_PHASE_UPDATE,
		[PMDP_T_CLEAR] = PMDP_PHASE_CLEAR,
	};
	uint64_t *key = key_of(watch, t);
	struct pmdp_watch_open *open = pmdp_watch_find(watch, *key);
	struct pmdp_watch_event event;

	if (t->what != PMDP_T_RAISE && !open && !is_late_raise)
		return; // it became thread-gone, or is in doubt
	pmdp_watch_begin(watch, *key, t->kind, is_late_raise ? PMDP_PHASE_RAISE : phases[t->what],
			 &event);
	event.lane = t->lane;
	event.incident.state = t->what == PMDP_T_CLEAR ? t->new_state : t->worst_state;
	if (t->what != PMDP_T_RAISE && !is_late_raise) {
		fill_stall(watch, t, open, &event);
		if (t->what == PMDP_T_UPDATE) {
			pmdp_watch_update(watch, &event);
		} else {
			if (t->new_state == PMDP_STATE_UNUSED)
				pmdp_evidence_text(&event.incident, "ended",
						   watch->look.is_keepalive ? "the thread ended"
									    : "keepalive is off");
			pmdp_watch_clear(watch, &event);
			*key = 0;
		}
		return;
	}
	set_thread(watch, t->lane, &event.incident);
	open = pmdp_watch_adopted(watch, t->kind, event.incident.thread_tid, "");
	settle_base(open, t);
	fill_stall(watch, t, open, &event);
	*key = pmdp_watch_raise(watch, &event, t->is_self_timed ? event.begin_ns : t->begin_ns);
}

/*
 * A thread that pauses by itself between its beats (a foreign program with a sleep in its loop) has
 * the same gaps as one that is kept from its CPU. The kernel tells them apart, over a time: so
 * starvation is told at its second event. True: it is in doubt from now on.
 */
static bool doubt(struct pmdp_watch *watch, const struct pmdp_transition *t)
{
	struct pmdp_watch_lane *lane = &watch->lanes[t->lane];

	lane->is_starve_doubted =
		lane->has_body && !pmdp_watch_adopted(watch, t->kind, lane->body.tid, "") &&
		pmdp_watch_thread_pauses(watch, &lane->body, &lane->doubt_n_pauses) == 0;
	lane->doubt_n_gaps = t->n_stalls;
	return lane->is_starve_doubted;
}

// True: the doubt is over, and this event is to be told as the raise.
static bool settle_doubt(struct pmdp_watch *watch, const struct pmdp_transition *t)
{
	struct pmdp_watch_lane *lane = &watch->lanes[t->lane];
	uint64_t n_pauses = 0, n_gaps;

	if (t->kind != PMDP_KIND_PMD_STARVED || !lane->is_starve_doubted)
		return false;
	n_gaps = t->n_stalls - lane->doubt_n_gaps;
	lane->is_starve_doubted =
		t->what != PMDP_T_CLEAR &&
		(n_gaps == 0 || (pmdp_watch_thread_pauses(watch, &lane->body, &n_pauses) == 0 &&
				 n_pauses - lane->doubt_n_pauses >= n_gaps / 2));
	if (lane->is_starve_doubted && n_gaps) { // from here on anew: it may change its ways
		lane->doubt_n_gaps = t->n_stalls;
		lane->doubt_n_pauses = n_pauses;
	}
	return !lane->is_starve_doubted && t->what == PMDP_T_UPDATE;
}

static void raise_gone(struct pmdp_watch *watch, uint32_t index, uint64_t now_ns)
{
	struct pmdp_watch_lane *lane = &watch->lanes[index];
	uint64_t begin_ns = watch->look.lanes[index].beat_ns;
	struct pmdp_watch_event event;

	lane->is_gone = true;
	pmdp_watch_end_why(watch, &lane->stall_key, "the thread is gone");
	pmdp_watch_end_why(watch, &lane->starve_key, "the thread is gone");
	pmdp_watch_begin(watch, 0, PMDP_KIND_THREAD_GONE, PMDP_PHASE_RAISE, &event);
	event.lane = index;
	event.incident.state = PMDP_STATE_GONE;
	event.incident.cause = PMDP_CAUSE_EXITED;
	set_thread(watch, index, &event.incident);
	if (!begin_ns || begin_ns > now_ns)
		begin_ns = now_ns;
	event.incident.duration_ns = now_ns - begin_ns;
	lane->gone_key = pmdp_watch_raise(watch, &event, begin_ns);
}

/*
 * Is this lane's thread there? Returns false while that is in doubt: absent, but its process may be
 * dying, which is another story. An absence that lasts while the process lives is told as
 * thread-gone.
 */
static bool check_thread(struct pmdp_watch *watch, uint32_t index, uint64_t now_ns)
{
	struct pmdp_watch_lane *lane = &watch->lanes[index];

	if (lane->is_gone || !lane->has_body)
		return !lane->is_gone;
	if (!pmdp_watch_thread_is_gone(watch, &lane->body)) {
		lane->gone_seen_ns = 0;
		return true;
	}
	if (!lane->gone_seen_ns)
		lane->gone_seen_ns = now_ns;
	if (now_ns - lane->gone_seen_ns >= PMDP_WATCH_CONFIRM_NS) {
		raise_gone(watch, index, now_ns);
		return false;
	}
	if (watch->confirm_ns > lane->gone_seen_ns + PMDP_WATCH_CONFIRM_NS)
		watch->confirm_ns = lane->gone_seen_ns + PMDP_WATCH_CONFIRM_NS;
	return false;
}

static void tell_late(struct pmdp_watch *watch, const struct pmdp_transition *t)
{
	uint32_t phase = watch->late_key ? PMDP_PHASE_UPDATE : PMDP_PHASE_RAISE;
	uint64_t hold_ns = watch->limits.hold_ns ? watch->limits.hold_ns : PMDP_NS_PER_S;
	const struct pmdp_evidence *evidence;
	struct pmdp_watch_event event;

	watch->late_clear_ns = t->end_ns + hold_ns;
	watch->quiet_ns = t->end_ns;
	pmdp_watch_begin(watch, watch->late_key, PMDP_KIND_AGENT_LATE, phase, &event);
	evidence = pmdp_evidence_find(&event.incident, "times");
	pmdp_evidence_int(&event.incident, "times",
			  1 + (evidence && evidence->integer < INT64_MAX ? evidence->integer : 0));
	if (event.incident.duration_ns < t->length_ns)
		event.incident.duration_ns = t->length_ns;
	if (watch->late_key)
		pmdp_watch_update(watch, &event);
	else
		watch->late_key = pmdp_watch_raise(watch, &event, t->begin_ns);
}

// A thread that stopped beating, seen for the first time. True: there is nothing to tell of it
// (yet).
static bool is_withheld(struct pmdp_watch *watch, const struct pmdp_transition *t, uint64_t now_ns)
{
	return t->what == PMDP_T_RAISE && t->end_ns == 0 && !check_thread(watch, t->lane, now_ns);
}

/*
 * In the order of the detector. A stall whose thread is not there is not told as a stall; is the
 * whole process on its way out, nothing more is told of its threads. True: it is.
 */
static bool tell_all(struct pmdp_watch *watch, uint32_t n, uint64_t now_ns)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct pmdp_transition *t = &watch->transitions[i];

		if (t->what == PMDP_T_LATE) {
			tell_late(watch, t);
			continue;
		}
		if (t->what == PMDP_T_STATE)
			continue;
		if (t->what == PMDP_T_RAISE && t->kind == PMDP_KIND_PMD_STARVED && doubt(watch, t))
			continue;
		if (is_withheld(watch, t, now_ns)) {
			if (pmdp_watch_process_is_dying(watch))
				return true;
			continue;
		}
		tell(watch, t, settle_doubt(watch, t));
	}
	return false;
}

// Threads that need not beat can leave without a stall; those in doubt are looked at again.
static bool check_threads(struct pmdp_watch *watch, bool is_slow, uint64_t now_ns)
{
	bool is_any_gone = false;

	watch->confirm_ns = UINT64_MAX;
	for (uint32_t i = 0; i < watch->n_lanes; i++) {
		bool is_due =
			watch->lanes[i].gone_seen_ns ||
			(is_slow && pmdp_detector_state(&watch->detector, i) != PMDP_STATE_ALIVE);

		if (is_claimed(watch, i) && is_due && !watch->lanes[i].is_gone)
			is_any_gone |= !check_thread(watch, i, now_ns);
	}
	return is_any_gone && pmdp_watch_process_is_dying(watch);
}

uint64_t pmdp_watch_judge(struct pmdp_watch *watch, uint64_t now_ns)
{
	bool is_slow = now_ns >= watch->slow_ns;
	uint64_t due_ns;
	uint32_t n;

	if (is_slow)
		watch->slow_ns = now_ns + PMDP_WATCH_SLOW_NS;
	n = pmdp_detector_step(&watch->detector, &watch->look, now_ns, &watch->limits,
			       watch->transitions, &due_ns);
	for (uint32_t i = 0; i < watch->n_lanes; i++) {
		settle_lane(watch, i);
		if (is_claimed(watch, i))
			read_body(watch, i, is_slow);
	}
	if (check_threads(watch, is_slow, now_ns) || tell_all(watch, n, now_ns))
		return 0;
	if (watch->late_key && now_ns >= watch->late_clear_ns)
		pmdp_watch_end(watch, &watch->late_key, 0);
	else if (watch->late_key && due_ns > watch->late_clear_ns)
		due_ns = watch->late_clear_ns;
	return due_ns < watch->confirm_ns ? due_ns : watch->confirm_ns;
}

void pmdp_watch_lanes_end(struct pmdp_watch *watch, const char *why)
{
	for (uint32_t i = 0; i < watch->n_lanes; i++) {
		pmdp_watch_end_why(watch, &watch->lanes[i].stall_key, why);
		pmdp_watch_end_why(watch, &watch->lanes[i].starve_key, why);
		pmdp_watch_end(watch, &watch->lanes[i].gone_key, 0);
	}
}
