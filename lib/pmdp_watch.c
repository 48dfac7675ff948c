// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "pmdp_watch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmdp_watch_internal.h"

#define MIN_INTERVAL_NS PMDP_NS_PER_MS
#define MAX_INTERVAL_NS (3600 * PMDP_NS_PER_S)
#define FIXED_OPENS 8 // incidents that belong to no lane or port

int pmdp_watch_new(const char *instance, const struct pmdp_watch_opts *opts,
		   struct pmdp_watch **out_watch)
{
	static const struct pmdp_watch_opts no_opts;
	struct pmdp_watch *watch;

	opts = opts ? opts : &no_opts;
	if (pmdp_instance_check(instance) || opts->limits.starve_pct > 100)
		return -EINVAL;
	if (opts->limits.interval_ns && (opts->limits.interval_ns < MIN_INTERVAL_NS ||
					 opts->limits.interval_ns > MAX_INTERVAL_NS))
		return -EINVAL;
	watch = calloc(1, sizeof(*watch));
	if (!watch)
		return -ENOMEM;
	watch->pidfd = -1;
	watch->rundir = opts->rundir ? strdup(opts->rundir) : NULL;
	if ((opts->rundir && !watch->rundir) || pmdp_watch_reserve(watch, FIXED_OPENS)) {
		pmdp_watch_free(watch);
		return -ENOMEM;
	}
	snprintf(watch->instance, sizeof(watch->instance), "%s", instance);
	watch->reader_opts.rundir = watch->rundir;
	watch->reader_opts.publisher_uid = opts->publisher_uid;
	watch->reader_opts.has_publisher_uid = opts->has_publisher_uid;
	watch->limits = opts->limits;
	watch->since_realtime_us = pmdp_realtime_now_us();
	*out_watch = watch;
	return 0;
}

// Let go of the segment; what is open of it has been told before.
static void detach(struct pmdp_watch *watch)
{
	pmdp_watch_process_close(watch);
	pmdp_reader_close(watch->reader);
	watch->reader = NULL;
	watch->has_look = false;
	free(watch->judged);
	free(watch->transitions);
	free(watch->lanes);
	free(watch->ports);
	watch->judged = NULL;
	watch->transitions = NULL;
	watch->lanes = NULL;
	watch->ports = NULL;
	watch->n_lanes = 0;
	watch->n_lanes_max = 0;
	watch->n_ports = 0;
}

void pmdp_watch_free(struct pmdp_watch *watch)
{
	if (!watch)
		return;
	detach(watch);
	pmdp_reader_close(watch->dead);
	free(watch->opens);
	free(watch->rundir);
	free(watch);
}

static void set_status(struct pmdp_watch *watch, uint32_t status)
{
	if (status != PMDP_WATCH_REFUSED) {
		watch->ended = status;
		watch->reason[0] = 0;
	}
	if (status == watch->status)
		return;
	watch->status = status;
	watch->since_realtime_us = pmdp_realtime_now_us();
}

static void refuse(struct pmdp_watch *watch, const char *reason)
{
	snprintf(watch->reason, sizeof(watch->reason), "%s", reason);
	set_status(watch, PMDP_WATCH_REFUSED);
}

// The last sign of life that the segment holds.
static uint64_t last_life_ns(const struct pmdp_watch *watch)
{
	uint64_t last_ns = watch->look.alive_ns <= watch->look.now_ns ? watch->look.alive_ns : 0;

	for (uint32_t i = 0; i < watch->look.n_lanes; i++) {
		const struct pmdp_lane_look *lane = &watch->look.lanes[i];

		if (lane->is_claimed && lane->beat_ns > last_ns &&
		    lane->beat_ns <= watch->look.now_ns)
			last_ns = lane->beat_ns;
	}
	return last_ns;
}

static bool take_look(struct pmdp_watch *watch)
{
	if (pmdp_reader_look(watch->reader, &watch->look))
		return false;
	watch->has_look = true;
	watch->last_life_ns = last_life_ns(watch);
	return true;
}

// The attached publisher is no more, or can't be followed any more.
static void leave(struct pmdp_watch *watch, uint32_t status, uint64_t now_ns)
{
	pmdp_watch_lanes_end(watch, status == PMDP_WATCH_GONE ? "its process died"
				    : status == PMDP_WATCH_STOPPED
					    ? "the switch was stopped"
					    : "its segment can't be followed");
	pmdp_watch_ports_end(watch);
	pmdp_watch_end_now(watch, &watch->stuck_key);
	watch->ended_ns = now_ns;
	set_status(watch, status);
	if (status == PMDP_WATCH_GONE) {
		pmdp_watch_raise_gone(watch, now_ns);
		pmdp_reader_close(watch->dead);
		watch->dead = watch->reader;
		watch->reader = NULL;
	} else if (status == PMDP_WATCH_STOPPED) {
		pmdp_watch_tell_news(
			watch, PMDP_KIND_SWITCH_STOPPED,
			watch->look.stopped_ns < now_ns ? watch->look.stopped_ns : now_ns, 0);
	} else {
		watch->ended = PMDP_WATCH_ABSENT;
	}
	detach(watch);
}

static int allocate(struct pmdp_watch *watch, const struct pmdp_segment_info *info)
{
	uint32_t n_lanes = info->n_lanes ? info->n_lanes : 1;

	watch->judged = calloc(n_lanes, sizeof(*watch->judged));
	watch->transitions =
		calloc(PMDP_MAX_TRANSITIONS((size_t)n_lanes), sizeof(*watch->transitions));
	watch->lanes = calloc(n_lanes, sizeof(*watch->lanes));
	watch->ports = calloc(info->n_ports ? info->n_ports : 1, sizeof(*watch->ports));
	if (!watch->judged || !watch->transitions || !watch->lanes || !watch->ports)
		return -ENOMEM;
	watch->n_lanes_max = info->n_lanes;
	watch->n_ports = info->n_ports;
	// Of a lane either the two of the detector are open or thread-gone.
	return pmdp_watch_reserve(watch, 2 * info->n_lanes + info->n_ports + FIXED_OPENS);
}

// A living publisher: from here on its threads are judged.
static void begin_following(struct pmdp_watch *watch, uint64_t now_ns)
{
	uint32_t before = watch->ended;
	struct pmdp_watch_open *adopted = pmdp_watch_adopted(watch, PMDP_KIND_SWITCH_GONE, 0, "");
	uint64_t away_ns = watch->ended_ns && watch->ended_ns < now_ns ? now_ns - watch->ended_ns
								       : 0;

	uint64_t generation = pmdp_reader_info(watch->reader)->generation;
	bool is_new = watch->is_attach_told && generation != watch->followed_generation;

	watch->followed_generation = generation;
	pmdp_reader_close(watch->dead);
	watch->dead = NULL;
	pmdp_detector_init(&watch->detector, watch->judged, 0);
	watch->attached_ns = now_ns;
	watch->ports_ns = 0;
	watch->free_ports_ns = 0;
	watch->name_ns = 0;
	watch->slow_ns = 0;
	watch->confirm_ns = UINT64_MAX;
	watch->alive_ns = watch->look.alive_ns;
	watch->alive_seen_ns = now_ns;
	watch->quiet_ns = 0;
	set_status(watch, PMDP_WATCH_UP);
	pmdp_watch_end_now(watch, &watch->version_key);
	if (adopted && !watch->gone_key) {
		adopted->is_adopted = false;
		watch->gone_key = adopted->key;
		before = PMDP_WATCH_GONE;
		away_ns =
			pmdp_realtime_now_us() > adopted->incident.started_realtime_us
				? (pmdp_realtime_now_us() - adopted->incident.started_realtime_us) *
					  1000
				: 0;
	}
	pmdp_watch_end_now(watch, &watch->gone_key);
	if (is_new || before == PMDP_WATCH_GONE || before == PMDP_WATCH_STOPPED)
		pmdp_watch_tell_news(watch, PMDP_KIND_SWITCH_BACK, now_ns, away_ns);
}

static void refuse_open(struct pmdp_watch *watch, int rc, const char *reason, uint64_t now_ns)
{
	if (rc == -ENOENT) { // nothing there: as it was before
		set_status(watch, watch->ended);
		pmdp_watch_end_now(watch, &watch->version_key);
		return;
	}
	refuse(watch, reason[0] ? reason : strerror(-rc));
	if (rc == -EPROTONOSUPPORT)
		pmdp_watch_raise_version(watch, now_ns);
}

// What a dead one left: nothing new while the same file stands there.
static bool is_same_dead(struct pmdp_watch *watch)
{
	return watch->dead && pmdp_reader_check(watch->dead) == 0 &&
	       !pmdp_watch_process_is_back(watch);
}

static void attach(struct pmdp_watch *watch, uint64_t now_ns)
{
	char reason[sizeof(watch->reason)] = "";
	int rc;

	if (is_same_dead(watch))
		return;
	rc = pmdp_reader_open_why(watch->instance, &watch->reader_opts, &watch->reader, reason,
				  sizeof(reason));
	if (rc) {
		watch->reader = NULL;
		refuse_open(watch, rc, reason, now_ns);
		return;
	}
	if (!take_look(watch)) {
		refuse(watch, "damaged while it was read");
		detach(watch);
		return;
	}
	pmdp_watch_process_open(watch);
	if (watch->look.stopped_ns) { // on its way out, its name not yet removed
		set_status(watch, PMDP_WATCH_STOPPED);
		detach(watch);
	} else if (allocate(watch, pmdp_reader_info(watch->reader))) {
		refuse(watch, "no memory for its lanes");
		detach(watch);
	} else if (pmdp_watch_process_ended(watch, now_ns)) {
		leave(watch, PMDP_WATCH_GONE, now_ns);
	} else {
		begin_following(watch, now_ns);
	}
}

// A clean stop is written before the process ends: after the end one more look tells which it was.
static uint32_t how_ended(struct pmdp_watch *watch)
{
	return take_look(watch) && watch->look.stopped_ns ? PMDP_WATCH_STOPPED : PMDP_WATCH_GONE;
}

// Does another file stand under the name? While the writer lives that is rare: looked at now and
// then.
static bool is_replaced(struct pmdp_watch *watch, uint64_t now_ns)
{
	watch->name_ns = now_ns + PMDP_WATCH_SLOW_NS;
	return pmdp_reader_check(watch->reader) == -ESTALE;
}

// What became of the attached publisher: PMDP_WATCH_UP, or why it is to be left.
static uint32_t look_around(struct pmdp_watch *watch, uint64_t now_ns)
{
	uint64_t before_ns = watch->look.now_ns;

	if (!take_look(watch))
		return PMDP_WATCH_REFUSED;
	if (watch->look.stopped_ns)
		return PMDP_WATCH_STOPPED;
	// Who beat since the last look lived then; the next look asks again.
	if (watch->last_life_ns <= before_ns && pmdp_watch_process_ended(watch, now_ns))
		return how_ended(watch);
	if (now_ns < watch->name_ns || !is_replaced(watch, now_ns))
		return PMDP_WATCH_UP;
	// Taken over since the look at the process, or, by whatever means, while it lives.
	watch->process_ns = 0;
	return pmdp_watch_process_ended(watch, now_ns) ? how_ended(watch) : PMDP_WATCH_ABSENT;
}

// Lanes are claimed from the lowest on, and most segments have many more than threads.
static void count_lanes(struct pmdp_watch *watch)
{
	for (uint32_t i = watch->n_lanes; i < watch->n_lanes_max; i++) {
		if (watch->look.lanes[i].is_claimed)
			watch->n_lanes = i + 1;
	}
	watch->detector.n_lanes = watch->n_lanes;
}

// Returns when the next step is due; now_ns when another publisher stands there already.
static uint64_t follow(struct pmdp_watch *watch, uint64_t now_ns)
{
	uint32_t status = look_around(watch, now_ns);
	uint64_t due_ns = 0;

	if (status == PMDP_WATCH_UP) {
		count_lanes(watch);
		due_ns = pmdp_watch_judge(watch, now_ns);
		if (!due_ns) // its threads are leaving, so it is
			status = how_ended(watch);
	}
	if (status == PMDP_WATCH_REFUSED)
		refuse(watch, "damaged while it was read");
	if (status != PMDP_WATCH_UP) {
		due_ns = is_replaced(watch, now_ns) ? now_ns : now_ns + PMDP_WATCH_RETRY_NS;
		leave(watch, status, now_ns);
		return due_ns;
	}
	pmdp_watch_ports_look(watch, now_ns);
	pmdp_watch_control(watch, now_ns);
	return due_ns;
}

uint64_t pmdp_watch_step(struct pmdp_watch *watch, pmdp_watch_cb *cb, void *ctx)
{
	uint64_t now_ns = pmdp_mono_now_ns(), due_ns;

	watch->cb = cb;
	watch->ctx = ctx;
	if (!watch->reader)
		attach(watch, now_ns);
	due_ns = watch->reader ? follow(watch, now_ns) : now_ns + PMDP_WATCH_RETRY_NS;
	if (!watch->reader && due_ns == now_ns) { // a new one stands there already
		attach(watch, now_ns);
		due_ns = watch->reader ? follow(watch, now_ns) : now_ns + PMDP_WATCH_RETRY_NS;
	}
	pmdp_watch_settle_adopted(watch, now_ns);
	if (!watch->reader && watch->late_key && now_ns >= watch->late_clear_ns)
		pmdp_watch_end(watch, &watch->late_key, 0);
	watch->cb = NULL;
	watch->ctx = NULL;
	return due_ns;
}

void pmdp_watch_set_limits(struct pmdp_watch *watch, const struct pmdp_limits *limits)
{
	watch->limits = *limits;
}

uint32_t pmdp_watch_status(const struct pmdp_watch *watch)
{
	return watch->status;
}

const char *pmdp_watch_reason(const struct pmdp_watch *watch)
{
	return watch->reason;
}

int pmdp_watch_fd(const struct pmdp_watch *watch)
{
	return watch->pidfd;
}

const struct pmdp_look *pmdp_watch_look(const struct pmdp_watch *watch)
{
	return watch->reader && watch->has_look ? &watch->look : NULL;
}

const struct pmdp_segment_info *pmdp_watch_info(const struct pmdp_watch *watch)
{
	return watch->reader ? pmdp_reader_info(watch->reader) : NULL;
}

struct pmdp_reader *pmdp_watch_reader(const struct pmdp_watch *watch)
{
	return watch->reader;
}

const struct pmdp_lane_body *pmdp_watch_lane(const struct pmdp_watch *watch, uint32_t lane)
{
	return lane < watch->n_lanes && watch->lanes[lane].has_body ? &watch->lanes[lane].body
								    : NULL;
}

uint32_t pmdp_watch_lane_state(const struct pmdp_watch *watch, uint32_t lane)
{
	if (lane >= watch->n_lanes)
		return PMDP_STATE_UNUSED;
	return watch->lanes[lane].is_gone ? PMDP_STATE_GONE
					  : pmdp_detector_state(&watch->detector, lane);
}

uint64_t pmdp_watch_since_realtime_us(const struct pmdp_watch *watch)
{
	return watch->since_realtime_us;
}
