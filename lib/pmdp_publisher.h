// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// What the parts of the publishing side share. Internal to lib/.
#pragma once

#include "pmdp_clock.h"
#include "pmdp_segment.h"
#include "pmdpulse.h"

/*
 * An item of the hot section: the slot, and behind it what the lane's thread counts between two
 * snapshots, which is no reader's business. They share a page (512 divides 4096, and the section
 * begins at a multiple of it), because a thread that forwards bursts writes to more pages an
 * iteration than the store TLB has entries: a page for beats alone costs 0.2 percent of the rate of
 * null ports, this one is written for the counters anyway.
 */
struct pmdp_hot_item {
	struct pmdp_hot_shm slot;
	uint64_t counters[PMDP_N_COUNTERS];
};

_Static_assert(sizeof(struct pmdp_hot_item) == 512 && sizeof(struct pmdp_header_shm) % 512 == 0,
	       "an item of the hot section lies on one page");

struct pmdp_publisher {
	struct pmdp_segment seg;
	struct pmdp_header_shm *header; // seg's
	struct pmdp_hot_item *hot;
	struct pmdp_lane_shm *lanes;
	struct pmdp_record_shm *records;
	struct pmdp_port_shm *ports;
	uint32_t n_lanes, n_ports, records_per_lane;
	uint64_t ticks_hz;
	bool is_tsc;
	pid_t pid; // of the process that opened: a fork's child must not give the name up
	// Handles by lane, for close. Set by the claimer, which owns the place by its claim.
	struct pmdp_lane *_Atomic *handles;
};

static inline uint64_t pmdp_publisher_clock(const struct pmdp_publisher *pub)
{
	return pub->is_tsc ? pmdp_tsc_now() : pmdp_mono_now_ns();
}

static inline uint64_t pmdp_announce_word(uint32_t announce, uint32_t reason)
{
	return (uint64_t)announce | (uint64_t)reason << 8;
}
