// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Incidents by thread, cause and culprit: counted, begun at 0, and bounded.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cp_tally.h"
#include "pmdp_incident.h"

static struct cp_tally *tally;

static int begin(void **state)
{
	(void)state;
	tally = calloc(1, sizeof(*tally));
	return tally == NULL;
}

static int end(void **state)
{
	(void)state;
	free(tally);
	return 0;
}

static void over(const char *thread, uint32_t cause, const char *culprit, uint64_t ns)
{
	struct pmdp_incident incident;

	pmdp_incident_init(&incident, "unit", PMDP_KIND_PMD_STALL, PMDP_PHASE_CLEAR);
	pmdp_incident_thread(&incident, thread, 7, 1);
	if (culprit != NULL)
		pmdp_incident_culprit(&incident, culprit, 8, 8, "SCHED_FIFO", ns);
	incident.cause = cause;
	incident.duration_ns = ns;
	cp_tally_add(tally, &incident);
}

static struct cp_tally_row *row_of(const char *thread, const char *detail)
{
	for (size_t i = 0; i < cp_tally_count(tally); i++)
		if (strcmp(tally->rows[i].thread_name, thread) == 0 &&
		    strcmp(tally->rows[i].detail, detail) == 0)
			return &tally->rows[i];
	fail_msg("no row %s %s", thread, detail);
	return NULL;
}

// Beyond the zeros.
static void take_last(const char *detail, uint64_t *out_n, uint64_t *out_ns)
{
	for (int i = 0; i <= CP_TALLY_ZEROS; i++)
		cp_tally_take(row_of("p1", detail), out_n, out_ns);
}

static void test_counted_apart(void **state)
{
	uint64_t n, ns;

	(void)state;
	over("p1", PMDP_CAUSE_PREEMPTED, "hog", 5);
	over("p1", PMDP_CAUSE_PREEMPTED, "hog", 6);
	over("p1", PMDP_CAUSE_IRQ, "hog", 1);
	over("p2", PMDP_CAUSE_PREEMPTED, "hog", 1);
	over("p2", PMDP_CAUSE_STEAL, NULL, 1);
	over("", PMDP_CAUSE_STEAL, NULL, 1);
	assert_int_equal(cp_tally_count(tally), 4);
	for (int i = 0; i < CP_TALLY_ZEROS; i++) {
		cp_tally_take(row_of("p1", "preempted:hog"), &n, &ns);
		assert_int_equal(n + ns, 0);
	}
	cp_tally_take(row_of("p1", "preempted:hog"), &n, &ns);
	assert_int_equal(n, 2);
	assert_int_equal(ns, 11);
	row_of("p1", "irq:hog");
	row_of("p2", "preempted:hog");
	cp_tally_take(row_of("p2", "steal"), &n, &ns);
	assert_int_equal(n, 1);
}

// A comm is any 15 bytes; the detail must be a label that collectd and Prometheus can carry.
static void test_odd_culprits(void **state)
{
	(void)state;
	over("p1", PMDP_CAUSE_PREEMPTED, "kworker/1:2", 1);
	over("p1", PMDP_CAUSE_PREEMPTED, "a b\xff", 1);
	row_of("p1", "preempted:kworker_1:2");
	row_of("p1", "preempted:a_b_");
}

static void test_many_culprits_are_other(void **state)
{
	uint64_t n, ns;

	(void)state;
	for (int i = 0; i < 3 * CP_TALLY_CULPRITS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "hog%d", i);
		over("p1", PMDP_CAUSE_PREEMPTED, name, 1);
	}
	over("p1", PMDP_CAUSE_PREEMPTED, "hog0", 1);
	over("p2", PMDP_CAUSE_PREEMPTED, "hog0", 1);
	assert_int_equal(cp_tally_count(tally), CP_TALLY_CULPRITS + 2);
	take_last("preempted:other", &n, &ns);
	assert_int_equal(n, 2 * CP_TALLY_CULPRITS);
	take_last("preempted:hog0", &n, &ns);
	assert_int_equal(n, 2);
}

static void test_many_threads_end_at_the_limit(void **state)
{
	(void)state;
	for (int i = 0; i < 2 * CP_TALLY_ROWS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "p%d", i);
		over(name, PMDP_CAUSE_BLOCKED, NULL, 1);
	}
	assert_int_equal(cp_tally_count(tally), CP_TALLY_ROWS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_counted_apart, begin, end),
		cmocka_unit_test_setup_teardown(test_odd_culprits, begin, end),
		cmocka_unit_test_setup_teardown(test_many_culprits_are_other, begin, end),
		cmocka_unit_test_setup_teardown(test_many_threads_end_at_the_limit, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
