// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "tests/unit/sw_bed.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include "sw_flow.h"
#include "sw_impl.h"
#include "sw_mac.h"
#include "sw_pipe.h"
#include "sw_tx_fast.h"
#include "tests/common/test_plan.h"

#define N_MBUFS 2047
#define MAX_GIVEN 512

struct bed bed;

static struct device {
	uint16_t number;
	uint32_t n_given, next;
	struct rte_mbuf *given[MAX_GIVEN];
} devices[BED_DEVICES];

static void *queues[BED_DEVICES];
static struct rte_mempool *pool;
static struct sw_port_counts counts[BED_DEVICES];
static struct sw_plan_out outs[BED_DEVICES];
static struct pmdp_hot_shm hot;
static struct pmdp_lane lane;
static struct sw_plan_pmd *plan;
static uint16_t out_of[UINT16_MAX + 1];
static struct sw_mac_table *macs;

static uint16_t fake_send(void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct device *device = queue;

	for (uint16_t i = 0; i < n; i++) {
		uint32_t at = bed.n_sent[device->number]++;
		struct bed_frame *to = &bed.sent[device->number][at % BED_MAX_SENT];
		const void *bytes = rte_pktmbuf_read(pkts[i], 0, pkts[i]->pkt_len, to->bytes);

		rte_mbuf_sanity_check(pkts[i], 1);
		to->len = (uint16_t)pkts[i]->pkt_len;
		if (bytes != to->bytes)
			memcpy(to->bytes, bytes, to->len);
	}
	rte_pktmbuf_free_bulk(pkts, n);
	return n;
}

static uint16_t fake_receive(void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct device *device = queue;
	uint16_t n_rx = 0;

	while (n_rx < n && device->next < device->n_given)
		pkts[n_rx++] = device->given[device->next++];
	if (device->next == device->n_given)
		device->next = device->n_given = 0;
	return n_rx;
}

int bed_open(void **state)
{
	(void)state;
	memset(&bed, 0, sizeof(bed));
	memset(devices, 0, sizeof(devices));
	memset(counts, 0, sizeof(counts));
	memset(&lane, 0, sizeof(lane));
	for (uint16_t i = 0; i < BED_DEVICES; i++) {
		devices[i].number = i;
		queues[i] = &devices[i];
		rte_eth_fp_ops[i].tx_pkt_burst = fake_send;
		rte_eth_fp_ops[i].txq.data = &queues[i];
		rte_eth_fp_ops[i].rx_pkt_burst = fake_receive;
		rte_eth_fp_ops[i].rxq.data = &queues[i];
		bed.sent[i] = calloc(BED_MAX_SENT, sizeof(*bed.sent[i]));
	}
	plan = test_plan(BED_DEVICES, counts, outs, out_of);
	plan->impl = sw_impl_init();
	plan->flow_limit = 4096;
	bed.flows = sw_flow_table_create(NULL);
	macs = sw_mac_create();
	lane.hot = &hot;
	lane.floor_ticks = UINT64_MAX;
	bed.n = lane.body.counters;
	bed.run.lane = &lane;
	bed.run.counters = bed.n;
	bed.run.flows = sw_flow_table_ref(bed.flows);
	bed.run.flow_stats = sw_flow_stats_attach(bed.flows);
	bed.run.plan = plan;
	bed.run.macs = macs;
	bed.run.is_tsc = true;
	bed.run.now_ticks = rte_rdtsc();
	sw_pmd_set_keepalive(&bed.run, true);
	bed.run.pipe = sw_pipe_create(4096);
	assert_non_null(bed.run.pipe);
	sw_pipe_begin(&bed.run);
	return 0;
}

static void check_counters(void)
{
	uint64_t dropped = 0;

	for (uint32_t i = 0; i < PMDP_N_DROPS; i++)
		dropped += bed.n[PMDP_C_DROP0 + i];
	assert_int_equal(bed.n[PMDP_C_RX_PACKETS] + bed.n[PMDP_C_COPIES],
			 bed.n[PMDP_C_TX_PACKETS] + dropped);
	assert_int_equal(bed.n[PMDP_C_RX_PACKETS] - bed.n[PMDP_C_DROP0 + PMDP_DROP_MALFORMED] +
				 bed.n[PMDP_C_RECIRCULATIONS],
			 bed.n[PMDP_C_PHWOL_HITS] + bed.n[PMDP_C_EMC_HITS] +
				 bed.n[PMDP_C_SMC_HITS] + bed.n[PMDP_C_MEGAFLOW_HITS] +
				 bed.n[PMDP_C_MISSES]);
}

int bed_close(void **state)
{
	(void)state;
	sw_tx_flush_all(&bed.run, true);
	check_counters();
	assert_int_equal(sw_impl_n_differences(), 0);
	sw_pipe_flush(&bed.run);
	assert_int_equal(bed.n[PMDP_C_MEGAFLOWS], 0);
	assert_int_equal(bed.n[PMDP_C_SHAPES], 0);
	assert_int_equal(rte_mempool_avail_count(pool), N_MBUFS);
	sw_pipe_destroy(bed.run.pipe);
	sw_mac_destroy(macs);
	sw_flow_stats_detach(bed.flows, bed.run.flow_stats);
	sw_flow_table_destroy(bed.flows);
	free(plan);
	for (uint32_t i = 0; i < BED_DEVICES; i++)
		free(bed.sent[i]);
	return 0;
}

void bed_add_flows(const char *const *texts)
{
	struct sw_rule rule;
	struct sw_error err;

	for (; *texts != NULL; texts++) {
		assert_int_equal(sw_rule_parse(NULL, *texts, &rule, &err), 0);
		assert_int_equal(sw_flow_add(bed.flows, &rule, 1, &err), 0);
		sw_rule_free(&rule);
	}
}

void bed_clear_flows(void)
{
	struct sw_flow_filter filter;
	struct sw_error err;

	assert_int_equal(sw_flow_filter_parse(NULL, NULL, false, &filter, &err), 0);
	assert_true(sw_flow_delete(bed.flows, &filter, &err) >= 0);
}

uint64_t bed_rule_packets(const char *match)
{
	struct sw_flow_filter filter;
	struct sw_flow_info info;
	struct sw_error err;
	uint64_t n = 0;

	assert_int_equal(sw_flow_filter_parse(NULL, match, false, &filter, &err), 0);
	for (uint32_t i = 0; i < sw_flow_count(bed.flows); i++) {
		sw_flow_get(bed.flows, i, &info);
		if (sw_flow_filter_matches(&filter, info.rule))
			n += info.n_packets;
	}
	return n;
}

static struct rte_mbuf *make(const void *bytes, uint16_t len)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);

	assert_non_null(mbuf);
	memcpy(rte_pktmbuf_append(mbuf, len), bytes, len);
	return mbuf;
}

static void give(uint16_t device, struct rte_mbuf *mbuf)
{
	assert_true(devices[device].n_given < MAX_GIVEN);
	devices[device].given[devices[device].n_given++] = mbuf;
}

void bed_give(uint16_t device, const void *bytes, uint16_t len)
{
	give(device, make(bytes, len));
}

void bed_give_marked(uint16_t device, const void *bytes, uint16_t len, uint32_t mark)
{
	struct rte_mbuf *mbuf = make(bytes, len);

	mbuf->ol_flags |= RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID;
	mbuf->hash.fdir.hi = mark;
	give(device, mbuf);
}

void bed_give_hashed(uint16_t device, const void *bytes, uint16_t len, uint32_t rss)
{
	struct rte_mbuf *mbuf = make(bytes, len);

	mbuf->ol_flags |= RTE_MBUF_F_RX_RSS_HASH;
	mbuf->hash.rss = rss;
	give(device, mbuf);
}

void bed_give_cut(uint16_t device, const void *bytes, uint16_t len, uint16_t first)
{
	struct rte_mbuf *mbuf = make(bytes, first);

	assert_int_equal(rte_pktmbuf_chain(mbuf, make((const uint8_t *)bytes + first,
						      (uint16_t)(len - first))),
			 0);
	give(device, mbuf);
}

void bed_poll(void)
{
	do {
		sw_pmd_poll(&bed.run, 0);
	} while (devices[0].n_given + devices[1].n_given + devices[2].n_given > 0);
}

struct bed_frame bed_udp(uint32_t source, uint16_t port)
{
	struct bed_frame frame = {.len = 60};
	struct rte_ether_hdr *eth = (void *)frame.bytes;
	struct rte_ipv4_hdr *ip = (void *)(eth + 1);
	struct rte_udp_hdr *udp = (void *)(ip + 1);

	memcpy(eth, "\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0", 14);
	ip->version_ihl = 0x45;
	ip->total_length = rte_cpu_to_be_16(46);
	ip->time_to_live = 64;
	ip->next_proto_id = 17;
	ip->src_addr = rte_cpu_to_be_32(RTE_IPV4(10, 0, 0, 0) + source);
	ip->dst_addr = rte_cpu_to_be_32(RTE_IPV4(20, 0, 0, 1));
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	udp->src_port = rte_cpu_to_be_16(port);
	udp->dst_port = rte_cpu_to_be_16(63);
	udp->dgram_len = rte_cpu_to_be_16(26);
	udp->dgram_cksum = rte_ipv4_udptcp_cksum(ip, udp);
	return frame;
}

void bed_give_udp(uint16_t device, uint32_t source, uint32_t n)
{
	struct bed_frame frame = bed_udp(source, 1000);

	while (n-- > 0)
		bed_give(device, frame.bytes, frame.len);
}

void bed_send_udp(uint16_t device, uint32_t source, uint32_t n)
{
	bed_give_udp(device, source, n);
	bed_poll();
}

void bed_sweep(void)
{
	// A first part of a round may be over already.
	for (uint32_t i = 0; i < 2 * 4096 / 8 + 2; i++)
		sw_sweep(&bed.run);
}

int bed_start(void **state)
{
	(void)state;
	if (!test_eal_start(program_invocation_short_name, 256))
		return -1;
	pool = rte_pktmbuf_pool_create("test", N_MBUFS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, -1);
	return pool != NULL ? 0 : -1;
}

int bed_stop(void **state)
{
	(void)state;
	test_eal_stop();
	return 0;
}
