// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The pipeline of a PMD on any bytes: bursts of frames, whole or in segments, against rules with
 * every action, while the rules and the implementation change. Nothing is read beyond a frame,
 * every buffer comes back, and the counters add up.
 *
 * The frames stand in buffers of their exact size, so that a sanitizer sees what goes beyond.
 */
#include "sw_pipe.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "sw_flow.h"
#include "sw_impl.h"
#include "sw_impl_fast.h"
#include "sw_mac.h"
#include "sw_pipe_fast.h"
#include "sw_pmd_fast.h"
#include "sw_rule.h"
#include "tests/common/test_plan.h"

#define N_DEVICES 3 // ofport 1 to 3 on ethdev 0 to 2
#define N_MBUFS 2047
#define N_SETS 3
#define MAX_FRAME_BYTES 2000

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const rule_sets[N_SETS][16] = {
	{
		"in_port=1,ip,nw_dst=10.0.0.0/8,actions=mod_nw_src:192.0.2.1,mod_nw_dst:192.0.2.2,"
		"mod_tp_src:1,mod_tp_dst:2,mod_nw_tos:8,dec_ttl,output:2,output:3",
		"in_port=1,ipv6,actions=set_field:fd00::9->ipv6_dst,set_field:fd00::8->ipv6_src,"
		"dec_ttl,output:3,output:in_port",
		"in_port=1,arp,actions=set_field:192.0.2.1->arp_spa,set_field:2->arp_op,output:2",
		"in_port=1,icmp6,icmp_type=135,icmp_code=0,nd_target=fd00::2,actions=output:3",
		"in_port=1,dl_vlan=5,actions=strip_vlan,recirc(table=4)",
		"in_port=1,priority=1,actions=push_vlan:0x88a8,set_field:4100->vlan_vid,output:2,"
		"strip_vlan,output(port=3,max_len=20)",
		"table=4,udp,tp_dst=4789/0xff00,actions=mod_tp_dst:7,resubmit(,5)",
		"table=5,actions=flood",
		NULL,
	},
	{"actions=NORMAL", "in_port=2,tcp,tcp_flags=+syn,actions=drop", NULL},
	{"table=0,dl_vlan_pcp=3,actions=mod_vlan_vid:9,mod_vlan_pcp:1,in_port",
	 "table=0,priority=1,actions=dec_ttl,recirc(table=0)", NULL},
};

static void *queues[N_DEVICES];
static struct rte_mempool *pool;
static struct sw_flow_table *flows;
static struct sw_rule *rules[N_SETS];
static uint32_t n_rules[N_SETS];
static struct sw_port_counts counts[N_DEVICES];
static struct sw_plan_out outs[N_DEVICES];
static struct pmdp_hot_shm hot;
static struct pmdp_lane lane;
static struct sw_pmd_run run;
static struct sw_plan_pmd *plan;
static uint16_t out_of[UINT16_MAX + 1];

static uint16_t fake_send(void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	const char *reason;

	(void)queue;
	for (uint16_t i = 0; i < n; i++) {
		if (rte_mbuf_check(pkts[i], 1, &reason) != 0) {
			fprintf(stderr, "sent: %s\n", reason);
			abort();
		}
	}
	rte_pktmbuf_free_bulk(pkts, n);
	return n;
}

static void parse_rules(void)
{
	struct sw_error err = {.text = ""};

	for (uint32_t set = 0; set < N_SETS; set++) {
		uint32_t n = 0;

		while (rule_sets[set][n] != NULL)
			n++;
		if (sw_rules_parse(NULL, rule_sets[set], n, &rules[set], &n_rules[set], &err) !=
		    0) {
			fprintf(stderr, "%s\n", err.text);
			abort();
		}
	}
}

static void fill_plan(void)
{
	plan = test_plan(N_DEVICES, counts, outs, out_of);
	plan->impl = sw_impls_usable[0];
	plan->flow_limit = 64; // so that it is met
	plan->max_idle_used = 1000;
	for (uint16_t i = 0; i < N_DEVICES; i++) {
		plan->rxqs[i].emc_inv_prob = 1;
		queues[i] = &outs[i];
		rte_eth_fp_ops[i].tx_pkt_burst = fake_send;
		rte_eth_fp_ops[i].txq.data = &queues[i];
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	if (!test_eal_start("fuzz_pipe", 512))
		return 1;
	pool = rte_pktmbuf_pool_create("fuzz", N_MBUFS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, -1);
	flows = sw_flow_table_create(NULL);
	sw_impl_init();
	parse_rules();
	fill_plan();
	lane.hot = &hot;
	run.lane = &lane;
	sw_pmd_set_keepalive(&run, true);
	run.counters = lane.body.counters;
	run.flows = sw_flow_table_ref(flows);
	run.flow_stats = sw_flow_stats_attach(flows);
	run.plan = plan;
	run.pipe = sw_pipe_create(512);
	run.macs = sw_mac_create();
	run.is_tsc = true;
	return pool == NULL || run.pipe == NULL || run.macs == NULL;
}

static void release(void *bytes, void *shared)
{
	free(bytes);
	free(shared);
}

// A segment of exactly these bytes, perhaps with room in front.
static struct rte_mbuf *segment(const uint8_t *bytes, uint32_t len, uint32_t headroom)
{
	struct rte_mbuf_ext_shared_info *shared = calloc(1, sizeof(*shared));
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *buffer = malloc(headroom + len);

	memcpy(buffer + headroom, bytes, len);
	shared->free_cb = release;
	shared->fcb_opaque = shared;
	rte_mbuf_ext_refcnt_set(shared, 1);
	rte_pktmbuf_attach_extbuf(m, buffer, 1 /* no IO */, (uint16_t)(headroom + len), shared);
	m->data_off = (uint16_t)headroom;
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	return m;
}

static struct rte_mbuf *make(const uint8_t *bytes, uint32_t len, uint32_t cut)
{
	uint32_t head = cut < len ? cut : len;
	struct rte_mbuf *first = segment(bytes, head, cut % 4 == 0 ? 0 : RTE_PKTMBUF_HEADROOM);

	if (head < len && rte_pktmbuf_chain(first, segment(bytes + head, len - head, 0)) != 0)
		abort();
	return first;
}

static void check(void)
{
	const uint64_t *n = run.counters;
	uint64_t dropped = 0;

	for (uint32_t i = 0; i < PMDP_N_DROPS; i++)
		dropped += n[PMDP_C_DROP0 + i];
	if (n[PMDP_C_RX_PACKETS] + n[PMDP_C_COPIES] != n[PMDP_C_TX_PACKETS] + dropped)
		abort();
	if (n[PMDP_C_PHWOL_HITS] + n[PMDP_C_EMC_HITS] + n[PMDP_C_SMC_HITS] +
		    n[PMDP_C_MEGAFLOW_HITS] + n[PMDP_C_MISSES] !=
	    n[PMDP_C_RX_PACKETS] - n[PMDP_C_DROP0 + PMDP_DROP_MALFORMED] + n[PMDP_C_RECIRCULATIONS])
		abort();
	if (rte_mempool_avail_count(pool) != N_MBUFS)
		abort();
}

static void burst(const struct sw_plan_rxq *rxq, struct rte_mbuf **pkts, uint16_t n)
{
	run.counters[PMDP_C_RX_PACKETS] += n;
	sw_pipe_burst(&run, rxq, pkts, n);
	sw_tx_flush_all(&run, true);
	run.now_ticks += 1 << 20;
	sw_sweep(&run);
}

// Each frame: two bytes of length (top bits: what happens before), one of where it is cut.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sw_error err;
	struct rte_mbuf *pkts[SW_BURST];
	const struct sw_plan_rxq *rxq = plan->rxqs;
	uint16_t n = 0;

	if (size < 4)
		return 0;
	sw_pipe_flush(&run);
	sw_flow_replace(flows, rules[data[0] % N_SETS], n_rules[data[0] % N_SETS], &err);
	sw_pipe_begin(&run);
	plan->impl = sw_impls_usable[data[1] % sw_impls_n_usable];
	plan->smc = data[2] & 1 ? sw_pipe_smc(run.pipe) : NULL;
	plan->rxqs[0].emc_inv_prob = data[2] >> 1 & 3;
	plan->rxqs[0].is_bypass = data[2] >> 3 & 1;
	data += 3;
	size -= 3;
	while (size >= 3) {
		uint32_t len = (uint32_t)data[0] | (uint32_t)(data[1] & 7) << 8;
		uint32_t what = data[1] >> 3, cut = data[2];

		data += 3;
		size -= 3;
		len = RTE_MIN(RTE_MIN(len, size), (size_t)MAX_FRAME_BYTES);
		if (n == SW_BURST || what % 8 == 7) {
			burst(rxq, pkts, n);
			n = 0;
			rxq = &plan->rxqs[what % N_DEVICES];
		}
		if (what % 8 == 6) {
			burst(rxq, pkts, n);
			n = 0;
			sw_flow_replace(flows, rules[what % N_SETS], n_rules[what % N_SETS], &err);
			sw_flow_reap(flows);
		}
		if (len > 0)
			pkts[n++] = make(data, len, cut == 0 ? len : cut);
		data += len;
		size -= len;
	}
	burst(rxq, pkts, n);
	check();
	return 0;
}
