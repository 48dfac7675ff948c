// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * A look while the writer does something in the middle of it. The look is built here with a fetch
 * that copies word by word and lets the writer act before word number N: for every N there is, what
 * the look says must be true (docs/protocol.md, H1 to H4, K1/K2, T1/T2).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pmdp_reader.h"

// Copies words from low to high, and acts before the one that is due.
static int fetch_with_action(const struct pmdp_reader *reader, uint64_t offset_bytes, void *out,
			     size_t size);

#define pmdp_reader_fetch fetch_with_action
#include "lib/pmdp_reader_look.c"
#undef pmdp_reader_fetch

#include "test_dir.h"
#include "test_ring.h"

#define MS UINT64_C(1000000)

static void (*action)(void);
static uint64_t n_words, act_before;

static struct pmdp_publisher *pub;
static struct pmdp_lane *lane;
static struct pmdp_reader *reader;
static struct test_ring ring;

static int fetch_with_action(const struct pmdp_reader *from, uint64_t offset_bytes, void *out,
			     size_t size)
{
	for (size_t i = 0; i < size; i += 8) {
		if (action && n_words == act_before)
			action();
		n_words++;
		pmdp_words_load((char *)out + i, from->memory + offset_bytes + i, 8);
	}
	return 0;
}

static int setup(void **state)
{
	struct pmdp_publisher_opts opts = {.n_lanes = 1, .n_ports = 1, .records_per_lane = 4};

	*state = (void *)test_dir_make();
	opts.rundir = *state;
	if (pmdp_publisher_open("t", &opts, &pub) < 0 ||
	    pmdp_lane_claim(pub, "t", PMDP_LANE_PMD, -1, -1, 0, &lane) < 0)
		return -1;
	pmdp_lane_polling(lane);
	test_ring_map(&ring, *state, "t.ring");
	return pmdp_reader_open_memory(ring.header, ring.size, &reader);
}

static int teardown(void **state)
{
	(void)state;
	pmdp_reader_close(reader);
	test_ring_unmap(&ring);
	pmdp_publisher_close(pub); // and the lane with it
	pub = NULL;
	test_dir_remove();
	return 0;
}

// A look with act() before word number n; false when the look was over before.
static bool look_with(void (*act)(void), uint64_t n, struct pmdp_look *out_look)
{
	bool has_acted;

	action = act;
	n_words = 0;
	act_before = n;
	assert_int_equal(pmdp_reader_look(reader, out_look), 0);
	action = NULL;
	has_acted = n_words > n;
	if (!has_acted)
		act();
	return has_acted;
}

static void look_before(struct pmdp_look *out_look)
{
	action = NULL;
	assert_int_equal(pmdp_reader_look(reader, out_look), 0);
}

// The last beat was long ago.
static void make_beat_old(void)
{
	ring.hot[0].beat_ticks = 1;
}

static void act_polling(void)
{
	pmdp_lane_polling(lane);
}

static void test_look_back_from_a_pause(void **state)
{
	uint64_t n_seen = 0, n = 0, beats;
	struct pmdp_look look;
	bool has_acted;

	(void)state;
	do {
		pmdp_lane_dozing(lane, PMDP_REASON_RECONFIGURATION, 1000 * MS);
		make_beat_old();
		beats = ring.hot[0].beats;
		look_before(&look);
		has_acted = look_with(act_polling, n++, &look);
		if (look.lanes[0].announce == PMDP_ANNOUNCE_POLLING) {
			assert_int_equal(look.lanes[0].beats, beats + 1);
			assert_true(look.now_ns - look.lanes[0].beat_ns < 30000 * MS);
			n_seen++;
		} else {
			assert_true(look.lanes[0].deadline_ns != 0);
		}
	} while (has_acted);
	assert_in_range(n_seen, 100, n - 1); // of both kinds
}

static void act_pause(void)
{
	pmdp_lane_dozing(lane, PMDP_REASON_RECONFIGURATION, 1000 * MS);
}

static void test_look_at_a_pause_that_begins(void **state)
{
	struct pmdp_look look;
	bool has_acted;
	uint64_t n = 0;

	(void)state;
	do {
		pmdp_lane_polling(lane);
		ring.hot[0].deadline_ns = 0;
		look_before(&look);
		has_acted = look_with(act_pause, n++, &look);
		if (look.lanes[0].announce == PMDP_ANNOUNCE_DOZING)
			assert_true(look.lanes[0].deadline_ns > look.now_ns - 1000 * MS);
		else
			assert_true(look.now_ns - look.lanes[0].beat_ns < 30000 * MS);
	} while (has_acted);
	assert_true(n > 100);
}

static void act_sleep(void)
{
	pmdp_lane_sleep(lane, PMDP_REASON_NO_QUEUE);
}

static void test_look_from_pause_to_pause(void **state)
{
	struct pmdp_look look;
	bool has_acted;
	uint64_t n = 0;

	(void)state;
	do {
		act_pause();
		look_before(&look);
		has_acted = look_with(act_sleep, n++, &look);
		if (look.lanes[0].announce == PMDP_ANNOUNCE_DOZING)
			assert_true(look.lanes[0].deadline_ns > look.now_ns - 1000 * MS);
		else
			assert_int_equal(look.lanes[0].announce, PMDP_ANNOUNCE_SLEEP);
	} while (has_acted);
	assert_true(n > 100);
}

static void act_next_thread(void)
{
	pmdp_lane_release(lane);
	assert_int_equal(pmdp_lane_claim(pub, "next", PMDP_LANE_PMD, -1, -1, 0, &lane), 0);
}

static void test_look_at_the_next_thread(void **state)
{
	struct pmdp_look look;
	uint64_t n = 0, incarnation;
	bool has_acted;

	(void)state;
	do {
		pmdp_lane_polling(lane);
		for (int i = 0; i < 3; i++)
			pmdp_lane_beat(lane, lane->last_ticks + 200 * MS);
		incarnation = ring.hot[0].incarnation;
		look_before(&look);
		assert_int_equal(look.lanes[0].n_stalls, 3);
		has_acted = look_with(act_next_thread, n++, &look);
		if (look.lanes[0].incarnation == incarnation) {
			assert_int_equal(look.lanes[0].n_stalls, 3);
			assert_int_equal(look.lanes[0].beats, 4);
		} else {
			assert_int_equal(look.lanes[0].incarnation, incarnation + 1);
			assert_int_equal(look.lanes[0].n_stalls, 0);
			assert_int_equal(look.lanes[0].stall_ns, 0);
			assert_int_equal(look.lanes[0].beats, 0);
			assert_int_equal(look.lanes[0].announce, PMDP_ANNOUNCE_DOZING);
			assert_int_equal(look.lanes[0].reason, PMDP_REASON_START);
		}
	} while (has_acted);
	assert_true(n > 100);
}

static void act_beat_after_a_stall(void)
{
	pmdp_lane_beat(lane, lane->last_ticks + 200 * MS);
}

static void test_look_at_a_stall_that_ends(void **state)
{
	struct pmdp_look look;
	uint64_t n = 0, beats, n_stalls;
	bool has_acted;

	(void)state;
	do {
		beats = ring.hot[0].beats;
		n_stalls = ring.hot[0].n_stalls;
		look_before(&look);
		has_acted = look_with(act_beat_after_a_stall, n++, &look);
		if (look.lanes[0].beats != beats)
			assert_int_equal(look.lanes[0].n_stalls, n_stalls + 1);
		assert_true(look.lanes[0].stall_ns >= look.lanes[0].n_stalls * 200 * MS);
		assert_true(look.lanes[0].gap_ns >= look.lanes[0].n_gaps * 200 * MS);
		assert_true(look.lanes[0].n_records >= look.lanes[0].n_stalls);
	} while (has_acted);
	assert_true(n > 100);
}

static void act_keepalive_on(void)
{
	pmdp_lane_polling(lane);
	pmdp_publisher_set_keepalive(pub, true);
}

static void test_look_at_keepalive_switched_on(void **state)
{
	uint64_t n = 0, beats, n_seen = 0;
	struct pmdp_look look;
	bool has_acted;

	(void)state;
	do {
		pmdp_publisher_set_keepalive(pub, false);
		make_beat_old();
		beats = ring.hot[0].beats;
		look_before(&look);
		has_acted = look_with(act_keepalive_on, n++, &look);
		if (look.is_keepalive)
			assert_int_equal(look.lanes[0].beats, beats + 1);
		n_seen += look.is_keepalive;
	} while (has_acted);
	assert_in_range(n_seen, 10, n - 1);
}

// The stop of a publisher without its close, which would end the mapping too.
static void act_stop(void)
{
	ring.hot[0].announce = PMDP_ANNOUNCE_EXITED | PMDP_REASON_STOP << 8;
	ring.header->stopped_ns = 1;
}

static void test_look_at_a_clean_stop(void **state)
{
	uint64_t n = 0, n_seen = 0;
	struct pmdp_look look;
	bool has_acted;

	(void)state;
	do {
		ring.header->stopped_ns = 0;
		pmdp_lane_polling(lane);
		look_before(&look);
		has_acted = look_with(act_stop, n++, &look);
		if (look.stopped_ns)
			assert_int_equal(look.lanes[0].announce, PMDP_ANNOUNCE_EXITED);
		n_seen += look.stopped_ns != 0;
	} while (has_acted);
	assert_in_range(n_seen, 10, n - 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_look_back_from_a_pause),    TEST(test_look_at_a_pause_that_begins),
		TEST(test_look_from_pause_to_pause),  TEST(test_look_at_the_next_thread),
		TEST(test_look_at_a_stall_that_ends), TEST(test_look_at_keepalive_switched_on),
		TEST(test_look_at_a_clean_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
