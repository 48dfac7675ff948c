// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Random schedules of absences, random lateness below the limit, torn looks: what the detector
 * tells must agree with the schedule itself. PMDP_SEED repeats a run, PMDP_ROUNDS makes it longer.
 *
 * The oracle knows only the absences: those of two intervals and more are stalls. It asks that
 * every stall belongs to exactly one incident, that count, sum and longest are those of the
 * absences in it, that it was raised in time, and cleared not before and soon after hold-time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "detector_sim.h"

#define STALL PMDP_KIND_PMD_STALL
#define RUN_NS (30 * S)

static struct sim sim;
static unsigned int seed;

static uint64_t below(uint64_t n)
{
	return ((uint64_t)rand_r(&seed) << 31 | (uint64_t)rand_r(&seed)) % n;
}

// Absences of all lengths, at distances from a moment to seconds.
static void make_schedule(uint32_t lane, uint64_t interval_ns)
{
	uint64_t at_ns = T0 + 1 + below(S);
	uint64_t length_ns;

	while (at_ns < T0 + RUN_NS) {
		switch (below(4)) {
		case 0:
			length_ns = 1 + below(interval_ns);
			break;
		case 1:
			length_ns = interval_ns + below(interval_ns);
			break;
		case 2:
			length_ns = 2 * interval_ns + below(3);
			break;
		default:
			length_ns = 2 * interval_ns + below(20 * interval_ns);
			break;
		}
		if (sim.lanes[lane].n_absences == SIM_ABSENCES)
			return;
		sim_absent(&sim, lane, at_ns, at_ns + length_ns);
		at_ns += length_ns + 20 * US + below(below(2) ? 2 * S : 3 * interval_ns);
	}
}

struct sum {
	uint64_t n, total_ns, longest_ns, last_end_ns;
};

static struct sum stalls_between(uint32_t lane, uint64_t limit_ns, uint64_t begin_ns,
				 uint64_t end_ns)
{
	struct sum sum = {0};

	for (uint32_t i = 0; i < sim.lanes[lane].n_absences; i++) {
		uint64_t b = sim.lanes[lane].absences[i].begin_ns;
		uint64_t e = sim.lanes[lane].absences[i].end_ns;

		if (e - b < limit_ns || b < begin_ns || e > end_ns)
			continue;
		sum.n++;
		sum.total_ns += e - b;
		sum.last_end_ns = e;
		if (e - b > sum.longest_ns)
			sum.longest_ns = e - b;
	}
	return sum;
}

static void print_absences(void)
{
	for (uint32_t lane = 0; lane < 2; lane++) {
		for (uint32_t i = 0; i < sim.lanes[lane].n_absences; i++)
			printf("lane %u absent %.9f %.9f: %.9f\n", lane,
			       (double)(sim.lanes[lane].absences[i].begin_ns - T0) / 1e9,
			       (double)(sim.lanes[lane].absences[i].end_ns - T0) / 1e9,
			       (double)(sim.lanes[lane].absences[i].end_ns -
					sim.lanes[lane].absences[i].begin_ns) /
				       1e9);
	}
}

// What is being checked, for the message.
static uint32_t at_lane;
static uint64_t at_ns;

#define check(cond)                                                                          \
	do {                                                                                 \
		if (!(cond)) {                                                               \
			sim_print(&sim);                                                     \
			print_absences();                                                    \
			fflush(stdout);                                                      \
			fail_msg("lane %u, event at %.6f: %s", at_lane, (double)at_ns / 1e9, \
				 #cond);                                                     \
		}                                                                            \
	} while (0)

struct oracle {
	uint64_t interval_ns, jitter_ns;
	bool is_torn;
	bool is_open;
	uint64_t begin_ns, raised_ns;
	uint64_t n_updates, n_bypasses;
	struct sum told; // of all incidents
};

static void check_raise(struct oracle *oracle, const struct pmdp_transition *t)
{
	check(!oracle->is_open);
	oracle->is_open = true;
	oracle->begin_ns = t->begin_ns;
	oracle->raised_ns = at_ns;
	oracle->n_updates = oracle->n_bypasses = 0;
	// In time, and not for less than two intervals.
	check(t->length_ns >= 2 * oracle->interval_ns);
	if (!t->is_self_timed)
		check(at_ns <= t->begin_ns + 2 * oracle->interval_ns + oracle->jitter_ns);
}

static void check_update(struct oracle *oracle, const struct pmdp_transition *t)
{
	oracle->n_updates++;
	oracle->n_bypasses += t->end_ns && (t->n_stalls == 1 || t->length_ns >= S);
	check(oracle->n_updates <= (at_ns - oracle->raised_ns) / S + oracle->n_bypasses + 1);
}

static void check_clear(struct oracle *oracle, const struct pmdp_transition *t)
{
	uint64_t limit_ns = 2 * oracle->interval_ns;
	// The begin of a stall that was not seen live is known to one look.
	uint64_t slack_ns = limit_ns + 2 * oracle->jitter_ns;
	struct sum sum = stalls_between(at_lane, limit_ns, t->begin_ns - slack_ns, at_ns);

	oracle->is_open = false;
	oracle->told.n += t->n_stalls;
	oracle->told.total_ns += t->total_ns;
	if (t->length_ns > oracle->told.longest_ns)
		oracle->told.longest_ns = t->length_ns;
	if (oracle->is_torn)
		return; // which incident a stall belongs to may differ by a look: the sums may not
	check(t->n_stalls == sum.n);
	check(t->total_ns == sum.total_ns);
	check(t->length_ns == sum.longest_ns);
	check(at_ns >= sum.last_end_ns + S);
	check(at_ns <= sum.last_end_ns + S + slack_ns);
}

static void check_incidents(struct oracle *oracle)
{
	struct sum all = stalls_between(at_lane, 2 * oracle->interval_ns, 0, UINT64_MAX);

	for (uint32_t i = 0; i < sim.n_log; i++) {
		const struct pmdp_transition *t = &sim.log[i].t;

		if (t->lane != at_lane || t->kind != STALL)
			continue;
		at_ns = sim.log[i].at_ns;
		if (t->what == PMDP_T_RAISE) {
			check_raise(oracle, t);
			continue;
		}
		check(oracle->is_open && t->begin_ns == oracle->begin_ns);
		if (t->what == PMDP_T_UPDATE)
			check_update(oracle, t);
		else
			check_clear(oracle, t);
	}
	check(!oracle->is_open);
	check(oracle->told.n == all.n);
	check(oracle->told.total_ns == all.total_ns);
	check(oracle->told.longest_ns == all.longest_ns);
}

static void run_round(uint64_t interval_ns, uint64_t jitter_ns, bool is_torn)
{
	uint64_t may_tear_ns = 0;

	sim_init(&sim, 2, interval_ns);
	sim.limits.starve_pct = 100; // its own tests
	for (uint32_t lane = 0; lane < 2; lane++)
		make_schedule(lane, interval_ns);
	while (sim.now_ns < T0 + RUN_NS + 30 * S) {
		// Counters lag behind their beats by a moment: not again before that was seen.
		if (is_torn && sim.now_ns >= may_tear_ns) {
			sim.lanes[0].is_torn = sim.lanes[1].is_torn = true;
			may_tear_ns = sim.now_ns + 22 * interval_ns + below(S);
		}
		sim_step(&sim, sim.due_ns ? sim.due_ns + below(jitter_ns + 1) : T0);
	}
	check(sim_count(&sim, PMDP_T_LATE, 0) == 0);
	for (uint32_t lane = 0; lane < 2; lane++) {
		struct oracle oracle = {
			.interval_ns = interval_ns, .jitter_ns = jitter_ns, .is_torn = is_torn};

		at_lane = lane;
		check_incidents(&oracle);
	}
}

static void rounds(uint64_t jitter_of_interval_pct, bool is_torn)
{
	static const uint64_t intervals_ns[] = {5 * MS, 50 * MS, 200 * MS};
	const char *text = getenv("PMDP_SEED");
	const char *n_text = getenv("PMDP_ROUNDS");
	uint32_t n = n_text ? (uint32_t)atoi(n_text) : 60;

	seed = text ? (unsigned int)strtoul(text, NULL, 10) : (unsigned int)time(NULL);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t interval_ns = intervals_ns[i % 3];

		printf("round %u seed %u\n", i, seed);
		run_round(interval_ns, interval_ns * jitter_of_interval_pct / 100, is_torn);
	}
}

static void test_property_punctual(void **state)
{
	(void)state;
	rounds(0, false);
}

static void test_property_jitter(void **state)
{
	(void)state;
	rounds(40, false);
}

static void test_property_torn(void **state)
{
	(void)state;
	rounds(40, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_property_punctual),
		cmocka_unit_test(test_property_jitter),
		cmocka_unit_test(test_property_torn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
