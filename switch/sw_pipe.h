// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Control's side of a PMD's pipeline: its memory, and looks at its megaflows.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sw_act.h"
#include "sw_key.h"
#include "sw_xlate_fast.h"

struct sw_pipe;
struct sw_smc;

// Caches and room for at most max_flows megaflows (fewer where memory is short), all touched. NULL
// without memory. Destroy: the PMD has ended; accepts NULL.
struct sw_pipe *sw_pipe_create(uint32_t max_flows);
void sw_pipe_destroy(struct sw_pipe *pipe);

// The signature-match cache, made when first asked for. NULL without memory, which is logged.
struct sw_smc *sw_pipe_smc(struct sw_pipe *pipe);

// A megaflow as it was at one moment.
struct sw_mega_copy {
	struct sw_key key; // of the packet that made it
	struct sw_key mask;
	uint64_t n_packets;
	uint64_t n_bytes;
	uint64_t created_ticks;
	uint64_t used_ticks; // of the last hit, some ten microseconds coarse
	uint32_t id;
	uint32_t n_acts;
	uint32_t drop_reason;
	bool is_recirculated;
	uint16_t port; // index
	struct sw_act acts[SW_XLATE_MAX_ACTS];
};

// Places that may hold a megaflow.
uint32_t sw_pipe_n_places(const struct sw_pipe *pipe);
// False: none there, or it changed all the while.
bool sw_pipe_read(const struct sw_pipe *pipe, uint32_t place, uint64_t now_ticks,
		  struct sw_mega_copy *out);
