// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// When the relay wants to be called again: events are polled for only where nobody tells of them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cp_config.h"
#include "cp_log.h"
#include "cp_notify.h"
#include "cp_relay.h"
#include "pmdp_clock.h"
#include "pmdp_incident.h"
#include "test_dir.h"

#define POLL_NS UINT64_C(2000000)
#define TICK_NS UINT64_C(50000000)

// Stand-ins for the parts that need collectd.
struct cp_config cp_config;

void cp_log(int level, const char *format, ...)
{
	(void)level;
	(void)format;
}

void cp_notify_submit(struct cp_instance *instance, const struct pmdp_incident *incident)
{
	(void)instance;
	(void)incident;
}

static struct cp_instance instance = {.name = "unit"};
static struct pmdp_incident_log *log_;
static struct cp_relay *relay;

static int setup(void **state)
{
	struct pmdp_incident_log_opts opts = {.rundir = test_dir_make()};

	(void)state;
	cp_config.rundir = (char *)opts.rundir;
	relay = cp_relay_new(&instance, pmdp_mono_now_ns());
	if (relay == NULL || pmdp_incident_log_open("unit", &opts, &log_, NULL) != 0)
		return -1;
	pmdp_incident_log_alive(log_);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cp_relay_free(relay);
	pmdp_incident_log_close(log_);
	test_dir_remove();
	return 0;
}

// Once to do what is due, once more for what that made due.
static uint64_t step(uint64_t *out_now)
{
	cp_relay_step(relay, pmdp_mono_now_ns());
	*out_now = pmdp_mono_now_ns();
	return cp_relay_step(relay, *out_now);
}

static void test_polls_only_while_nobody_tells(void **state)
{
	uint64_t now, due;

	(void)state;
	due = step(&now);
	assert_int_equal(atomic_load(&instance.numbers.is_relaying), 1);
	assert_true(due <= now + POLL_NS);
	cp_relay_set_touch_told(relay, true); // the folder was not there at first
	due = step(&now);
	assert_int_equal(due % TICK_NS, 0);
	cp_relay_set_touch_told(relay, true); // said at each step
	due = step(&now);
	assert_int_equal(due % TICK_NS, 0);
	cp_relay_set_touch_told(relay, false); // the folder is gone, and so is the watch on it
	due = step(&now);
	assert_true(due <= now + POLL_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_polls_only_while_nobody_tells, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
