// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// What a reader makes of a healthy segment, through a file and through memory alike.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "pmdp_clock.h"
#include "pmdp_segment.h"
#include "pmdp_shm.h"
#include "pmdpulse.h"
#include "test_dir.h"
#include "test_ring.h"

#define MS UINT64_C(1000000)

static struct pmdp_publisher *pub;
static struct pmdp_reader *readers[2]; // file, memory
static struct test_ring ring;

static int setup_clock(void **state, uint64_t tsc_hz)
{
	struct pmdp_publisher_opts opts = {
		.n_lanes = 3, .n_ports = 2, .records_per_lane = 8, .tsc_hz = tsc_hz};
	struct pmdp_reader_opts reader_opts = {0};

	reader_opts.rundir = opts.rundir = test_dir_make();
	*state = (void *)opts.rundir;
	if (pmdp_publisher_open("t", &opts, &pub) < 0)
		return -1;
	test_ring_map(&ring, opts.rundir, "t.ring");
	if (pmdp_reader_open("t", &reader_opts, &readers[0]) < 0)
		return -1;
	return pmdp_reader_open_memory(ring.header, ring.size, &readers[1]);
}

static int setup(void **state)
{
	return setup_clock(state, 0);
}

static int teardown(void **state)
{
	(void)state;
	pmdp_reader_close(readers[0]);
	pmdp_reader_close(readers[1]);
	test_ring_unmap(&ring);
	pmdp_publisher_close(pub);
	pub = NULL;
	test_dir_remove();
	return 0;
}

static struct pmdp_lane *claim(const char *name)
{
	struct pmdp_lane *lane = NULL;

	assert_int_equal(pmdp_lane_claim(pub, name, PMDP_LANE_PMD, 1, 0, 0, &lane), 0);
	return lane;
}

static void test_reader_info(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		const struct pmdp_segment_info *info = pmdp_reader_info(readers[i]);

		assert_string_equal(info->instance, "t");
		assert_int_equal(info->segment_kind, PMDP_SEGMENT_RING);
		assert_int_equal(info->n_lanes, 3);
		assert_int_equal(info->n_ports, 2);
		assert_int_equal(info->n_events, 0);
		assert_int_equal(info->records_per_lane, 8);
		assert_int_equal(info->writer_pid, getpid());
		assert_true(info->is_same_pidns);
		assert_true(info->is_same_boot);
		assert_true(info->generation == pmdp_publisher_generation(pub));
		assert_int_equal(pmdp_reader_writer_alive(readers[i]), 1);
		assert_int_equal(pmdp_reader_check(readers[i]), 0);
	}
}

static void test_reader_look(void **state)
{
	struct pmdp_lane *lane = claim("a");
	struct pmdp_look look;
	uint64_t beat_ns;

	(void)state;
	pmdp_lane_polling(lane);
	beat_ns = lane->last_ticks + 300 * MS;
	pmdp_lane_crumb(lane, PMDP_CRUMB(PMDP_STAGE_RX, 3, 1));
	pmdp_lane_beat(lane, beat_ns);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pmdp_reader_look(readers[i], &look), 0);
		assert_int_equal(look.n_lanes, 3);
		assert_true(look.is_keepalive);
		assert_true(look.keepalive_interval_ns == 50 * MS);
		assert_true(look.gap_limit_ns == 250000);
		assert_int_equal(look.stopped_ns, 0);
		assert_true(look.alive_ns <= look.now_ns && look.now_ns <= pmdp_mono_now_ns());
		assert_true(look.lanes[0].is_claimed);
		assert_false(look.lanes[1].is_claimed);
		assert_int_equal(look.lanes[0].announce, PMDP_ANNOUNCE_POLLING);
		assert_int_equal(look.lanes[0].incarnation, 1);
		assert_int_equal(look.lanes[0].beats, 2);
		assert_true(look.lanes[0].beat_ns == beat_ns);
		assert_int_equal(look.lanes[0].deadline_ns, 0);
		assert_true(look.lanes[0].crumb == PMDP_CRUMB(PMDP_STAGE_RX, 3, 1));
		assert_int_equal(look.lanes[0].n_gaps, 1);
		assert_int_equal(look.lanes[0].n_stalls, 1);
		assert_true(look.lanes[0].stall_ns == 300 * MS);
		assert_true(look.lanes[0].last_stall_ns == 300 * MS);
		assert_true(look.lanes[0].longest_gap_ns == 300 * MS);
		assert_int_equal(look.lanes[1].beat_ns, 0);
	}
	pmdp_lane_dozing(lane, PMDP_REASON_POWER_SAVING, 77 * MS);
	assert_int_equal(pmdp_reader_look(readers[0], &look), 0);
	assert_int_equal(look.lanes[0].announce, PMDP_ANNOUNCE_DOZING);
	assert_int_equal(look.lanes[0].reason, PMDP_REASON_POWER_SAVING);
	assert_in_range(look.lanes[0].deadline_ns, look.now_ns, look.now_ns + 77 * MS);
	pmdp_lane_release(lane);
	assert_int_equal(pmdp_reader_look(readers[0], &look), 0);
	assert_int_equal(look.lanes[0].announce, PMDP_ANNOUNCE_EXITED);
	assert_false(look.lanes[0].is_claimed);
}

// Settings and the sign of life are followed.
static void test_reader_look_follows_the_owner(void **state)
{
	struct pmdp_look look;

	(void)state;
	pmdp_publisher_set_interval(pub, 7 * MS);
	pmdp_publisher_set_keepalive(pub, false);
	ring.header->alive_ns = 1;
	assert_int_equal(pmdp_reader_look(readers[0], &look), 0);
	assert_true(look.keepalive_interval_ns == 7 * MS);
	assert_false(look.is_keepalive);
	assert_int_equal(look.alive_ns, 1);
	// Nobody computes with what a hostile or old writer left there.
	ring.header->keepalive_interval_ns = UINT64_C(1) << 63;
	assert_int_equal(pmdp_reader_look(readers[0], &look), 0);
	assert_true(look.keepalive_interval_ns == 3600 * 1000 * MS);
	ring.header->keepalive_interval_ns = 1;
	assert_int_equal(pmdp_reader_look(readers[0], &look), 0);
	assert_true(look.keepalive_interval_ns == MS);
	ring.header->keepalive_interval_ns = 0;
	assert_int_equal(pmdp_reader_look(readers[0], &look), 0);
	assert_true(look.keepalive_interval_ns == 50 * MS);
	pmdp_publisher_set_interval(pub, 7 * MS);
	pmdp_publisher_housekeep(pub);
	assert_int_equal(pmdp_reader_look(readers[0], &look), 0);
	assert_true(look.alive_ns > 1);
}

static void test_reader_lane(void **state)
{
	struct pmdp_lane *lane = claim("name");
	struct pmdp_lane_body body, before;

	(void)state;
	lane->counters[PMDP_C_RX_PACKETS] = 42;
	pmdp_lane_publish(lane, 99);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pmdp_reader_lane(readers[i], 0, &body), 0);
		assert_memory_equal(&body, &lane->body, sizeof body);
		assert_int_equal(pmdp_reader_lane(readers[i], 1, &body), -ENOENT);
		assert_int_equal(pmdp_reader_lane(readers[i], 3, &body), -ERANGE);
		assert_int_equal(pmdp_reader_lane(readers[i], UINT32_MAX, &body), -ERANGE);
		// A writer that stands, or died, in the middle: no wait, the output untouched.
		before = body;
		ring.lanes[0].seq++;
		assert_int_equal(pmdp_reader_lane(readers[i], 0, &body), -EAGAIN);
		assert_memory_equal(&body, &before, sizeof body);
		pmdp_lane_publish(lane, 100); // and the next whole update heals it
		assert_int_equal(pmdp_reader_lane(readers[i], 0, &body), 0);
	}
	// Claimed by a thread that has not written its body yet: this one is not its own.
	ring.lanes[0].claimed++;
	assert_int_equal(pmdp_reader_lane(readers[0], 0, &body), -ENOENT);
	ring.lanes[0].claimed--;
	memset(ring.lanes[0].body.name, 'x', sizeof ring.lanes[0].body.name); // not terminated
	assert_int_equal(pmdp_reader_lane(readers[0], 0, &body), 0);
	assert_int_equal(strlen(body.name), PMDP_LANE_NAME_BYTES - 1);
	pmdp_lane_release(lane);
	assert_int_equal(pmdp_reader_lane(readers[0], 0, &body), -ENOENT);
}

static void test_reader_ports(void **state)
{
	struct pmdp_port_body in = {.name = "p1", .ofport = 1, .link_state = PMDP_LINK_UP}, out;
	uint64_t generation = 0;

	(void)state;
	assert_int_equal(pmdp_reader_port(readers[0], 0, &out, NULL), -ENOENT);
	assert_int_equal(pmdp_reader_port(readers[0], 2, &out, NULL), -ERANGE);
	assert_int_equal(pmdp_port_claim(pub, &in), 0);
	in.ofport = 2;
	in.name[1] = '2';
	assert_int_equal(pmdp_port_claim(pub, &in), 1);
	assert_int_equal(pmdp_port_claim(pub, &in), -ENOSPC);
	in.counters[PMDP_P_RX_PACKETS] = 77;
	pmdp_port_publish(pub, 1, &in);
	pmdp_port_publish(pub, 2, &in); // no such slot: nothing
	pmdp_port_publish(pub, -1, &in);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pmdp_reader_port(readers[i], 1, &out, &generation), 0);
		assert_memory_equal(&out, &in, sizeof out);
		assert_int_equal(generation, 1);
	}
	pmdp_port_release(pub, 1);
	pmdp_port_publish(pub, 1, &in); // released: nothing
	assert_int_equal(pmdp_reader_port(readers[0], 1, &out, &generation), -ENOENT);
	assert_int_equal(pmdp_port_claim(pub, &in), 1);
	assert_int_equal(pmdp_reader_port(readers[0], 1, &out, &generation), 0);
	assert_int_equal(generation, 2);
	ring.ports[1].seq |= 1;
	assert_int_equal(pmdp_reader_port(readers[0], 1, &out, &generation), -EAGAIN);
}

// Records by their begin times: n beats, each of a gap that makes a record.
static void make_gaps(struct pmdp_lane *lane, int n)
{
	for (int i = 0; i < n; i++)
		pmdp_lane_beat(lane, lane->last_ticks + MS);
}

static void test_reader_records(void **state)
{
	struct pmdp_lane *lane = claim("a");
	struct pmdp_record_body records[16];
	uint64_t cursor = 0, lost = 0;

	(void)state;
	pmdp_lane_polling(lane);
	make_gaps(lane, 3); // start, polling, 3 gaps
	assert_int_equal(pmdp_reader_records(readers[0], 0, &cursor, records, 2, &lost), 2);
	assert_int_equal(cursor, 2);
	assert_int_equal(records[0].kind, PMDP_RECORD_ANNOUNCE);
	assert_int_equal(records[0].value0, PMDP_ANNOUNCE_DOZING | PMDP_REASON_START << 8);
	assert_true(records[0].value1 > 0);
	assert_int_equal(records[1].value0, PMDP_ANNOUNCE_POLLING);
	assert_int_equal(pmdp_reader_records(readers[0], 0, &cursor, records, 16, &lost), 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(records[i].kind, PMDP_RECORD_GAP);
		assert_true(records[i].length_ticks == MS);
	}
	assert_true(records[1].begin_ticks == records[0].begin_ticks + MS);
	assert_int_equal(pmdp_reader_records(readers[0], 0, &cursor, records, 16, &lost), 0);
	assert_int_equal(lost, 0);

	make_gaps(lane, 20); // 25 in all, the ring holds 8
	assert_int_equal(pmdp_reader_records(readers[0], 0, &cursor, records, 16, &lost), 8);
	assert_int_equal(lost, 12);
	assert_int_equal(cursor, 25);
	assert_true(records[7].begin_ticks + MS == lane->last_ticks);

	make_gaps(lane, 2);
	assert_int_equal(pmdp_reader_records(readers[1], 0, &cursor, records, 16, NULL), 2);
	assert_int_equal(pmdp_reader_records(readers[0], 3, &cursor, records, 16, &lost), -ERANGE);
	cursor = 28; // one ahead
	assert_int_equal(pmdp_reader_records(readers[0], 0, &cursor, records, 16, &lost), -ESTALE);
	cursor = UINT64_MAX;
	lost = 0;
	assert_int_equal(pmdp_reader_records(readers[0], 0, &cursor, records, 16, &lost), 8);
	assert_int_equal(lost, 0);
	ring.hot[0].n_records += UINT64_C(1) << 63; // the items' numbers would be right again
	cursor = UINT64_MAX;
	assert_int_equal(pmdp_reader_records(readers[0], 0, &cursor, records, 16, &lost), -ESTALE);
	ring.hot[0].n_records -= UINT64_C(1) << 63;
	pmdp_lane_release(lane);
}

// The oldest is just being overwritten: it is lost, and counted, but not the others.
static void test_reader_records_while_one_is_written(void **state)
{
	struct pmdp_lane *lane = claim("a");
	struct pmdp_record_body records[16];
	uint64_t cursor = 0, lost = 0;

	(void)state;
	pmdp_lane_polling(lane);
	make_gaps(lane, 6);              // 8 in all
	ring.records[0].seq = 2 * 8 + 1; // number 8 has begun
	assert_int_equal(pmdp_reader_records(readers[0], 0, &cursor, records, 16, &lost), 7);
	assert_int_equal(lost, 1);
	assert_int_equal(cursor, 8);
	pmdp_lane_release(lane);
}

// Two gaps of a size that a conversion could break.
static void test_reader_tsc(void **state)
{
	const uint64_t hz = 2500000000;
	struct pmdp_look look;
	struct pmdp_lane *lane;
	uint64_t ticks;

	(void)state;
	if (!pmdp_tsc_is_invariant())
		test_skip("the time stamp counter of this machine is not invariant");
	teardown(state);
	assert_int_equal(setup_clock(state, hz), 0);
	assert_int_equal(pmdp_reader_info(readers[0])->clock_kind, PMDP_CLOCK_TSC);
	lane = claim("a");
	pmdp_lane_polling(lane);
	ticks = ring.header->clock.ticks;
	for (int i = 0; i < 2; i++) {
		const uint64_t mono_ns = ring.header->clock.mono_ns;

		assert_true(pmdp_reader_mono_ns(readers[i], ticks) == mono_ns);
		assert_true(pmdp_reader_mono_ns(readers[i], ticks + hz) == mono_ns + 1000 * MS);
		assert_true(pmdp_reader_mono_ns(readers[i], ticks - hz / 2) == mono_ns - 500 * MS);
		assert_true(pmdp_reader_mono_ns(readers[i], ticks + (UINT64_C(1) << 62)) >
			    mono_ns + (UINT64_C(1) << 60)); // 58 years
		assert_true(pmdp_reader_mono_ns(readers[i], ticks + (UINT64_C(1) << 63) + 1) == 0);
		assert_true(pmdp_reader_length_ns(readers[i], 30 * 86400 * hz) ==
			    UINT64_C(30) * 86400 * 1000 * MS);
	}
	// A moved pair is followed, a torn one is not.
	ring.header->clock.seq++;
	ring.header->clock.mono_ns += 1000 * MS;
	assert_int_equal(pmdp_reader_look(readers[0], &look), 0);
	assert_true(pmdp_reader_mono_ns(readers[0], ticks) ==
		    ring.header->clock.mono_ns - 1000 * MS);
	ring.header->clock.seq++;
	assert_int_equal(pmdp_reader_look(readers[0], &look), 0);
	assert_true(pmdp_reader_mono_ns(readers[0], ticks) == ring.header->clock.mono_ns);
	pmdp_lane_release(lane);
}

static void test_reader_check_notices(void **state)
{
	const struct pmdp_reader_opts opts = {.rundir = *state};
	struct pmdp_reader *reader;
	struct pmdp_look look;

	pmdp_reader_close(readers[0]);
	assert_int_equal(pmdp_reader_open("t", &opts, &readers[0]), 0);
	pmdp_publisher_close(pub);
	pub = NULL;
	assert_int_equal(pmdp_reader_check(readers[0]), -ENOENT);
	assert_int_equal(pmdp_reader_open("t", &opts, &reader), -ENOENT);
	assert_int_equal(pmdp_reader_look(readers[0], &look),
			 0); // what one has open can be read on
	assert_true(look.stopped_ns != 0);
}

// The incidents kind, as its writer will lay it out.
static void test_reader_incidents(void **state)
{
	const struct pmdp_segment_opts seg_opts = {
		.rundir = *state,
		.instance = "t",
		.suffix = "incidents",
		.segment_kind = PMDP_SEGMENT_INCIDENTS,
		.ticks_hz = PMDP_NS_PER_S,
		.n_sections = 2,
		.sections = {{PMDP_SECTION_EVENTS, 3, sizeof(struct pmdp_event_shm)},
			     {PMDP_SECTION_INCIDENTS, 2, sizeof(struct pmdp_event_shm)}},
	};
	const struct pmdp_reader_opts opts = {.rundir = *state, .suffix = "incidents"};
	struct pmdp_incident in = {.kind = 1}, out[4];
	struct pmdp_event_shm *events, *open;
	uint64_t cursor = 0, lost = 0;
	struct pmdp_segment seg;
	struct pmdp_reader *reader;
	struct pmdp_look look;

	assert_int_equal(pmdp_segment_create(&seg_opts, &seg), 0);
	assert_int_equal(pmdp_segment_publish(&seg), 0);
	events = pmdp_segment_section(&seg, PMDP_SECTION_EVENTS, NULL);
	open = pmdp_segment_section(&seg, PMDP_SECTION_INCIDENTS, NULL);
	assert_int_equal(pmdp_reader_open("t", &opts, &reader), 0);
	assert_int_equal(pmdp_reader_info(reader)->n_events, 3);
	assert_int_equal(pmdp_reader_info(reader)->n_incidents, 2);
	assert_int_equal(pmdp_reader_look(reader, &look), 0);
	assert_int_equal(look.n_lanes, 0);
	assert_int_equal(pmdp_reader_events(reader, &cursor, out, 4, &lost), 0);
	for (uint64_t n = 0; n < 5; n++) {
		in.seq = n;
		pmdp_ring_write(&events[n % 3].seq, &events[n % 3].body, &in, sizeof in,
				&seg.header->n_events, n);
	}
	assert_int_equal(pmdp_reader_events(reader, &cursor, out, 4, &lost), 3);
	assert_int_equal(lost, 2);
	assert_int_equal(out[0].seq, 2);
	assert_int_equal(out[2].seq, 4);
	assert_int_equal(pmdp_reader_incident(reader, 1, out), -ENOENT);
	assert_int_equal(pmdp_reader_incident(reader, 2, out), -ERANGE);
	open[1].in_use = 1;
	pmdp_words_store(&open[1].body, &in, sizeof in);
	assert_int_equal(pmdp_reader_incident(reader, 1, out), 0);
	assert_int_equal(out[0].seq, 4);
	open[1].seq = 1;
	assert_int_equal(pmdp_reader_incident(reader, 1, out), -EAGAIN);
	// Of the other kind there is nothing.
	assert_int_equal(pmdp_reader_events(readers[0], &cursor, out, 4, &lost), 0);
	assert_int_equal(pmdp_reader_incident(readers[0], 0, out), -ERANGE);
	pmdp_reader_close(reader);
	pmdp_segment_close(&seg, true);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_reader_info),
		TEST(test_reader_look),
		TEST(test_reader_look_follows_the_owner),
		TEST(test_reader_lane),
		TEST(test_reader_ports),
		TEST(test_reader_records),
		TEST(test_reader_records_while_one_is_written),
		TEST(test_reader_tsc),
		TEST(test_reader_check_notices),
		TEST(test_reader_incidents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
