// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Performance metrics of PMDs, control side: switched by the setting pmd-perf-metrics, read by
 * pmd-perf-show and pmd-perf-log. Control thread only; never waits for a PMD.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sw_perf_fast.h"

struct sw_pmd;
struct sw_switch;

// What pmd-perf-log-set changes.
struct sw_perf_limits {
	bool is_logging;
	bool is_extending;
	uint32_t limit_us;
	uint32_t n_before;
	uint32_t n_after;
};

#define SW_PERF_MAX_NEIGHBOURS (SW_PERF_LOG_ITERATIONS / 2 - 1)
#define SW_PERF_N_KEPT 16 // logs that pmd-perf-log shows

// Control's part for one PMD.
struct sw_perf_kept {
	struct sw_perf *perf;       // NULL: never switched on
	struct sw_perf_totals base; // totals at the last clear
	uint64_t base_ticks;        // histories from here on
	uint64_t n_logs;            // taken so far; the newest stand in logs
	uint64_t told_ns;           // when the last one was told of
	uint32_t n_untold;          // since then
	struct sw_perf_log *logs[SW_PERF_N_KEPT];
};

void sw_perf_limits_init(struct sw_perf_limits *limits);

// Bring all PMDs in line with the setting and the limits. -ENOMEM: some PMD has no room to record.
int sw_perf_apply(struct sw_switch *sw);
// The PMD has ended, or never began. Accepts one without.
void sw_perf_detach(struct sw_pmd *pmd);

// Take new logs from the PMDs, and tell of them. From housekeeping.
void sw_perf_poll(struct sw_switch *sw);

// Set the zero mark.
void sw_perf_clear(struct sw_pmd *pmd);

// Since the last clear. -EAGAIN: the PMD stands in the middle of an update.
int sw_perf_totals(const struct sw_pmd *pmd, struct sw_perf_totals *out);

// The newest items, oldest first; at most n. Returns how many.
uint32_t sw_perf_iterations(const struct sw_pmd *pmd, struct sw_perf_iteration *out, uint32_t n);
uint32_t sw_perf_milliseconds(const struct sw_pmd *pmd, struct sw_perf_ms *out, uint32_t n);

// The lowest value of a bin.
uint64_t sw_perf_bin_low(uint32_t bin);
// "cycles_per_packet" and so on.
const char *sw_perf_hist_name(uint32_t hist);
