// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// A lane as its thread writes it: claim, beats, gaps, announcements, records, the copy of its body.
// The beat clock is CLOCK_MONOTONIC here; beats are given times of the test's own making.
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "pmdp_clock.h"
#include "pmdpulse.h"
#include "test_dir.h"
#include "test_ring.h"

#define MS UINT64_C(1000000)
#define US UINT64_C(1000)

static struct pmdp_publisher *pub;
static struct test_ring ring;

static int setup(void **state)
{
	struct pmdp_publisher_opts opts = {.n_lanes = 3, .n_ports = 2, .records_per_lane = 8};

	*state = (void *)test_dir_make();
	opts.rundir = *state;
	if (pmdp_publisher_open("t", &opts, &pub) < 0)
		return -1;
	test_ring_map(&ring, *state, "t.ring");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	test_ring_unmap(&ring);
	pmdp_publisher_close(pub);
	test_dir_remove();
	return 0;
}

static struct pmdp_lane *claim(const char *name)
{
	struct pmdp_lane *lane = NULL;

	assert_int_equal(pmdp_lane_claim(pub, name, PMDP_LANE_PMD, 1, 0, 0, &lane), 0);
	return lane;
}

static uint64_t announced(uint32_t lane)
{
	return test_ring_hot(&ring, lane)->announce & 0xff;
}

static void test_lane_claim_says_who(void **state)
{
	struct pmdp_lane *lane = claim("pmd-c01/id:2");
	const struct pmdp_lane_body *body = &ring.lanes[0].body;
	uint64_t now_ns = pmdp_mono_now_ns();

	(void)state;
	assert_string_equal(body->name, "pmd-c01/id:2");
	assert_int_equal(body->tid, gettid());
	assert_int_equal(body->kind, PMDP_LANE_PMD);
	assert_int_equal(body->core, 1);
	assert_int_equal(body->numa, 0);
	assert_true(body->thread_start_ticks > 0);
	assert_int_equal(ring.lanes[0].claimed, gettid());
	assert_int_equal(ring.lanes[0].seq % 2, 0);
	assert_int_equal(ring.hot[0].incarnation, 1);
	assert_int_equal(ring.hot[0].beats, 0);
	assert_int_equal(ring.hot[0].announce, PMDP_ANNOUNCE_DOZING | PMDP_REASON_START << 8);
	assert_in_range(ring.hot[0].deadline_ns, now_ns + 9000 * MS, now_ns + 10000 * MS);
	pmdp_lane_release(lane);
}

static void test_lane_claim_refuses(void **state)
{
	struct pmdp_lane *lanes[3], *lane = NULL;

	(void)state;
	assert_int_equal(pmdp_lane_claim(pub, "", PMDP_LANE_PMD, -1, -1, 0, &lane), -EINVAL);
	assert_int_equal(pmdp_lane_claim(pub, NULL, PMDP_LANE_PMD, -1, -1, 0, &lane), -EINVAL);
	assert_int_equal(pmdp_lane_claim(pub, "12345678901234567890123456789012", PMDP_LANE_PMD, -1,
					 -1, 0, &lane),
			 -EINVAL);
	for (int i = 0; i < 3; i++)
		lanes[i] = claim("1234567890123456789012345678901");
	assert_int_equal(pmdp_lane_claim(pub, "x", PMDP_LANE_PMD, -1, -1, 0, &lane), -ENOSPC);
	assert_null(lane);
	pmdp_lane_release(lanes[1]);
	lanes[1] = claim("again");
	assert_int_equal(lanes[1]->index, 1);
	assert_int_equal(test_ring_hot(&ring, 1)->incarnation, 2);
	for (int i = 0; i < 3; i++)
		pmdp_lane_release(lanes[i]);
}

static void test_lane_beat_counts(void **state)
{
	struct pmdp_lane *lane = claim("t");
	uint64_t t;

	(void)state;
	pmdp_lane_polling(lane);
	assert_int_equal(announced(0), PMDP_ANNOUNCE_POLLING);
	assert_int_equal(ring.hot[0].beats, 1); // the announcement is a sign of life
	t = lane->last_ticks;
	pmdp_lane_beat(lane, t + 1 * US);
	pmdp_lane_beat(lane, t + 2 * US);
	assert_int_equal(ring.hot[0].beats, 3);
	assert_true(ring.hot[0].beat_ticks == t + 2 * US);
	pmdp_lane_crumb(lane, PMDP_CRUMB(PMDP_STAGE_TX, 7, 3));
	assert_true(ring.hot[0].crumb == (UINT64_C(3) << 32 | 7 << 16 | PMDP_STAGE_TX));
	assert_int_equal(ring.hot[0].n_gaps, 0);
	pmdp_lane_release(lane);
}

// One gap of each size: which bin, which counts, which record.
static void test_lane_gap_is_sorted(void **state)
{
	struct pmdp_lane *lane = claim("t");
	const uint64_t day_ns = 86400 * 1000 * MS;
	const struct {
		uint64_t gap_ns;
		uint32_t bin; // PMDP_N_HIST: none
		bool is_gap, is_stall;
	} cases[] = {
		{16383, PMDP_N_HIST, false, false},
		{16384, 14, false, false},
		{32767, 14, false, false},
		{32768, 15, false, false},
		{249999, 17, false, false},
		{250000, 17, true, false},
		{99 * MS, 26, true, false},
		{100 * MS, 26, true, true}, // two intervals of 50 ms
		{10 * day_ns, 47, true, true},
		{UINT64_C(1) << 47, 47, true, true},
		{UINT64_C(1) << 60, 47, true, true}, // beyond the last bin
	};
	uint64_t t, n_gaps = 0, n_stalls = 0, gap_ns = 0, stall_ns = 0;

	(void)state;
	pmdp_lane_polling(lane);
	t = lane->last_ticks;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint64_t before[PMDP_N_HIST], begin = t;

		memcpy(before, lane->body.gap_hist, sizeof before);
		t += cases[i].gap_ns;
		pmdp_lane_beat(lane, t);
		for (uint32_t bin = 0; bin < PMDP_N_HIST; bin++)
			assert_int_equal(lane->body.gap_hist[bin] - before[bin],
					 bin == cases[i].bin);
		n_gaps += cases[i].is_gap;
		gap_ns += cases[i].is_gap ? cases[i].gap_ns : 0;
		n_stalls += cases[i].is_stall;
		stall_ns += cases[i].is_stall ? cases[i].gap_ns : 0;
		assert_int_equal(ring.hot[0].n_gaps, n_gaps);
		assert_true(ring.hot[0].gap_ticks == gap_ns);
		assert_int_equal(ring.hot[0].n_stalls, n_stalls);
		assert_true(ring.hot[0].stall_ticks == stall_ns);
		if (cases[i].is_stall)
			assert_true(ring.hot[0].last_stall_ticks == cases[i].gap_ns);
		if (cases[i].is_gap) {
			const struct pmdp_record_shm *r =
				&ring.records[(ring.hot[0].n_records - 1) % 8];

			assert_int_equal(r->body.kind, PMDP_RECORD_GAP);
			assert_true(r->body.begin_ticks == begin);
			assert_true(r->body.length_ticks == cases[i].gap_ns);
			assert_true(r->seq == 2 * ring.hot[0].n_records);
		}
	}
	assert_true(ring.hot[0].longest_gap_ticks == UINT64_C(1) << 60);
	pmdp_lane_release(lane);
}

// The counter of the socket that a thread moved to may lag a little.
static void test_lane_clock_backwards_is_no_gap(void **state)
{
	struct pmdp_lane *lane = claim("t");
	uint64_t t;

	(void)state;
	pmdp_lane_polling(lane);
	t = lane->last_ticks;
	pmdp_lane_beat(lane, t + MS / 10);
	pmdp_lane_beat(lane, t);
	assert_int_equal(ring.hot[0].n_gaps, 0);
	assert_int_equal(ring.hot[0].longest_gap_ticks, MS / 10);
	assert_int_equal(ring.hot[0].beats, 3);
	pmdp_lane_release(lane);
}

// Make it look as if the last beat or announcement had been ns ago.
static void age(struct pmdp_lane *lane, uint64_t ns)
{
	lane->last_ticks -= ns;
}

static void test_lane_announced_pause_is_no_gap(void **state)
{
	struct pmdp_lane *lane = claim("t");

	(void)state;
	pmdp_lane_polling(lane);
	pmdp_lane_dozing(lane, PMDP_REASON_RECONFIGURATION, 50 * MS);
	assert_int_equal(ring.hot[0].announce,
			 PMDP_ANNOUNCE_DOZING | PMDP_REASON_RECONFIGURATION << 8);
	assert_in_range(ring.hot[0].deadline_ns, pmdp_mono_now_ns(), pmdp_mono_now_ns() + 50 * MS);
	age(lane, 900 * MS);
	pmdp_lane_polling(lane);
	pmdp_lane_sleep(lane, PMDP_REASON_NO_QUEUE);
	assert_int_equal(ring.hot[0].announce, PMDP_ANNOUNCE_SLEEP | PMDP_REASON_NO_QUEUE << 8);
	age(lane, 3600 * 1000 * MS);
	pmdp_lane_polling(lane);
	pmdp_lane_beat(lane, lane->last_ticks + US);
	assert_int_equal(ring.hot[0].n_gaps, 0);
	assert_int_equal(ring.hot[0].n_stalls, 0);
	pmdp_lane_release(lane);
}

// A stall that ends with an announcement instead of a beat is timed too.
static void test_lane_stall_before_a_pause_is_timed(void **state)
{
	struct pmdp_lane *lane = claim("t");

	(void)state;
	pmdp_lane_polling(lane);
	age(lane, 300 * MS);
	pmdp_lane_dozing(lane, PMDP_REASON_RECONFIGURATION, 50 * MS);
	assert_int_equal(ring.hot[0].n_stalls, 1);
	assert_in_range(ring.hot[0].last_stall_ticks, 300 * MS, 400 * MS);
	age(lane, 300 * MS);
	pmdp_lane_sleep(lane, PMDP_REASON_NO_QUEUE); // from pause to pause: nothing to time
	assert_int_equal(ring.hot[0].n_stalls, 1);
	pmdp_lane_release(lane);
	assert_int_equal(ring.hot[0].n_stalls, 1);
}

// Off: the thread just doesn't beat. On: polling() first. Neither is a gap, whatever comes between.
static void test_lane_keepalive_off_and_on_is_no_gap(void **state)
{
	struct pmdp_lane *lane = claim("t");

	(void)state;
	pmdp_lane_polling(lane);
	pmdp_publisher_set_keepalive(pub, false);
	assert_int_equal(ring.header->flags, 0);
	age(lane, 10000 * MS);
	pmdp_lane_dozing(lane, PMDP_REASON_RECONFIGURATION, MS); // a reconfiguration meanwhile
	age(lane, 10000 * MS);
	pmdp_lane_polling(lane);
	age(lane, 10000 * MS);
	pmdp_lane_polling(lane); // on again
	pmdp_lane_beat(lane, lane->last_ticks + US);
	pmdp_publisher_set_keepalive(pub, true);
	assert_int_equal(ring.header->flags, PMDP_FLAG_KEEPALIVE);
	pmdp_lane_beat(lane, lane->last_ticks + US);
	assert_int_equal(ring.hot[0].n_gaps, 0);
	pmdp_lane_release(lane);
}

static void test_lane_settings_are_taken_over_at_publish(void **state)
{
	struct pmdp_lane *lane = claim("t");

	(void)state;
	pmdp_lane_polling(lane);
	assert_int_equal(pmdp_publisher_set_interval(pub, MS), 0);
	assert_int_equal(pmdp_publisher_set_interval(pub, MS - 1), -ERANGE);
	assert_int_equal(pmdp_publisher_set_interval(pub, 3600001 * MS), -ERANGE);
	assert_int_equal(pmdp_publisher_interval_ns(pub), MS);
	pmdp_lane_beat(lane, lane->last_ticks + 3 * MS);
	assert_int_equal(ring.hot[0].n_stalls, 0); // not yet
	pmdp_lane_publish(lane, lane->last_ticks);
	pmdp_lane_beat(lane, lane->last_ticks + 2 * MS);
	assert_int_equal(ring.hot[0].n_stalls, 1);
	pmdp_lane_release(lane);
}

static void test_lane_publish_copies_the_body(void **state)
{
	struct pmdp_lane *lane = claim("t");
	uint64_t seq = ring.lanes[0].seq;

	(void)state;
	for (int i = 0; i < PMDP_N_COUNTERS; i++)
		lane->counters[i] = (uint64_t)i * 1000003;
	lane->body.gap_hist[47] = UINT64_MAX;
	pmdp_lane_publish(lane, 12345);
	assert_int_equal(ring.lanes[0].seq, seq + 2);
	assert_memory_equal(&ring.lanes[0].body, &lane->body, sizeof lane->body);
	assert_int_equal(ring.lanes[0].body.snapshot_ticks, 12345);
	pmdp_lane_release(lane);
}

// A page for each of them would cost a thread that forwards bursts a miss of the store TLB.
static void test_lane_counts_on_the_page_of_its_beats(void **state)
{
	struct pmdp_lane *lanes[3], *next;

	(void)state;
	for (int i = 0; i < 3; i++) {
		uintptr_t beats, counters;

		lanes[i] = claim("t");
		beats = (uintptr_t)lanes[i]->hot;
		counters = (uintptr_t)lanes[i]->counters;
		assert_int_equal(beats / 4096, counters / 4096);
		assert_int_equal(beats / 4096,
				 (counters + sizeof lanes[i]->body.counters - 1) / 4096);
		lanes[i]->counters[PMDP_N_COUNTERS - 1] = 5;
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ring.lanes[i].body.counters[PMDP_N_COUNTERS - 1], 0); // not yet
		pmdp_lane_release(lanes[i]);
		assert_int_equal(ring.lanes[i].body.counters[PMDP_N_COUNTERS - 1], 5);
	}
	next = claim("the next");
	assert_int_equal(next->counters[PMDP_N_COUNTERS - 1], 0);
	assert_int_equal(ring.lanes[0].body.counters[PMDP_N_COUNTERS - 1], 0);
	pmdp_lane_release(next);
}

static void test_lane_release_and_the_next_thread(void **state)
{
	struct pmdp_lane *lane = claim("first");
	uint64_t n_records;

	(void)state;
	pmdp_lane_polling(lane);
	pmdp_lane_beat(lane, lane->last_ticks + 500 * MS);
	pmdp_lane_release(lane);
	pmdp_lane_release(NULL);
	assert_int_equal(announced(0), PMDP_ANNOUNCE_EXITED);
	assert_int_equal(ring.lanes[0].claimed, 0);
	assert_int_equal(ring.hot[0].n_stalls, 1);
	n_records = ring.hot[0].n_records;
	assert_true(n_records >= 3);
	lane = claim("second");
	assert_int_equal(ring.hot[0].n_stalls, 0);
	assert_int_equal(ring.hot[0].longest_gap_ticks, 0);
	assert_int_equal(ring.hot[0].beats, 0);
	assert_int_equal(ring.hot[0].incarnation, 2);
	assert_int_equal(ring.hot[0].n_records,
			 n_records + 1); // goes on through the segment's life
	assert_string_equal(ring.lanes[0].body.name, "second");
	assert_int_equal(ring.lanes[0].body.gap_hist[28], 0);
	pmdp_lane_release(lane);
}

static void *claim_in_thread(void *arg)
{
	struct pmdp_lane **out_lane = arg;

	pmdp_lane_claim(pub, "other", PMDP_LANE_CONTROL, -1, -1, 5 * MS, out_lane);
	return (void *)(uintptr_t)gettid();
}

static void test_lane_close_ends_those_that_did_not(void **state)
{
	struct pmdp_lane *mine = claim("mine"), *other = NULL;
	pthread_t thread;
	void *tid;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, claim_in_thread, &other), 0);
	assert_int_equal(pthread_join(thread, &tid), 0);
	assert_non_null(other);
	assert_int_equal(ring.lanes[1].body.tid, (uintptr_t)tid);
	pmdp_lane_polling(mine);
	pmdp_publisher_close(pub);
	assert_int_equal(announced(0), PMDP_ANNOUNCE_EXITED);
	assert_int_equal(announced(1), PMDP_ANNOUNCE_EXITED);
	assert_int_equal(announced(2), PMDP_ANNOUNCE_NONE);
	assert_true(ring.header->stopped_ns != 0);
	pub = NULL;
}

static void test_lane_tsc(void **state)
{
	struct pmdp_publisher_opts opts = {.rundir = *state, .tsc_hz = 3000000000, .n_lanes = 1};
	struct pmdp_publisher *tsc_pub;
	struct pmdp_lane *lane;
	uint64_t t;

	if (!pmdp_tsc_is_invariant()) {
		assert_int_equal(pmdp_publisher_open("tsc", &opts, &tsc_pub), -EINVAL);
		test_skip("the time stamp counter of this machine is not invariant");
	}
	opts.tsc_hz = 1000;
	assert_int_equal(pmdp_publisher_open("tsc", &opts, &tsc_pub), -EINVAL);
	opts.tsc_hz = 3000000000;
	assert_int_equal(pmdp_publisher_open("tsc", &opts, &tsc_pub), 0);
	assert_int_equal(pmdp_lane_claim(tsc_pub, "t", PMDP_LANE_PMD, -1, -1, 0, &lane), 0);
	pmdp_lane_polling(lane);
	t = lane->last_ticks;
	assert_true(pmdp_lane_clock(lane) > t);
	pmdp_lane_beat(lane, t + 749999); // 250 us are 750000 of these cycles
	assert_int_equal(lane->n_gaps, 0);
	pmdp_lane_beat(lane, lane->last_ticks + 750000);
	assert_int_equal(lane->n_gaps, 1);
	pmdp_lane_beat(lane, lane->last_ticks + UINT64_C(1000000000000000)); // 92 hours
	assert_int_equal(lane->body.gap_hist[47], 1);
	assert_int_equal(lane->n_stalls, 1);
	pmdp_publisher_close(tsc_pub);
}

static void test_clock_conversions_do_not_wrap(void **state)
{
	(void)state;
	assert_true(pmdp_ticks_to_ns(3000000000, 3000000000) == 1000000000);
	assert_true(pmdp_ticks_to_ns(UINT64_MAX, 3000000000) == UINT64_MAX / 3);
	assert_true(pmdp_ticks_to_ns(UINT64_MAX, 1000000) == UINT64_MAX);
	assert_true(pmdp_ns_to_ticks(UINT64_MAX, 3000000000) == UINT64_MAX);
	assert_true(pmdp_ns_to_ticks(86400 * 1000 * MS, 3000000000) == UINT64_C(259200000000000));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_lane_claim_says_who),
		TEST(test_lane_claim_refuses),
		TEST(test_lane_beat_counts),
		TEST(test_lane_gap_is_sorted),
		TEST(test_lane_clock_backwards_is_no_gap),
		TEST(test_lane_announced_pause_is_no_gap),
		TEST(test_lane_stall_before_a_pause_is_timed),
		TEST(test_lane_keepalive_off_and_on_is_no_gap),
		TEST(test_lane_settings_are_taken_over_at_publish),
		TEST(test_lane_publish_copies_the_body),
		TEST(test_lane_counts_on_the_page_of_its_beats),
		TEST(test_lane_release_and_the_next_thread),
		TEST(test_lane_close_ends_those_that_did_not),
		TEST(test_lane_tsc),
		cmocka_unit_test(test_clock_conversions_do_not_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
