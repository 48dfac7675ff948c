// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Consistent copies of what is written under a sequence word: lanes, ports, open incidents.
#include <errno.h>
#include <string.h>

#include "pmdp_reader.h"
#include "pmdp_shm.h"

int pmdp_reader_copy(const struct pmdp_reader *reader, uint64_t seq_offset, uint64_t offset,
		     void *out, size_t size)
{
	uint64_t before, after;
	int rc;

	for (int i = 0; i < PMDP_READ_TRIES; i++) {
		rc = pmdp_reader_fetch(reader, seq_offset, &before, sizeof before);
		if (rc < 0)
			return rc;
		atomic_thread_fence(memory_order_acquire); // S2a: the number before the payload
		rc = pmdp_reader_fetch(reader, offset, out, size);
		if (rc < 0)
			return rc;
		atomic_thread_fence(memory_order_acquire); // S2b: the payload before the number
		rc = pmdp_reader_fetch(reader, seq_offset, &after, sizeof after);
		if (rc < 0)
			return rc;
		if (before == after && !(before & 1))
			return 0;
	}
	return -EAGAIN;
}

int pmdp_reader_lane(struct pmdp_reader *reader, uint32_t lane, struct pmdp_lane_body *out_body)
{
	const struct pmdp_reader_section *s = &reader->lanes;
	struct pmdp_lane_body body;
	uint64_t at, claimed;
	int rc;

	if (lane >= s->n_items)
		return -ERANGE;
	at = s->offset_bytes + (uint64_t)lane * s->stride_bytes;
	rc = pmdp_reader_fetch(reader, at + offsetof(struct pmdp_lane_shm, claimed), &claimed,
			       sizeof claimed);
	if (rc < 0)
		return rc;
	if (!claimed)
		return -ENOENT;
	rc = pmdp_reader_copy(reader, at + offsetof(struct pmdp_lane_shm, seq),
			      at + offsetof(struct pmdp_lane_shm, body), &body, sizeof body);
	if (rc < 0)
		return rc;
	// Claimed, but the new thread has not said yet who it is: the body is the last one's.
	if (body.tid != (uint32_t)claimed)
		return -ENOENT;
	body.name[sizeof body.name - 1] = 0;
	*out_body = body;
	return 0;
}

int pmdp_reader_port(struct pmdp_reader *reader, uint32_t slot, struct pmdp_port_body *out_body,
		     uint64_t *out_generation)
{
	const struct pmdp_reader_section *s = &reader->ports;
	struct pmdp_port_shm port;
	uint64_t at;
	int rc;

	if (slot >= s->n_items)
		return -ERANGE;
	at = s->offset_bytes + (uint64_t)slot * s->stride_bytes;
	rc = pmdp_reader_copy(reader, at + offsetof(struct pmdp_port_shm, seq), at, &port,
			      sizeof port);
	if (rc < 0)
		return rc;
	if (!atomic_load_explicit(&port.in_use, memory_order_relaxed))
		return -ENOENT;
	port.body.name[sizeof port.body.name - 1] = 0;
	*out_body = port.body;
	if (out_generation)
		*out_generation = atomic_load_explicit(&port.slot_generation, memory_order_relaxed);
	return 0;
}

int pmdp_reader_incident(struct pmdp_reader *reader, uint32_t slot,
			 struct pmdp_incident *out_incident)
{
	const struct pmdp_reader_section *s = &reader->incidents;
	struct pmdp_event_shm event;
	uint64_t at;
	int rc;

	if (slot >= s->n_items)
		return -ERANGE;
	at = s->offset_bytes + (uint64_t)slot * s->stride_bytes;
	rc = pmdp_reader_copy(reader, at + offsetof(struct pmdp_event_shm, seq), at, &event,
			      sizeof event);
	if (rc < 0)
		return rc;
	if (!atomic_load_explicit(&event.in_use, memory_order_relaxed))
		return -ENOENT;
	*out_incident = event.body;
	return 0;
}
