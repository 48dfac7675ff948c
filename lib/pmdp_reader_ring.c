// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Rings of numbered items: a lane's records, the events of an incidents segment. The writer never
 * waits, so a slow reader is lapped; each item proves itself by its own number (R3/R4), and what
 * was overwritten before it could be read is counted one by one.
 */
#include <errno.h>
#include <string.h>

#include "pmdp_reader.h"
#include "pmdp_shm.h"

struct ring {
	uint64_t offset_bytes;
	uint64_t count_offset; // of the word that counts published items
	uint32_t n_items;
	uint32_t stride_bytes;
	uint32_t body_offset;
	uint32_t body_size;
};

// R4: 1 the item is whole and in out; 0 it is not there any more; or an error of fetch.
static int read_item(const struct pmdp_reader *reader, const struct ring *ring, uint64_t n,
		     char *out)
{
	uint64_t at = ring->offset_bytes + n % ring->n_items * ring->stride_bytes;
	uint64_t whole = 2 * n + 2, before, after;
	int rc = pmdp_reader_fetch(reader, at, &before, sizeof before);

	if (rc < 0)
		return rc;
	if (before != whole)
		return 0; // of a later lap: the count says that it was published
	atomic_thread_fence(memory_order_acquire); // R4a: the number before the payload
	rc = pmdp_reader_fetch(reader, at + ring->body_offset, out, ring->body_size);
	if (rc < 0)
		return rc;
	atomic_thread_fence(memory_order_acquire); // R4b: the payload before the number
	rc = pmdp_reader_fetch(reader, at, &after, sizeof after);
	if (rc < 0)
		return rc;
	return after == whole;
}

static int read_count(const struct pmdp_reader *reader, const struct ring *ring, uint64_t *out_n)
{
	int rc = pmdp_reader_fetch(reader, ring->count_offset, out_n, sizeof *out_n);

	atomic_thread_fence(memory_order_acquire); // R2: the count before the items that it counts
	return rc;
}

static int read_ring(const struct pmdp_reader *reader, const struct ring *ring, uint64_t *cursor,
		     void *out, uint32_t n, uint64_t *lost)
{
	uint64_t n_published, at = *cursor, n_lost = 0;
	uint32_t n_filled = 0;
	int rc = read_count(reader, ring, &n_published);

	if (rc < 0)
		return rc;
	if (n_published > INT64_MAX) // nobody counts so far, and from there numbers would repeat
		return -ESTALE;
	if (at == UINT64_MAX)
		at = n_published > ring->n_items ? n_published - ring->n_items : 0;
	if (n_published - at > INT64_MAX)
		return -ESTALE;
	if (n > INT32_MAX)
		n = INT32_MAX;
	// At most one lap per call: a writer that is faster than us must not keep us here.
	for (uint32_t steps = 0; n_filled < n && at != n_published && steps < ring->n_items;
	     steps++) {
		if (n_published - at > ring->n_items) {
			n_lost += n_published - at - ring->n_items;
			at = n_published - ring->n_items;
		}
		rc = read_item(reader, ring, at, (char *)out + (size_t)n_filled * ring->body_size);
		if (rc < 0)
			return rc;
		n_filled += rc == 1;
		n_lost += rc == 0;
		at++;
	}
	*cursor = at;
	if (lost)
		*lost += n_lost;
	return (int)n_filled;
}

int pmdp_reader_records(struct pmdp_reader *reader, uint32_t lane, uint64_t *cursor,
			struct pmdp_record_body *out_records, uint32_t n, uint64_t *lost)
{
	const uint32_t per_lane = reader->header.records_per_lane;
	struct ring ring = {
		.n_items = per_lane,
		.stride_bytes = reader->records.stride_bytes,
		.body_offset = offsetof(struct pmdp_record_shm, body),
		.body_size = sizeof(struct pmdp_record_body),
	};

	if (lane >= reader->hot.n_items)
		return -ERANGE;
	if (!per_lane)
		return 0;
	ring.offset_bytes =
		reader->records.offset_bytes + (uint64_t)lane * per_lane * ring.stride_bytes;
	ring.count_offset = reader->hot.offset_bytes + (uint64_t)lane * reader->hot.stride_bytes +
			    offsetof(struct pmdp_hot_shm, n_records);
	return read_ring(reader, &ring, cursor, out_records, n, lost);
}

int pmdp_reader_events(struct pmdp_reader *reader, uint64_t *cursor,
		       struct pmdp_incident *out_events, uint32_t n, uint64_t *lost)
{
	const struct ring ring = {
		.offset_bytes = reader->events.offset_bytes,
		.count_offset = offsetof(struct pmdp_header_shm, n_events),
		.n_items = reader->events.n_items,
		.stride_bytes = reader->events.stride_bytes,
		.body_offset = offsetof(struct pmdp_event_shm, body),
		.body_size = sizeof(struct pmdp_incident),
	};

	if (!ring.n_items)
		return 0;
	return read_ring(reader, &ring, cursor, out_events, n, lost);
}
