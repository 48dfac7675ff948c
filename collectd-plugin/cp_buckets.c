// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <stdio.h>
#include <string.h>

#include "cp_metrics_parts.h"

// Bounds are 2^14 ns (16.4 us) to 2^36 ns (68.7 s), then +Inf.
#define FIRST_BIT PMDP_HIST_FLOOR_BIN

const char *cp_bucket_bound(uint32_t bucket, char *out, size_t size)
{
	if (bucket >= CP_N_BUCKETS - 1)
		snprintf(out, size, "+Inf");
	else
		snprintf(out, size, "%.17g", (double)(UINT64_C(1) << (FIRST_BIT + bucket)) / 1e9);
	// The shortest text that reads back as the same number.
	for (int digits = 1; bucket < CP_N_BUCKETS - 1 && digits < 17; digits++) {
		double value = (double)(UINT64_C(1) << (FIRST_BIT + bucket)) / 1e9, back;

		snprintf(out, size, "%.*g", digits, value);
		if (sscanf(out, "%lf", &back) == 1 && back == value)
			break;
	}
	return out;
}

void cp_buckets(const struct pmdp_lane_body *body, uint64_t out_counts[CP_N_BUCKETS])
{
	uint64_t above = 0, sum;

	for (uint32_t bin = FIRST_BIT; bin < PMDP_N_HIST; bin++)
		above += body->gap_hist[bin];
	// Gaps below the floor are not counted one by one: they are all other iterations.
	sum = body->counters[PMDP_C_ITERATIONS] > above ? body->counters[PMDP_C_ITERATIONS] - above
							: 0;
	for (uint32_t bucket = 0; bucket < CP_N_BUCKETS - 1; bucket++) {
		out_counts[bucket] = sum;
		sum += body->gap_hist[FIRST_BIT + bucket];
	}
	for (uint32_t bin = FIRST_BIT + CP_N_BUCKETS - 1; bin < PMDP_N_HIST; bin++)
		sum += body->gap_hist[bin];
	out_counts[CP_N_BUCKETS - 1] = sum;
}
