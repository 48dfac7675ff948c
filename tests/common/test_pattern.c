// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "test_pattern.h"

#include <stdio.h>
#include <string.h>

#define CRUMB_OF(n) ((n)*UINT64_C(0x9e3779b97f4a7c15))

int test_pattern_open(struct test_pattern_writer *w, const char *rundir)
{
	const struct pmdp_publisher_opts opts = {
		.rundir = rundir, .n_lanes = 1, .n_ports = 1, .records_per_lane = 4};
	const struct pmdp_port_body body = {.name = "port with a long name 0"};
	int rc = pmdp_publisher_open("t", &opts, &w->pub);

	if (rc == 0)
		rc = pmdp_lane_claim(w->pub, "0", PMDP_LANE_PMD, -1, -1, 0, &w->lane);
	if (rc < 0)
		return rc;
	w->port = pmdp_port_claim(w->pub, &body);
	w->n = 0;
	pmdp_lane_polling(w->lane);
	for (int i = 0; i < TEST_PATTERN_FIRST; i++)
		test_pattern_write(w);
	return 0;
}

void test_pattern_next(struct test_pattern_writer *w)
{
	w->n++;
	for (int i = 0; i < PMDP_N_COUNTERS; i++)
		w->lane->counters[i] = w->n;
}

static void write_lane(struct test_pattern_writer *w)
{
	struct pmdp_lane_body *body = &w->lane->body;
	uint64_t n = w->n;

	for (int i = 0; i < PMDP_N_HIST; i++)
		body->gap_hist[i] = ~n;
	snprintf(body->name, sizeof body->name, "%llu", (unsigned long long)n);
	pmdp_lane_publish(w->lane, n);
}

static void write_port(struct test_pattern_writer *w)
{
	struct pmdp_port_body port = {.ofport = (uint32_t)w->n};

	snprintf(port.name, sizeof port.name, "port with a long name %llu",
		 (unsigned long long)w->n);
	for (int i = 0; i < PMDP_P_N_COUNTERS; i++)
		port.counters[i] = w->n;
	pmdp_port_publish(w->pub, w->port, &port);
}

void test_pattern_write_part(struct test_pattern_writer *w, int part)
{
	switch (part) {
	case 0:
		write_lane(w);
		break;
	case 1:
		pmdp_lane_crumb(w->lane, CRUMB_OF(w->n));
		pmdp_lane_beat(w->lane, w->lane->last_ticks + TEST_PATTERN_GAP_NS + w->n);
		break;
	case 2:
		write_port(w);
		break;
	case 3:
		pmdp_publisher_housekeep(w->pub);
		break;
	}
}

void test_pattern_write(struct test_pattern_writer *w)
{
	test_pattern_next(w);
	for (int part = 0; part < TEST_PATTERN_PARTS; part++)
		test_pattern_write_part(w, part);
}

const char *test_pattern_check_lane(const struct pmdp_lane_body *body)
{
	char name[PMDP_LANE_NAME_BYTES];
	uint64_t n = body->snapshot_ticks;

	for (int i = 0; i < PMDP_N_COUNTERS; i++) {
		if (body->counters[i] != n)
			return "counters of a lane";
	}
	for (int i = 0; i < PMDP_N_HIST; i++) {
		if (body->gap_hist[i] != ~n)
			return "histogram of a lane";
	}
	snprintf(name, sizeof name, "%llu", (unsigned long long)n);
	return strcmp(name, body->name) ? "name of a lane" : NULL;
}

const char *test_pattern_check_port(const struct pmdp_port_body *body)
{
	char name[PMDP_NAME_BYTES];
	uint64_t n = body->counters[0];

	for (int i = 0; i < PMDP_P_N_COUNTERS; i++) {
		if (body->counters[i] != n)
			return "counters of a port";
	}
	snprintf(name, sizeof name, "port with a long name %llu", (unsigned long long)n);
	return strcmp(name, body->name) || body->ofport != (uint32_t)n ? "name of a port" : NULL;
}

const char *test_pattern_check_record(const struct pmdp_record_body *body)
{
	if (body->kind == PMDP_RECORD_ANNOUNCE)
		return body->length_ticks || !body->value0 ? "record of an announcement" : NULL;
	if (body->kind != PMDP_RECORD_GAP || body->value0 || body->value1 ||
	    body->crumb != CRUMB_OF(body->length_ticks - TEST_PATTERN_GAP_NS))
		return "record of a gap";
	return NULL;
}

const char *test_pattern_check_look(const struct pmdp_lane_look *look, uint64_t n_free)
{
	if (look->n_gaps + n_free < look->beats || look->n_stalls < look->n_gaps)
		return "a beat before its gap";
	if (look->stall_ns < look->n_stalls * TEST_PATTERN_GAP_NS ||
	    look->gap_ns < look->n_gaps * TEST_PATTERN_GAP_NS)
		return "a count before its lengths";
	return look->n_records < look->n_stalls ? "a gap before its record" : NULL;
}
