// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * A perf ring that runs backwards and overwrites its oldest records. Reading copies what is new and
 * then looks again how far the kernel has come meanwhile: only what it can't have touched is
 * parsed. No system call to read, the kernel is not paused.
 */
#pragma once

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ag_perf_ring {
	int fd;
	void *map;
	size_t size_bytes; // of the data part, a power of two
	uint64_t last_head;
	uint8_t *copy;
	uint32_t *offsets;
};

struct ag_perf_batch {
	const uint8_t *bytes;
	const uint32_t *offsets; // of the records in bytes, newest first
	size_t n_records;
	uint64_t lost_bytes;
};

/*
 * attr: type, config and what to record; clock (CLOCK_MONOTONIC), sample_id_all with TID | TIME |
 * CPU and direction are set here. Errors of perf_event_open and mmap.
 */
int ag_perf_ring_open(const struct perf_event_attr *attr, pid_t tid, int core, size_t size_bytes,
		      struct ag_perf_ring *out_ring);
void ag_perf_ring_close(struct ag_perf_ring *ring);
size_t ag_perf_ring_pending(const struct ag_perf_ring *ring);

// The records since the last read. The batch is good until the next read of this ring.
void ag_perf_ring_read(struct ag_perf_ring *ring, struct ag_perf_batch *out_batch);
