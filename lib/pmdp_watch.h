// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Watch: follow one instance from before it exists until after it is gone, and turn what happens
 * into events. Joins reader, detector and the look at the writer's process; the agent adds causes,
 * the plugin uses it as it is when no agent is there.
 *
 * Call order: new, then step at or soon after the time that the last step returned (or when
 * pmdp_watch_fd() becomes readable: the writer's process ended), take the events it hands out,
 * free. One thread at a time. Reads the clocks, the segment and /proc; never sleeps, never blocks
 * longer than a file-system call on a tmpfs.
 *
 * Events carry kind, phase, severity, thread, times, duration, state and the plain causes that need
 * no privilege (exited, process-died; otherwise unknown). id and seq are left empty: the receiver's
 * log gives them. key names the incident an event belongs to: RAISE, UPDATE and CLEAR of one
 * incident carry the same.
 *
 * What becomes an event:
 *   pmd-stall       from the detector. A stall that was not seen live gets its begin and place from
 *                   the lane's record
 *   pmd-starved     from the detector, at its second event: unless the thread gave its CPU up by
 *                   itself about as often as it had gaps
 *   thread-gone     a claimed lane whose tid has left a living process without announcing EXITED,
 *                   seen twice, 50 ms apart; it takes the place of a stall
 *   switch-gone     the process died or was killed (or: alive stamp stale and pid unknowable);
 *                   open pmd incidents are cleared with it, no thread-gone for its threads
 *   switch-stopped  clean stop (OKAY, raise and nothing to clear)
 *   switch-back     a new generation after gone or stopped (OKAY); clears switch-gone. After
 *                   pmdp_watch_tell_attach() any that this watch begins to follow
 *   control-stuck   PMDs beat but the publisher's alive stamp is older than 5 s
 *   link            a port's link went from up to down (raise) and up again, or the port was
 *                   removed (clear); unknown is no event, nor is a port that is found down
 *   drops           (later work)
 *   agent-late      the detector's LATE, as seen by whoever runs the watch
 *   version-mismatch  the segment has another ABI version: raise; clear when a readable one
 *                     appears, or none is there any more
 *
 * state of a pmd incident's raise and update is the worst of it (MISSING or DEAD), so that severity
 * follows from the event alone; of its clear, that of the thread now.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "pmdp_detector.h"
#include "pmdp_incident.h"
#include "pmdpulse.h"

struct pmdp_watch;

struct pmdp_watch_opts {
	const char *rundir;
	uid_t publisher_uid;
	bool has_publisher_uid;
	struct pmdp_limits limits;
};

#define PMDP_WATCH_ABSENT 0 // never seen
#define PMDP_WATCH_UP 1
#define PMDP_WATCH_STOPPED 2 // clean stop
#define PMDP_WATCH_GONE 3    // died
#define PMDP_WATCH_REFUSED 4 // a segment stands there that can't be read; see pmdp_watch_reason()

struct pmdp_watch_event {
	uint64_t key;  // which incident; never 0, unique within this watch
	uint32_t lane; // index, or UINT32_MAX
	// For pmd-stall and pmd-starved: CLOCK_MONOTONIC of the stall, for the search for a cause.
	uint64_t begin_ns;
	uint64_t end_ns; // 0 while it lasts
	uint64_t crumb;
	struct pmdp_incident incident;
};

typedef void pmdp_watch_cb(void *ctx, const struct pmdp_watch_event *event);

// -EINVAL: bad instance name or limits. -ENOMEM.
int pmdp_watch_new(const char *instance, const struct pmdp_watch_opts *opts,
		   struct pmdp_watch **out_watch);
void pmdp_watch_free(struct pmdp_watch *watch);

/*
 * Look once, judge, hand every event to cb (which must not call back into the watch). Returns the
 * CLOCK_MONOTONIC time at which the next step is due: 100 ms ahead while nothing is attached.
 */
uint64_t pmdp_watch_step(struct pmdp_watch *watch, pmdp_watch_cb *cb, void *ctx);

void pmdp_watch_set_limits(struct pmdp_watch *watch, const struct pmdp_limits *limits);

/*
 * Adopt an incident left open by an earlier run, before the first step: it will be updated and
 * cleared under its key instead of being raised again, or cleared when its reason is gone. Returns
 * the key.
 */
uint64_t pmdp_watch_adopt(struct pmdp_watch *watch, const struct pmdp_incident *incident);

/*
 * Tell of every attach, by switch-back, but for that to followed_generation (0: none), which an
 * earlier run told. Before the first step.
 */
void pmdp_watch_tell_attach(struct pmdp_watch *watch, uint64_t followed_generation);

uint32_t pmdp_watch_status(const struct pmdp_watch *watch); // PMDP_WATCH_*
const char *pmdp_watch_reason(const struct pmdp_watch *watch);
int pmdp_watch_fd(
	const struct pmdp_watch *watch); // a pidfd of the writer to poll for POLLIN, or -1

// What the last step saw; NULL while nothing is attached. Valid until the next step.
const struct pmdp_look *pmdp_watch_look(const struct pmdp_watch *watch);
const struct pmdp_segment_info *pmdp_watch_info(const struct pmdp_watch *watch);
struct pmdp_reader *pmdp_watch_reader(const struct pmdp_watch *watch);
// Identity of a lane (name, tid, core); NULL when unknown.
const struct pmdp_lane_body *pmdp_watch_lane(const struct pmdp_watch *watch, uint32_t lane);
uint32_t pmdp_watch_lane_state(const struct pmdp_watch *watch, uint32_t lane); // PMDP_STATE_*
uint64_t pmdp_watch_since_realtime_us(const struct pmdp_watch *watch); // of the present status

/*
 * Is the thread of a lane still in its process? 1 yes; 0: it left, or its number is another
 * thread's by now. -EXDEV: another pid namespace; -EACCES: /proc hides it (hidepid=, ProtectProc=);
 * -errno of reading /proc: it can't be known. Needs no watch: for who looks once.
 */
int pmdp_watch_thread_alive(const struct pmdp_reader *reader, const struct pmdp_lane_body *body);
