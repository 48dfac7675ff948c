// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The writer's side of a segment file: create, publish, take over, close. Serves NAME.ring
 * (pmdp_publisher.c) and NAME.incidents (pmdp_incident_log.c). Internal to lib/.
 *
 * Call order:
 *
 *	pmdp_segment_create(&opts, &seg)    file without a name, sized, mapped, header filled
 *	... fill seg.header's changing part and the sections ...
 *	pmdp_segment_publish(&seg)          magic (M1), then the name: readers see it from here on
 *	pmdp_segment_close(&seg, ...)       also undoes a create that was never published
 *
 * Take-over (docs/protocol.md). The file is made without a name (O_TMPFILE), so that a process that
 * is killed meanwhile leaves nothing. Two record locks (open file description locks, released by
 * the kernel at death, never taken by readers) stand on the file itself:
 *	byte 0  held by the writer as long as it lives: tells where its pid can't
 *	byte 1  held for a moment by who takes the name over or gives it up
 * A predecessor that is alive refuses the take-over with -EEXIST; alive means: not stopped, same
 * boot, and its pid with the same start time runs, or, in another pid namespace, byte 0 is locked.
 *
 * One thread at a time. All functions may block on file-system calls.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pmdp_abi.h"

#pragma GCC visibility push(hidden)

struct pmdp_segment_section {
	uint32_t kind; // PMDP_SECTION_*
	uint32_t n_items;
	uint32_t item_size_bytes;
};

struct pmdp_segment_opts {
	const char *rundir; // NULL: see pmdp_rundir()
	const char *instance;
	const char *suffix;  // "ring" or "incidents"
	const char *group;   // NULL: the folder's group
	uid_t publisher_uid; // believed as owner of the folder beside root, oneself and the
			     // services
	bool has_publisher_uid;
	uint32_t mode;         // 0: 0640
	uint32_t segment_kind; // PMDP_SEGMENT_*
	uint32_t clock_kind;   // PMDP_CLOCK_*
	uint32_t records_per_lane;
	uint64_t ticks_hz;    // of the beat clock; 1000000000 for PMDP_CLOCK_MONOTONIC
	bool is_damaged_kept; // a damaged predecessor becomes PATH.bad, else it is replaced
	uint32_t n_sections;
	struct pmdp_segment_section sections[PMDP_N_SECTIONS];
};

struct pmdp_segment {
	struct pmdp_header_shm *header; // the mapping; NULL: not open
	size_t size_bytes;
	uint64_t ticks_hz;
	int fd; // holds the lock of byte 0
	int dir_fd;
	bool is_damaged_kept;
	bool was_damaged; // valid after publish: the predecessor was no segment, or unreadable
	// Set by the caller before publish: what stands there can't be carried over, though it
	// begins like a segment. It is kept like a damaged one.
	bool is_unreadable;
	char *path;       // DIR/INSTANCE.SUFFIX
	const char *name; // its last part
};

/*
 * Make a new file and map it. The header is filled but for the magic; the changing part holds a
 * clock pair and alive_ns; flags, interval and limits are 0 for the caller to set, all else is 0.
 * -EINVAL   bad instance name, count or size
 * -ENOTSUP  the folder is not on a tmpfs
 * -EPERM    the folder is a stranger's, a symbolic link, or everybody may rename in it (no sticky
 *           bit)
 * -ENOSPC   no room for the whole segment
 * -EEXIST   a living process writes a segment of this name
 * -ENOENT   the group is unknown, or the folder above the rundir does not exist
 * -ENOMEM, or -errno of mkdir, open, fchown, fchmod, mmap
 */
int pmdp_segment_create(const struct pmdp_segment_opts *opts, struct pmdp_segment *out_seg);

/*
 * Settle the generation (above the predecessor's), store the magic, give the file its name. Nothing
 * of the predecessor is changed; who has it open keeps it. -EEXIST as above, also when another
 * starter came first; -ELOOP, -EISDIR, -ENXIO: something that is no regular file stands there. On
 * failure the segment stays unpublished, for pmdp_segment_close().
 */
int pmdp_segment_publish(struct pmdp_segment *seg);

// Unmap and close; is_unlinked: also remove the name if it still leads to this file. A segment that
// is not open (all bytes 0) is left alone.
void pmdp_segment_close(struct pmdp_segment *seg, bool is_unlinked);

// First item of a section of this segment (as created, so not hostile), NULL if it has none.
void *pmdp_segment_section(const struct pmdp_segment *seg, uint32_t kind, uint32_t *out_n_items);

// Refresh alive_ns and the clock pair (S1). Does not block.
void pmdp_segment_alive(struct pmdp_segment *seg);

// Does a living process hold the writer's lock (byte 0) of this file? 1, 0 or -errno. Takes no
// lock.
int pmdp_segment_is_locked(int fd);

#pragma GCC visibility pop
