// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The pipeline over fake devices: which packet is a hit of what, exactly, and what becomes of flows
// when rules change, idle and end.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "sw_impl.h"
#include "sw_pipe.h"
#include "tests/unit/sw_bed.h"

static const char *const udp_rule[] = {
	"in_port=1,ip,nw_dst=20.0.0.0/24,udp,tp_dst=63,actions=output:2", NULL};

static void emc(uint32_t inv_prob)
{
	for (uint32_t i = 0; i < BED_DEVICES; i++)
		bed.run.plan->rxqs[i].emc_inv_prob = inv_prob;
}

struct expected {
	uint64_t emc, smc, mega, misses;
};

static void expect(struct expected e)
{
	assert_int_equal(bed.n[PMDP_C_EMC_HITS], e.emc);
	assert_int_equal(bed.n[PMDP_C_SMC_HITS], e.smc);
	assert_int_equal(bed.n[PMDP_C_MEGAFLOW_HITS], e.mega);
	assert_int_equal(bed.n[PMDP_C_MISSES], e.misses);
}

static void test_twenty_equal_packets_emc(void **state)
{
	(void)state;
	bed_add_flows(udp_rule);
	emc(1);
	bed_send_udp(0, 1, 20);
	expect((struct expected){.emc = 19, .misses = 1});
	sw_sweep(&bed.run);
	assert_int_equal(bed.n[PMDP_C_EMC_ENTRIES], 1);
	assert_int_equal(bed.n_sent[1], 20);
	assert_int_equal(bed_rule_packets("in_port=1"), 20);
}

static void test_twenty_equal_packets_one_by_one(void **state)
{
	(void)state;
	bed_add_flows(udp_rule);
	emc(1);
	for (uint32_t i = 0; i < 20; i++) {
		bed_send_udp(0, 1, 1);
	}
	expect((struct expected){.emc = 19, .misses = 1});
}

static void test_twenty_equal_packets_smc(void **state)
{
	(void)state;
	bed_add_flows(udp_rule);
	bed.run.plan->smc = sw_pipe_smc(bed.run.pipe);
	assert_non_null(bed.run.plan->smc);
	bed_send_udp(0, 1, 10);
	bed_send_udp(0, 1, 10);
	expect((struct expected){.smc = 19, .misses = 1});
	sw_sweep(&bed.run);
	assert_int_equal(bed.n[PMDP_C_SMC_ENTRIES], 1);
}

static void test_twenty_equal_packets_megaflow(void **state)
{
	(void)state;
	bed_add_flows(udp_rule);
	bed_send_udp(0, 1, 10);
	bed_send_udp(0, 1, 10);
	expect((struct expected){.mega = 19, .misses = 1});
	assert_int_equal(bed.n[PMDP_C_RUN_HITS], 9); // the second burst's, after its first packet
	sw_sweep(&bed.run);
	assert_int_equal(bed.n[PMDP_C_MEGAFLOWS], 1);
	assert_int_equal(bed.n[PMDP_C_SHAPES], 1);
}

// All three: the first that knows it counts.
static void test_all_caches(void **state)
{
	(void)state;
	bed_add_flows(udp_rule);
	emc(1);
	bed.run.plan->smc = sw_pipe_smc(bed.run.pipe);
	for (uint32_t i = 0; i < 100; i++)
		bed_send_udp(0, i, 1);
	expect((struct expected){.mega = 99, .misses = 1});
	for (uint32_t i = 0; i < 100; i++)
		bed_send_udp(0, i, 1);
	assert_int_equal(bed.n[PMDP_C_MISSES], 1);
	assert_int_equal(bed.n[PMDP_C_EMC_HITS], 100);
	emc(0);
	for (uint32_t i = 0; i < 100; i++)
		bed_send_udp(0, i, 1);
	assert_int_equal(bed.n[PMDP_C_SMC_HITS], 100);
}

static void test_bypass_of_a_port_with_one_mask(void **state)
{
	(void)state;
	bed_add_flows(udp_rule);
	emc(100);
	bed.run.plan->rxqs[0].is_bypass = true;
	for (uint32_t i = 0; i < 10; i++) {
		bed_send_udp(0, 1, 32);
	}
	expect((struct expected){.mega = 319, .misses = 1});
	sw_sweep(&bed.run);
	assert_int_equal(bed.n[PMDP_C_EMC_ENTRIES], 0);
}

// What the documentation says of cache-bypass: each key into the EMC, or the SMC, is asked for.
static void test_bypass_is_overridden(void **state)
{
	(void)state;
	bed_add_flows(udp_rule);
	bed.run.plan->rxqs[0].is_bypass = true;
	emc(1);
	bed_send_udp(0, 1, 1);
	bed_send_udp(0, 1, 1);
	expect((struct expected){.emc = 1, .misses = 1});
	emc(100);
	bed.run.plan->smc = sw_pipe_smc(bed.run.pipe);
	bed_send_udp(0, 2, 1);
	bed_send_udp(0, 2, 1);
	expect((struct expected){.emc = 1, .smc = 1, .mega = 1, .misses = 1});
}

static void test_emc_takes_its_share(void **state)
{
	(void)state;
	bed_add_flows(udp_rule);
	emc(10);
	for (uint32_t i = 0; i < 4000; i++) {
		bed_give_udp(0, i, 1);
		if (i % 32 == 31)
			bed_poll();
	}
	sw_sweep(&bed.run);
	assert_in_range(bed.n[PMDP_C_EMC_ENTRIES], 300, 500); // 400 on average
}

static void test_port_whose_rules_look_at_nothing(void **state)
{
	static const char *const rules[] = {"in_port=1,actions=output:2", NULL};
	uint8_t runt[13] = {0};

	(void)state;
	bed_add_flows(rules);
	bed.run.plan->rxqs[0].is_bypass = true;
	emc(100);
	for (uint32_t i = 0; i < 10; i++)
		bed_send_udp(0, i, 1);
	bed_give_udp(0, 1, 1);
	bed_give(0, runt, sizeof(runt));
	bed_send_udp(0, 1, 1);
	expect((struct expected){.mega = 11, .misses = 1});
	assert_int_equal(bed.n[PMDP_C_DROP0 + PMDP_DROP_MALFORMED], 1);
	assert_int_equal(bed.n_sent[1], 12);
}

static void test_flow_mark(void **state)
{
	struct bed_frame frame = bed_udp(1, 1000);
	struct sw_pipe *pipe = bed.run.pipe;

	(void)state;
	bed_add_flows(udp_rule);
	emc(1);
	bed_send_udp(0, 1, 1);
	// As control does when a device has taken a rule.
	atomic_store(&pipe->marks[7], (uint64_t)pipe->mega.flows[0].id << 32);
	atomic_store(&pipe->n_marks, 1);
	for (uint32_t i = 0; i < 20; i++)
		bed_give_marked(0, frame.bytes, frame.len, 7);
	bed_poll();
	assert_int_equal(bed.n[PMDP_C_PHWOL_HITS], 20);
	expect((struct expected){.misses = 1});
	// Marked ones among others, one of them with a mark that means nothing.
	bed_give_marked(0, frame.bytes, frame.len, 7);
	bed_give_udp(0, 1, 1);
	bed_give_marked(0, frame.bytes, frame.len, 9);
	bed_give_marked(0, frame.bytes, frame.len, 7);
	bed_poll();
	assert_int_equal(bed.n[PMDP_C_PHWOL_HITS], 22);
	expect((struct expected){.emc = 2, .misses = 1});
	// The mark of a flow that has died is worth nothing.
	bed_clear_flows();
	bed_give_marked(0, frame.bytes, frame.len, 7);
	bed_poll();
	assert_int_equal(bed.n[PMDP_C_PHWOL_HITS], 22);
	assert_int_equal(bed.n[PMDP_C_DROP0 + PMDP_DROP_NO_RULE], 1);
	assert_int_equal(bed.n[PMDP_C_MISSES], 2);
}

// The hash by which the EMC knows the one key that it has.
static uint32_t only_emc_hash(void)
{
	const struct sw_emc *cache = bed.run.pipe->emc;
	uint32_t n = 0, hash = 0;

	for (uint32_t i = 0; i < SW_EMC_ENTRIES; i++) {
		if (cache->tags[i].id == 0)
			continue;
		hash = cache->tags[i].hash;
		n++;
	}
	assert_int_equal(n, 1);
	return hash;
}

// Another flow in the place of the one before.
static uint32_t emc_hash_of(bool is_hashed, uint32_t rss, uint32_t source)
{
	struct bed_frame frame = bed_udp(source, 1000);

	sw_pipe_flush(&bed.run);
	sw_pipe_begin(&bed.run);
	for (uint32_t i = 0; i < SW_EMC_ENTRIES / SW_EMC_SWEEP; i++)
		sw_emc_sweep(bed.run.pipe->emc, &bed.run.pipe->mega);
	if (is_hashed)
		bed_give_hashed(0, frame.bytes, frame.len, rss);
	else
		bed_give(0, frame.bytes, frame.len);
	bed_poll();
	return only_emc_hash();
}

// A device's hash is taken where there is one: flows that differ are alike then, and one flow is
// not like itself. Without one, a hash of the key.
static void test_hash_of_the_device(void **state)
{
	struct bed_frame frame = bed_udp(1, 1000);
	uint32_t software;

	(void)state;
	bed_add_flows(udp_rule);
	emc(1);
	software = emc_hash_of(false, 0, 1);
	assert_int_equal(emc_hash_of(false, 0, 1), software);
	assert_int_not_equal(emc_hash_of(false, 0, 2), software);
	assert_int_equal(emc_hash_of(true, 7, 1), emc_hash_of(true, 7, 2));
	assert_int_not_equal(emc_hash_of(true, 7, 1), emc_hash_of(true, 8, 1));
	assert_int_not_equal(emc_hash_of(true, 7, 1), software);
	// 0 is what some devices say of packets that they can't hash.
	assert_int_equal(emc_hash_of(true, 0, 1), software);
	// A hit is a compare of the whole key all the same.
	bed_give_hashed(0, frame.bytes, frame.len, 7);
	bed_give_udp(0, 2, 1);
	bed_poll();
	assert_int_equal(bed.n[PMDP_C_EMC_HITS], 0);
	bed_give_hashed(0, frame.bytes, frame.len, 7);
	bed_poll();
	assert_int_equal(bed.n[PMDP_C_EMC_HITS], 1);
	frame = bed_udp(2, 1000);
	bed_give_hashed(0, frame.bytes, frame.len, 7);
	bed_poll();
	assert_int_equal(bed.n[PMDP_C_EMC_HITS], 1);
}

static void test_recirculation(void **state)
{
	static const char *const rules[] = {"in_port=1,actions=recirc(table=3)",
					    "table=3,udp,actions=output:3", NULL};

	(void)state;
	bed_add_flows(rules);
	emc(1);
	bed_send_udp(0, 1, 20);
	assert_int_equal(bed.n[PMDP_C_RECIRCULATIONS], 20);
	expect((struct expected){.emc = 38, .misses = 2});
	assert_int_equal(bed.n_sent[2], 20);
	bed_sweep();
	assert_int_equal(bed_rule_packets("table=3"), 20);
}

static void test_recirculation_has_a_limit(void **state)
{
	static const char *const rules[] = {"in_port=1,actions=recirc(table=0)", NULL};

	(void)state;
	bed_add_flows(rules);
	bed_send_udp(0, 1, 20);
	assert_int_equal(bed.n[PMDP_C_RECIRCULATIONS], 20 * SW_RECIRC_LIMIT);
	assert_int_equal(bed.n[PMDP_C_DROP0 + PMDP_DROP_RECIRC_LIMIT], 20);
	assert_int_equal(bed.run.plan->rxqs[0].counts->n[PMDP_P_DROP0 + PMDP_DROP_RECIRC_LIMIT],
			 20);
}

// Above half of its entries in use, recirculated packets leave the EMC to the others.
static void test_recirculated_packets_and_a_full_emc(void **state)
{
	static const char *const rules[] = {"in_port=1,actions=recirc(table=3)",
					    "table=3,udp,actions=output:3", NULL};
	struct sw_emc *cache = bed.run.pipe->emc;

	(void)state;
	bed_add_flows(rules);
	emc(1);
	cache->n_entries = SW_EMC_ENTRIES / 2 + 1; // as if they were
	bed_send_udp(0, 1, 20);
	expect((struct expected){.emc = 19, .mega = 19, .misses = 2});
	assert_int_equal(cache->n_entries, SW_EMC_ENTRIES / 2 + 2);
	cache->n_entries = 1;
	bed_send_udp(0, 1, 1);
	bed_send_udp(0, 1, 1);
	assert_int_equal(bed.n[PMDP_C_EMC_HITS], 19 + 1 + 2);
}

static void test_changed_rules_count_at_once(void **state)
{
	static const char *const other[] = {
		"in_port=1,ip,nw_dst=20.0.0.0/24,udp,tp_dst=63,actions=output:3", NULL};

	(void)state;
	bed_add_flows(udp_rule);
	emc(1);
	bed_send_udp(0, 1, 20);
	bed_add_flows(other);
	bed_send_udp(0, 1, 20);
	assert_int_equal(bed.n_sent[1], 20);
	assert_int_equal(bed.n_sent[2], 20);
	expect((struct expected){.emc = 38, .misses = 2});
	bed_sweep();
	assert_int_equal(bed_rule_packets("in_port=1"), 20);
	bed_clear_flows();
	bed_send_udp(0, 1, 3);
	assert_int_equal(bed.n[PMDP_C_DROP0 + PMDP_DROP_NO_RULE], 3);
}

// A change that means nothing for a flow leaves it, and what caches know of it, alone.
static void test_other_rules_leave_a_flow_alone(void **state)
{
	static const char *const other[] = {"in_port=2,ip,nw_dst=30.0.0.0/24,actions=output:3",
					    NULL};
	uint32_t id;

	(void)state;
	bed_add_flows(udp_rule);
	emc(1);
	bed_send_udp(0, 1, 20);
	id = bed.run.pipe->mega.flows[0].id;
	bed_add_flows(other);
	bed_send_udp(0, 1, 20);
	expect((struct expected){.emc = 39, .misses = 1});
	assert_int_equal(bed.run.pipe->mega.flows[0].id, id);
}

static void test_sweep_revalidates_and_publishes(void **state)
{
	struct sw_flow_stats *stats = bed.run.flow_stats;
	uint64_t first;

	(void)state;
	bed_add_flows(udp_rule);
	for (uint32_t i = 0; i < 500; i++)
		bed_send_udp(i % 3 == 0 ? 0 : 1, i, 1);
	bed_sweep();
	first = atomic_load(&stats->oldest_generation);
	assert_int_equal(first, sw_tables_generation(sw_tables_get(bed.run.flows)));
	bed_clear_flows();
	assert_int_equal(atomic_load(&stats->oldest_generation), first);
	bed_sweep();
	assert_int_equal(atomic_load(&stats->oldest_generation),
			 sw_tables_generation(sw_tables_get(bed.run.flows)));
	sw_pipe_flush(&bed.run);
	assert_true(atomic_load(&stats->oldest_generation) == UINT64_MAX);
	sw_pipe_begin(&bed.run);
}

static void test_idle_flows_end(void **state)
{
	(void)state;
	bed_add_flows(udp_rule);
	emc(1);
	bed_send_udp(0, 1, 20);
	bed.run.plan->max_idle_used = 1 << 20; // half a minute
	bed_sweep();
	assert_int_equal(bed.n[PMDP_C_MEGAFLOWS], 1);
	bed.run.now_ticks += UINT64_C(1) << (21 + SW_MEGA_USED_SHIFT);
	bed_sweep();
	assert_int_equal(bed.n[PMDP_C_MEGAFLOWS], 0);
	assert_int_equal(bed.n[PMDP_C_EMC_ENTRIES], 0);
	assert_int_equal(bed_rule_packets("in_port=1"), 20);
	bed.run.plan->max_idle_used = UINT32_MAX;
	bed_send_udp(0, 1, 1);
	assert_int_equal(bed.n[PMDP_C_MISSES], 2);
}

static void test_flow_limit(void **state)
{
	static const char *const rules[] = {"in_port=1,udp,tp_src=1/1,actions=output:2",
					    "in_port=1,udp,nw_src=10.0.0.1,actions=output:3",
					    "in_port=1,udp,nw_src=10.0.0.2,actions=output:3",
					    "in_port=1,udp,nw_src=10.0.0.3,actions=output:3",
					    "in_port=1,udp,nw_src=10.0.0.4,actions=output:3",
					    NULL};

	(void)state;
	bed_add_flows(rules);
	bed.run.plan->flow_limit = 2;
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 1; i <= 4; i++)
			bed_send_udp(0, i, 1);
	}
	assert_int_equal(bed.n_sent[2], 8); // in order all the same, and counted for their rules
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(bed.sent[2][i].bytes[29], i % 4 + 1);
	expect((struct expected){.mega = 2, .misses = 6});
	assert_int_equal(bed.n[PMDP_C_FLOW_LIMIT_HITS], 4);
	bed_sweep();
	assert_int_equal(bed_rule_packets("in_port=1"), 8);
	// A lower limit holds for flows that are there, too.
	bed.run.plan->flow_limit = 1;
	bed_sweep();
	assert_int_equal(bed.n[PMDP_C_MEGAFLOWS], 1);
	assert_int_equal(bed_rule_packets("in_port=1"), 8);
}

// A port in the place of another one has none of its flows.
static void test_port_takes_the_place_of_another(void **state)
{
	static const char *const rules[] = {"in_port=9,actions=output:3", NULL};

	(void)state;
	bed_add_flows(udp_rule);
	bed_add_flows(rules);
	bed_send_udp(0, 1, 5);
	bed.run.plan->rxqs[0].in_port = 9;
	bed_send_udp(0, 1, 5);
	assert_int_equal(bed.n_sent[1], 5);
	assert_int_equal(bed.n_sent[2], 5);
	sw_sweep(&bed.run);
	assert_int_equal(bed.n[PMDP_C_MEGAFLOWS], 1);
}

static void test_dump_shows_a_megaflow(void **state)
{
	struct sw_mega_copy copy;
	uint32_t n = 0;

	(void)state;
	bed_add_flows(udp_rule);
	bed_send_udp(0, 1, 7);
	for (uint32_t i = 0; i < sw_pipe_n_places(bed.run.pipe); i++)
		n += sw_pipe_read(bed.run.pipe, i, bed.run.now_ticks, &copy);
	assert_int_equal(n, 1);
	assert_true(sw_pipe_read(bed.run.pipe, 0, bed.run.now_ticks, &copy));
	assert_int_equal(copy.n_packets, 7);
	assert_int_equal(copy.n_bytes, 7 * 60);
	assert_int_equal(copy.n_acts, 1);
	assert_int_equal(copy.acts[0].port, 2);
	assert_int_equal(copy.key.in_port, 1);
	assert_int_equal(copy.mask.in_port, UINT16_MAX);
	assert_int_equal(copy.mask.nw_dst, rte_cpu_to_be_32(0xffffff00));
	assert_int_equal(copy.mask.nw_src, 0);
	assert_int_equal(copy.mask.tp_dst, UINT16_MAX);
}

// Random packets over random rules: the autovalidator finds no difference, in any cache.
static void test_autovalidator(void **state)
{
	static const char *const rules[] = {
		"priority=9,in_port=1,udp,nw_src=10.0.0.0/28,actions=output:2",
		"priority=8,in_port=1,udp,tp_src=1000/0xff0,actions=output:3",
		"priority=7,in_port=1,ip,nw_src=10.0.0.0/22,actions=output:2",
		"priority=6,dl_dst=02:00:00:00:00:02,actions=output:3",
		"actions=drop",
		NULL};
	uint32_t seed = 20261130;

	(void)state;
	bed.run.plan->impl = sw_impl_find("autovalidator");
	assert_non_null(bed.run.plan->impl);
	bed_add_flows(rules);
	emc(2);
	bed.run.plan->smc = sw_pipe_smc(bed.run.pipe);
	for (uint32_t i = 0; i < 20000; i++) {
		struct bed_frame frame;

		seed = seed * 1664525 + 1013904223;
		frame = bed_udp(seed >> 20, (uint16_t)(seed >> 16 & 0x3ff));
		if (seed >> 8 & 1)
			frame.bytes[seed % 48] ^= (uint8_t)(seed >> 12);
		bed_give(seed >> 30 & 1, frame.bytes, (uint16_t)(frame.len - (seed >> 9 & 1)));
		if (i % 32 == 31)
			bed_poll();
		if (i == 10000)
			bed.run.plan->smc = NULL;
	}
	bed_poll();
	assert_true(bed.n[PMDP_C_EMC_HITS] > 1000);
	assert_true(bed.n[PMDP_C_MEGAFLOW_HITS] > 1000);
	assert_int_equal(sw_impl_n_differences(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, bed_open, bed_close)
		TEST(test_twenty_equal_packets_emc),
		TEST(test_twenty_equal_packets_one_by_one),
		TEST(test_twenty_equal_packets_smc),
		TEST(test_twenty_equal_packets_megaflow),
		TEST(test_all_caches),
		TEST(test_bypass_of_a_port_with_one_mask),
		TEST(test_bypass_is_overridden),
		TEST(test_emc_takes_its_share),
		TEST(test_port_whose_rules_look_at_nothing),
		TEST(test_flow_mark),
		TEST(test_hash_of_the_device),
		TEST(test_recirculation),
		TEST(test_recirculation_has_a_limit),
		TEST(test_recirculated_packets_and_a_full_emc),
		TEST(test_changed_rules_count_at_once),
		TEST(test_other_rules_leave_a_flow_alone),
		TEST(test_sweep_revalidates_and_publishes),
		TEST(test_idle_flows_end),
		TEST(test_flow_limit),
		TEST(test_port_takes_the_place_of_another),
		TEST(test_dump_shows_a_megaflow),
		TEST(test_autovalidator),
	};

	return cmocka_run_group_tests(tests, bed_start, bed_stop);
}
