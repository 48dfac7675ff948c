// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * libpmdpulse: publish the heartbeat of packet-processing threads, and read it.
 *
 * A program that publishes (three calls):
 *
 *	struct pmdp *p;
 *	int rc = pmdp_open("myswitch", NULL, &p);   // creates the segment, claims a lane
 *	while (running) {
 *		work();
 *		pmdp_beat(p);
 *	}
 *	pmdp_close(p);                              // marks the lane EXITED, unlinks the segment
 *
 * A program that reads (two calls):
 *
 *	struct pmdp_reader *r;
 *	int rc = pmdp_reader_open("myswitch", NULL, &r);
 *	rc = pmdp_reader_look(r, &look);            // all threads at one glance; look.lanes[i]
 *
 * With several threads, use pmdp_publisher_open() once, pmdp_lane_claim() in each thread and
 * pmdp_lane_beat() in its loop, and call pmdp_publisher_housekeep() a few times a second from a
 * control thread.
 *
 * Threads. A publisher may be shared by threads; open, housekeep, settings, ports and close belong
 * to one of them at a time (the owner). A lane belongs to the thread that claimed it: only that
 * thread calls pmdp_lane_*() on it. A reader belongs to one thread at a time.
 *
 * Ownership. *_open() allocates, *_close() frees and accepts NULL. The segment stays on disk when
 * the process dies without pmdp_close(): that is what a post-mortem reads; the next open of the
 * same name takes over by renaming a new file over it. A lane handle lives until its release or the
 * close of its publisher; lanes are never unmapped before.
 *
 * Units. Names end in their unit. _ns is CLOCK_MONOTONIC; _ticks is the segment's beat clock.
 *
 * Errors. int: 0 or a negative errno from the list at the declaration; outputs are untouched on
 * failure. The library never logs, exits, installs a handler, starts a thread or keeps a global.
 *
 * Nothing that a reader finds in a segment is believed: it reads with pread into its own memory,
 * checks every count and offset once at open, and returns evidence (-EAGAIN, torn) rather than
 * wait.
 */
#ifndef PMDPULSE_H
#define PMDPULSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pmdp_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---------------------------------------------------------------------------------------------
// Where segments live

/*
 * Folder of the segments: dir if not NULL and not empty, else $PMDPULSE_RUNDIR, else /run/pmdpulse
 * for root, else $XDG_RUNTIME_DIR/pmdpulse, else /dev/shm/pmdpulse-UID. Writes the path without a
 * closing slash. Creates nothing. -ENAMETOOLONG.
 */
int pmdp_rundir(const char *dir, char *out_path, size_t size);

/*
 * An instance name is 1 to 63 of [A-Za-z0-9_.-], not beginning with '.' or '-', and not
 * ending in ".agent" (NAME.agent.ctl is the agent's socket of NAME). 0 or -EINVAL.
 */
int pmdp_instance_check(const char *instance);

// DIR/INSTANCE.SUFFIX. -EINVAL (instance), -ENAMETOOLONG.
int pmdp_path(const char *rundir, const char *instance, const char *suffix, char *out_path,
	      size_t size);

/*
 * Instances that have a file INSTANCE.SUFFIX in the folder, sorted. Fills at most n names and
 * returns how many there are (which may be more), or -errno of opendir (-ENOENT: no folder).
 */
int pmdp_instances(const char *rundir, const char *suffix, char (*out_names)[PMDP_INSTANCE_BYTES],
		   size_t n);

// ---------------------------------------------------------------------------------------------
// Publishing

struct pmdp_publisher; // one segment
struct pmdp_lane;      // one thread's part of it
struct pmdp;           // publisher and lane of a single-threaded program

struct pmdp_publisher_opts {
	const char *rundir; // NULL: see pmdp_rundir(); created 0750 (root: 03770) when absent
	const char *group;  // NULL: the folder's group
	uint32_t mode;      // 0: 0640
	uint32_t n_lanes;   // 0: 64
	uint32_t n_ports;   // 0: 64
	uint32_t records_per_lane;      // 0: 256; rounded up to a power of two
	uint64_t keepalive_interval_ns; // 0: 50 ms
	uint64_t gap_limit_ns;          // 0: 250 us
	uint64_t tsc_hz; // 0: beats carry CLOCK_MONOTONIC; else cycles of the TSC at this frequency
	bool keepalive_off; // start with beats off
};

/*
 * Create the segment INSTANCE.ring and take the name over from a dead or living predecessor. Blocks
 * on file-system calls, allocates, locks and pre-faults the mapping where that is allowed.
 * opts may be NULL.
 * -EINVAL   bad instance name, count out of bounds, or tsc_hz given where the TSC is not invariant
 * -ENOTSUP  the folder is not on a tmpfs (a beat would fault and sleep with the disk)
 * -EPERM    the folder is a stranger's (not root's, one's own or an installed service's), a
 *           symbolic link, or writable for all without the sticky bit
 * -ENOSPC   the tmpfs has no room for the whole segment (posix_fallocate)
 * -EEXIST   another living process publishes this instance
 * -errno    of mkdir, open, fchown, fchmod, mmap, rename
 */
int pmdp_publisher_open(const char *instance, const struct pmdp_publisher_opts *opts,
			struct pmdp_publisher **out_pub);

/*
 * Tell of a clean stop: lanes still claimed are marked EXITED, stopped_ns is set, the file is
 * unlinked if it is still ours. Nothing is freed: for a program that is about to exit while a
 * thread can't be ended. In a child of the process that opened it: nothing.
 */
void pmdp_publisher_stop(struct pmdp_publisher *pub);

/*
 * Stop, and remove the mapping. Every lane must be out of use by its thread. Accepts NULL.
 */
void pmdp_publisher_close(struct pmdp_publisher *pub);

/*
 * Refresh the publisher's sign of life and the clock pair. Call it a few times a second from the
 * owner. Does not block or allocate.
 */
void pmdp_publisher_housekeep(struct pmdp_publisher *pub);

// The owner's settings; readers follow them. -ERANGE: interval below 1 ms or above 1 h.
int pmdp_publisher_set_interval(struct pmdp_publisher *pub, uint64_t interval_ns);

/*
 * Whether threads are judged. Off: clear the flag here first, then let the threads stop beating.
 * On: let every thread call pmdp_lane_polling() and beat, then set the flag. So nobody is ever
 * judged by beats that were not meant to come.
 */
void pmdp_publisher_set_keepalive(struct pmdp_publisher *pub, bool on);
uint64_t pmdp_publisher_interval_ns(const struct pmdp_publisher *pub);
uint64_t pmdp_publisher_generation(const struct pmdp_publisher *pub);
const char *pmdp_publisher_path(const struct pmdp_publisher *pub);

/*
 * Port slots, written by the owner. pmdp_port_claim returns a slot number, or -ENOSPC. A slot is
 * freed by pmdp_port_release and gets a new generation when it is claimed again. Plain copies under
 * a sequence number; they do not block.
 */
int pmdp_port_claim(struct pmdp_publisher *pub, const struct pmdp_port_body *body);
void pmdp_port_publish(struct pmdp_publisher *pub, int slot, const struct pmdp_port_body *body);
void pmdp_port_release(struct pmdp_publisher *pub, int slot);

/*
 * A thread's lane. The handle is laid out here so that a beat is inline: treat the fields as
 * private. hot and counters point into the segment, the rest is the thread's own memory.
 */
struct pmdp_lane {
	struct pmdp_hot_shm *hot;
	// PMDP_N_COUNTERS, the caller's to fill. In the segment beside hot, so that beats and
	// counts need one page, not two; readers see them as of the last pmdp_lane_publish().
	uint64_t *counters;
	uint64_t beats;
	uint64_t last_ticks;  // beat clock at the last beat or announcement
	uint64_t floor_ticks; // gaps from here up are looked at (PMDP_HIST_FLOOR_BIN)
	uint64_t gap_limit_ticks;
	uint64_t stall_limit_ticks; // two keepalive intervals
	uint64_t n_records;
	uint64_t records_mask;
	struct pmdp_record_shm *records;
	struct pmdp_lane_shm *shm;
	struct pmdp_publisher *pub;
	uint64_t n_gaps, gap_ticks, n_stalls, stall_ticks, longest_gap_ticks;
	uint64_t interval_ns, gap_limit_ns; // the settings that the limits above were made from
	struct pmdp_lane_body body;         // private copy
	uint32_t index;
	uint32_t announce; // PMDP_ANNOUNCE_*
};

/*
 * Claim a lane for the calling thread, which must be the one that beats: tid and start time are
 * read from it. core -1: not bound. The lane starts DOZING with reason start and a deadline of
 * start_ns from now (0: 10 s); pmdp_lane_polling() ends that. A claim is never inherited by a fork:
 * open and claim after it. Allocates and reads /proc. Any thread, at any time before the close.
 * -ENOSPC   all lanes are claimed
 * -EINVAL   name empty or longer than 31 bytes
 * -ENOMEM, or -errno of reading /proc
 */
int pmdp_lane_claim(struct pmdp_publisher *pub, const char *name, uint32_t kind, int core, int numa,
		    uint64_t start_ns, struct pmdp_lane **out_lane);

// Mark EXITED and free the lane for another thread. Called by the owner of the lane. Accepts NULL.
void pmdp_lane_release(struct pmdp_lane *lane);

// The gap path of pmdp_lane_beat: counts, records. Does not block; no system call.
void pmdp_lane_gap(struct pmdp_lane *lane, uint64_t now_ticks);

#ifdef __cplusplus
#define PMDP_STORE_RELAXED(word, value) ((word)->store((value), std::memory_order_relaxed))
#else
#define PMDP_STORE_RELAXED(word, value) atomic_store_explicit((word), (value), memory_order_relaxed)
#endif

/*
 * One beat. now_ticks is the beat clock as the loop has read it anyway. Plain relaxed stores; a gap
 * longer than the histogram's floor (16 us) takes the out-of-line path.
 */
static inline void pmdp_lane_beat(struct pmdp_lane *lane, uint64_t now_ticks)
{
	struct pmdp_hot_shm *hot = lane->hot;

	if (__builtin_expect(now_ticks - lane->last_ticks >= lane->floor_ticks, 0))
		pmdp_lane_gap(lane, now_ticks);
	lane->last_ticks = now_ticks;
	PMDP_STORE_RELAXED(&hot->beat_ticks, now_ticks);
	PMDP_STORE_RELAXED(&hot->beats, ++lane->beats);
}

#define PMDP_CRUMB(stage, port, queue) \
	((uint64_t)(stage) | (uint64_t)(port) << 16 | (uint64_t)(queue) << 32)

// Leave a breadcrumb, built beforehand with PMDP_CRUMB(). One relaxed store.
static inline void pmdp_lane_crumb(struct pmdp_lane *lane, uint64_t crumb)
{
	PMDP_STORE_RELAXED(&lane->hot->crumb, crumb);
}

/*
 * Announcements, made before the beats stop. They read the clock and leave a record; no system call
 * beyond clock_gettime in the vdso.
 *   polling  beats are due from now on; counts as a beat, and what lies before is no gap
 *   dozing   back before now + max_ns, else DEAD; reason PMDP_REASON_*; 0: no deadline, then judged
 *            as if it were polling
 *   sleep    waiting without work (no deadline)
 * A stall that ends with dozing, sleep or release instead of a beat is timed as a gap like any
 * other.
 *
 * A thread that stops beating because keepalive was switched off just doesn't beat. When it is
 * switched on again it calls pmdp_lane_polling() before its first beat: no false gap. The order
 * between the threads and the flag is at pmdp_publisher_set_keepalive().
 */
void pmdp_lane_polling(struct pmdp_lane *lane);
void pmdp_lane_dozing(struct pmdp_lane *lane, uint32_t reason, uint64_t max_ns);
void pmdp_lane_sleep(struct pmdp_lane *lane, uint32_t reason);

/*
 * Copy the lane's private body (counters, histogram) into the segment under its sequence number and
 * take over changed settings (interval, gap limit). About 110 relaxed stores: call it every
 * thousand iterations or some milliseconds, not every iteration. No system call.
 */
void pmdp_lane_publish(struct pmdp_lane *lane, uint64_t now_ticks);

// The clock in which a lane's beats are given: the TSC, or CLOCK_MONOTONIC in ns.
uint64_t pmdp_lane_clock(const struct pmdp_lane *lane);

// The three calls of a single-threaded program. Errors as pmdp_publisher_open and pmdp_lane_claim.
int pmdp_open(const char *instance, const struct pmdp_publisher_opts *opts, struct pmdp **out_p);
void pmdp_beat(struct pmdp *p); // reads the clock; housekeeps every 50 ms
void pmdp_close(struct pmdp *p);
struct pmdp_lane *pmdp_lane_of(struct pmdp *p); // for announcements
struct pmdp_publisher *pmdp_publisher_of(struct pmdp *p);

// ---------------------------------------------------------------------------------------------
// Reading

struct pmdp_reader;

struct pmdp_reader_opts {
	const char *rundir;  // NULL: see pmdp_rundir()
	const char *suffix;  // NULL: "ring"; "incidents"
	uid_t publisher_uid; // accepted as owner of the file beside root and oneself
	bool has_publisher_uid;
};

// Constant facts of an attached segment, checked.
struct pmdp_segment_info {
	char instance[PMDP_INSTANCE_BYTES];
	uint32_t segment_kind;
	uint32_t clock_kind;
	uint32_t n_lanes;
	uint32_t n_ports;
	uint32_t n_events;    // size of the event ring
	uint32_t n_incidents; // size of the table of open incidents
	uint32_t records_per_lane;
	uint32_t writer_pid;
	uint64_t writer_start_ticks;
	uint64_t generation;
	uint64_t created_realtime_us;
	bool is_same_pidns; // /proc/writer_pid speaks of the writer
	bool is_same_boot;
};

/*
 * Attach. Blocks on open and pread only.
 * -ENOENT    no such segment
 * -EACCES    the file may not be read
 * -EPERM     its owner is neither root, oneself, the configured publisher nor the user of the
 *            installed service (pmdpulse for a ring, pmdpulse-agent for incidents); or not a
 *            regular file, or a symbolic link
 * -EBADMSG   not a segment, or damaged: empty, short, wrong magic, offsets or counts out of bounds
 * -EPROTONOSUPPORT  another ABI version
 * -EINVAL    bad instance name
 * -ENOMEM, or -errno of open and fstat
 */
int pmdp_reader_open(const char *instance, const struct pmdp_reader_opts *opts,
		     struct pmdp_reader **out_reader);

// As above; reason (at least 128 bytes, may be NULL) receives one line that names the failed check.
int pmdp_reader_open_why(const char *instance, const struct pmdp_reader_opts *opts,
			 struct pmdp_reader **out_reader, char *reason, size_t reason_size);

/*
 * Attach to a mapping of the same process (tests, thread sanitizer): reads by relaxed atomic loads
 * instead of pread. The memory must outlive the reader. Errors as above.
 */
int pmdp_reader_open_memory(const void *segment, size_t size, struct pmdp_reader **out_reader);

void pmdp_reader_close(struct pmdp_reader *reader);
const struct pmdp_segment_info *pmdp_reader_info(const struct pmdp_reader *reader);

/*
 * Does the name still lead to the attached file? 0 yes; -ENOENT unlinked (clean stop or removed);
 * -ESTALE another file stands there: close and open again.
 */
int pmdp_reader_check(const struct pmdp_reader *reader);

// One lane at one look. Times in ns of CLOCK_MONOTONIC, converted with the clock pair.
struct pmdp_lane_look {
	bool is_claimed;   // announces something other than NONE and EXITED
	uint32_t announce; // PMDP_ANNOUNCE_*
	uint32_t reason;   // PMDP_REASON_*
	uint64_t incarnation;
	uint64_t beats;
	uint64_t beat_ns; // 0: never beat
	uint64_t deadline_ns;
	uint64_t crumb;
	uint64_t n_gaps, gap_ns;
	uint64_t n_stalls, stall_ns, last_stall_ns;
	uint64_t longest_gap_ns;
	uint64_t n_records;
};

struct pmdp_look {
	uint64_t now_ns; // CLOCK_MONOTONIC when the table had been read
	uint64_t alive_ns;
	uint64_t stopped_ns;
	uint64_t keepalive_interval_ns; // 1 ms ... 1 h, whatever the segment says
	uint64_t gap_limit_ns;
	bool is_keepalive;
	uint32_t n_lanes;
	const struct pmdp_lane_look
		*lanes; // the reader's memory, valid until the next look or close
};

/*
 * Read the changing part of the header and the hot table. Never waits.
 * -EBADMSG  the file was truncated or its constant part changed
 * -EIO
 */
int pmdp_reader_look(struct pmdp_reader *reader, struct pmdp_look *out_look);

/*
 * Consistent copy of one lane's body.
 * -EAGAIN   the writer stood in the middle of an update at every one of a bounded number of tries:
 *           evidence of a stuck writer, not a reason to try for ever
 * -ENOENT   lane not claimed
 * -ERANGE   no such lane
 * -EBADMSG, -EIO
 */
int pmdp_reader_lane(struct pmdp_reader *reader, uint32_t lane, struct pmdp_lane_body *out_body);

// As pmdp_reader_lane, for a port slot. out_generation may be NULL. -ENOENT: the slot is free.
int pmdp_reader_port(struct pmdp_reader *reader, uint32_t slot, struct pmdp_port_body *out_body,
		     uint64_t *out_generation);

/*
 * Records of a lane from *cursor on (0 at first), oldest first, at most n. Returns how many were
 * filled; advances *cursor; adds to *lost (may be NULL) exactly the number overwritten before they
 * could be read. One call goes through the ring once at most. Records are numbered through the life
 * of the segment, also across the threads that claim the lane. *cursor UINT64_MAX on entry means
 * "as old as the ring still has", without counting losses.
 * -ERANGE   no such lane
 * -ESTALE   the cursor is ahead of the ring: it was got from another segment; or the ring claims
 *           2^63 items or more, which nobody writes
 * -EBADMSG, -EIO
 */
int pmdp_reader_records(struct pmdp_reader *reader, uint32_t lane, uint64_t *cursor,
			struct pmdp_record_body *out_records, uint32_t n, uint64_t *lost);

/*
 * Events of an incidents segment from *cursor on, the same way. *cursor counts events from 0.
 */
int pmdp_reader_events(struct pmdp_reader *reader, uint64_t *cursor,
		       struct pmdp_incident *out_events, uint32_t n, uint64_t *lost);

// Open incident in slot of the table. -ENOENT: the slot is free. -EAGAIN, -ERANGE, -EBADMSG, -EIO.
int pmdp_reader_incident(struct pmdp_reader *reader, uint32_t slot,
			 struct pmdp_incident *out_incident);

// Beat clock to CLOCK_MONOTONIC ns, and a length of it to ns, with the clock pair of the last look.
uint64_t pmdp_reader_mono_ns(const struct pmdp_reader *reader, uint64_t ticks);
uint64_t pmdp_reader_length_ns(const struct pmdp_reader *reader, uint64_t ticks);

/*
 * Is the writer's process alive? 1 yes; 0 no: the pid is gone, a zombie, or belongs to a later
 * process. Where the writer runs in another pid namespace, its lock on the file tells the same;
 * when even that can't be asked (memory), -EXDEV. A writer that closed (stopped_ns) may still be
 * alive. Reads /proc.
 */
int pmdp_reader_writer_alive(const struct pmdp_reader *reader);

#ifdef __cplusplus
}
#endif

#endif
