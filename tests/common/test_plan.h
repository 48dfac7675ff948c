// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// What a PMD's packet path needs around it without a switch: EAL without devices, and a plan.
// Inline, so that only tests of the switch need DPDK's headers.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>

#include "sw_plan_fast.h"

// name: of the program; n_mib: memory, not of hugepages. false: EAL does not start.
static inline bool test_eal_start(const char *name, unsigned int n_mib)
{
	char prefix[64], size[16];
	char *eal[] = {"test",           "--no-huge", "--no-pci", "--no-shconf",
		       "--no-telemetry", "-m",        size,       "--log-level=lib.eal:error",
		       prefix,           NULL};

	snprintf(prefix, sizeof(prefix), "--file-prefix=%s", name);
	snprintf(size, sizeof(size), "%u", n_mib);
	return rte_eal_init(9, eal) >= 0;
}

static inline void test_eal_stop(void)
{
	char folder[256];

	snprintf(folder, sizeof(folder), "%s", rte_eal_get_runtime_dir());
	rte_eal_cleanup();
	rmdir(folder);
}

// Devices 0 to n - 1 are ofport 1 to n, with a receive queue each. out_of has a place for each
// 16-bit number. For free(); ends the program without memory.
static inline struct sw_plan_pmd *test_plan(uint16_t n, struct sw_port_counts *counts,
					    struct sw_plan_out *outs, uint16_t *out_of)
{
	struct sw_plan_pmd *plan = calloc(1, sizeof(*plan) + n * sizeof(plan->rxqs[0]));

	if (plan == NULL)
		abort();
	memset(out_of, 0xff, (UINT16_MAX + 1) * sizeof(*out_of));
	plan->out_of = out_of;
	plan->outs = outs;
	plan->n_outs = n;
	plan->n_rxq = n;
	plan->flow_limit = 1000;
	plan->max_idle_used = UINT32_MAX;
	for (uint16_t i = 0; i < n; i++) {
		plan->rxqs[i] = (struct sw_plan_rxq){
			.port_id = i, .in_port = i + 1, .index = i, .counts = &counts[i]};
		outs[i] = (struct sw_plan_out){
			.port_id = i, .index = i, .counts = &counts[i], .max_len = 1522};
		out_of[i + 1] = i;
	}
	return plan;
}
