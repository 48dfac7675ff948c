// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The mapping of a segment file, for tests that look at its words or damage them.
#pragma once

#include <stddef.h>

#include "pmdpulse.h"

struct test_ring {
	struct pmdp_header_shm *header;
	struct pmdp_hot_shm *hot; // of lane 0; the others: test_ring_hot()
	struct pmdp_lane_shm *lanes;
	struct pmdp_record_shm *records;
	struct pmdp_port_shm *ports;
	size_t size;
	uint32_t hot_stride;
};

// Map INSTANCE.ring (suffix: or another) of a folder, for reading and writing. Fails the test.
void test_ring_map(struct test_ring *ring, const char *rundir, const char *name);
struct pmdp_hot_shm *test_ring_hot(const struct test_ring *ring, uint32_t lane);
void test_ring_unmap(struct test_ring *ring);
