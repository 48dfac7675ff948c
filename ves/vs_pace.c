// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "vs_pace.h"

void vs_pace_failed(struct vs_pace *pace, uint64_t now_ns, uint64_t retry_after_ns, uint32_t random)
{
	uint64_t pause_ns = pace->min_ns;

	for (uint64_t i = 0; i < pace->n_failed && pause_ns < pace->max_ns; i++)
		pause_ns *= 2;
	pace->n_failed++;
	if (pause_ns > pace->max_ns)
		pause_ns = pace->max_ns;
	const uint64_t half_ns = pause_ns / 2;
	pause_ns -= (uint64_t)((double)half_ns * (UINT32_MAX - random) / UINT32_MAX);
	if (retry_after_ns > pace->max_ns)
		retry_after_ns = pace->max_ns;
	pace->ready_ns = now_ns + (pause_ns > retry_after_ns ? pause_ns : retry_after_ns);
}

void vs_pace_succeeded(struct vs_pace *pace)
{
	pace->n_failed = 0;
	pace->ready_ns = 0;
}
