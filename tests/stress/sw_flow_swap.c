// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Rules added, replaced, modified and deleted under threads that translate without pause: every
// packet is counted by the rule that stays, no snapshot is freed under a reader (the address
// sanitizer watches), and all is freed in the end. Bounded by time and a least number of changes.
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_rcu_qsbr.h>

#include "sw_flow.h"
#include "sw_flow_table.h"
#include "test_dir.h"

#define N_THREADS 2
#define BURST 32
#define RUN_NS UINT64_C(1500000000)

static struct sw_flow_table *table;
static struct rte_rcu_qsbr *qsbr;
static _Atomic int is_over;

struct pmd {
	pthread_t thread;
	unsigned int index;
	struct sw_flow_stats *stats;
	uint64_t n_packets;
};

static void count(struct pmd *pmd, const struct sw_xlate *result)
{
	for (uint32_t i = 0; i < result->n_slots; i++) {
		struct sw_flow_count *to = &pmd->stats->rules[result->slots[i]];

		atomic_fetch_add_explicit(&to->packets, BURST, memory_order_relaxed);
		atomic_fetch_add_explicit(&to->bytes, BURST * 60, memory_order_relaxed);
	}
}

// As a PMD without a megaflow: what it translates, it counts at once.
static void *pmd_main(void *arg)
{
	struct pmd *pmd = arg;
	struct sw_key stays = {.in_port = 1}, changes = {.in_port = 2};
	struct sw_xlate result;

	rte_rcu_qsbr_thread_online(qsbr, pmd->index);
	while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
		const struct sw_tables *tables = sw_tables_get(sw_flow_table_ref(table));

		// Port 1 has a rule that stays; port 2's come and go, in both tables.
		sw_xlate(tables, &stays, &result);
		if (result.n_acts != 1 || result.acts[0].port != 9)
			abort();
		count(pmd, &result);
		sw_xlate(tables, &changes, &result);
		if (result.n_acts > 1 || (result.n_acts && result.acts[0].port != 3))
			abort();
		count(pmd, &result);
		pmd->n_packets += BURST;
		// O1, release: what was counted for older rules is counted.
		atomic_store_explicit(&pmd->stats->oldest_generation, sw_tables_generation(tables),
				      memory_order_release);
		rte_rcu_qsbr_quiescent(qsbr, pmd->index);
	}
	atomic_store_explicit(&pmd->stats->oldest_generation, UINT64_MAX, memory_order_release);
	rte_rcu_qsbr_thread_offline(qsbr, pmd->index);
	return NULL;
}

static struct sw_rule rule_of(const char *text)
{
	struct sw_rule rule;
	struct sw_error err;

	if (sw_rule_parse(NULL, text, &rule, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	return rule;
}

// The rule that stays, said in two ways that do the same.
static const char *const stays_text[] = {"in_port=1,dl_vlan=0xffff,actions=output:9",
					 "in_port=1,dl_vlan=0xffff,actions=note:01,output:9"};
static unsigned int stays_now;

static int modify(struct sw_error *err)
{
	struct sw_flow_mod mod;
	int rc;

	assert_int_equal(sw_flow_mod_parse(NULL, stays_text[!stays_now], false, &mod, err), 0);
	rc = sw_flow_modify(table, &mod, err);
	sw_flow_mod_free(&mod);
	if (rc >= 0)
		stays_now = !stays_now;
	return rc;
}

static void change(uint64_t *seed)
{
	struct sw_rule rules[3] = {rule_of(stays_text[stays_now]),
				   rule_of("in_port=2,actions=resubmit(,1)"),
				   rule_of("table=1,in_port=2,dl_vlan=0xffff,actions=output:3")};
	struct sw_flow_filter filter;
	struct sw_error err;
	int rc;

	assert_int_equal(sw_flow_filter_parse(NULL, "in_port=2", false, &filter, &err), 0);
	rules[2].priority = (uint16_t)(test_random(seed) % 50);
	switch (test_random(seed) % 5) {
	case 0:
		rc = sw_flow_delete(table, &filter, &err);
		break;
	case 1:
		rc = sw_flow_replace(table, rules, 3, &err);
		break;
	case 2:
		rc = modify(&err);
		break;
	default:
		rc = sw_flow_add(table, &rules[1], 2, &err);
		break;
	}
	// A reader that was not scheduled for a while holds things up: refused with a reason.
	if (rc < 0 && rc != -EBUSY && rc != -ENOSPC)
		fail_msg("%s", err.text);
	for (unsigned int i = 0; i < 3; i++)
		sw_rule_free(&rules[i]);
	sw_flow_reap(table);
}

static void test_flow_swap_loses_no_count(void **state)
{
	uint64_t seed = test_seed("sw_flow_swap"), end_ns, n_packets = 0, n_changes = 0;
	struct sw_rule stays = rule_of(stays_text[0]);
	struct pmd pmds[N_THREADS] = {0};
	struct sw_flow_info info;
	struct sw_error err;

	(void)state;
	qsbr = aligned_alloc(RTE_CACHE_LINE_SIZE, rte_rcu_qsbr_get_memsize(N_THREADS));
	assert_int_equal(rte_rcu_qsbr_init(qsbr, N_THREADS), 0);
	table = sw_flow_table_create(qsbr);
	assert_int_equal(sw_flow_add(table, &stays, 1, &err), 0);
	for (unsigned int i = 0; i < N_THREADS; i++) {
		pmds[i].index = i;
		pmds[i].stats = sw_flow_stats_attach(table);
		rte_rcu_qsbr_thread_register(qsbr, i);
		assert_int_equal(pthread_create(&pmds[i].thread, NULL, pmd_main, &pmds[i]), 0);
	}
	for (end_ns = test_now_ns() + RUN_NS; test_now_ns() < end_ns || n_changes < 500;
	     n_changes++)
		change(&seed);
	atomic_store_explicit(&is_over, 1, memory_order_relaxed);
	for (unsigned int i = 0; i < N_THREADS; i++) {
		pthread_join(pmds[i].thread, NULL);
		n_packets += pmds[i].n_packets;
		if (i == 0) // counted by a thread that has ended, or by one that has not
			sw_flow_stats_detach(table, pmds[i].stats);
	}
	sw_flow_get(table, 0, &info);
	assert_int_equal(info.rule->value.in_port, 1);
	assert_int_equal(info.n_packets, n_packets);
	assert_int_equal(info.n_bytes, n_packets * 60);
	sw_flow_reap(table);
	assert_int_equal(table->n_leftovers, 0);
	assert_int_equal(table->n_waiting, 0);
	assert_int_equal(table->n_free_slots + table->n_entries, SW_FLOW_MAX_SLOTS);
	sw_rule_free(&stays);
	print_message("%llu changes under %llu packets\n", (unsigned long long)n_changes,
		      (unsigned long long)n_packets);
	sw_flow_table_destroy(table);
	free(qsbr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flow_swap_loses_no_count),
	};

	return cmocka_run_group_tests_name("sw_flow_swap", tests, NULL, NULL);
}
