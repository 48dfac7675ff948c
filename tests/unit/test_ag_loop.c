// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

#include "ag_loop.h"
#include "pmdp_clock.h"

#define NS_PER_MS UINT64_C(1000000)

struct fixture {
	struct ag_loop loop;
	struct ag_timer a, b, end;
	int n_a, n_b;
	uint64_t a_ns, b_ns;
	struct ag_source source;
	int pipe[2];
	int n_source;
};

static struct fixture f;

static void on_a(void *ctx, uint64_t now_ns)
{
	(void)ctx;
	f.n_a++;
	f.a_ns = now_ns;
}

static void on_b(void *ctx, uint64_t now_ns)
{
	(void)ctx;
	f.n_b++;
	f.b_ns = now_ns;
}

static void on_end(void *ctx, uint64_t now_ns)
{
	(void)ctx;
	(void)now_ns;
	f.loop.is_stopping = true;
}

static int setup(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	assert_int_equal(ag_loop_init(&f.loop), 0);
	assert_int_equal(pipe(f.pipe), 0);
	f.a = (struct ag_timer){.fn = on_a};
	f.b = (struct ag_timer){.fn = on_b};
	f.end = (struct ag_timer){.fn = on_end};
	ag_loop_add_timer(&f.loop, &f.a);
	ag_loop_add_timer(&f.loop, &f.b);
	ag_loop_add_timer(&f.loop, &f.end);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ag_loop_fini(&f.loop);
	close(f.pipe[0]);
	close(f.pipe[1]);
	return 0;
}

static uint64_t run_for(uint64_t ms)
{
	uint64_t begin_ns = pmdp_mono_now_ns();

	f.loop.is_stopping = false;
	f.end.due_ns = begin_ns + ms * NS_PER_MS;
	assert_int_equal(ag_loop_run(&f.loop), 0);
	return begin_ns;
}

static void test_loop_timer_fires_once_and_not_early(void **state)
{
	uint64_t due_ns = pmdp_mono_now_ns() + 10 * NS_PER_MS;

	(void)state;
	f.a.due_ns = due_ns;
	run_for(30);
	assert_int_equal(f.n_a, 1);
	assert_true(f.a_ns >= due_ns);
	assert_int_equal(f.n_b, 0); // due 0 is off
	assert_int_equal(f.loop.n_wakes, 2);
}

static void test_loop_due_in_the_past_fires_at_once(void **state)
{
	(void)state;
	f.a.due_ns = 1;
	run_for(5);
	assert_int_equal(f.n_a, 1);
}

// Slack: done with the other timer's wake, without one of its own; alone, at the end of its slack.
static void test_loop_slack_joins_another_wake(void **state)
{
	uint64_t now_ns = pmdp_mono_now_ns();

	(void)state;
	f.a.due_ns = now_ns + 5 * NS_PER_MS;
	f.a.slack_ns = 1000 * NS_PER_MS;
	f.b.due_ns = now_ns + 20 * NS_PER_MS;
	run_for(40);
	assert_int_equal(f.n_a, 1);
	assert_true(f.a_ns >= now_ns + 20 * NS_PER_MS);
	assert_int_equal(f.loop.n_wakes, 2);
}

static void test_loop_slack_is_bounded(void **state)
{
	uint64_t now_ns = pmdp_mono_now_ns();

	(void)state;
	f.a.due_ns = now_ns + 5 * NS_PER_MS;
	f.a.slack_ns = 10 * NS_PER_MS;
	run_for(40);
	assert_int_equal(f.n_a, 1);
	assert_true(f.a_ns >= now_ns + 15 * NS_PER_MS);
}

static void on_always_due(void *ctx, uint64_t now_ns)
{
	(void)ctx;
	(void)now_ns;
	f.n_a++;
	f.a.due_ns = 1;
}

static void on_readable(void *ctx, uint32_t events)
{
	(void)ctx;
	(void)events;
	f.n_source++;
	ag_loop_remove(&f.loop, &f.source);
	f.loop.is_stopping = true;
}

// A timer that is due again at once does not keep descriptors from being served.
static void test_loop_busy_timer_does_not_starve_sources(void **state)
{
	(void)state;
	f.a = (struct ag_timer){.fn = on_always_due, .due_ns = 1, .next = f.a.next};
	f.source = (struct ag_source){.fd = f.pipe[0], .fn = on_readable};
	assert_int_equal(ag_loop_add(&f.loop, &f.source, EPOLLIN), 0);
	assert_int_equal(write(f.pipe[1], "x", 1), 1);
	run_for(10000);
	assert_int_equal(f.n_source, 1);
	assert_true(f.n_a >= 1);
	assert_true(f.end.due_ns != 0); // the deadline was not what ended it
}

static void on_remove_self(void *ctx, uint64_t now_ns)
{
	(void)ctx;
	(void)now_ns;
	f.n_a++;
	ag_loop_remove_timer(&f.loop, &f.a);
	ag_loop_remove_timer(&f.loop, &f.b);
}

static void test_loop_timer_may_remove_timers(void **state)
{
	(void)state;
	f.b.due_ns = f.a.due_ns = pmdp_mono_now_ns() + 5 * NS_PER_MS;
	f.a.fn = f.b.fn = on_remove_self;
	run_for(20);
	assert_int_equal(f.n_a, 1);
}

static void test_loop_refuses_regular_files(void **state)
{
	struct ag_source source = {.fd = -1, .fn = on_readable};
	char path[] = "/tmp/pmdpulse-loop-XXXXXX";

	(void)state;
	source.fd = mkstemp(path);
	assert_int_equal(ag_loop_add(&f.loop, &source, EPOLLOUT), -EPERM);
	close(source.fd);
	unlink(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_loop_timer_fires_once_and_not_early),
		TEST(test_loop_due_in_the_past_fires_at_once),
		TEST(test_loop_slack_joins_another_wake),
		TEST(test_loop_slack_is_bounded),
		TEST(test_loop_busy_timer_does_not_starve_sources),
		TEST(test_loop_timer_may_remove_timers),
		TEST(test_loop_refuses_regular_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
