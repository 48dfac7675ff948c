// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Between the watch's own files.
 *
 *	pmdp_watch.c          life of the watch: attach, follow, let go; what it answers
 *	pmdp_watch_switch.c   what is told of the switch as a whole
 *	pmdp_watch_book.c     open incidents and their keys; events go out here; adoption
 *	pmdp_watch_process.c  the writer's process: is it there, is it dying, are its threads there
 *	pmdp_watch_lanes.c    from the detector's transitions to events; threads that are gone
 *	pmdp_watch_record.c   what a lane's records say of a stall
 *	pmdp_watch_ports.c    links, and the control thread's sign of life
 */
#pragma once

#include "pmdp_clock.h"
#include "pmdp_names.h"
#include "pmdp_watch.h"

#pragma GCC visibility push(hidden)

#define PMDP_NS_PER_MS UINT64_C(1000000)
#define PMDP_WATCH_RETRY_NS (100 * PMDP_NS_PER_MS) // look for a segment
#define PMDP_WATCH_PORTS_NS \
	(100 * PMDP_NS_PER_MS)           // the publisher writes ports a few times a second
#define PMDP_WATCH_SLOW_NS PMDP_NS_PER_S // names, cores, threads that need not beat
#define PMDP_WATCH_PROCESS_NS (10 * PMDP_NS_PER_MS) // look at /proc where there is no pidfd
#define PMDP_WATCH_STUCK_NS (5 * PMDP_NS_PER_S)     // of the publisher's own sign of life
#define PMDP_WATCH_CONFIRM_NS (50 * PMDP_NS_PER_MS) // a thread is gone, and its process still lives

// An incident from raise to clear.
struct pmdp_watch_open {
	uint64_t key;                  // 0: free
	struct pmdp_incident incident; // of its last event, for the next one
	uint64_t begin_ns; // CLOCK_MONOTONIC of its start; 0: known as wall-clock time only
	uint32_t lane;
	bool is_adopted; // from an earlier run, its reason not seen yet in this one
	// What an earlier run had counted, for stalls.
	uint64_t base_n, base_total_ns, base_longest_ns;
};

struct pmdp_watch_lane {
	struct pmdp_lane_body body;
	bool has_body;
	bool is_gone;          // its thread left without a word
	uint64_t incarnation;  // of the body
	uint64_t gone_seen_ns; // not there at this time; 0: it is there
	uint64_t stall_key, starve_key, gone_key;
	// What its record said of a stall that was not seen live, by the begin that the detector
	// gave it.
	struct {
		uint64_t stall_begin_ns, begin_ns, end_ns, crumb;
	} recorded;
	bool is_starve_doubted; // told when the doubt is settled
	uint64_t doubt_n_gaps, doubt_n_pauses;
};

struct pmdp_watch_port {
	bool is_known;
	uint64_t generation;
	uint32_t link_state; // the last one that is not unknown
	uint64_t key;
};

struct pmdp_watch {
	char instance[PMDP_INSTANCE_BYTES];
	char *rundir;
	struct pmdp_reader_opts reader_opts;
	struct pmdp_limits limits;

	uint32_t status; // PMDP_WATCH_*
	uint32_t ended;  // last status that was not REFUSED
	uint64_t since_realtime_us;
	char reason[160];

	// Attached to a living publisher.
	struct pmdp_reader *reader;
	struct pmdp_look look;
	bool has_look;
	int pidfd;
	uint64_t process_ns; // next look at /proc
	uint64_t attached_ns;
	struct pmdp_reader *dead; // what a dead one left, until something else stands there

	struct pmdp_detector detector;
	struct pmdp_detector_lane *judged;
	struct pmdp_transition *transitions;
	struct pmdp_watch_lane *lanes;
	uint32_t n_lanes;     // up to the highest that was ever claimed: the others cost nothing
	uint32_t n_lanes_max; // of the segment
	struct pmdp_watch_port *ports;
	uint32_t n_ports;
	uint64_t ports_ns, free_ports_ns, slow_ns, name_ns; // next times
	uint64_t confirm_ns; // a thread's absence is to be confirmed; UINT64_MAX: none

	uint64_t alive_ns, alive_seen_ns; // the publisher's stamp, and when it last changed
	uint64_t quiet_ns;     // when last no thread was seen alive, or this watch was late
	uint64_t last_life_ns; // of anything in the segment, for the start of switch-gone
	uint64_t last_pid;
	uint64_t ended_ns;
	bool is_attach_told;
	uint64_t followed_generation; // of the publisher that is, or was last, attached

	struct pmdp_watch_open *opens;
	uint32_t n_opens;
	uint64_t last_key;
	uint64_t gone_key, stuck_key, late_key, version_key;
	uint64_t late_clear_ns;
	bool has_adopted;

	pmdp_watch_cb *cb; // during a step
	void *ctx;
};

// --- book

// Room for n incidents beside those that are open. 0 or -ENOMEM.
int pmdp_watch_reserve(struct pmdp_watch *watch, uint32_t n);
struct pmdp_watch_open *pmdp_watch_find(struct pmdp_watch *watch, uint64_t key);

/*
 * Begin an event of the incident with this key (0: of none yet). out is ready to be filled in.
 * UPDATE and CLEAR keep what the last event said: thread, object, cause, times of the raise.
 */
void pmdp_watch_begin(struct pmdp_watch *watch, uint64_t key, uint32_t kind, uint32_t phase,
		      struct pmdp_watch_event *out);

/*
 * Tell a RAISE. One that was adopted from an earlier run becomes an UPDATE under its key. Returns
 * the key. Severity is set here (from state, which is that of the incident).
 */
uint64_t pmdp_watch_raise(struct pmdp_watch *watch, struct pmdp_watch_event *event,
			  uint64_t begin_ns);
void pmdp_watch_update(struct pmdp_watch *watch, struct pmdp_watch_event *event);
void pmdp_watch_clear(struct pmdp_watch *watch, struct pmdp_watch_event *event);

// Clear an incident with nothing more to say; *key becomes 0. duration_ns 0: as last told.
void pmdp_watch_end(struct pmdp_watch *watch, uint64_t *key, uint64_t duration_ns);
// The same, of a thread that is not watched any more.
void pmdp_watch_end_why(struct pmdp_watch *watch, uint64_t *key, const char *why);

// The same, for one that lasted from its start until now.
void pmdp_watch_end_now(struct pmdp_watch *watch, uint64_t *key);

// An open adopted incident of this kind (and thread or object, where the kind has one); NULL: none.
struct pmdp_watch_open *pmdp_watch_adopted(struct pmdp_watch *watch, uint32_t kind, uint32_t tid,
					   const char *object);
// Clear what was adopted and has no reason any more.
void pmdp_watch_settle_adopted(struct pmdp_watch *watch, uint64_t now_ns);

// --- switch

void pmdp_watch_raise_version(struct pmdp_watch *watch, uint64_t now_ns);
// From the last sign of life on; died again before it was seen alive: an update.
void pmdp_watch_raise_gone(struct pmdp_watch *watch, uint64_t now_ns);
// Good news: told once, nothing to clear.
void pmdp_watch_tell_news(struct pmdp_watch *watch, uint32_t kind, uint64_t begin_ns,
			  uint64_t duration_ns);

// --- process

void pmdp_watch_process_open(struct pmdp_watch *watch);
void pmdp_watch_process_close(struct pmdp_watch *watch);
// Has the writer's process ended?
bool pmdp_watch_process_ended(struct pmdp_watch *watch, uint64_t now_ns);
// Is the writer of what was taken for dead alive after all?
bool pmdp_watch_process_is_back(const struct pmdp_watch *watch);
// Is it on its way out: killed or dumping core, but not gone yet?
bool pmdp_watch_process_is_dying(const struct pmdp_watch *watch);
// Did this thread leave the process (or is it another one now)? False when that can't be known.
bool pmdp_watch_thread_is_gone(const struct pmdp_watch *watch, const struct pmdp_lane_body *body);

// How often this thread gave up its CPU by itself, since it began. 0 or -errno.
int pmdp_watch_thread_pauses(const struct pmdp_watch *watch, const struct pmdp_lane_body *body,
			     uint64_t *out_n);

// --- lanes

/*
 * Judge the look and tell. now_ns is from before the look. Returns when the next step is due, or 0
 * when the process turned out to be dying: then nothing has been told of the threads that went with
 * it.
 */
uint64_t pmdp_watch_judge(struct pmdp_watch *watch, uint64_t now_ns);
// Clear what is open of all lanes; why: what the message says of threads that were stalled.
void pmdp_watch_lanes_end(struct pmdp_watch *watch, const char *why);

// Begin, end and place of a stall that was not seen live, from the lane's record, where it has one.
// All events of one stall say the same of it, though the records are read at its first only.
void pmdp_watch_refine(struct pmdp_watch *watch, const struct pmdp_transition *t,
		       struct pmdp_watch_event *event);

// --- ports

void pmdp_watch_ports_look(struct pmdp_watch *watch, uint64_t now_ns);
void pmdp_watch_ports_end(struct pmdp_watch *watch);
void pmdp_watch_control(struct pmdp_watch *watch, uint64_t now_ns);

#pragma GCC visibility pop
