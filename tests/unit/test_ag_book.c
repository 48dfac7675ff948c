// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The book of incidents, with a diagnosis that says what the test wants. What was published is read
 * back from the incident segment, as any reader would.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ag_book.h"
#include "ag_log.h"
#include "ag_loop.h"
#include "ag_sink.h"
#include "pmdp_clock.h"

#define NS_PER_MS UINT64_C(1000000)

// What the next questions are answered with, and how often was asked.
static struct {
	uint32_t cause;
	uint32_t culprit_pid;
	bool is_more;
	uint64_t takes_ns;
	int n_asked;
	uint64_t asked_end_ns;
} answer;

// Stands in for the agent's diagnosis.
bool ag_diag_explain(struct ag_diag *diag, const struct ag_explain *what,
		     struct pmdp_incident *incident, uint64_t *out_retry_ns)
{
	(void)diag;
	answer.n_asked++;
	answer.asked_end_ns = what->end_ns;
	for (uint64_t end_ns = pmdp_mono_now_ns() + answer.takes_ns; pmdp_mono_now_ns() < end_ns;)
		;
	incident->cause = answer.cause;
	if (answer.culprit_pid)
		pmdp_incident_culprit(incident, "hog", answer.culprit_pid, answer.culprit_pid,
				      "SCHED_FIFO", 300 * NS_PER_MS);
	pmdp_evidence_int(incident, "asked", answer.n_asked);
	*out_retry_ns = pmdp_mono_now_ns() + 20 * NS_PER_MS;
	return answer.is_more;
}

struct fixture {
	char rundir[64];
	struct pmdp_incident_log *log;
	struct pmdp_watch *watch;
	struct pmdp_reader *reader;
	struct ag_sinks sinks;
	struct ag_sink sink;
	uint32_t n_sunk;
	struct ag_book book;
	uint64_t cursor;
	struct pmdp_incident events[16];
	int n_events;
};

static void sink_event(struct ag_sink *sink, const struct pmdp_incident *incident, const char *json,
		       size_t json_len)
{
	struct fixture *f = (struct fixture *)((char *)sink - offsetof(struct fixture, sink));

	assert_int_equal(strlen(json), json_len);
	assert_non_null(strstr(json, incident->id));
	f->n_sunk++;
}

static void open_book(struct fixture *f)
{
	struct pmdp_incident_log_opts log_opts = {.rundir = f->rundir};
	struct pmdp_watch_opts watch_opts = {.rundir = f->rundir};
	struct pmdp_reader_opts reader_opts = {.rundir = f->rundir, .suffix = "incidents"};

	assert_int_equal(pmdp_incident_log_open("t", &log_opts, &f->log, NULL), 0);
	assert_int_equal(pmdp_watch_new("t", &watch_opts, &f->watch), 0);
	assert_int_equal(ag_book_open(&f->book, f->log, NULL, &f->sinks, f->watch), 0);
	assert_int_equal(pmdp_reader_open("t", &reader_opts, &f->reader), 0);
}

static void close_book(struct fixture *f)
{
	ag_book_close(&f->book);
	pmdp_reader_close(f->reader);
	pmdp_watch_free(f->watch);
	pmdp_incident_log_close(f->log);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	ag_log_init(false);
	memset(&answer, 0, sizeof(answer));
	strcpy(f->rundir, "/dev/shm/pmdpulse-book-XXXXXX");
	assert_non_null(mkdtemp(f->rundir));
	f->sink.event = sink_event;
	f->sinks.sinks[0] = &f->sink;
	f->sinks.n = 1;
	open_book(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];

	close_book(f);
	snprintf(command, sizeof(command), "rm -rf %s", f->rundir);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

// Events published since the last call.
static void read_events(struct fixture *f)
{
	uint64_t lost = 0;

	f->n_events = pmdp_reader_events(f->reader, &f->cursor, f->events, 16, &lost);
	assert_true(f->n_events >= 0);
	assert_int_equal(lost, 0);
}

static struct pmdp_watch_event stall(uint32_t phase, uint64_t begin_ms, uint64_t end_ms)
{
	struct pmdp_watch_event event = {.key = 7, .lane = 0};

	pmdp_incident_init(&event.incident, "t", PMDP_KIND_PMD_STALL, phase);
	pmdp_incident_thread(&event.incident, "p1", 42, 1);
	event.incident.state = phase == PMDP_PHASE_CLEAR ? PMDP_STATE_ALIVE : PMDP_STATE_DEAD;
	event.incident.severity =
		pmdp_incident_severity(PMDP_KIND_PMD_STALL, phase, event.incident.state);
	event.incident.started_realtime_us = 1000 + begin_ms;
	event.incident.detected_realtime_us = 2000 + begin_ms;
	event.incident.duration_ns = (end_ms ? end_ms - begin_ms : 100) * NS_PER_MS;
	event.begin_ns = begin_ms * NS_PER_MS;
	event.end_ns = end_ms * NS_PER_MS;
	return event;
}

static void tell(struct fixture *f, struct pmdp_watch_event event)
{
	ag_book_event(&f->book, &event);
}

// What the first search knows stands in the raise already.
static void test_book_raise_carries_the_cause(void **state)
{
	struct fixture *f = *state;

	answer.cause = PMDP_CAUSE_PREEMPTED;
	answer.culprit_pid = 99;
	tell(f, stall(PMDP_PHASE_RAISE, 100, 0));
	assert_int_equal(answer.n_asked, 1);
	ag_book_settle(&f->book);
	read_events(f);
	assert_int_equal(f->n_events, 1);
	assert_int_equal(f->events[0].phase, PMDP_PHASE_RAISE);
	assert_int_equal(f->events[0].cause, PMDP_CAUSE_PREEMPTED);
	assert_int_equal(f->events[0].culprit_pid, 99);
	assert_int_equal(f->n_sunk, 1);
}

// Eight threads at once: the searches hold the raises up for a bounded time; all are explained.
static void test_book_many_raises_do_not_wait_for_all_searches(void **state)
{
	struct fixture *f = *state;
	int n_unexplained = 0;

	answer.cause = PMDP_CAUSE_STOPPED;
	answer.takes_ns = NS_PER_MS;
	for (uint32_t i = 0; i < 8; i++) {
		struct pmdp_watch_event event = stall(PMDP_PHASE_RAISE, 100, 0);

		event.key = 100 + i;
		event.lane = i;
		event.incident.thread_tid = 50 + i;
		tell(f, event);
	}
	assert_int_equal(answer.n_asked, 1);
	read_events(f);
	assert_int_equal(f->n_events, 8);
	for (int i = 0; i < 8; i++)
		n_unexplained += f->events[i].cause == PMDP_CAUSE_UNKNOWN;
	assert_int_equal(n_unexplained, 7);
	ag_book_settle(&f->book);
	read_events(f);
	assert_int_equal(f->n_events, 7);
	for (int i = 0; i < 7; i++) {
		assert_int_equal(f->events[i].phase, PMDP_PHASE_UPDATE);
		assert_int_equal(f->events[i].cause, PMDP_CAUSE_STOPPED);
	}
	assert_int_equal(f->n_sunk, 15);
	struct pmdp_watch_event next = stall(PMDP_PHASE_RAISE, 100, 0);
	next.key = 200;
	answer.n_asked = 0;
	tell(f, next); // searches are known to be slow now: not even the first raise waits
	assert_int_equal(answer.n_asked, 0);
}

static void test_book_short_stall_is_explained_at_once(void **state)
{
	struct fixture *f = *state;

	answer.cause = PMDP_CAUSE_STEAL;
	tell(f, stall(PMDP_PHASE_RAISE, 100, 150));
	ag_book_settle(&f->book);
	read_events(f);
	assert_int_equal(f->n_events, 1);
	assert_int_equal(f->events[0].cause, PMDP_CAUSE_STEAL);
	assert_int_equal(answer.asked_end_ns, 150 * NS_PER_MS);
}

static void test_book_clear_carries_what_was_found(void **state)
{
	struct fixture *f = *state;

	answer.cause = PMDP_CAUSE_PREEMPTED;
	answer.culprit_pid = 99;
	tell(f, stall(PMDP_PHASE_RAISE, 100, 0));
	ag_book_settle(&f->book);
	tell(f, stall(PMDP_PHASE_UPDATE, 100, 400));
	struct pmdp_watch_event clear = stall(PMDP_PHASE_CLEAR, 100, 400);
	clear.incident.started_realtime_us = 5; // the raise's times stand
	pmdp_evidence_int(&clear.incident, "n_stalls", 1);
	tell(f, clear);
	read_events(f);
	assert_int_equal(f->n_events, 3);
	const struct pmdp_incident *last = &f->events[2];
	assert_int_equal(last->phase, PMDP_PHASE_CLEAR);
	assert_int_equal(last->severity, PMDP_SEVERITY_OKAY);
	assert_int_equal(last->cause, PMDP_CAUSE_PREEMPTED);
	assert_string_equal(last->culprit_comm, "hog");
	assert_int_equal(last->duration_ns, 300 * NS_PER_MS);
	assert_int_equal(last->started_realtime_us, 1100);
	assert_int_equal(last->detected_realtime_us, 2100);
	assert_non_null(pmdp_evidence_find(last, "asked"));
	assert_non_null(pmdp_evidence_find(last, "n_stalls"));
	assert_string_equal(last->id, f->events[0].id);
	assert_int_equal(f->book.n_opens, 0);
	assert_int_equal(answer.n_asked,
			 2); // while it lasted and at its end, not again at the clear
}

static void test_book_known_cause_is_not_given_up(void **state)
{
	struct fixture *f = *state;

	answer.cause = PMDP_CAUSE_BLOCKED;
	tell(f, stall(PMDP_PHASE_RAISE, 100, 0));
	ag_book_settle(&f->book);
	answer.cause = PMDP_CAUSE_UNKNOWN;
	tell(f, stall(PMDP_PHASE_UPDATE, 100, 500));
	read_events(f);
	assert_int_equal(f->events[f->n_events - 1].cause, PMDP_CAUSE_BLOCKED);
}

static void test_book_cause_is_that_of_the_longest_stall(void **state)
{
	struct fixture *f = *state;

	answer.cause = PMDP_CAUSE_BLOCKED;
	tell(f, stall(PMDP_PHASE_RAISE, 100, 500));
	answer.cause = PMDP_CAUSE_STEAL;
	tell(f, stall(PMDP_PHASE_UPDATE, 600, 750)); // a shorter one
	answer.cause = PMDP_CAUSE_OWN_CODE;
	tell(f, stall(PMDP_PHASE_UPDATE, 800, 1800)); // a longer one
	read_events(f);
	assert_int_equal(f->n_events, 3);
	assert_int_equal(f->events[1].cause, PMDP_CAUSE_BLOCKED);
	assert_int_equal(f->events[2].cause, PMDP_CAUSE_OWN_CODE);
}

// A diagnosis that knows more later is asked later, and only news are published.
static void test_book_asks_again_and_tells_news_only(void **state)
{
	struct fixture *f = *state;

	answer.is_more = true;
	tell(f, stall(PMDP_PHASE_RAISE, 100, 0));
	uint64_t retry_ns = ag_book_settle(&f->book);
	read_events(f);
	assert_int_equal(f->n_events, 1); // still unknown: no news
	assert_true(retry_ns > pmdp_mono_now_ns() - 100 * NS_PER_MS);
	answer.cause = PMDP_CAUSE_OWN_CODE;
	while (pmdp_mono_now_ns() < retry_ns)
		usleep(100);
	retry_ns = ag_book_settle(&f->book);
	read_events(f);
	assert_int_equal(f->n_events, 1);
	assert_int_equal(f->events[0].cause, PMDP_CAUSE_OWN_CODE);
	answer.is_more = false;
	while (pmdp_mono_now_ns() < retry_ns)
		usleep(100);
	assert_int_equal(ag_book_settle(&f->book), 0);
	read_events(f);
	assert_int_equal(f->n_events, 0);
	assert_int_equal(answer.n_asked, 3);
}

static void test_book_good_news_is_not_kept_open(void **state)
{
	struct fixture *f = *state;
	struct pmdp_watch_event event = {.key = 9, .lane = UINT32_MAX};

	pmdp_incident_init(&event.incident, "t", PMDP_KIND_SWITCH_BACK, PMDP_PHASE_RAISE);
	assert_int_equal(event.incident.severity, PMDP_SEVERITY_OKAY);
	tell(f, event);
	assert_int_equal(ag_book_settle(&f->book), 0);
	assert_int_equal(f->book.n_opens, 0);
	assert_int_equal(answer.n_asked, 0);
	for (uint32_t slot = 0; slot < pmdp_incident_log_slots(f->log); slot++)
		assert_null(pmdp_incident_log_open_at(f->log, slot));
	read_events(f);
	assert_int_equal(f->n_events, 1);
}

static void test_book_adopts_what_was_open(void **state)
{
	struct fixture *f = *state;
	char id[PMDP_ID_BYTES];

	answer.cause = PMDP_CAUSE_STOPPED;
	tell(f, stall(PMDP_PHASE_RAISE, 100, 0));
	ag_book_settle(&f->book);
	read_events(f);
	strcpy(id, f->events[0].id);
	close_book(f);
	open_book(f);
	assert_int_equal(f->book.n_opens, 1);
	answer.cause = PMDP_CAUSE_UNKNOWN;
	struct pmdp_watch_event clear = stall(PMDP_PHASE_CLEAR, 0, 0);
	clear.key = f->book.opens[0].key;
	assert_int_not_equal(clear.key, 0);
	tell(f, clear);
	f->cursor = UINT64_MAX;
	read_events(f);
	const struct pmdp_incident *last = &f->events[f->n_events - 1];
	assert_int_equal(last->phase, PMDP_PHASE_CLEAR);
	assert_string_equal(last->id, id);
	assert_int_equal(last->cause, PMDP_CAUSE_STOPPED);
	assert_int_equal(f->book.n_opens, 0);
}

static void test_book_counts_lateness(void **state)
{
	struct fixture *f = *state;
	struct pmdp_watch_event event = {.key = 11, .lane = UINT32_MAX};

	pmdp_incident_init(&event.incident, "t", PMDP_KIND_AGENT_LATE, PMDP_PHASE_RAISE);
	tell(f, event);
	ag_book_settle(&f->book);
	assert_int_equal(f->book.n_late, 1);
	assert_int_equal(answer.n_asked, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_book_raise_carries_the_cause),
		TEST(test_book_many_raises_do_not_wait_for_all_searches),
		TEST(test_book_short_stall_is_explained_at_once),
		TEST(test_book_clear_carries_what_was_found),
		TEST(test_book_known_cause_is_not_given_up),
		TEST(test_book_cause_is_that_of_the_longest_stall),
		TEST(test_book_asks_again_and_tells_news_only),
		TEST(test_book_good_news_is_not_kept_open),
		TEST(test_book_adopts_what_was_open),
		TEST(test_book_counts_lateness),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
