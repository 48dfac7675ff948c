// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * What a beat adds to an iteration, in cycles of the time stamp counter. An iteration reads the
 * counter, as every poll loop does, and nothing else: next to nothing that could hide the stores of
 * the beat. Loops with and without it alternate; each round gives one difference. A round that was
 * interrupted shows as an outlier, so medians and quartiles are told.
 *
 *	beat [ROUNDS [ITERATIONS]]	one JSON line; exit 1 when the median exceeds 4 cycles
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmdp_clock.h"
#include "pmdpulse.h"
#include "test_dir.h"

#define MAX_ROUNDS 100000
#define TARGET_CYCLES 4.0

// noinline: the loops must not be merged or unrolled into one another.
__attribute__((noinline)) static uint64_t loop_empty(struct pmdp_lane *lane, uint64_t n)
{
	uint64_t begin = pmdp_tsc_now(), now = begin;

	(void)lane;
	for (uint64_t i = 0; i < n; i++) {
		now = pmdp_tsc_now();
		__asm__ volatile("" : : "r"(now) : "memory");
	}
	return now - begin;
}

__attribute__((noinline)) static uint64_t loop_beat(struct pmdp_lane *lane, uint64_t n)
{
	uint64_t begin = pmdp_tsc_now(), now = begin;

	for (uint64_t i = 0; i < n; i++) {
		now = pmdp_tsc_now();
		pmdp_lane_beat(lane, now);
		__asm__ volatile("" : : "r"(now) : "memory");
	}
	return now - begin;
}

__attribute__((noinline)) static uint64_t loop_beat_crumbs(struct pmdp_lane *lane, uint64_t n)
{
	uint64_t begin = pmdp_tsc_now(), now = begin;

	for (uint64_t i = 0; i < n; i++) {
		now = pmdp_tsc_now();
		pmdp_lane_crumb(lane, PMDP_CRUMB(PMDP_STAGE_RX, 1, 0));
		pmdp_lane_beat(lane, now);
		__asm__ volatile("" : : "r"(now) : "memory");
	}
	return now - begin;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static uint64_t tsc_hz(void)
{
	uint64_t ns = pmdp_mono_now_ns(), ticks = pmdp_tsc_now();

	usleep(50000);
	ticks = pmdp_tsc_now() - ticks;
	return ticks * 1000 / ((pmdp_mono_now_ns() - ns) / 1000000);
}

static void print_quartiles(const char *name, double *values, size_t n)
{
	qsort(values, n, sizeof *values, compare);
	printf(", \"%s_cycles\": {\"q1\": %.3f, \"median\": %.3f, \"q3\": %.3f}", name,
	       values[n / 4], values[n / 2], values[n * 3 / 4]);
}

int main(int argc, char **argv)
{
	size_t n_rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 300;
	uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 20000;
	struct pmdp_publisher_opts opts = {.n_lanes = 1};
	static double empty[MAX_ROUNDS], beat[MAX_ROUNDS], crumbs[MAX_ROUNDS];
	struct pmdp_publisher *pub;
	struct pmdp_lane *lane;
	double median;
	int rc;

	if (n_rounds < 1 || n_rounds > MAX_ROUNDS || n < 1) {
		fprintf(stderr, "usage: beat [ROUNDS [ITERATIONS]], 1 to %d rounds\n", MAX_ROUNDS);
		return 2;
	}
	if (!pmdp_tsc_is_invariant()) {
		printf("skipped: the time stamp counter of this machine is not invariant\n");
		return 77;
	}
	opts.rundir = test_dir_make();
	opts.tsc_hz = tsc_hz();
	rc = pmdp_publisher_open("bench", &opts, &pub);
	if (rc == 0)
		rc = pmdp_lane_claim(pub, "bench", PMDP_LANE_PMD, -1, -1, 0, &lane);
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", opts.rundir, strerror(-rc));
		test_dir_remove();
		return 1;
	}
	pmdp_lane_polling(lane);
	for (size_t i = 0; i < n_rounds; i++) {
		pmdp_lane_polling(lane); // so that the other loops are no gap
		empty[i] = (double)loop_empty(lane, n) / (double)n;
		pmdp_lane_polling(lane);
		beat[i] = (double)loop_beat(lane, n) / (double)n - empty[i];
		pmdp_lane_polling(lane);
		crumbs[i] = (double)loop_beat_crumbs(lane, n) / (double)n - empty[i];
	}
	pmdp_lane_release(lane);
	pmdp_publisher_close(pub);
	test_dir_remove();
	printf("{\"bench\": \"beat\", \"rounds\": %zu, \"iterations\": %llu, \"tsc_hz\": %llu",
	       n_rounds, (unsigned long long)n, (unsigned long long)opts.tsc_hz);
	print_quartiles("empty", empty, n_rounds);
	print_quartiles("beat_adds", beat, n_rounds);
	print_quartiles("beat_and_crumb_add", crumbs, n_rounds);
	median = beat[n_rounds / 2];
	printf(", \"target_cycles\": %.1f, \"met\": %s}\n", TARGET_CYCLES,
	       median <= TARGET_CYCLES ? "true" : "false");
	return median > TARGET_CYCLES;
}
