// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// One look: the changing part of the header, the clock pair, the hot table.
#include <errno.h>
#include <string.h>

#include "pmdp_reader.h"
#include "pmdp_shm.h"

#define MIN_TICKS_HZ UINT64_C(1000000)
#define MAX_TICKS_HZ UINT64_C(100000000000)
#define CONFIRM_TRIES 4

static uint64_t word(const _Atomic uint64_t *from)
{
	return atomic_load_explicit(from, memory_order_relaxed);
}

// A pair that can't be is not taken; the last good one stays.
static void take_pair(struct pmdp_reader *reader, const struct pmdp_clock_pair_shm *shm)
{
	struct pmdp_clock_pair pair = {
		.ticks = word(&shm->ticks),
		.mono_ns = word(&shm->mono_ns),
		.ticks_hz = word(&shm->ticks_hz),
	};

	if (reader->header.clock_kind == PMDP_CLOCK_MONOTONIC)
		pair = (struct pmdp_clock_pair){.ticks_hz = PMDP_NS_PER_S};
	if (pair.ticks_hz >= MIN_TICKS_HZ && pair.ticks_hz <= MAX_TICKS_HZ)
		reader->pair = pair;
}

/*
 * The slots alone, one by one, where they are read from memory: what lies between them is written
 * with plain stores. A read of the file is one system call for all.
 */
static int fetch_hot(const struct pmdp_reader *reader, char *to)
{
	const struct pmdp_reader_section *s = &reader->hot;
	int rc = 0;

	if (!reader->memory)
		return pmdp_reader_fetch(reader, s->offset_bytes, to,
					 (size_t)s->n_items * s->stride_bytes);
	for (uint32_t i = 0; rc == 0 && i < s->n_items; i++) {
		size_t at = (size_t)i * s->stride_bytes;

		rc = pmdp_reader_fetch(reader, s->offset_bytes + at, to + at,
				       sizeof(struct pmdp_hot_shm));
	}
	return rc;
}

/*
 * Header and hot table; of a file in one read where they lie side by side. A copy runs from low to
 * high addresses: the flags and stopped_ns come before the slots (K2, T2), and in a slot the counts
 * before the lengths (H2) and the beat before its gap (H3). Where a copy should do otherwise, a
 * count or a gap is told one look later; what could raise a false alarm is read again by confirm().
 */
static int read_front(const struct pmdp_reader *reader)
{
	const struct pmdp_reader_section *s = &reader->hot;
	const size_t header_size = sizeof reader->header;
	size_t hot_size = (size_t)s->n_items * s->stride_bytes;
	int rc;

	if (hot_size && s->offset_bytes == header_size && !reader->memory)
		return pmdp_reader_fetch(reader, 0, reader->front, header_size + hot_size);
	rc = pmdp_reader_fetch(reader, 0, reader->front, header_size);
	return rc == 0 && hot_size ? fetch_hot(reader, reader->front + header_size) : rc;
}

// The clock pair anew, if its number shows that there is a new one.
static int refresh_pair(struct pmdp_reader *reader, const struct pmdp_clock_pair_shm *seen)
{
	const uint64_t at = offsetof(struct pmdp_header_shm, clock);
	struct pmdp_clock_pair_shm pair;
	int rc;

	if (reader->header.clock_kind == PMDP_CLOCK_MONOTONIC ||
	    word(&seen->seq) == reader->pair_seq) {
		if (!reader->pair.ticks_hz)
			take_pair(reader, seen);
		return 0;
	}
	rc = pmdp_reader_copy(reader, at, at, &pair, sizeof pair);
	if (rc == 0) {
		take_pair(reader, &pair);
		reader->pair_seq = word(&pair.seq);
	} else if (rc == -EAGAIN) {
		// A writer that died inside the pair: the last good one serves, or, for a reader
		// that comes later, the torn one. It is off by at most the time between two
		// refreshes.
		if (!reader->pair.ticks_hz)
			take_pair(reader, seen);
		rc = 0;
	}
	return rc;
}

int pmdp_reader_refresh(struct pmdp_reader *reader)
{
	struct pmdp_header_shm now;
	int rc = read_front(reader);

	if (rc < 0)
		return rc;
	memcpy(&now, reader->front, sizeof now);
	if (memcmp(&now, &reader->header, PMDP_HEADER_CONST_BYTES) != 0)
		return -EBADMSG;
	rc = refresh_pair(reader, &now.clock);
	if (rc < 0)
		return rc;
	reader->header = now;
	return 0;
}

uint64_t pmdp_reader_mono_ns(const struct pmdp_reader *reader, uint64_t ticks)
{
	const struct pmdp_clock_pair *pair = &reader->pair;
	uint64_t distance = ticks - pair->ticks, ns;

	if (reader->header.clock_kind == PMDP_CLOCK_MONOTONIC)
		return ticks;
	if (distance <= INT64_MAX) {
		ns = pmdp_ticks_to_ns(distance, pair->ticks_hz);
		return ns > UINT64_MAX - pair->mono_ns ? UINT64_MAX : pair->mono_ns + ns;
	}
	ns = pmdp_ticks_to_ns(-distance, pair->ticks_hz);
	return ns > pair->mono_ns ? 0 : pair->mono_ns - ns;
}

uint64_t pmdp_reader_length_ns(const struct pmdp_reader *reader, uint64_t ticks)
{
	return pmdp_ticks_to_ns(ticks, reader->pair.ticks_hz);
}

static void convert(const struct pmdp_reader *reader, const struct pmdp_hot_shm *hot,
		    struct pmdp_lane_look *out)
{
	uint64_t announce = word(&hot->announce);

	if ((announce & 0xff) == PMDP_ANNOUNCE_NONE) { // most lanes, and nothing to convert
		*out = (struct pmdp_lane_look){.incarnation = word(&hot->incarnation),
					       .n_records = word(&hot->n_records)};
		return;
	}
	out->announce = (uint32_t)(announce & 0xff);
	out->reason = (uint32_t)(announce >> 8 & 0xff);
	out->is_claimed = out->announce != PMDP_ANNOUNCE_NONE &&
			  out->announce != PMDP_ANNOUNCE_EXITED;
	out->incarnation = word(&hot->incarnation);
	out->beats = word(&hot->beats);
	out->beat_ns = out->beats || word(&hot->beat_ticks)
			       ? pmdp_reader_mono_ns(reader, word(&hot->beat_ticks))
			       : 0;
	out->deadline_ns = out->announce == PMDP_ANNOUNCE_DOZING ? word(&hot->deadline_ns) : 0;
	out->crumb = word(&hot->crumb);
	out->n_gaps = word(&hot->n_gaps);
	out->gap_ns = pmdp_reader_length_ns(reader, word(&hot->gap_ticks));
	out->n_stalls = word(&hot->n_stalls);
	out->stall_ns = pmdp_reader_length_ns(reader, word(&hot->stall_ticks));
	out->last_stall_ns = pmdp_reader_length_ns(reader, word(&hot->last_stall_ticks));
	out->longest_gap_ns = pmdp_reader_length_ns(reader, word(&hot->longest_gap_ticks));
	out->n_records = word(&hot->n_records);
}

// Counts of one thread never fall; free-running ones are compared by their difference.
static bool is_behind(const struct pmdp_lane_look *now, const struct pmdp_lane_look *before)
{
	return now->incarnation == before->incarnation &&
	       ((int64_t)(now->beats - before->beats) < 0 || now->n_gaps < before->n_gaps ||
		now->n_stalls < before->n_stalls);
}

/*
 * A slot is copied word by word while its thread runs, so a copy can hold an old beat beside a new
 * word of announcement, which looks like a thread that should poll and does not; or the number of
 * one thread beside the counts of the next. So a lane whose announcement or incarnation is new,
 * whose beat is old, or whose counts fell, is read once more: when both copies agree in
 * announcement and incarnation, what the second holds was true while the announcement was (H1, H4).
 */
static bool is_doubtful(const struct pmdp_lane_look *now, const struct pmdp_lane_look *before,
			uint64_t now_ns, uint64_t interval_ns)
{
	if (now->announce != before->announce || now->reason != before->reason ||
	    now->incarnation != before->incarnation || is_behind(now, before))
		return true;
	return now->announce == PMDP_ANNOUNCE_POLLING && now->beat_ns < now_ns &&
	       now_ns - now->beat_ns >= interval_ns;
}

static int confirm(struct pmdp_reader *reader, uint32_t lane, const struct pmdp_lane_look *before,
		   struct pmdp_lane_look *look)
{
	const struct pmdp_reader_section *s = &reader->hot;
	struct pmdp_hot_shm hot;
	uint64_t announce, incarnation;
	int rc;

	for (int i = 0; i < CONFIRM_TRIES; i++) {
		announce = (uint64_t)look->announce | (uint64_t)look->reason << 8;
		incarnation = look->incarnation;
		atomic_thread_fence(memory_order_acquire); // H4: the word before the beat
		rc = pmdp_reader_fetch(reader, s->offset_bytes + (uint64_t)lane * s->stride_bytes,
				       &hot, sizeof hot);
		if (rc < 0)
			return rc;
		convert(reader, &hot, look);
		if ((word(&hot.announce) & 0xffff) == announce &&
		    look->incarnation == incarnation && !is_behind(look, before))
			break;
	}
	return 0;
}

int pmdp_reader_look(struct pmdp_reader *reader, struct pmdp_look *out_look)
{
	const struct pmdp_reader_section *s = &reader->hot;
	const char *slots = reader->front + sizeof reader->header;
	struct pmdp_lane_look before;
	uint64_t now_ns, interval_ns;
	int rc = pmdp_reader_refresh(reader);

	if (rc < 0)
		return rc;
	now_ns = pmdp_mono_now_ns();
	interval_ns = pmdp_usable_interval_ns(word(&reader->header.keepalive_interval_ns));
	for (uint32_t i = 0; i < s->n_items; i++) {
		struct pmdp_hot_shm hot;

		memcpy(&hot, slots + (size_t)i * s->stride_bytes, sizeof hot);
		before = reader->looks[i];
		convert(reader, &hot, &reader->looks[i]);
		if (is_doubtful(&reader->looks[i], &before, now_ns, interval_ns)) {
			rc = confirm(reader, i, &before, &reader->looks[i]);
			if (rc < 0)
				return rc;
		}
	}
	*out_look = (struct pmdp_look){
		.now_ns = pmdp_mono_now_ns(),
		.alive_ns = word(&reader->header.alive_ns),
		.stopped_ns = word(&reader->header.stopped_ns),
		.keepalive_interval_ns = interval_ns,
		.gap_limit_ns = word(&reader->header.gap_limit_ns),
		.is_keepalive = (word(&reader->header.flags) & PMDP_FLAG_KEEPALIVE) != 0,
		.n_lanes = s->n_items,
		.lanes = reader->looks,
	};
	return 0;
}
