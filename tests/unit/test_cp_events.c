// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The plugin's reading of the agent's events: each told once, over loss, restart and new numbering.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cp_config.h"
#include "cp_events.h"
#include "cp_log.h"
#include "cp_notify.h"
#include "pmdp_clock.h"
#include "test_dir.h"

#define MAX_TOLD 512

// Stand-ins for the parts that need collectd.
struct cp_config cp_config;
static struct pmdp_incident told[MAX_TOLD];
static size_t n_told;

void cp_log(int level, const char *format, ...)
{
	(void)level;
	(void)format;
}

void cp_notify_submit(struct cp_instance *instance, const struct pmdp_incident *incident)
{
	(void)instance;
	assert_true(n_told < MAX_TOLD);
	told[n_told++] = *incident;
}

static const char *rundir;
static struct cp_instance instance = {.name = "unit"};
static struct cp_events events;
static struct pmdp_incident_log *log_;

static void open_log_of(uint32_t n_events, uint32_t n_incidents)
{
	const struct pmdp_incident_log_opts opts = {
		.rundir = rundir, .n_events = n_events, .n_incidents = n_incidents};

	assert_int_equal(pmdp_incident_log_open("unit", &opts, &log_, NULL), 0);
}

static void open_log(uint32_t n_events)
{
	open_log_of(n_events, 0);
}

static void attach(void)
{
	const struct pmdp_reader_opts opts = {.rundir = rundir, .suffix = "incidents"};
	struct pmdp_reader *reader;

	assert_int_equal(pmdp_reader_open("unit", &opts, &reader), 0);
	cp_events_attach(&events, reader);
}

static int setup(void **state)
{
	(void)state;
	rundir = test_dir_make();
	memset(&instance.numbers, 0, sizeof(instance.numbers));
	memset(&events, 0, sizeof(events));
	events.instance = &instance;
	n_told = 0;
	open_log(16);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cp_events_fini(&events);
	pmdp_incident_log_close(log_);
	test_dir_remove();
	return 0;
}

// One event of incident number n; the agent gives the id at the raise.
static char ids[64][PMDP_ID_BYTES];

static void publish(size_t n, uint32_t kind, uint32_t phase)
{
	struct pmdp_incident incident;

	pmdp_incident_init(&incident, "unit", kind, phase);
	incident.severity = kind == PMDP_KIND_SWITCH_BACK ? PMDP_SEVERITY_OKAY
			    : phase == PMDP_PHASE_CLEAR   ? PMDP_SEVERITY_OKAY
							  : PMDP_SEVERITY_FAILURE;
	if (phase != PMDP_PHASE_RAISE)
		memcpy(incident.id, ids[n], sizeof(incident.id));
	pmdp_incident_log_publish(log_, &incident);
	memcpy(ids[n], incident.id, sizeof(ids[n]));
}

static void stall(size_t n, uint32_t phase)
{
	publish(n, PMDP_KIND_PMD_STALL, phase);
}

static void expect(size_t at, size_t n, uint32_t phase)
{
	assert_true(at < n_told);
	assert_string_equal(told[at].id, ids[n]);
	assert_int_equal(told[at].phase, phase);
}

static uint64_t n_lost(void)
{
	return atomic_load(&instance.numbers.n_events_lost);
}

static void test_history_is_not_told_but_what_is_open_is(void **state)
{
	(void)state;
	stall(0, PMDP_PHASE_RAISE);
	stall(0, PMDP_PHASE_CLEAR);
	stall(1, PMDP_PHASE_RAISE);
	stall(1, PMDP_PHASE_UPDATE);
	attach();
	assert_int_equal(cp_events_pump(&events, 1), 0);
	assert_int_equal(n_told, 0);
	cp_events_sync(&events, 1);
	assert_int_equal(n_told, 1);
	expect(0, 1, PMDP_PHASE_RAISE);
	cp_events_sync(&events, 2);
	assert_int_equal(n_told, 1);
	stall(1, PMDP_PHASE_CLEAR);
	assert_int_equal(cp_events_pump(&events, 3), 1);
	expect(1, 1, PMDP_PHASE_CLEAR);
}

// What found no room in the agent's table is open all the same.
static void test_a_full_table_clears_nothing(void **state)
{
	(void)state;
	pmdp_incident_log_close(log_);
	open_log_of(32, 2);
	attach();
	cp_events_sync(&events, 1);
	for (size_t i = 0; i < 3; i++)
		stall(i, PMDP_PHASE_RAISE);
	assert_int_equal(cp_events_pump(&events, 2), 3);
	cp_events_sync(&events, 3);
	assert_int_equal(n_told, 3);
	assert_int_equal(events.book.n, 3);
	assert_true(events.sync_due_ns > 3); // looked at again
	stall(0, PMDP_PHASE_CLEAR);
	stall(2, PMDP_PHASE_CLEAR);
	cp_events_sync(&events, 4);
	assert_int_equal(n_told, 5);
	expect(3, 0, PMDP_PHASE_CLEAR);
	expect(4, 2, PMDP_PHASE_CLEAR);
	assert_int_equal(events.book.n, 1);
	assert_int_equal(events.sync_due_ns, 0);
}

static void test_each_event_once_in_order(void **state)
{
	(void)state;
	attach();
	cp_events_sync(&events, 1);
	stall(0, PMDP_PHASE_RAISE);
	stall(1, PMDP_PHASE_RAISE);
	stall(0, PMDP_PHASE_UPDATE);
	publish(2, PMDP_KIND_SWITCH_BACK, PMDP_PHASE_RAISE);
	stall(0, PMDP_PHASE_CLEAR);
	assert_int_equal(cp_events_pump(&events, 1), 5);
	assert_int_equal(cp_events_pump(&events, 1), 0);
	assert_int_equal(n_told, 5);
	expect(0, 0, PMDP_PHASE_RAISE);
	expect(1, 1, PMDP_PHASE_RAISE);
	expect(2, 0, PMDP_PHASE_UPDATE);
	expect(3, 2, PMDP_PHASE_RAISE);
	expect(4, 0, PMDP_PHASE_CLEAR);
	assert_int_equal(atomic_load(&instance.numbers.n_open[PMDP_KIND_PMD_STALL]), 1);
	assert_int_equal(atomic_load(&instance.numbers.n_open[PMDP_KIND_SWITCH_BACK]), 0);
	assert_int_equal(atomic_load(&instance.numbers.n_raised[PMDP_KIND_PMD_STALL]), 2);
	// Nothing is left over for a comparison to find.
	cp_events_sync(&events, 2);
	assert_int_equal(n_told, 5);
}

static void test_a_new_agent_goes_on(void **state)
{
	(void)state;
	attach();
	cp_events_sync(&events, 1);
	stall(0, PMDP_PHASE_RAISE);
	cp_events_pump(&events, 1);
	stall(1, PMDP_PHASE_RAISE); // not read before the agent ends
	pmdp_incident_log_close(log_);
	open_log(16);
	stall(0, PMDP_PHASE_CLEAR);
	cp_events_detach(&events);
	attach();
	cp_events_sync(&events, 2);
	assert_int_equal(n_told, 3);
	expect(1, 1, PMDP_PHASE_RAISE);
	expect(2, 0, PMDP_PHASE_CLEAR);
	stall(1, PMDP_PHASE_CLEAR);
	cp_events_pump(&events, 3);
	expect(3, 1, PMDP_PHASE_CLEAR);
	assert_int_equal(n_told, 4);
	assert_int_equal(n_lost(), 0);
}

static void test_lapped_ring_is_counted_and_made_good(void **state)
{
	(void)state;
	attach();
	cp_events_sync(&events, 1);
	stall(0, PMDP_PHASE_RAISE);
	cp_events_pump(&events, 1);
	stall(0, PMDP_PHASE_CLEAR); // will be overwritten
	stall(1, PMDP_PHASE_RAISE); // too, and stays open
	stall(2, PMDP_PHASE_RAISE);
	for (int i = 0; i < 17; i++)
		stall(2, PMDP_PHASE_UPDATE);
	cp_events_pump(&events, 2);
	assert_int_equal(n_lost(), 20 - 16);
	assert_int_equal(events.sync_due_ns, 2);
	cp_events_sync(&events, 2);
	// 0 was cleared, 1 and 2 raised, whatever was lost; nothing twice.
	for (size_t n = 0; n < 3; n++) {
		size_t n_raised = 0, n_cleared = 0;

		for (size_t i = 0; i < n_told; i++) {
			bool is_it = strcmp(told[i].id, ids[n]) == 0;

			n_raised += is_it && told[i].phase == PMDP_PHASE_RAISE;
			n_cleared += is_it && told[i].phase == PMDP_PHASE_CLEAR;
		}
		assert_int_equal(n_raised, 1);
		assert_int_equal(n_cleared, n == 0);
	}
	assert_int_equal(atomic_load(&instance.numbers.n_open[PMDP_KIND_PMD_STALL]), 2);
}

static void test_loss_between_two_agents_is_counted(void **state)
{
	(void)state;
	attach();
	cp_events_sync(&events, 1);
	stall(0, PMDP_PHASE_RAISE);
	cp_events_pump(&events, 1);
	for (int i = 0; i < 20; i++)
		stall(0, PMDP_PHASE_UPDATE);
	pmdp_incident_log_close(log_);
	open_log(16); // keeps the newest 16 of 21
	cp_events_detach(&events);
	attach();
	cp_events_sync(&events, 2);
	assert_int_equal(n_lost(), 4);
	assert_int_equal(n_told, 1 + 16);
}

// The old file is gone and the new agent counts from 1: its first events are new, not old.
static void test_numbers_that_begin_anew(void **state)
{
	char path[512];
	uint64_t old_ms;

	(void)state;
	attach();
	cp_events_sync(&events, 1);
	stall(0, PMDP_PHASE_RAISE);
	stall(1, PMDP_PHASE_RAISE);
	stall(1, PMDP_PHASE_CLEAR);
	cp_events_pump(&events, 1);
	assert_int_equal(n_told, 3);
	old_ms = pmdp_incident_log_generation(log_);
	pmdp_incident_log_close(log_);
	assert_int_equal(pmdp_path(rundir, "unit", "incidents", path, sizeof(path)), 0);
	assert_int_equal(remove(path), 0);
	// The new log can't see the old one's generation, which is the time in ms and part of the
	// ids: not the same twice.
	while (pmdp_realtime_now_us() / 1000 <= old_ms)
		;
	open_log(16);
	stall(2, PMDP_PHASE_RAISE);
	cp_events_detach(&events);
	attach();
	cp_events_sync(&events, 2);
	assert_int_equal(n_told, 5);
	expect(3, 2, PMDP_PHASE_RAISE);
	expect(4, 0, PMDP_PHASE_CLEAR); // nobody knows of it any more
	assert_int_equal(told[4].severity, PMDP_SEVERITY_OKAY);
}

// What the plugin clears by itself is an event of its own: emitted now, over, with a seq of its
// own.
static void test_own_clears_are_new_events(void **state)
{
	struct pmdp_incident incident;
	uint64_t begin_us;
	char path[512];

	(void)state;
	attach();
	cp_events_sync(&events, 1);
	for (size_t n = 0; n < 2; n++) {
		pmdp_incident_init(&incident, "unit", PMDP_KIND_PMD_STALL, PMDP_PHASE_RAISE);
		incident.severity = PMDP_SEVERITY_FAILURE;
		incident.state = PMDP_STATE_MISSING;
		pmdp_evidence_int(&incident, "ongoing", 1);
		pmdp_incident_log_publish(log_, &incident);
	}
	cp_events_pump(&events, 1);
	assert_int_equal(n_told, 2);
	pmdp_incident_log_close(log_);
	assert_int_equal(pmdp_path(rundir, "unit", "incidents", path, sizeof(path)), 0);
	assert_int_equal(remove(path), 0);
	open_log(16);
	cp_events_detach(&events);
	attach();
	begin_us = pmdp_realtime_now_us();
	cp_events_sync(&events, 2);
	assert_int_equal(n_told, 4);
	for (size_t i = 2; i < 4; i++) {
		assert_int_equal(told[i].phase, PMDP_PHASE_CLEAR);
		assert_int_equal(told[i].state, 0);
		assert_true(told[i].emitted_realtime_us >= begin_us);
		assert_int_equal(pmdp_evidence_find(&told[i], "ongoing")->integer, 0);
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(told[i].seq, told[k].seq);
	}
	assert_true(told[3].seq > told[2].seq);
	// The agent's next event is no old one for that.
	stall(0, PMDP_PHASE_RAISE);
	assert_int_equal(cp_events_pump(&events, 3), 1);
	assert_int_equal(n_told, 5);
}

static void test_unselected_threads_are_counted_but_not_told(void **state)
{
	struct pmdp_incident incident;

	(void)state;
	assert_int_equal(cp_select_add(&cp_config.threads, "other", NULL, 0), 0);
	attach();
	cp_events_sync(&events, 1);
	pmdp_incident_init(&incident, "unit", PMDP_KIND_PMD_STALL, PMDP_PHASE_RAISE);
	pmdp_incident_thread(&incident, "p1", 1, 1);
	pmdp_incident_log_publish(log_, &incident);
	cp_events_pump(&events, 1);
	cp_select_clear(&cp_config.threads);
	assert_int_equal(n_told, 0);
	assert_int_equal(atomic_load(&instance.numbers.n_raised[PMDP_KIND_PMD_STALL]), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_history_is_not_told_but_what_is_open_is, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_full_table_clears_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_each_event_once_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_new_agent_goes_on, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lapped_ring_is_counted_and_made_good, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_loss_between_two_agents_is_counted, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_numbers_that_begin_anew, setup, teardown),
		cmocka_unit_test_setup_teardown(test_own_clears_are_new_events, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unselected_threads_are_counted_but_not_told,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
