// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Readers against a writer at full speed: a copy that a reader is given is whole. First as threads
 * on one mapping, where the thread sanitizer sees both sides, then as processes through the file.
 *
 * Everything written has relations in it (test_pattern.h). PMDP_STRESS_MS sets the time of each
 * part (1500).
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
#include <unistd.h>

#include <cmocka.h>

#include "pmdpulse.h"
#include "test_dir.h"
#include "test_pattern.h"

#define N_READERS 2

struct counts {
	uint64_t n_lanes, n_ports, n_looks, n_again, n_changes;
};

static _Atomic bool is_over;

static uint64_t part_ns(void)
{
	const char *ms = getenv("PMDP_STRESS_MS");

	return (ms ? strtoull(ms, NULL, 10) : 1500) * 1000000;
}

static const char *check_look(const struct pmdp_lane_look *now, const struct pmdp_lane_look *before)
{
	if (now->announce != PMDP_ANNOUNCE_POLLING || now->incarnation != 1)
		return "announcement";
	if (now->beats < before->beats || now->n_records < before->n_records)
		return "beats or records ran backwards";
	return test_pattern_check_look(now, 1);
}

static const char *read_once(struct pmdp_reader *reader, struct pmdp_lane_look *before,
			     struct counts *counts)
{
	struct pmdp_lane_body lane = {0};
	struct pmdp_port_body port = {0};
	const char *torn = NULL;
	struct pmdp_look look;
	int rc = pmdp_reader_lane(reader, 0, &lane);

	if (rc == 0)
		torn = test_pattern_check_lane(&lane);
	else if (rc != -EAGAIN)
		return "error from pmdp_reader_lane";
	counts->n_lanes += rc == 0;
	counts->n_again += rc == -EAGAIN;
	rc = torn ? 0 : pmdp_reader_port(reader, 0, &port, NULL);
	if (!torn && rc == 0)
		torn = test_pattern_check_port(&port);
	else if (rc != 0 && rc != -EAGAIN)
		return "error from pmdp_reader_port";
	counts->n_ports += rc == 0;
	counts->n_again += rc == -EAGAIN;
	if (torn)
		return torn;
	if (pmdp_reader_look(reader, &look) < 0)
		return "error from pmdp_reader_look";
	counts->n_looks++;
	counts->n_changes += look.lanes[0].beats != before->beats;
	torn = check_look(&look.lanes[0], before);
	*before = look.lanes[0];
	return torn;
}

static const char *read_until(struct pmdp_reader *reader, uint64_t end_ns, struct counts *counts)
{
	struct pmdp_lane_look before = {0};
	const char *torn = NULL;

	while (!torn && test_now_ns() < end_ns)
		torn = read_once(reader, &before, counts);
	printf("  %llu lanes, %llu ports, %llu looks (%llu with news), %llu times in the middle\n",
	       (unsigned long long)counts->n_lanes, (unsigned long long)counts->n_ports,
	       (unsigned long long)counts->n_looks, (unsigned long long)counts->n_changes,
	       (unsigned long long)counts->n_again);
	fflush(stdout);
	return torn;
}

static void *write_in_thread(void *arg)
{
	struct test_pattern_writer *w = arg;

	while (!atomic_load_explicit(&is_over, memory_order_relaxed))
		test_pattern_write(w);
	return NULL;
}

struct reading {
	struct pmdp_reader *reader;
	uint64_t end_ns;
	struct counts counts;
};

static void *read_in_thread(void *arg)
{
	struct reading *r = arg;

	return (void *)read_until(r->reader, r->end_ns, &r->counts);
}

static void test_readers_as_threads(void **state)
{
	struct reading readings[N_READERS] = {0};
	pthread_t writer_thread, threads[N_READERS];
	struct test_pattern_writer w = {0};
	void *torn;

	assert_int_equal(test_pattern_open(&w, *state), 0);
	atomic_store_explicit(&is_over, false, memory_order_relaxed);
	for (int i = 0; i < N_READERS; i++) {
		// The publisher's own mapping, found from the lane's hot slot.
		const char *segment = (const char *)w.lane->hot - sizeof(struct pmdp_header_shm);
		const struct pmdp_header_shm *header = (const void *)segment;

		assert_int_equal(pmdp_reader_open_memory(segment, header->segment_size_bytes,
							 &readings[i].reader),
				 0);
		readings[i].end_ns = test_now_ns() + part_ns();
	}
	assert_int_equal(pthread_create(&writer_thread, NULL, write_in_thread, &w), 0);
	for (int i = 0; i < N_READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_in_thread, &readings[i]),
				 0);
	for (int i = 0; i < N_READERS; i++) {
		assert_int_equal(pthread_join(threads[i], &torn), 0);
		if (torn)
			fail_msg("torn: %s", (const char *)torn);
	}
	atomic_store_explicit(&is_over, true, memory_order_relaxed);
	assert_int_equal(pthread_join(writer_thread, NULL), 0);
	for (int i = 0; i < N_READERS; i++) {
		assert_true(readings[i].counts.n_lanes > 0 && readings[i].counts.n_changes > 0);
		pmdp_reader_close(readings[i].reader);
	}
	printf("  %llu updates written\n", (unsigned long long)w.n);
	pmdp_publisher_close(w.pub);
}

static int read_in_process(const char *dir)
{
	const struct pmdp_reader_opts opts = {.rundir = dir};
	struct counts counts = {0};
	struct pmdp_reader *reader;
	const char *torn;

	if (pmdp_reader_open("t", &opts, &reader) < 0)
		return 1;
	torn = read_until(reader, test_now_ns() + part_ns(), &counts);
	pmdp_reader_close(reader);
	if (torn) {
		printf("torn: %s\n", torn);
		fflush(stdout);
	}
	return torn || !counts.n_lanes || !counts.n_changes;
}

static void test_readers_as_processes(void **state)
{
	struct test_pattern_writer w = {0};
	pid_t pids[N_READERS];
	int status, n_left = N_READERS, n_failed = 0;

	assert_int_equal(test_pattern_open(&w, *state), 0);
	for (int i = 0; i < N_READERS; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0)
			_exit(read_in_process(*state));
	}
	while (n_left > 0) {
		for (int i = 0; i < 100; i++)
			test_pattern_write(&w);
		while (n_left > 0 && waitpid(-1, &status, WNOHANG) > 0) {
			n_failed += status != 0;
			n_left--;
		}
	}
	printf("  %llu updates written\n", (unsigned long long)w.n);
	pmdp_publisher_close(w.pub);
	assert_int_equal(n_failed, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, test_dir_setup, test_dir_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_readers_as_threads),
		TEST(test_readers_as_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
