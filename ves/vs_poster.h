// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The poster: followers fill the queue, one post at a time empties it, in order. One thread that
 * waits in one place (vs_poster_run).
 *
 *	followers --> queue --> render --> post --> collector
 *	              bounded              again after a pause that grows
 *
 * An event leaves the queue when the collector has taken it or refused it for good; until then it
 * is tried again. Whatever is lost is counted, and the next event says how many
 * (PMDP_VES_LOST_KEY); heartbeats carry the totals. A try of which the outcome is unknown is
 * repeated: a collector may see an event twice, with the same eventId and sequence.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "vs_config.h"
#include "vs_follow.h"
#include "vs_pace.h"
#include "vs_post.h"
#include "vs_queue.h"
#include "vs_state.h"

enum vs_under_way {
	VS_NOTHING,
	VS_EVENTS,
	VS_BEAT,
};

struct vs_poster {
	struct vs_config config;
	char rundir[VS_PATH_BYTES];
	struct vs_queue queue;
	struct vs_pace pace;
	struct vs_post post;
	struct vs_state state; // as it was last saved
	struct vs_follower followers[VS_MAX_INSTANCES];
	uint32_t n_followers;
	bool is_full_told;

	enum vs_under_way under_way;
	uint32_t under_way_domain;
	uint64_t under_way_untold; // losses that it tells of
	uint32_t n_single;         // this many go one by one: the collector refused their batch

	uint64_t n_sent, n_refused, n_failed; // events, events, tries
	uint64_t n_beats;
	uint64_t started_us;
	uint64_t beat_due_ns, discover_due_ns, save_due_ns, notify_due_ns;
	uint64_t failing_since_ns; // 0: the last try went well
	uint64_t watchdog_ns;      // ping this often, 0: never
	int signal_fd, touch_fd, touch_wd;
	bool is_stopping;
	uint64_t stop_by_ns;
	int last_trouble;
	char last_error[512], status[512], save_error[64];
};

// Errors have been logged. config is filled in before.
int vs_poster_start(struct vs_poster *poster);
// Until SIGTERM or SIGINT; then what waits has two seconds to go.
void vs_poster_run(struct vs_poster *poster);
void vs_poster_stop(struct vs_poster *poster);

// vs_send.c: begin the next post, if there is something to send and it is time; take its outcome.
void vs_send_next(struct vs_poster *poster, uint64_t now_ns);
void vs_send_result(struct vs_poster *poster, const struct vs_result *result, uint64_t now_ns);
// When vs_send_next() will have something to do, by the clock alone.
uint64_t vs_send_due_ns(const struct vs_poster *poster);

// vs_report.c: what systemd and the collector hear about the poster itself.
char *vs_report_heartbeat(struct vs_poster *poster); // malloc'd event, NULL without memory
void vs_report_systemd(struct vs_poster *poster, const char *prefix);
