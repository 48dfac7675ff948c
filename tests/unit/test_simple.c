// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The three calls of a single-threaded program.
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "pmdpulse.h"
#include "test_dir.h"

static void test_simple_publishes(void **state)
{
	const struct pmdp_publisher_opts opts = {.rundir = *state};
	const struct pmdp_reader_opts reader_opts = {.rundir = *state};
	struct pmdp_lane_body body;
	struct pmdp_reader *reader;
	struct pmdp_look look;
	struct pmdp *p, *second;
	uint64_t deadline_ns;

	assert_int_equal(pmdp_open("t", &opts, &p), 0);
	assert_int_equal(pmdp_open("t", &opts, &second), -EEXIST);
	assert_int_equal(pmdp_open("t t", &opts, &second), -EINVAL);
	assert_int_equal(pmdp_reader_open("t", &reader_opts, &reader), 0);
	assert_int_equal(pmdp_reader_look(reader, &look), 0);
	assert_int_equal(look.lanes[0].announce,
			 PMDP_ANNOUNCE_DOZING); // the first beat is not due yet
	pmdp_beat(p);
	pmdp_beat(p);
	assert_int_equal(pmdp_reader_look(reader, &look), 0);
	assert_int_equal(look.lanes[0].announce, PMDP_ANNOUNCE_POLLING);
	assert_int_equal(look.lanes[0].beats, 2);
	// A pause of the program's own; its next beat ends it.
	pmdp_lane_dozing(pmdp_lane_of(p), PMDP_REASON_RECONFIGURATION, 1000000000);
	assert_int_equal(pmdp_reader_look(reader, &look), 0);
	assert_int_equal(look.lanes[0].announce, PMDP_ANNOUNCE_DOZING);
	pmdp_beat(p);
	assert_int_equal(pmdp_reader_look(reader, &look), 0);
	assert_int_equal(look.lanes[0].announce, PMDP_ANNOUNCE_POLLING);
	// The beats keep house: counters and the sign of life follow within 50 ms or so.
	deadline_ns = test_now_ns() + 2000000000;
	do {
		pmdp_beat(p);
		assert_int_equal(pmdp_reader_lane(reader, 0, &body), 0);
		assert_true(test_now_ns() < deadline_ns);
	} while (body.counters[PMDP_C_ITERATIONS] < 3);
	assert_int_equal(pmdp_reader_look(reader, &look), 0);
	assert_true(look.now_ns - look.alive_ns < 1000000000);
	assert_int_equal(body.tid, gettid());
	assert_string_equal(body.name, "test_simple");
	pmdp_close(p);
	pmdp_close(NULL);
	assert_int_equal(pmdp_reader_check(reader), -ENOENT);
	assert_int_equal(pmdp_reader_look(reader, &look), 0);
	assert_int_equal(look.lanes[0].announce, PMDP_ANNOUNCE_EXITED);
	assert_true(look.stopped_ns != 0);
	pmdp_reader_close(reader);
}

static void test_simple_names_its_core(void **state)
{
	const struct pmdp_publisher_opts opts = {.rundir = *state};
	const struct pmdp_reader_opts reader_opts = {.rundir = *state};
	struct pmdp_reader *reader;
	struct pmdp_lane_body body;
	cpu_set_t before, one;
	struct pmdp *p;
	int core = sched_getcpu();

	assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
	CPU_ZERO(&one);
	CPU_SET((size_t)core, &one);
	assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
	assert_int_equal(pmdp_open("t", &opts, &p), 0);
	assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
	assert_int_equal(pmdp_reader_open("t", &reader_opts, &reader), 0);
	assert_int_equal(pmdp_reader_lane(reader, 0, &body), 0);
	assert_int_equal(body.core, core);
	pmdp_reader_close(reader);
	pmdp_close(p);
	if (CPU_COUNT(&before) > 1) {
		assert_int_equal(pmdp_open("t", &opts, &p), 0);
		assert_int_equal(pmdp_reader_open("t", &reader_opts, &reader), 0);
		assert_int_equal(pmdp_reader_lane(reader, 0, &body), 0);
		assert_int_equal(body.core, -1);
		pmdp_reader_close(reader);
		pmdp_close(p);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, test_dir_setup, test_dir_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_simple_publishes),
		TEST(test_simple_names_its_core),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
