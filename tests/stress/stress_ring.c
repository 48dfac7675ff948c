// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * A ring that is lapped: whatever a reader missed is counted, to the last one. Each record carries
 * its number in three ways, so that a torn or a doubled one shows. Readers pause at random (seed
 * printed, settable by PMDP_TEST_SEED) so that they are sometimes ahead, sometimes laps behind.
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "pmdpulse.h"
#include "test_dir.h"

#define N_READERS 2
#define FIRST_GAP 2 // records 0 and 1 are the announcements of the start
#define GAP_NS UINT64_C(1000000)
#define CRUMB_OF(n) ((n)*UINT64_C(0x9e3779b97f4a7c15))

struct writer {
	struct pmdp_publisher *pub;
	struct pmdp_lane *lane;
	uint64_t end_ns;
};

static uint64_t part_ns(void)
{
	const char *ms = getenv("PMDP_STRESS_MS");

	return (ms ? strtoull(ms, NULL, 10) : 1500) * 1000000;
}

static void push(struct pmdp_lane *lane)
{
	uint64_t n = lane->n_records;

	pmdp_lane_crumb(lane, CRUMB_OF(n));
	pmdp_lane_beat(lane, lane->last_ticks + GAP_NS + n);
}

static bool is_record(const struct pmdp_record_body *r, uint64_t n)
{
	if (n < FIRST_GAP)
		return r->kind == PMDP_RECORD_ANNOUNCE && r->value0 != 0 && r->reserved == 0;
	return r->kind == PMDP_RECORD_GAP && r->length_ticks == GAP_NS + n &&
	       r->crumb == CRUMB_OF(n) && r->value0 == 0;
}

// Bursts and pauses, so that it is not always the writer who is faster.
static void pause_at_random(uint64_t *random, uint64_t one_in)
{
	const struct timespec wait = {.tv_nsec = (long)(test_random(random) % 2000000)};

	if (test_random(random) % one_in == 0)
		nanosleep(&wait, NULL);
}

static void *write_in_thread(void *arg)
{
	struct writer *w = arg;
	uint64_t random = test_seed("writer");

	while (test_now_ns() < w->end_ns) {
		uint64_t n = test_random(&random) % 64;

		for (uint64_t i = 0; i < n; i++)
			push(w->lane);
		pause_at_random(&random, 100);
	}
	return NULL;
}

/*
 * Records come in order, each whole; the number of the first of a batch is known only by what was
 * lost before it, so: number read + number lost must equal the cursor at every step.
 */
static const char *check_batch(const struct pmdp_record_body *records, int n, uint64_t before,
			       uint64_t cursor)
{
	uint64_t number = before;

	for (int i = 0; i < n; i++) {
		if (records[i].kind == PMDP_RECORD_GAP)
			number = records[i].length_ticks - GAP_NS;
		if (!is_record(&records[i], number))
			return "a torn record";
		if (number < before || number >= cursor)
			return "a record out of order";
		before = ++number;
	}
	return NULL;
}

static const char *read_until(struct pmdp_reader *reader, uint64_t seed, uint64_t end_ns)
{
	uint64_t cursor = 0, n_read = 0, lost = 0, before, random = seed, n_published = UINT64_MAX;
	struct pmdp_record_body records[48];
	const char *wrong = NULL;
	struct pmdp_look look;
	int n;

	// At the end, once more up to what had been published by then: all of it is read or
	// counted.
	while (!wrong && cursor < n_published) {
		if (n_published == UINT64_MAX && test_now_ns() > end_ns) {
			if (pmdp_reader_look(reader, &look) < 0)
				return "error from pmdp_reader_look";
			n_published = look.lanes[0].n_records;
		}
		before = cursor;
		n = pmdp_reader_records(reader, 0, &cursor, records, 48, &lost);
		if (n < 0)
			return "error from pmdp_reader_records";
		n_read += (uint64_t)n;
		wrong = check_batch(records, n, before, cursor);
		if (!wrong && n_read + lost != cursor)
			wrong = "read and lost do not sum up";
		if (!wrong && n_published != UINT64_MAX && cursor == before && cursor < n_published)
			wrong = "published records that can't be had";
		pause_at_random(&random, 20);
	}
	printf("  %llu read, %llu lost\n", (unsigned long long)n_read, (unsigned long long)lost);
	fflush(stdout);
	if (!wrong && (!n_read || !lost))
		wrong = "never lapped, or always";
	return wrong;
}

static void start_writing(struct writer *w, const char *dir)
{
	const struct pmdp_publisher_opts opts = {
		.rundir = dir, .n_lanes = 1, .records_per_lane = 256};

	assert_int_equal(pmdp_publisher_open("t", &opts, &w->pub), 0);
	assert_int_equal(pmdp_lane_claim(w->pub, "t", PMDP_LANE_PMD, -1, -1, 0, &w->lane), 0);
	pmdp_lane_polling(w->lane);
	assert_int_equal(w->lane->n_records, FIRST_GAP);
	w->end_ns = test_now_ns() + part_ns();
}

struct reading {
	struct pmdp_reader *reader;
	uint64_t seed, end_ns;
};

static void *read_in_thread(void *arg)
{
	const struct reading *r = arg;

	return (void *)read_until(r->reader, r->seed, r->end_ns);
}

static void test_ring_lapped_as_threads(void **state)
{
	uint64_t seed = test_seed("test_ring_lapped_as_threads");
	struct reading readings[N_READERS];
	pthread_t writer_thread, threads[N_READERS];
	struct writer w = {0};
	void *wrong;

	start_writing(&w, *state);
	for (int i = 0; i < N_READERS; i++) {
		const char *segment = (const char *)w.lane->hot - sizeof(struct pmdp_header_shm);
		const struct pmdp_header_shm *header = (const void *)segment;

		readings[i].seed = seed + (uint64_t)i;
		readings[i].end_ns = w.end_ns + 50000000;
		assert_int_equal(pmdp_reader_open_memory(segment, header->segment_size_bytes,
							 &readings[i].reader),
				 0);
	}
	assert_int_equal(pthread_create(&writer_thread, NULL, write_in_thread, &w), 0);
	for (int i = 0; i < N_READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_in_thread, &readings[i]),
				 0);
	assert_int_equal(pthread_join(writer_thread, NULL), 0);
	for (int i = 0; i < N_READERS; i++) {
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		if (wrong)
			fail_msg("reader %d: %s", i, (const char *)wrong);
		pmdp_reader_close(readings[i].reader);
	}
	pmdp_publisher_close(w.pub);
}

static int read_in_process(const char *dir, uint64_t seed, uint64_t end_ns)
{
	const struct pmdp_reader_opts opts = {.rundir = dir};
	struct pmdp_reader *reader;
	const char *wrong;

	if (pmdp_reader_open("t", &opts, &reader) < 0)
		return 1;
	wrong = read_until(reader, seed, end_ns);
	pmdp_reader_close(reader);
	if (wrong)
		printf("wrong: %s\n", wrong);
	fflush(stdout);
	return wrong != NULL;
}

static void test_ring_lapped_as_processes(void **state)
{
	uint64_t seed = test_seed("test_ring_lapped_as_processes");
	struct writer w = {0};
	pid_t pids[N_READERS];
	int status;

	start_writing(&w, *state);
	for (int i = 0; i < N_READERS; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0)
			_exit(read_in_process(*state, seed + (uint64_t)i, w.end_ns + 50000000));
	}
	write_in_thread(&w);
	for (int i = 0; i < N_READERS; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	pmdp_publisher_close(w.pub);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, test_dir_setup, test_dir_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_ring_lapped_as_threads),
		TEST(test_ring_lapped_as_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
