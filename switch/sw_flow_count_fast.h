// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * What a PMD counts for the rules: one array per PMD, indexed by the slot that a rule keeps as long
 * as it lives. Only the PMD writes it; control sums up (sw_flow_stats.c).
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "sw_key.h"

#define SW_OFPORT_MAX 0xfeff

#define SW_FLOW_MAX_RULES 65536
// Deleted rules keep theirs until no PMD counts for them any more: so all rules can be replaced at
// once.
#define SW_FLOW_MAX_SLOTS (2 * SW_FLOW_MAX_RULES)

struct sw_flow_count {
	_Atomic uint64_t packets; // W: PMD, relaxed
	_Atomic uint64_t bytes;   // W: PMD, relaxed
};

// Of one PMD, 64-byte aligned, written by that PMD alone.
struct sw_flow_stats {
	_Atomic uint64_t bad[SW_N_BAD]; // malformed frames by SW_BAD_*; W: PMD, relaxed
	// No megaflow of this PMD, nor a packet in it, comes from an older generation of the
	// tables. UINT64_MAX while it sleeps without a megaflow. W: PMD, release (O1)  R: control,
	// acquire (O2)
	_Atomic uint64_t oldest_generation;
	struct sw_flow_count rules[SW_FLOW_MAX_SLOTS];
};
