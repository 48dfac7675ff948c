// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Statistics as commands show them. Control thread only; never waits for a PMD.
 *
 * PMD counters are copies that the PMD publishes in its lane under a sequence number, so one
 * snapshot is consistent in itself: rx = tx + drops + in flight, busy + idle + sleep = total.
 */
#pragma once

#include <stdint.h>

#include "pmdp_abi.h"

struct sw_pmd;
struct sw_port;
struct sw_switch;

struct sw_pmd_stats {
	uint64_t counters[PMDP_N_COUNTERS]; // PMDP_C_*, since the last clear (gauges as they are)
	uint64_t ticks_hz;                  // of the _TICKS counters
	uint64_t snapshot_ticks;
	uint32_t flow_limit; // setting: megaflows at most
};

// -EAGAIN: the PMD stands in the middle of an update (stuck there); out is untouched.
int sw_stats_pmd(const struct sw_pmd *pmd, struct sw_pmd_stats *out);

// Set the zero mark of the PMD on this core (-1: of all). The segment's counters go on.
// All its counters since its start. -EAGAIN as above.
int sw_stats_raw(const struct sw_pmd *pmd, uint64_t out_counters[PMDP_N_COUNTERS]);

void sw_stats_clear(struct sw_switch *sw, int core);

struct sw_port_stats {
	uint32_t admin_state; // PMDP_LINK_*
	uint32_t link_state;  // PMDP_LINK_*
	uint32_t link_speed_mbps;
	uint64_t counters[PMDP_P_N_COUNTERS]; // PMDP_P_*
};

// Asks the device for its counters and link, without waiting.
void sw_stats_port(struct sw_switch *sw, struct sw_port *port, struct sw_port_stats *out);
