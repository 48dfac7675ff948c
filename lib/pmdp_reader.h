// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * What the parts of the reading side share. Internal to lib/.
 *
 * Every byte of a segment comes in through pmdp_reader_fetch(), by pread or, from a mapping of the
 * same process, by relaxed loads. A short read is -EBADMSG: the file was truncated.
 */
#pragma once

#include "pmdp_clock.h"
#include "pmdpulse.h"

#pragma GCC visibility push(hidden)

// The part of the header that never changes once the magic stands.
#define PMDP_HEADER_CONST_BYTES offsetof(struct pmdp_header_shm, alive_ns)

// How often a copy under a sequence word is tried. A healthy writer stands in an update for less
// than a microsecond out of some milliseconds; a tenth miss in a row means that it is stuck there.
#define PMDP_READ_TRIES 10

struct pmdp_reader_section {
	uint64_t offset_bytes;
	uint32_t n_items;
	uint32_t stride_bytes;
};

struct pmdp_clock_pair {
	uint64_t ticks, mono_ns, ticks_hz;
};

struct pmdp_reader {
	int fd;             // -1: memory
	const char *memory; // NULL: file
	size_t memory_size;
	char *path;                    // NULL: memory
	struct pmdp_header_shm header; // private copy; its constant part is checked
	struct pmdp_reader_section hot, lanes, records, ports, events, incidents;
	struct pmdp_segment_info info;
	struct pmdp_clock_pair pair;
	uint64_t pair_seq; // number under which it was read
	char *front;       // what one look reads: the header, then the hot table
	struct pmdp_lane_look *looks;
};

// size and offset are multiples of 8. Short of size: -EBADMSG. Else 0 or -errno.
int pmdp_reader_fetch(const struct pmdp_reader *reader, uint64_t offset_bytes, void *out,
		      size_t size);

// Read the header, check all of it, fill sections and info. reason: one line on failure.
int pmdp_reader_attach(struct pmdp_reader *reader, uint64_t file_size_bytes, char *reason,
		       size_t reason_size);

// Front anew, and with it the changing part of the header and the clock pair. -EBADMSG when the
// constant part is not what it was.
int pmdp_reader_refresh(struct pmdp_reader *reader);

// S2: copy size bytes at offset under the sequence word at seq_offset. -EAGAIN after
// PMDP_READ_TRIES, or an error of fetch; out then holds a copy that may be torn.
int pmdp_reader_copy(const struct pmdp_reader *reader, uint64_t seq_offset, uint64_t offset,
		     void *out, size_t size);

#pragma GCC visibility pop
