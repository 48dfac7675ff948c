// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Incident model: helpers that build and render struct pmdp_incident (pmdp_abi.h), and the log that
 * keeps them in a NAME.incidents segment.
 *
 * The struct is data: all renderings (pmdp_json.h, pmdp_ves.h, the text line here, the agent's
 * journal fields, the plugin's notification) start from it. Strings in it are NUL terminated by
 * these helpers and cut at a UTF-8 boundary; a struct that comes from a segment goes through
 * pmdp_incident_sanitize() first.
 *
 * The log is written by one thread of the agent. It is crash-safe: an event is in the ring before
 * it is told anywhere else, and an incident that was open when the agent died is adopted by the
 * next.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pmdp_names.h"
#include "pmdpulse.h"

// Begin an event: zeroes it, sets instance, kind, phase and severity (by kind, phase and state).
void pmdp_incident_init(struct pmdp_incident *incident, const char *instance, uint32_t kind,
			uint32_t phase);

// FAILURE, WARNING or OKAY for a kind in a phase; pmd-stall: by state (DEAD, GONE: FAILURE).
uint32_t pmdp_incident_severity(uint32_t kind, uint32_t phase, uint32_t state);

void pmdp_incident_thread(struct pmdp_incident *incident, const char *name, uint32_t tid,
			  int32_t core);
void pmdp_incident_culprit(struct pmdp_incident *incident, const char *comm, uint32_t pid,
			   uint32_t tid, const char *sched_class, uint64_t took_ns);

// Evidence: the value of an existing key is replaced; a full table drops the new one (returns
// -ENOSPC).
int pmdp_evidence_int(struct pmdp_incident *incident, const char *key, int64_t value);
int pmdp_evidence_real(struct pmdp_incident *incident, const char *key, double value);
int pmdp_evidence_text(struct pmdp_incident *incident, const char *key, const char *value);
/*
 * Keys that the library itself sets and that the message uses: "stalls", "stalled_s", "ongoing" (1
 * while a stall lasts), "self_timed", "where" (breadcrumb), "deadline_of", "ended" (pmd-stall);
 * "gaps", "lost_s", "ongoing" (pmd-starved); "pid" (switch-*, control-stuck); "reason"
 * (version-mismatch); "removed" (link). From the agent the message also takes "wchan" and
 * "function".
 */
const struct pmdp_evidence *pmdp_evidence_find(const struct pmdp_incident *incident,
					       const char *key);

/*
 * Compose the one-line message from the fields, e.g.
 * "pmd-c01/id:2 (core 1) stalled for 0.301 s: preempted by hog-x7 (pid 4242, SCHED_FIFO) for 0.300
 * s".
 */
void pmdp_incident_compose(struct pmdp_incident *incident);

// Make a struct found in a segment safe to render: terminate strings, clamp numbers and counts,
// keep the first of a key of evidence.
void pmdp_incident_sanitize(struct pmdp_incident *incident);

// "2026-11-30T13:00:00.123456 FAILURE raise default-... pmd-stall: MESSAGE", local time. Returns
// out.
char *pmdp_incident_line(const struct pmdp_incident *incident, char *out, size_t size);

// CLOCK_MONOTONIC ns to wall-clock microseconds, with a pair read now. At the edge only.
uint64_t pmdp_realtime_us(uint64_t mono_ns);
// RFC 3339 with offset and microseconds, local time; out has at least 40 bytes. Returns out.
char *pmdp_rfc3339(uint64_t realtime_us, char *out, size_t size);

struct pmdp_incident_log;

struct pmdp_incident_log_opts {
	const char *rundir;
	const char *group;
	uint32_t mode;       // 0: 0640
	uid_t publisher_uid; // believed as owner of the run directory, too
	bool has_publisher_uid;
	uint32_t n_events;    // 0: 512
	uint32_t n_incidents; // 0: 512
};

/*
 * Open INSTANCE.incidents for writing. Where a readable segment of an earlier agent exists, its
 * event ring, sequence number and open incidents are carried over into a new file (a new
 * generation); one that can't be carried over (damaged, of another ABI version, another user's) is
 * renamed to INSTANCE.incidents.bad and *out_was_bad is set (may be NULL).
 * Errors as pmdp_publisher_open; -EEXIST: a living agent writes it.
 */
int pmdp_incident_log_open(const char *instance, const struct pmdp_incident_log_opts *opts,
			   struct pmdp_incident_log **out_log, bool *out_was_bad);
// Keeps the file: its history outlives the agent. stopped_ns is set.
void pmdp_incident_log_close(struct pmdp_incident_log *log);

// The agent's sign of life, a few times a second.
void pmdp_incident_log_alive(struct pmdp_incident_log *log);

/*
 * Publish one event. A RAISE gets a new id, unless it has one, and stands in the table of open
 * incidents (but for good news: severity OKAY has nothing to clear); UPDATE replaces it there;
 * CLEAR removes it. seq and emitted_realtime_us are filled in. seq goes on from one agent to the
 * next: event number n of the ring (from 0) has seq n + 1. When the table is full the event is
 * still in the ring, and the incident gets the next slot that is free: a reader that finds the
 * table full can't tell from it what is not open. Allocates only then. Never blocks.
 */
void pmdp_incident_log_publish(struct pmdp_incident_log *log, struct pmdp_incident *incident);

// Open incidents, in slots 0..n-1: NULL when the slot is free.
uint32_t pmdp_incident_log_slots(const struct pmdp_incident_log *log);
const struct pmdp_incident *pmdp_incident_log_open_at(const struct pmdp_incident_log *log,
						      uint32_t slot);
// How many incidents found no free slot. While they have none, the next agent won't know them.
uint64_t pmdp_incident_log_overflows(const struct pmdp_incident_log *log);
// Of the publisher that the newest switch-back in the ring tells of: for pmdp_watch_tell_attach().
// 0: none.
uint64_t pmdp_incident_log_followed(const struct pmdp_incident_log *log);
uint64_t pmdp_incident_log_generation(const struct pmdp_incident_log *log);
