// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "watching.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test_dir.h"

#define PATIENCE_MS 20000

struct pmdp_watch *watch;
struct test_publisher pub;
struct pmdp_watch_event events[MAX_EVENTS];
uint32_t n_events;
uint64_t last_event_ns;

void on_event(void *ctx, const struct pmdp_watch_event *event)
{
	(void)ctx;
	assert_true(n_events < MAX_EVENTS);
	events[n_events] = *event;
	last_event_ns = test_now_ns();
	pmdp_incident_compose(&events[n_events].incident);
	print_message("  %s %s %s: %s\n", pmdp_severity_name(event->incident.severity),
		      pmdp_phase_name(event->incident.phase), pmdp_kind_name(event->incident.kind),
		      events[n_events].incident.message);
	n_events++;
}

const struct pmdp_watch_event *watching_find(uint32_t kind, uint32_t phase)
{
	for (uint32_t i = 0; i < n_events; i++) {
		if (events[i].incident.kind == kind && events[i].incident.phase == phase)
			return &events[i];
	}
	return NULL;
}

uint32_t count(uint32_t kind, uint32_t phase)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_events; i++)
		n += events[i].incident.kind == kind &&
		     (!phase || events[i].incident.phase == phase);
	return n;
}

void step(void)
{
	struct pollfd poll_fd = {.fd = -1, .events = POLLIN};
	uint64_t due_ns = pmdp_watch_step(watch, on_event, NULL), now_ns = test_now_ns();
	int wait_ms = due_ns > now_ns ? (int)((due_ns - now_ns) / MS) + 1 : 0;

	poll_fd.fd = pmdp_watch_fd(watch);
	assert_true(wait_ms <= 1000);
	poll(&poll_fd, 1, wait_ms);
}

void run_for(uint32_t ms)
{
	uint64_t end_ns = test_now_ns() + ms * MS;

	while (test_now_ns() < end_ns)
		step();
}

void await_status(uint32_t status)
{
	uint64_t end_ns = test_now_ns() + PATIENCE_MS * MS;

	while (pmdp_watch_status(watch) != status) {
		if (test_now_ns() > end_ns)
			fail_msg("status %u instead of %u", pmdp_watch_status(watch), status);
		step();
	}
}

const struct pmdp_watch_event *await_event(uint32_t kind, uint32_t phase)
{
	uint64_t end_ns = test_now_ns() + PATIENCE_MS * MS;

	while (!watching_find(kind, phase)) {
		if (test_now_ns() > end_ns)
			fail_msg("no %s of %s", pmdp_phase_name(phase), pmdp_kind_name(kind));
		step();
	}
	return watching_find(kind, phase);
}

void new_watch(void)
{
	struct pmdp_watch_opts opts = {
		.rundir = test_dir_path(""),
		.limits = {.hold_ns = HOLD_NS},
	};

	n_events = 0;
	assert_int_equal(pmdp_watch_new(NAME, &opts, &watch), 0);
}

int watching_setup(void **state)
{
	if (test_dir_setup(state))
		return -1;
	new_watch();
	return 0;
}

int watching_teardown(void **state)
{
	test_publisher_kill(&pub);
	pub.is_foreign = false;
	pmdp_watch_free(watch);
	return test_dir_teardown(state);
}

void start(void)
{
	test_publisher_start(&pub, test_dir_path(""), NAME, INTERVAL_NS);
}

void start_and_attach(void)
{
	start();
	await_status(PMDP_WATCH_UP);
	run_for(250); // names are known
}
