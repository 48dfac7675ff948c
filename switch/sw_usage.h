// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * How busy PMDs were of late, and which receive queue that was for: what pmd-rxq-show tells.
 * Control thread only.
 *
 * Busy and all cycles of a PMD are kept every few seconds, so their shares of the last minute are
 * exact. How a PMD with several queues divides its busy time among them is known from samples
 * (sw_sample_fast.c), which begin anew when queues or settings change.
 */
#pragma once

#include <stdint.h>

#define SW_USAGE_STEP_S 5
#define SW_USAGE_MAX_S 60
#define SW_USAGE_N_MARKS (SW_USAGE_MAX_S / SW_USAGE_STEP_S + 1)

struct sw_pmd;
struct sw_pmd_rxq;
struct sw_switch;

// Of a PMD: a ring.
struct sw_usage {
	uint64_t busy_ticks[SW_USAGE_N_MARKS];
	uint64_t all_ticks[SW_USAGE_N_MARKS];
	uint32_t n; // marks ever made
};

// Make the marks that are due.
void sw_usage_poll(struct sw_switch *sw, uint64_t now_ns);

/*
 * Of n queues that a PMD polls, the percentage of its cycles that each took in the last seconds (5
 * to 60, a few more or, of a young PMD, less); and of what was for none of them. -EAGAIN: nothing
 * is known.
 */
int sw_usage_of(const struct sw_pmd *pmd, const struct sw_pmd_rxq *rxqs, uint32_t n,
		uint32_t seconds, double *out_pct, double *out_overhead_pct);
