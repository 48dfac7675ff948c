// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * A thousand lanes claimed and released by threads at once, in a segment of 1024, over and over: no
 * lane is ever given to two, none is lost, and a reader never sees one thread's name beside
 * another's number.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "pmdpulse.h"
#include "test_dir.h"

#define N_LANES 1024
#define N_THREADS 8
#define LANES_PER_THREAD 125 // 1000 in all

static struct pmdp_publisher *pub;
static _Atomic uint32_t owners[N_LANES]; // thread number + 1 while it holds the lane
static _Atomic uint64_t n_claims;
static _Atomic bool is_over;

struct worker {
	uint32_t number;
	uint64_t seed, end_ns;
	const char *wrong;
};

static uint64_t part_ns(void)
{
	const char *ms = getenv("PMDP_STRESS_MS");

	return (ms ? strtoull(ms, NULL, 10) : 3000) * 1000000;
}

static const char *take(struct pmdp_lane *lane, uint32_t number)
{
	if (lane->index >= N_LANES)
		return "a lane outside the table";
	if (atomic_exchange_explicit(&owners[lane->index], number + 1, memory_order_acq_rel) != 0)
		return "one lane for two threads";
	return NULL;
}

static const char *claim_all(struct worker *w, struct pmdp_lane **lanes)
{
	const char *wrong = NULL;
	char name[PMDP_LANE_NAME_BYTES];

	for (int i = 0; i < LANES_PER_THREAD && !wrong; i++) {
		snprintf(name, sizeof name, "t%d-%d", (int)gettid(), (int)gettid());
		if (pmdp_lane_claim(pub, name, PMDP_LANE_PMD, (int)w->number, 0, 0, &lanes[i]) < 0)
			return "no lane although some are free";
		atomic_fetch_add_explicit(&n_claims, 1, memory_order_relaxed);
		wrong = take(lanes[i], w->number);
		pmdp_lane_polling(lanes[i]);
		pmdp_lane_publish(lanes[i], lanes[i]->last_ticks);
	}
	return wrong;
}

static void *work(void *arg)
{
	struct pmdp_lane *lanes[LANES_PER_THREAD] = {0};
	struct worker *w = arg;
	uint64_t random = w->seed;

	while (!w->wrong && test_now_ns() < w->end_ns) {
		w->wrong = claim_all(w, lanes);
		// Given back in another order than taken.
		for (uint32_t i = LANES_PER_THREAD; i > 0; i--) {
			uint64_t j = test_random(&random) % i;
			struct pmdp_lane *lane = lanes[j];

			lanes[j] = lanes[i - 1];
			lanes[i - 1] = NULL;
			if (!lane)
				continue;
			atomic_store_explicit(&owners[lane->index], 0, memory_order_release);
			pmdp_lane_release(lane);
		}
	}
	return NULL;
}

// "tN-N" beside tid N.
static const char *check_body(const struct pmdp_lane_body *body)
{
	char name[PMDP_LANE_NAME_BYTES];

	snprintf(name, sizeof name, "t%u-%u", body->tid, body->tid);
	return strcmp(name, body->name) ? "a name beside another's number" : NULL;
}

static void *watch(void *arg)
{
	static uint64_t incarnations[N_LANES];
	struct pmdp_reader *reader = arg;
	struct pmdp_lane_body body;
	uint64_t n_read = 0;
	struct pmdp_look look;
	const char *wrong = NULL;

	while (!wrong && !atomic_load_explicit(&is_over, memory_order_relaxed)) {
		if (pmdp_reader_look(reader, &look) < 0)
			return (void *)"error from pmdp_reader_look";
		for (uint32_t i = 0; i < N_LANES && !wrong; i++) {
			int rc = pmdp_reader_lane(reader, i, &body);

			if (rc == 0)
				wrong = check_body(&body);
			else if (rc != -ENOENT && rc != -EAGAIN)
				wrong = "error from pmdp_reader_lane";
			n_read += rc == 0;
			if (look.lanes[i].incarnation < incarnations[i])
				wrong = "an incarnation ran backwards";
			incarnations[i] = look.lanes[i].incarnation;
			if (look.lanes[i].announce == PMDP_ANNOUNCE_POLLING && !look.lanes[i].beats)
				wrong = "polling without a beat";
		}
	}
	printf("  %llu bodies read\n", (unsigned long long)n_read);
	return (void *)(!wrong && !n_read ? "never a body read" : wrong);
}

static void test_lanes_claimed_and_released(void **state)
{
	const struct pmdp_publisher_opts opts = {
		.rundir = *state, .n_lanes = N_LANES, .records_per_lane = 4};
	const struct pmdp_reader_opts reader_opts = {.rundir = *state};
	uint64_t seed = test_seed("test_lanes_claimed_and_released");
	struct worker workers[N_THREADS] = {0};
	pthread_t threads[N_THREADS], watcher;
	struct pmdp_reader *reader;
	struct pmdp_look look;
	void *wrong;

	assert_int_equal(pmdp_publisher_open("t", &opts, &pub), 0);
	assert_int_equal(pmdp_reader_open("t", &reader_opts, &reader), 0);
	assert_int_equal(pthread_create(&watcher, NULL, watch, reader), 0);
	for (uint32_t i = 0; i < N_THREADS; i++) {
		workers[i] = (struct worker){
			.number = i, .seed = seed + i, .end_ns = test_now_ns() + part_ns()};
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	for (uint32_t i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	atomic_store_explicit(&is_over, true, memory_order_relaxed);
	assert_int_equal(pthread_join(watcher, &wrong), 0);
	for (uint32_t i = 0; i < N_THREADS; i++) {
		if (workers[i].wrong)
			fail_msg("thread %u: %s", i, workers[i].wrong);
	}
	if (wrong)
		fail_msg("reader: %s", (const char *)wrong);
	assert_int_equal(pmdp_reader_look(reader, &look), 0);
	for (uint32_t i = 0; i < N_LANES; i++)
		assert_false(look.lanes[i].is_claimed); // all came back
	printf("  %llu claims\n", (unsigned long long)n_claims);
	assert_true(n_claims >= N_THREADS * LANES_PER_THREAD);
	pmdp_reader_close(reader);
	pmdp_publisher_close(pub);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lanes_claimed_and_released, test_dir_setup,
						test_dir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
