// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The packet path of a PMD over fake devices that receive and send what the test says: batching,
// retries, shared queues, lengths, and that nothing is lost without being counted.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "sw_flow.h"
#include "sw_impl.h"
#include "sw_pipe.h"
#include "sw_pipe_fast.h"
#include "sw_pmd_fast.h"
#include "tests/common/test_plan.h"

#define N_DEVICES 3 // ofport 1..3 on ethdev 0..2
#define N_MBUFS 1023

// What a fake device does next and what it was asked to do.
static struct device {
	uint16_t room[8]; // packets taken by the next calls of send; then all
	uint32_t n_calls;
	uint16_t asked[8]; // by each call of send
	uint64_t n_sent;
	uint16_t n_rx; // packets that the next receive gives
	uint16_t rx_len;
} devices[N_DEVICES];

static void *queues[N_DEVICES];
static struct rte_mempool *pool;
static struct sw_flow_table *flows;
static struct sw_flow_stats *flow_stats;
static struct sw_port_counts counts[N_DEVICES];
static struct sw_plan_out outs[N_DEVICES];
static struct pmdp_hot_shm hot;
static struct pmdp_lane lane;
static struct sw_pmd_run run;
static struct sw_plan_pmd *plan;
static uint16_t out_of[UINT16_MAX + 1];

static uint16_t fake_send(void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct device *device = queue;
	uint16_t room = device->n_calls < 8 ? device->room[device->n_calls] : UINT16_MAX;
	uint16_t sent = RTE_MIN(n, room);

	if (device->n_calls < 8)
		device->asked[device->n_calls] = n;
	device->n_calls++;
	device->n_sent += sent;
	rte_pktmbuf_free_bulk(pkts, sent);
	return sent;
}

// Frames of ethertype 0x88b5; the last byte of the source address goes 0, 1, 2, ...
static uint16_t fake_receive(void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct device *device = queue;
	uint16_t n_rx = RTE_MIN(n, device->n_rx);

	if (n_rx == 0 || rte_pktmbuf_alloc_bulk(pool, pkts, n_rx) != 0)
		return 0;
	for (uint16_t i = 0; i < n_rx; i++) {
		uint8_t *frame = (uint8_t *)rte_pktmbuf_append(pkts[i], device->rx_len);

		memset(frame, 0, device->rx_len);
		if (device->rx_len >= 14) {
			frame[11] = (uint8_t)i;
			frame[12] = 0x88;
			frame[13] = 0xb5;
		}
	}
	device->n_rx -= n_rx;
	return n_rx;
}

static void add_flows(const char *const *texts)
{
	struct sw_rule rule;
	struct sw_error err;

	for (; *texts != NULL; texts++) {
		assert_int_equal(sw_rule_parse(NULL, *texts, &rule, &err), 0);
		assert_int_equal(sw_flow_add(flows, &rule, 1, &err), 0);
		sw_rule_free(&rule);
	}
}

static void fill_plan(void)
{
	plan = test_plan(N_DEVICES, counts, outs, out_of);
	plan->impl = sw_impl_init();
	for (uint16_t i = 0; i < N_DEVICES; i++)
		outs[i].n_retries = 2;
}

static int setup(void **state)
{
	(void)state;
	memset(devices, 0, sizeof(devices));
	memset(counts, 0, sizeof(counts));
	memset(&lane, 0, sizeof(lane));
	memset(&run, 0, sizeof(run));
	for (uint32_t i = 0; i < N_DEVICES; i++) {
		memset(devices[i].room, 0xff, sizeof(devices[i].room));
		devices[i].rx_len = 60;
		queues[i] = &devices[i];
		rte_eth_fp_ops[i].tx_pkt_burst = fake_send;
		rte_eth_fp_ops[i].txq.data = &queues[i];
		rte_eth_fp_ops[i].rx_pkt_burst = fake_receive;
		rte_eth_fp_ops[i].rxq.data = &queues[i];
	}
	flows = sw_flow_table_create(NULL);
	flow_stats = sw_flow_stats_attach(flows);
	lane.hot = &hot;
	lane.floor_ticks = UINT64_MAX;
	fill_plan();
	run.lane = &lane;
	run.counters = lane.body.counters;
	run.flows = sw_flow_table_ref(flows);
	run.flow_stats = flow_stats;
	run.plan = plan;
	run.is_tsc = true;
	run.now_ticks = rte_rdtsc();
	sw_pmd_set_keepalive(&run, true);
	run.pipe = sw_pipe_create(1000);
	sw_pipe_begin(&run);
	return 0;
}

// After each test: rx = tx + drops + waiting, and every buffer is back once the rest is flushed.
static int teardown(void **state)
{
	uint64_t dropped = 0;
	uint64_t port_dropped = 0;

	(void)state;
	sw_tx_flush_all(&run, true);
	assert_int_equal(run.n_touched, 0);
	for (uint32_t i = 0; i < PMDP_N_DROPS; i++)
		dropped += run.counters[PMDP_C_DROP0 + i];
	for (uint32_t p = 0; p < N_DEVICES; p++)
		for (uint32_t i = 0; i < PMDP_N_DROPS; i++)
			port_dropped += counts[p].n[PMDP_P_DROP0 + i];
	assert_int_equal(run.counters[PMDP_C_RX_PACKETS],
			 run.counters[PMDP_C_TX_PACKETS] + dropped);
	assert_int_equal(dropped, port_dropped);
	assert_int_equal(run.counters[PMDP_C_RX_PACKETS] -
				 run.counters[PMDP_C_DROP0 + PMDP_DROP_MALFORMED],
			 run.counters[PMDP_C_MEGAFLOW_HITS] + run.counters[PMDP_C_MISSES]);
	sw_pipe_destroy(run.pipe);
	assert_int_equal(rte_mempool_avail_count(pool), N_MBUFS);
	sw_flow_stats_detach(flows, flow_stats);
	sw_flow_table_destroy(flows);
	free(plan);
	return 0;
}

static void receive(uint16_t device, uint16_t n)
{
	devices[device].n_rx = n;
	sw_pmd_poll(&run, 0);
}

static void test_whole_burst_leaves_at_once(void **state)
{
	(void)state;
	add_flows((const char *const[]){"in_port=1,actions=output:2", NULL});
	receive(0, 32);
	assert_int_equal(devices[1].n_calls, 1);
	assert_int_equal(devices[1].asked[0], 32);
	assert_int_equal(run.counters[PMDP_C_TX_BATCHES], 1);
	assert_int_equal(run.counters[PMDP_C_RX_BATCHES], 1);
	assert_int_equal(run.counters[PMDP_C_ITERATIONS], 1);
	assert_int_equal(lane.beats, 1);
}

// Packets of many flows, alternating between two ports: one burst for each.
static void test_mixed_burst_leaves_in_one_burst_per_port(void **state)
{
	(void)state;
	add_flows((const char *const[]){
		"in_port=1,dl_src=00:00:00:00:00:00/00:00:00:00:00:01,actions=output:2",
		"in_port=1,dl_src=00:00:00:00:00:01/00:00:00:00:00:01,actions=output:3", NULL});
	receive(0, 32);
	for (uint32_t i = 1; i <= 2; i++) {
		assert_int_equal(devices[i].n_calls, 1);
		assert_int_equal(devices[i].asked[0], 16);
	}
	assert_int_equal(run.n_touched, 0);
}

static void test_drops_have_a_reason(void **state)
{
	(void)state;
	add_flows((const char *const[]){
		"in_port=1,dl_src=00:00:00:00:00:00/00:00:00:00:00:03,actions=drop",
		"in_port=1,dl_src=00:00:00:00:00:01/00:00:00:00:00:03,actions=output:9", NULL});
	receive(0, 32);
	assert_int_equal(counts[0].n[PMDP_P_DROP0 + PMDP_DROP_ACTION], 8);
	assert_int_equal(counts[0].n[PMDP_P_DROP0 + PMDP_DROP_PORT_DOWN], 8);
	assert_int_equal(counts[0].n[PMDP_P_DROP0 + PMDP_DROP_NO_RULE], 16);
	devices[1].rx_len = 13;
	receive(1, 5);
	assert_int_equal(counts[1].n[PMDP_P_DROP0 + PMDP_DROP_MALFORMED], 5);
}

static void test_retries_while_the_port_takes_some(void **state)
{
	(void)state;
	add_flows((const char *const[]){"in_port=1,actions=output:2", NULL});
	memcpy(devices[1].room, (uint16_t[]){10, 10, 5, 99}, 8);
	receive(0, 32);
	assert_int_equal(devices[1].n_calls, 3); // n_retries is 2
	assert_int_equal(devices[1].n_sent, 25);
	assert_int_equal(counts[1].n[PMDP_P_TX_RETRIES], 2);
	assert_int_equal(counts[1].n[PMDP_P_DROP0 + PMDP_DROP_TX_QUEUE_FULL], 7);
}

static void test_no_retry_after_a_try_that_sent_nothing(void **state)
{
	(void)state;
	add_flows((const char *const[]){"in_port=1,actions=output:2", NULL});
	memcpy(devices[1].room, (uint16_t[]){0, 99}, 4);
	receive(0, 32);
	assert_int_equal(devices[1].n_calls, 1);
	assert_int_equal(counts[1].n[PMDP_P_TX_RETRIES], 0);
	assert_int_equal(counts[1].n[PMDP_P_DROP0 + PMDP_DROP_TX_QUEUE_FULL], 32);
}

static void test_too_long_for_the_port(void **state)
{
	(void)state;
	add_flows((const char *const[]){"actions=output:2", NULL});
	outs[1].max_len = 100;
	devices[0].rx_len = 101;
	receive(0, 7);
	devices[0].rx_len = 100;
	receive(0, 7);
	assert_int_equal(counts[1].n[PMDP_P_DROP0 + PMDP_DROP_MTU], 7);
	assert_int_equal(devices[1].n_sent, 7);
}

static void test_shared_queue_in_other_hands(void **state)
{
	struct sw_tx_claim claim = {.is_taken = 1};

	(void)state;
	add_flows((const char *const[]){"in_port=1,actions=output:2", NULL});
	outs[1].claim = &claim;
	receive(0, 20); // kept
	assert_int_equal(devices[1].n_calls, 0);
	assert_int_equal(outs[1].n, 20);
	receive(0, 20); // 12 more fit
	assert_int_equal(devices[1].n_calls, 0);
	assert_int_equal(outs[1].n, 32);
	assert_int_equal(counts[1].n[PMDP_P_DROP0 + PMDP_DROP_TX_QUEUE_FULL], 8);
	claim.is_taken = 0;
	receive(0, 0); // without input, too
	assert_int_equal(devices[1].n_sent, 32);
	assert_int_equal(outs[1].n, 0);
	assert_int_equal(claim.is_taken, 0);
	receive(0, 5);
	assert_int_equal(devices[1].n_sent, 37);
	outs[1].claim = NULL;
}

static void test_flush_interval_gathers_and_ends(void **state)
{
	(void)state;
	add_flows((const char *const[]){"in_port=1,actions=output:2", NULL});
	plan->flush_interval_ticks = UINT64_C(1) << 40;
	for (uint32_t i = 0; i < 5; i++)
		receive(0, 10);
	assert_int_equal(devices[1].n_calls, 1); // a full batch
	assert_int_equal(devices[1].asked[0], 32);
	assert_int_equal(outs[1].n, 18);
	assert_int_equal(run.n_touched, 1);
	outs[1].flush_ticks = run.now_ticks; // its time has come
	receive(0, 0);
	assert_int_equal(devices[1].n_sent, 50);
	assert_int_equal(run.n_touched, 0);
}

static void test_times_are_a_chain(void **state)
{
	uint64_t begin = run.now_ticks;

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		receive(0, i % 2 != 0 ? 4 : 0);
	assert_int_equal(run.counters[PMDP_C_BUSY_TICKS] + run.counters[PMDP_C_IDLE_TICKS],
			 run.now_ticks - begin);
	assert_true(run.counters[PMDP_C_BUSY_TICKS] > 0);
	assert_true(run.counters[PMDP_C_IDLE_TICKS] > 0);
}

static void test_off_beats_nothing(void **state)
{
	(void)state;
	sw_pmd_set_keepalive(&run, false);
	hot.crumb = 77;
	hot.beats = 78;
	hot.beat_ticks = 79;
	receive(0, 8);
	assert_int_equal(lane.beats, 0);
	assert_int_equal(hot.crumb, 77);
	assert_int_equal(hot.beats, 78);
	assert_int_equal(hot.beat_ticks, 79);
	sw_pmd_set_keepalive(&run, true);
	receive(0, 8);
	assert_true(lane.beats > 0);
	assert_int_equal(hot.beats, lane.beats);
	assert_int_equal(hot.beat_ticks, run.now_ticks);
	assert_int_not_equal(hot.crumb, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(test_whole_burst_leaves_at_once),
		TEST(test_mixed_burst_leaves_in_one_burst_per_port),
		TEST(test_drops_have_a_reason),
		TEST(test_retries_while_the_port_takes_some),
		TEST(test_no_retry_after_a_try_that_sent_nothing),
		TEST(test_too_long_for_the_port),
		TEST(test_shared_queue_in_other_hands),
		TEST(test_flush_interval_gathers_and_ends),
		TEST(test_times_are_a_chain),
		TEST(test_off_beats_nothing),
	};
	int n_failed;

	if (!test_eal_start("test_sw_fast", 64))
		return 1;
	pool = rte_pktmbuf_pool_create("test", N_MBUFS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, -1);
	if (pool == NULL)
		return 1;
	n_failed = cmocka_run_group_tests(tests, NULL, NULL);
	test_eal_stop();
	return n_failed;
}
