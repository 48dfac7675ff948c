// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The queue before a slow receiver: bounded, every loss counted, closed within its drain time.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cp_queue.h"

static struct cp_instance instance;

static bool push(struct cp_queue *queue, uint64_t seq, uint32_t phase)
{
	struct cp_item item = {.instance = &instance};

	item.incident.seq = seq;
	item.incident.phase = phase;
	return cp_queue_push(queue, &item);
}

static uint64_t n_lost(void)
{
	return atomic_load(&instance.numbers.n_lost);
}

static uint64_t n_queued(void)
{
	return atomic_load(&instance.numbers.n_queued);
}

static int setup(void **state)
{
	memset(&instance, 0, sizeof(instance));
	*state = cp_queue_new(4);
	return *state == NULL;
}

static int teardown(void **state)
{
	cp_queue_free(*state);
	return 0;
}

static void expect_seq(struct cp_queue *queue, uint64_t seq)
{
	struct cp_item item;

	assert_true(cp_queue_pop(queue, &item));
	assert_int_equal(item.incident.seq, seq);
}

static void test_order_over_the_wrap(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < 5; round++) {
		for (uint64_t i = 0; i < 3; i++)
			assert_true(push(*state, round * 3 + i, PMDP_PHASE_RAISE));
		for (uint64_t i = 0; i < 3; i++)
			expect_seq(*state, round * 3 + i);
	}
	assert_int_equal(n_lost(), 0);
	assert_int_equal(n_queued(), 0);
}

static void test_full_gives_up_the_oldest_update(void **state)
{
	push(*state, 1, PMDP_PHASE_RAISE);
	push(*state, 2, PMDP_PHASE_UPDATE);
	push(*state, 3, PMDP_PHASE_UPDATE);
	push(*state, 4, PMDP_PHASE_RAISE);
	assert_true(push(*state, 5, PMDP_PHASE_CLEAR));
	assert_int_equal(n_lost(), 1);
	assert_int_equal(n_queued(), 4);
	expect_seq(*state, 1);
	expect_seq(*state, 3);
	expect_seq(*state, 4);
	expect_seq(*state, 5);
}

static void test_full_of_raises_refuses_the_newcomer(void **state)
{
	for (uint64_t i = 1; i <= 4; i++)
		assert_true(push(*state, i, PMDP_PHASE_RAISE));
	assert_false(push(*state, 5, PMDP_PHASE_CLEAR));
	assert_int_equal(n_lost(), 1);
	for (uint64_t i = 1; i <= 4; i++)
		expect_seq(*state, i);
	assert_int_equal(n_queued(), 0);
}

static void test_close_drains_then_ends(void **state)
{
	struct cp_item item;

	push(*state, 1, PMDP_PHASE_RAISE);
	cp_queue_close(*state, UINT64_C(60000000000));
	assert_false(push(*state, 2, PMDP_PHASE_RAISE));
	expect_seq(*state, 1);
	assert_false(cp_queue_pop(*state, &item));
	assert_int_equal(n_lost(), 1);
}

static void test_close_without_time_counts_the_rest(void **state)
{
	struct cp_item item;

	push(*state, 1, PMDP_PHASE_RAISE);
	push(*state, 2, PMDP_PHASE_RAISE);
	cp_queue_close(*state, 0);
	assert_false(cp_queue_pop(*state, &item));
	assert_int_equal(n_lost(), 2);
	assert_int_equal(n_queued(), 0);
}

static void *pop_once(void *queue)
{
	struct cp_item item;

	return cp_queue_pop(queue, &item) ? queue : NULL;
}

static void test_close_wakes_a_waiter(void **state)
{
	pthread_t thread;
	void *result = *state;

	assert_int_equal(pthread_create(&thread, NULL, pop_once, *state), 0);
	cp_queue_close(*state, 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_null(result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order_over_the_wrap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_gives_up_the_oldest_update, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_full_of_raises_refuses_the_newcomer, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_close_drains_then_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_close_without_time_counts_the_rest, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_close_wakes_a_waiter, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
