// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * A payload with relations in it, for tests that look for torn copies: all counters of a body
 * equal, its name made from them, every gap a stall of one length.
 */
#pragma once

#include <stdint.h>

#include "pmdpulse.h"

#define TEST_PATTERN_GAP_NS UINT64_C(200000000) // and update number n takes n more
#define TEST_PATTERN_FIRST 5 // updates that stand when it begins: the ring of 4 records is full

struct test_pattern_writer {
	struct pmdp_publisher *pub;
	struct pmdp_lane *lane;
	int port;
	uint64_t n; // updates written
};

// Open INSTANCE "t" with one lane and one port, polling, and write the first updates. 0 or -errno.
int test_pattern_open(struct test_pattern_writer *w, const char *rundir);

// The next update: body, a beat that ends a stall, port, housekeeping. Or one of these parts, by
// number, after n was counted up.
#define TEST_PATTERN_PARTS 4
void test_pattern_write(struct test_pattern_writer *w);
// The next publish's number, in all counters. test_pattern_write() calls it.
void test_pattern_next(struct test_pattern_writer *w);
void test_pattern_write_part(struct test_pattern_writer *w, int part);

// NULL, or what is torn.
const char *test_pattern_check_lane(const struct pmdp_lane_body *body);
const char *test_pattern_check_port(const struct pmdp_port_body *body);
const char *test_pattern_check_record(const struct pmdp_record_body *body);

/*
 * The hot slot is no snapshot, but it is ordered: who sees a count sees the lengths that it counts
 * (H2), and who sees a beat sees the gap that it ended (H3). n_free: beats that ended no gap.
 */
const char *test_pattern_check_look(const struct pmdp_lane_look *look, uint64_t n_free);
