// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Gather the health of an instance from its two segments.
#include "cli_health.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pmdp_detector.h"
#include "pmdp_names.h"
#include "pmdp_watch.h"

// The agent refreshes its stamp several times a second.
#define AGENT_STALE_NS UINT64_C(1000000000)
#define EVENT_BATCH 32

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

// Seconds since a process started, from field 22 of its stat (clock ticks since boot).
static double uptime_of(uint64_t start_ticks)
{
	double up = (double)clock_ns(CLOCK_BOOTTIME) / 1e9 -
		    (double)start_ticks / (double)sysconf(_SC_CLK_TCK);

	return up < 0 ? 0 : up;
}

/*
 * As the agent and collectd's plugin have it: a switch that stopped cleanly has no threads that
 * could be dead; a thread that is not there any more is GONE, not DEAD.
 */
static uint32_t state_of(const struct pmdp_reader *reader, const struct pmdp_look *look,
			 bool is_dead, const struct cli_thread *thread)
{
	uint32_t state;

	if (look->stopped_ns)
		return PMDP_STATE_UNUSED;
	if (is_dead)
		return PMDP_STATE_GONE;
	state = pmdp_lane_state(&thread->look, look, look->keepalive_interval_ns);
	if ((state == PMDP_STATE_DEAD || state == PMDP_STATE_MISSING) &&
	    pmdp_watch_thread_alive(reader, &thread->body) == 0)
		return PMDP_STATE_GONE;
	return state;
}

static void read_thread(struct pmdp_reader *reader, const struct pmdp_look *look, uint32_t lane,
			bool is_dead, struct cli_thread *thread)
{
	thread->look = look->lanes[lane];
	thread->is_body_whole = pmdp_reader_lane(reader, lane, &thread->body) == 0;
	if (!thread->is_body_whole) {
		snprintf(thread->body.name, sizeof(thread->body.name), "lane %u", lane);
		thread->body.core = -1;
		thread->body.numa = -1;
	}
	thread->age_ns = thread->look.beat_ns != 0 && look->now_ns > thread->look.beat_ns
				 ? look->now_ns - thread->look.beat_ns
				 : 0;
	thread->state = state_of(reader, look, is_dead, thread);
}

static void read_ring(struct cli *cli, struct cli_health *health)
{
	const struct pmdp_reader_opts opts = cli_reader_opts(cli, NULL);
	const struct pmdp_segment_info *info;
	struct pmdp_reader *reader;
	struct pmdp_look look;
	bool is_dead;
	int rc = pmdp_reader_open_why(cli->instance, &opts, &reader, health->reason,
				      sizeof(health->reason));

	if (rc == -ENOENT) {
		health->reason[0] = 0;
		return;
	}
	if (rc < 0)
		return;
	info = pmdp_reader_info(reader);
	health->is_attached = true;
	health->switch_pid = info->writer_pid;
	health->generation = info->generation;
	is_dead = pmdp_reader_writer_alive(reader) == 0;
	health->switch_state = is_dead ? "gone" : "up";
	if (!is_dead)
		health->switch_uptime_s = uptime_of(info->writer_start_ticks);
	if (pmdp_reader_look(reader, &look) == 0) {
		if (look.stopped_ns) // its name is not gone yet, or was kept
			health->switch_state = "stopped";
		health->is_keepalive = look.is_keepalive;
		health->interval_ns = look.keepalive_interval_ns;
		health->threads = calloc(look.n_lanes ? look.n_lanes : 1, sizeof(*health->threads));
		for (uint32_t i = 0; i < look.n_lanes && health->threads != NULL; i++) {
			if (!look.lanes[i].is_claimed)
				continue;
			read_thread(reader, &look, i, is_dead, &health->threads[health->n_threads]);
			health->n_in_state[health->threads[health->n_threads++].state % 7]++;
		}
	}
	pmdp_reader_close(reader);
}

// The newest event of each thread's stalls wins; events come oldest first.
static void note_event(struct cli_health *health, const struct pmdp_incident *event)
{
	if (event->kind == PMDP_KIND_AGENT_LATE && event->phase == PMDP_PHASE_RAISE)
		health->late_events++;
	if (event->kind == PMDP_KIND_SWITCH_STOPPED && !health->is_attached)
		health->switch_state = "stopped";
	if (event->kind == PMDP_KIND_SWITCH_BACK && !health->is_attached)
		health->switch_state = "absent";
	if (event->kind != PMDP_KIND_PMD_STALL)
		return;
	for (uint32_t i = 0; i < health->n_threads; i++) {
		struct cli_thread *thread = &health->threads[i];

		if (thread->body.tid != event->thread_tid ||
		    strcmp(thread->body.name, event->thread_name) != 0)
			continue;
		thread->stall.is_known = true;
		thread->stall.incident = *event;
	}
}

static void read_incidents(struct cli *cli, struct cli_health *health)
{
	const struct pmdp_reader_opts opts = cli_reader_opts(cli, "incidents");
	struct pmdp_incident *events = malloc(EVENT_BATCH * sizeof(*events));
	struct pmdp_incident open;
	struct pmdp_reader *reader;
	struct pmdp_look look;
	uint64_t cursor = UINT64_MAX, lost = 0;
	int n;

	if (events == NULL || pmdp_reader_open(cli->instance, &opts, &reader) < 0) {
		free(events);
		return;
	}
	if (pmdp_reader_look(reader, &look) == 0) {
		bool is_fresh = look.stopped_ns == 0 &&
				look.now_ns < look.alive_ns + AGENT_STALE_NS &&
				pmdp_reader_writer_alive(reader) != 0;

		health->agent_state = is_fresh ? "up" : look.stopped_ns != 0 ? "absent" : "stale";
		health->agent_pid = pmdp_reader_info(reader)->writer_pid;
		if (is_fresh)
			health->agent_uptime_s =
				uptime_of(pmdp_reader_info(reader)->writer_start_ticks);
	}
	while ((n = pmdp_reader_events(reader, &cursor, events, EVENT_BATCH, &lost)) > 0) {
		for (int i = 0; i < n; i++) {
			pmdp_incident_sanitize(&events[i]);
			note_event(health, &events[i]);
		}
	}
	for (uint32_t i = 0; i < pmdp_reader_info(reader)->n_incidents; i++)
		health->open_incidents += pmdp_reader_incident(reader, i, &open) == 0;
	free(events);
	pmdp_reader_close(reader);
}

// Without an agent's incident the thread's own newest record of a stall still tells when and how
// long.
static void read_own_stalls(struct cli *cli, struct cli_health *health)
{
	const struct pmdp_reader_opts opts = cli_reader_opts(cli, NULL);
	struct pmdp_record_body records[64];
	struct pmdp_reader *reader;
	struct pmdp_look look;

	if (health->n_threads == 0 || pmdp_reader_open(cli->instance, &opts, &reader) < 0)
		return;
	if (pmdp_reader_look(reader, &look) < 0)
		look.n_lanes = 0;
	for (uint32_t lane = 0, t = 0; lane < look.n_lanes && t < health->n_threads; lane++) {
		struct cli_thread *thread = &health->threads[t];
		uint64_t cursor = 0, lost = 0;
		int n;

		if (!look.lanes[lane].is_claimed)
			continue;
		t++;
		if (thread->stall.is_known || thread->look.n_stalls == 0)
			continue;
		while ((n = pmdp_reader_records(reader, lane, &cursor, records, 64, &lost)) > 0) {
			for (int i = 0; i < n; i++) {
				uint64_t ns =
					pmdp_reader_length_ns(reader, records[i].length_ticks);

				if (records[i].kind != PMDP_RECORD_GAP ||
				    ns < 2 * health->interval_ns)
					continue;
				memset(&thread->stall.incident, 0, sizeof(thread->stall.incident));
				thread->stall.is_known = true;
				thread->stall.incident.duration_ns = ns;
				thread->stall.incident.started_realtime_us = pmdp_realtime_us(
					pmdp_reader_mono_ns(reader, records[i].begin_ticks));
			}
		}
	}
	pmdp_reader_close(reader);
}

void cli_health_read(struct cli *cli, struct cli_health *out_health)
{
	memset(out_health, 0, sizeof(*out_health));
	out_health->switch_state = "absent";
	out_health->agent_state = "absent";
	read_ring(cli, out_health);
	read_incidents(cli, out_health);
	read_own_stalls(cli, out_health);
}

void cli_health_free(struct cli_health *health)
{
	free(health->threads);
	health->threads = NULL;
}
