// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_perf_ring.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MIN_RECORD_BYTES 8
// The kernel moves data_head only after a record is whole: the one it is writing now may already
// have spoiled this much more of the oldest end.
#define MARGIN_BYTES ((size_t)4096)

static uint64_t read_head(const struct ag_perf_ring *ring)
{
	const struct perf_event_mmap_page *page = ring->map;

	// Pairs with the kernel's barrier before it moves the head: the records up to it are whole.
	return atomic_load_explicit((const _Atomic __u64 *)&page->data_head, memory_order_acquire);
}

int ag_perf_ring_open(const struct perf_event_attr *attr, pid_t tid, int core, size_t size_bytes,
		      struct ag_perf_ring *out_ring)
{
	struct perf_event_attr a = *attr;
	struct ag_perf_ring ring = {.size_bytes = size_bytes};
	int rc;

	a.size = sizeof(a);
	a.sample_type |= PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
	a.sample_id_all = 1;
	a.use_clockid = 1;
	a.clockid = CLOCK_MONOTONIC;
	a.write_backward = 1;
	ring.fd = (int)syscall(SYS_perf_event_open, &a, tid, core, -1, PERF_FLAG_FD_CLOEXEC);
	if (ring.fd < 0)
		return -errno;
	// Read-only is what makes the kernel overwrite instead of stop when the ring is full.
	ring.map =
		mmap(NULL, (size_t)getpagesize() + size_bytes, PROT_READ, MAP_SHARED, ring.fd, 0);
	if (ring.map == MAP_FAILED) {
		rc = -errno;
		close(ring.fd);
		return rc;
	}
	ring.copy = malloc(size_bytes);
	ring.offsets = malloc(size_bytes / MIN_RECORD_BYTES * sizeof(*ring.offsets));
	if (!ring.copy || !ring.offsets) {
		ag_perf_ring_close(&ring);
		return -ENOMEM;
	}
	*out_ring = ring;
	return 0;
}

void ag_perf_ring_close(struct ag_perf_ring *ring)
{
	munmap(ring->map, (size_t)getpagesize() + ring->size_bytes);
	close(ring->fd);
	free(ring->copy);
	free(ring->offsets);
}

size_t ag_perf_ring_pending(const struct ag_perf_ring *ring)
{
	return (size_t)(ring->last_head - read_head(ring)); // the head runs towards 0 and below
}

static void copy_out(struct ag_perf_ring *ring, uint64_t head, size_t n_bytes)
{
	const struct perf_event_mmap_page *page = ring->map;
	const uint8_t *data = (const uint8_t *)ring->map + page->data_offset;
	size_t from = (size_t)head & (ring->size_bytes - 1);
	size_t first = ring->size_bytes - from;

	if (first > n_bytes)
		first = n_bytes;
	memcpy(ring->copy, data + from, first);
	memcpy(ring->copy + first, data, n_bytes - first);
}

void ag_perf_ring_read(struct ag_perf_ring *ring, struct ag_perf_batch *out_batch)
{
	const struct perf_event_header *header;
	uint64_t head = read_head(ring);
	uint64_t fresh = ring->last_head - head;
	size_t n_bytes = fresh < ring->size_bytes ? (size_t)fresh : ring->size_bytes;
	size_t spoiled, at = 0, n = 0;

	copy_out(ring, head, n_bytes);
	atomic_thread_fence(memory_order_acquire); // the copy before the second look at the head
	spoiled = (size_t)(head - read_head(ring)) + MARGIN_BYTES;
	if (spoiled > ring->size_bytes)
		spoiled = ring->size_bytes;
	if (n_bytes > ring->size_bytes - spoiled)
		n_bytes = ring->size_bytes - spoiled;
	while (at + sizeof(*header) <= n_bytes) {
		header = (const void *)(ring->copy + at);
		if (header->size < sizeof(*header) || at + header->size > n_bytes)
			break;
		ring->offsets[n++] = (uint32_t)at;
		at += header->size;
	}
	out_batch->bytes = ring->copy;
	out_batch->offsets = ring->offsets;
	out_batch->n_records = n;
	out_batch->lost_bytes = fresh - at;
	ring->last_head = head;
}
