// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The poster's queue: order, what goes when it is full, and that every loss is counted.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "test_dir.h"
#include "vs_config.h"
#include "vs_queue.h"

#define N_MAX 8

static struct vs_queue queue;
static uint64_t seq;

static int setup(void **state)
{
	(void)state;
	seq = 0;
	return vs_queue_init(&queue, N_MAX);
}

static int teardown(void **state)
{
	(void)state;
	vs_queue_fini(&queue);
	return 0;
}

static void push_domains(uint32_t phase, const char *id, uint32_t domains)
{
	struct vs_item item = {.domains = domains};

	pmdp_incident_init(&item.incident, "default", PMDP_KIND_PMD_STALL, phase);
	snprintf(item.incident.id, sizeof(item.incident.id), "%s", id);
	item.incident.seq = ++seq;
	vs_queue_push(&queue, &item);
}

static void push(uint32_t phase, const char *id)
{
	push_domains(phase, id, VS_FAULT);
}

// "R1 U1 C1" for raise, update and clear of incident 1, oldest first.
static void assert_holds(const char *expected)
{
	static const char letters[] = "?RUC";
	char found[256] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < queue.n; i++)
		used += (size_t)snprintf(found + used, sizeof(found) - used, "%s%c%s", i ? " " : "",
					 letters[queue.items[i]->incident.phase],
					 queue.items[i]->incident.id);
	assert_string_equal(found, expected);
}

static void test_order_is_kept(void **state)
{
	(void)state;
	push(PMDP_PHASE_RAISE, "1");
	push(PMDP_PHASE_UPDATE, "1");
	push(PMDP_PHASE_RAISE, "2");
	push(PMDP_PHASE_CLEAR, "1");
	assert_holds("R1 U1 R2 C1");
	vs_queue_done(&queue, VS_FAULT);
	assert_holds("U1 R2 C1");
	assert_int_equal(queue.n_lost, 0);
}

static void test_an_item_stays_until_all_its_domains_are_done(void **state)
{
	(void)state;
	push_domains(PMDP_PHASE_RAISE, "1", VS_FAULT | VS_STATE_CHANGE);
	vs_queue_done(&queue, VS_FAULT);
	assert_int_equal(queue.n, 1);
	assert_int_equal(queue.items[0]->domains, VS_STATE_CHANGE);
	vs_queue_done(&queue, VS_STATE_CHANGE);
	assert_int_equal(queue.n, 0);
}

static void test_full_drops_the_oldest_update(void **state)
{
	(void)state;
	push(PMDP_PHASE_RAISE, "1");
	push(PMDP_PHASE_UPDATE, "1");
	push(PMDP_PHASE_UPDATE, "1");
	for (int i = 0; i < 6; i++)
		push(PMDP_PHASE_RAISE, (const char[]){(char)('2' + i), 0});
	assert_holds("R1 U1 R2 R3 R4 R5 R6 R7");
	assert_int_equal(queue.n_lost, 1);
	assert_int_equal(queue.n_untold, 1);
}

static void test_full_drops_a_whole_incident_before_a_lone_clear(void **state)
{
	(void)state;
	push(PMDP_PHASE_CLEAR, "0"); // the collector knows its raise
	push(PMDP_PHASE_RAISE, "1");
	push(PMDP_PHASE_RAISE, "2");
	push(PMDP_PHASE_CLEAR, "2");
	push(PMDP_PHASE_RAISE, "3");
	push(PMDP_PHASE_RAISE, "4");
	push(PMDP_PHASE_RAISE, "5");
	push(PMDP_PHASE_RAISE, "6");
	push(PMDP_PHASE_RAISE, "7");
	assert_holds("C0 R1 R3 R4 R5 R6 R7");
	assert_int_equal(queue.n_lost, 2);
}

static void test_full_drops_the_oldest_at_last(void **state)
{
	(void)state;
	for (int i = 0; i < N_MAX + 3; i++)
		push(PMDP_PHASE_RAISE, (const char[]){(char)('a' + i), 0});
	assert_holds("Rd Re Rf Rg Rh Ri Rj Rk");
	assert_int_equal(queue.n_lost, 3);
}

static void test_what_is_on_its_way_stays(void **state)
{
	(void)state;
	push(PMDP_PHASE_UPDATE, "1");
	push(PMDP_PHASE_UPDATE, "2");
	queue.n_busy = 2;
	for (int i = 0; i < N_MAX; i++)
		push(PMDP_PHASE_RAISE, (const char[]){(char)('a' + i), 0});
	assert_holds("U1 U2 Rc Rd Re Rf Rg Rh");
	vs_queue_done(&queue, VS_FAULT);
	assert_int_equal(queue.n_busy, 1);
}

static void test_a_lost_item_counts_each_of_its_events(void **state)
{
	(void)state;
	push_domains(PMDP_PHASE_RAISE, "1", VS_FAULT | VS_STATE_CHANGE);
	for (int i = 0; i < N_MAX; i++)
		push(PMDP_PHASE_RAISE, (const char[]){(char)('a' + i), 0});
	assert_int_equal(queue.n_lost, 2);
	vs_queue_lost(&queue, 0, 5);
	assert_int_equal(queue.n_lost, 7);
	assert_int_equal(queue.n_untold, 7);
}

static void test_first_seq(void **state)
{
	struct vs_item own = {.domains = VS_FAULT, .is_own = true, .source = 1};
	struct vs_item other = {.domains = VS_FAULT, .source = 1};

	(void)state;
	push(PMDP_PHASE_RAISE, "1");
	own.incident.seq = 77;
	vs_queue_push(&queue, &own);
	assert_int_equal(vs_queue_first_seq(&queue, 0, 9), 1);
	assert_int_equal(vs_queue_first_seq(&queue, 1, 9), 9);
	other.incident.seq = 5;
	vs_queue_push(&queue, &other);
	assert_int_equal(vs_queue_first_seq(&queue, 1, 9), 5);
}

// What a later start will read, or miss, by itself is not for it to tell.
static void test_losses_behind_what_waits(void **state)
{
	(void)state;
	push(PMDP_PHASE_RAISE, "0");
	push(PMDP_PHASE_UPDATE, "0");
	push(PMDP_PHASE_UPDATE, "0");
	for (int i = 0; i < N_MAX - 1; i++) // both updates go, which are behind the first
		push(PMDP_PHASE_RAISE, (const char[]){(char)('a' + i), 0});
	assert_int_equal(queue.n_untold, 2);
	assert_int_equal(vs_queue_untold_before(&queue), 0);
	vs_queue_lost(&queue, 0, 10); // overwritten in the ring, behind all of them
	vs_queue_lost(&queue, 7, 3);  // of a source that has nothing here
	assert_int_equal(vs_queue_untold_before(&queue), 3);
	vs_queue_done(&queue, VS_FAULT); // the first is taken: what lies behind it is lost for good
	assert_int_equal(vs_queue_untold_before(&queue), 3 + 2);
	for (int i = 0; i < 2; i++) // the first of the source goes: nothing is before it any more
		push(PMDP_PHASE_RAISE, (const char[]){(char)('p' + i), 0});
	assert_int_equal(queue.n_untold, 16);
	assert_int_equal(vs_queue_untold_before(&queue), 16 - 10);
	vs_queue_refused(&queue, VS_FAULT);
	assert_int_equal(vs_queue_untold_before(&queue), 17 - 10);
}

// Random pushes, posts and outcomes: what went in is in, out or counted, and in order.
static void test_nothing_is_lost_uncounted(void **state)
{
	uint64_t random = test_seed("nothing_is_lost_uncounted"), n_pushed = 0, n_out = 0;

	(void)state;
	for (int turn = 0; turn < 20000; turn++) {
		uint64_t dice = test_random(&random);
		uint64_t last = 0;

		if (dice % 3) {
			push((uint32_t)(1 + dice / 3 % 3),
			     (const char[]){(char)('a' + dice / 9 % 5), 0});
			n_pushed++;
		} else if (queue.n) {
			queue.n_busy = 1 + (uint32_t)(dice / 3 % queue.n);
			push(PMDP_PHASE_UPDATE, "z"); // while they are on their way
			n_pushed++;
			while (queue.n_busy) {
				n_out += dice / 64 % 2;
				if (dice / 64 % 2)
					vs_queue_done(&queue, VS_FAULT);
				else
					queue.n_busy = 0;
			}
		}
		for (uint32_t i = 0; i < queue.n; i++) {
			assert_true(queue.items[i]->incident.seq > last);
			last = queue.items[i]->incident.seq;
		}
		assert_int_equal(n_pushed, n_out + queue.n + queue.n_lost);
		assert_true(queue.n <= N_MAX);
	}
	assert_true(queue.n_lost > 100 && n_out > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_an_item_stays_until_all_its_domains_are_done,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_drops_the_oldest_update, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_full_drops_a_whole_incident_before_a_lone_clear, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_drops_the_oldest_at_last, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_what_is_on_its_way_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_lost_item_counts_each_of_its_events, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_first_seq, setup, teardown),
		cmocka_unit_test_setup_teardown(test_losses_behind_what_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_is_lost_uncounted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
