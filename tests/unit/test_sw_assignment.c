// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Who polls what, over random sets of ports and PMDs that come and go.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "sw_plan_build.h"
#include "sw_switch.h"

#define N_ROUNDS 400
#define N_PORTS 12
#define N_PMDS 6

static uint32_t seed;
static struct sw_switch sw;

static uint32_t dice(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return (seed >> 3) % n;
}

static void add_port(uint16_t index, uint16_t n_rxq)
{
	struct sw_port *port = calloc(1, sizeof(*port));

	port->index = index;
	port->n_rxq = n_rxq;
	port->state = SW_PORT_ACTIVE;
	sw.ports.slots[index] = port;
}

static void add_pmd(uint16_t index, int core)
{
	struct sw_pmd *pmd = aligned_alloc(128, sizeof(*pmd));

	memset(pmd, 0, sizeof(*pmd));
	pmd->index = index;
	pmd->core = core;
	pmd->is_known = true;
	sw.pmds.slots[index] = pmd;
}

static int clear(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < SW_MAX_PORTS; i++)
		free(sw.ports.slots[i]);
	for (uint32_t i = 0; i < SW_MAX_PMDS; i++)
		free(sw.pmds.slots[i]);
	memset(&sw, 0, sizeof(sw));
	return 0;
}

static bool is_usable(uint16_t pmd)
{
	return pmd < SW_MAX_PMDS && sw.pmds.slots[pmd] != NULL && sw.pmds.slots[pmd]->is_known &&
	       !sw.pmds.slots[pmd]->is_leaving;
}

static uint32_t n_usable(void)
{
	uint32_t n = 0;

	for (uint16_t i = 0; i < SW_MAX_PMDS; i++)
		n += is_usable(i);
	return n;
}

// Every queue of an active port has a usable PMD, and no other queue has one.
static void check_complete(const struct sw_assignment *a)
{
	for (uint32_t p = 0; p < SW_MAX_PORTS; p++) {
		const struct sw_port *port = sw.ports.slots[p];

		for (uint32_t q = 0; q < SW_MAX_RXQ; q++) {
			bool is_due = port != NULL && port->state == SW_PORT_ACTIVE &&
				      q < port->n_rxq && n_usable() > 0;

			assert_int_equal(is_due, a->pmd[p][q] != SW_NO_PMD);
			if (is_due)
				assert_true(is_usable(a->pmd[p][q]));
		}
	}
}

static void check_balanced(const struct sw_assignment *a)
{
	uint32_t n[SW_MAX_PMDS] = {0};
	uint32_t most = 0;
	uint32_t least = UINT32_MAX;

	for (uint32_t p = 0; p < SW_MAX_PORTS; p++)
		for (uint32_t q = 0; q < SW_MAX_RXQ; q++)
			if (a->pmd[p][q] != SW_NO_PMD)
				n[a->pmd[p][q]]++;
	for (uint16_t i = 0; i < SW_MAX_PMDS; i++) {
		if (!is_usable(i))
			continue;
		most = n[i] > most ? n[i] : most;
		least = n[i] < least ? n[i] : least;
	}
	if (n_usable() > 0)
		assert_in_range(most - least, 0, 1);
}

static void change_something(void)
{
	uint16_t p = (uint16_t)dice(N_PORTS);
	uint16_t m = (uint16_t)dice(N_PMDS);

	if (sw.ports.slots[p] == NULL) {
		add_port(p, (uint16_t)(1 + dice(4)));
	} else if (dice(2) != 0) {
		sw.ports.slots[p]->state = SW_PORT_REMOVING;
	} else {
		free(sw.ports.slots[p]);
		sw.ports.slots[p] = NULL;
	}
	if (dice(3) != 0)
		return;
	if (sw.pmds.slots[m] == NULL)
		add_pmd(m, (int)dice(64));
	else if (dice(2) != 0)
		sw.pmds.slots[m]->is_leaving = !sw.pmds.slots[m]->is_leaving;
	else
		sw.pmds.slots[m]->is_known = !sw.pmds.slots[m]->is_known;
}

static void test_random_changes(void **state)
{
	static struct sw_assignment current, wanted, step, fresh;

	(void)state;
	sw_assignment_clear(&current);
	for (uint32_t round = 0; round < N_ROUNDS; round++) {
		bool is_last = false;
		uint32_t n_steps = 0;

		change_something();
		sw_assignment_make(&sw, &current, true, &fresh);
		check_complete(&fresh);
		check_balanced(&fresh);
		while (!is_last) {
			assert_true(n_steps++ < 2);
			sw_assignment_make(&sw, &current, false, &wanted);
			check_complete(&wanted);
			is_last = sw_assignment_step(&current, &wanted, &step);
			for (uint32_t p = 0; p < SW_MAX_PORTS; p++)
				for (uint32_t q = 0; q < SW_MAX_RXQ; q++)
					// From hand to hand only by way of nobody.
					assert_true(current.pmd[p][q] == SW_NO_PMD ||
						    step.pmd[p][q] == SW_NO_PMD ||
						    step.pmd[p][q] == current.pmd[p][q]);
			current = step;
		}
		assert_memory_equal(&current, &wanted, sizeof(current));
	}
}

static void test_new_port_moves_nobody(void **state)
{
	static struct sw_assignment before, after;

	(void)state;
	add_pmd(0, 1);
	add_pmd(1, 2);
	add_port(0, 2);
	add_port(1, 1);
	sw_assignment_clear(&after);
	sw_assignment_make(&sw, &after, false, &before);
	assert_int_equal(before.pmd[0][0], 0); // the lowest core first
	assert_int_equal(before.pmd[0][1], 1);
	add_port(2, 3);
	sw_assignment_make(&sw, &before, false, &after);
	assert_memory_equal(before.pmd[0], after.pmd[0], sizeof(before.pmd[0]));
	assert_memory_equal(before.pmd[1], after.pmd[1], sizeof(before.pmd[1]));
	check_complete(&after);
	check_balanced(&after);
}

static void test_no_pmd_no_poll(void **state)
{
	static struct sw_assignment none, wanted;

	(void)state;
	add_port(3, 4);
	sw_assignment_clear(&none);
	sw_assignment_make(&sw, &none, true, &wanted);
	assert_memory_equal(&none, &wanted, sizeof(none));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_random_changes, clear),
		cmocka_unit_test_teardown(test_new_port_moves_nobody, clear),
		cmocka_unit_test_teardown(test_no_pmd_no_poll, clear),
	};
	const char *given = getenv("SEED");

	seed = given != NULL ? (uint32_t)strtoul(given, NULL, 10) : (uint32_t)time(NULL) | 1;
	printf("SEED=%u\n", seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
