// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Who is to poll what, and the plans that say so. No thread is touched here: sw_plan.c publishes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sw_plan_fast.h"
#include "sw_pmd.h"
#include "sw_port.h"

struct sw_switch;

#define SW_NO_PMD 0xffff

// PMD (index) of each receive queue, SW_NO_PMD = nobody.
struct sw_assignment {
	uint16_t pmd[SW_MAX_PORTS][SW_MAX_RXQ];
};

// One round: the plan of each PMD, and what they share.
struct sw_round {
	uint64_t generation;
	struct sw_assignment assignment;
	bool has_port[SW_MAX_PORTS]; // some PMD may poll it or send to it
	struct sw_plan_pmd *plans[SW_MAX_PMDS];
	uint16_t out_of[UINT16_MAX + 1];
};

void sw_assignment_clear(struct sw_assignment *assignment);

/*
 * Round robin over the PMDs that run and stay. Queues that have a PMD in current keep it, and new
 * ones go to the PMD with the fewest, so that a new port moves nobody's queue; is_fresh deals out
 * all anew (the set of PMDs has changed).
 */
void sw_assignment_make(struct sw_switch *sw, const struct sw_assignment *current, bool is_fresh,
			struct sw_assignment *out_wanted);

/*
 * What may be polled in the next round on the way from current to wanted: a queue that changes
 * hands is first left alone by all. Returns true if that is wanted itself.
 */
bool sw_assignment_step(const struct sw_assignment *current, const struct sw_assignment *wanted,
			struct sw_assignment *out_step);

// Plans for all PMDs that run. Leaving PMDs are told to exit. NULL without memory.
struct sw_round *sw_round_build(struct sw_switch *sw, uint64_t generation,
				const struct sw_assignment *assignment);
// A PMD has ended: free its plan. Accepts NULL, as does the next.
void sw_round_drop(struct sw_round *round, uint16_t pmd);
void sw_round_free(struct sw_round *round);
