// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * All values of one read: the rows of cp_types.h, for every instance.
 */
#pragma once

#include <stdint.h>

struct cp_round {
	uint64_t time, interval; // cdtime_t, of the read callback
	double callback_s;       // what it took
};

// One round, of the values thread.
void cp_metrics_dispatch(const struct cp_round *round);
// Frees what the placeholder instance needed.
void cp_metrics_clear(void);

// CLOCK_MONOTONIC in seconds.
double cp_mono_s(void);
