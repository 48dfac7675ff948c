// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * When to try again: the pause doubles with each failure in a row, up to a limit, and a random half
 * of it is left out, so that many hosts do not come back to a collector in step. No clock of its
 * own.
 */
#pragma once

#include <stdint.h>

struct vs_pace {
	uint64_t min_ns, max_ns;
	uint64_t n_failed; // in a row
	uint64_t ready_ns; // do not try before
};

// random: any number. retry_after_ns: what the collector asked for, 0 nothing; at most max_ns of
// it.
void vs_pace_failed(struct vs_pace *pace, uint64_t now_ns, uint64_t retry_after_ns,
		    uint32_t random);
void vs_pace_succeeded(struct vs_pace *pace);
