// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "vs_follow_agent.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "vs_log.h"

#define NS_PER_MS UINT64_C(1000000)
#define FRESH_NS (1000 * NS_PER_MS)
#define LATE_NS (2000 * NS_PER_MS) // a step that comes so much later was kept from coming

static uint64_t realtime_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void tell_own(struct vs_follower *follower, struct pmdp_incident *incident)
{
	struct vs_item item = {.source = follower->index, .domains = VS_FAULT, .is_own = true};

	incident->seq = ++follower->n_own;
	incident->emitted_realtime_us = realtime_us();
	vs_log(incident->phase == PMDP_PHASE_RAISE ? VS_WARNING : VS_NOTICE, "%s",
	       incident->message);
	item.incident = *incident;
	if (vs_config_sends(follower->config, VS_FAULT))
		vs_queue_push(follower->queue, &item);
}

static void raise_gone(struct vs_follower *follower)
{
	struct pmdp_incident *gone = &follower->gone;

	if (gone->id[0])
		return;
	pmdp_incident_init(gone, follower->name, PMDP_KIND_AGENT_GONE, PMDP_PHASE_RAISE);
	// The same for every poster that looks at this segment: a second raise is the same alarm.
	snprintf(gone->id, sizeof(gone->id), "%s-%" PRIu64 "-agent", follower->name,
		 follower->generation);
	gone->severity = PMDP_SEVERITY_WARNING;
	gone->detected_realtime_us = realtime_us();
	gone->started_realtime_us = pmdp_realtime_us(follower->stamp_seen_ns);
	snprintf(gone->message, sizeof(gone->message),
		 "agent of %s %s: stalls are not told until it is back", follower->name,
		 follower->is_stopped ? "was stopped" : "gives no sign of life");
	tell_own(follower, gone);
}

static void clear_gone(struct vs_follower *follower)
{
	struct pmdp_incident *gone = &follower->gone;

	if (!gone->id[0])
		return;
	gone->phase = PMDP_PHASE_CLEAR;
	gone->severity = PMDP_SEVERITY_OKAY;
	gone->duration_ns = (realtime_us() - gone->started_realtime_us) * 1000;
	snprintf(gone->message, sizeof(gone->message), "agent of %s is back", follower->name);
	tell_own(follower, gone);
	memset(gone, 0, sizeof(*gone));
}

void vs_follow_agent_restore(struct vs_follower *follower, const struct vs_place *place)
{
	if (!place->gone_id[0])
		return;
	pmdp_incident_init(&follower->gone, follower->name, PMDP_KIND_AGENT_GONE, PMDP_PHASE_RAISE);
	snprintf(follower->gone.id, sizeof(follower->gone.id), "%s", place->gone_id);
	follower->gone.started_realtime_us = place->gone_started_us;
	follower->n_own = 1;
}

static void seen(struct vs_follower *follower, uint64_t now_ns)
{
	follower->agent = VS_AGENT_UP;
	follower->stamp_seen_ns = now_ns;
	clear_gone(follower);
}

void vs_follow_agent_attached(struct vs_follower *follower, uint64_t now_ns)
{
	uint64_t generation = pmdp_reader_info(follower->reader)->generation;
	struct pmdp_look look;

	if (generation == follower->generation)
		return;
	follower->generation = generation;
	follower->stamp_ns = 0;
	if (!follower->stamp_seen_ns)
		follower->stamp_seen_ns = now_ns;
	if (!pmdp_reader_look(follower->reader, &look))
		vs_follow_agent_look(follower, &look, now_ns);
}

void vs_follow_agent_look(struct vs_follower *follower, const struct pmdp_look *look,
			  uint64_t now_ns)
{
	bool is_first = !follower->stamp_ns;
	uint64_t before_ns = follower->stamp_ns;

	follower->is_stopped = look->stopped_ns != 0;
	follower->stamp_ns = look->alive_ns;
	if (follower->is_stopped || look->alive_ns == before_ns)
		return;
	// A stamp that is met for the first time proves life only when it is a recent one.
	if (!is_first ||
	    (look->alive_ns <= look->now_ns && look->now_ns - look->alive_ns < FRESH_NS))
		seen(follower, now_ns);
}

void vs_follow_agent_woke(struct vs_follower *follower, uint64_t now_ns)
{
	if (follower->step_ns && now_ns - follower->step_ns > LATE_NS &&
	    follower->agent == VS_AGENT_UP)
		follower->stamp_seen_ns = now_ns;
	follower->step_ns = now_ns;
}

void vs_follow_agent_judge(struct vs_follower *follower, uint64_t now_ns)
{
	// An instance of which no agent was ever seen is told in the heartbeat alone.
	if (follower->agent == VS_AGENT_GONE || !follower->stamp_seen_ns ||
	    now_ns - follower->stamp_seen_ns < follower->config->agent_timeout_ms * NS_PER_MS)
		return;
	follower->agent = VS_AGENT_GONE;
	raise_gone(follower);
}
