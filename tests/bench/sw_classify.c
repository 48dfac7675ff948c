// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Cycles per packet of the packet path alone: bursts of 32 frames of 60 bytes from a ring of
 * buffers, of which each is touched anew only after all others, to a port that takes them and does
 * nothing. Last line: one JSON document, {"bench": "classify", "cases": [{"rules", "impl", "flows",
 * "extract", "pipe", "best"}]}: medians of many short rounds of key extraction and of all from a
 * received burst to the port, and the second best of the latter, because on a shared machine only
 * the best ones are undisturbed.
 *
 * sw_classify [SECONDS per case, default 0.5]; runs on core 1 where there is one.
 */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "pmdp_clock.h"
#include "sw_flow.h"
#include "sw_impl.h"
#include "sw_impl_fast.h"
#include "sw_pipe.h"
#include "sw_pipe_fast.h"
#include "tests/common/test_plan.h"

#define BURST 32
#define FRAME_BYTES 60
#define STRIDE_BYTES 2176 // a buffer of a usual pool
#define N_ROUNDS 101

struct ring {
	uint32_t n;
	uint8_t *memory;
	struct rte_mbuf **pkts;
};

static void put32(uint8_t *at, uint32_t value)
{
	for (unsigned int i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> (24 - 8 * i));
}

// UDP to 20.0.0.0/24, port 63, from as many hosts as there are buffers.
static void fill_frame(uint8_t *f, uint32_t flow)
{
	static const uint8_t head[] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 46};

	memset(f, 0, FRAME_BYTES);
	memcpy(f, head, sizeof(head));
	f[22] = 64;
	f[23] = 17;
	put32(f + 26, 0x0a000000 + flow);
	put32(f + 30, 0x14000000 + (flow & 255));
	put32(f + 34, 63);
	f[39] = 26;
}

static int make_ring(struct ring *ring, uint32_t n)
{
	ring->n = n;
	ring->memory = aligned_alloc(64, (size_t)n * STRIDE_BYTES);
	ring->pkts = calloc(n, sizeof(struct rte_mbuf *));
	if (!ring->memory || !ring->pkts)
		return -1;
	memset(ring->memory, 0, (size_t)n * STRIDE_BYTES);
	for (uint32_t i = 0; i < n; i++) {
		struct rte_mbuf *m =
			(struct rte_mbuf *)(void *)(ring->memory + (size_t)i * STRIDE_BYTES);

		m->buf_addr = (uint8_t *)m + 256;
		m->nb_segs = 1;
		m->pkt_len = FRAME_BYTES;
		m->data_len = FRAME_BYTES;
		fill_frame(rte_pktmbuf_mtod(m, uint8_t *), i);
		ring->pkts[i] = m;
	}
	return 0;
}

static double now_s(void)
{
	return (double)pmdp_mono_now_ns() / 1e9;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static uint16_t sink(void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	(void)queue;
	(void)pkts;
	return n;
}

// A PMD without a thread: one port that receives, another that sends.
static struct bench {
	struct sw_pmd_run run;
	struct pmdp_lane lane;
	struct sw_port_counts counts;
	struct sw_plan_out out;
	struct sw_plan_pmd *plan;
	uint16_t out_of[UINT16_MAX + 1];
	struct sw_flow_table *flows;
} bench;

static bool open_bench(const char *const *rules, const struct sw_impl *impl)
{
	struct sw_rule *parsed;
	struct sw_error err;
	uint32_t n_rules = 0, n;

	while (rules[n_rules])
		n_rules++;
	memset(&bench, 0, sizeof(bench));
	memset(bench.out_of, 0xff, sizeof(bench.out_of));
	bench.plan = calloc(1, sizeof(*bench.plan) + sizeof(bench.plan->rxqs[0]));
	bench.flows = sw_flow_table_create(NULL);
	bench.run.pipe = sw_pipe_create(SW_MEGA_MAX_FLOWS);
	if (!bench.plan || !bench.flows || !bench.run.pipe)
		return false;
	bench.out_of[2] = 0;
	bench.out = (struct sw_plan_out){.counts = &bench.counts, .max_len = 1522};
	bench.plan->out_of = bench.out_of;
	bench.plan->outs = &bench.out;
	bench.plan->n_outs = 1;
	bench.plan->n_rxq = 1;
	bench.plan->impl = impl;
	bench.plan->flow_limit = SW_MEGA_MAX_FLOWS;
	bench.plan->max_idle_used = UINT32_MAX;
	bench.plan->rxqs[0] = (struct sw_plan_rxq){
		.in_port = 1, .counts = &bench.counts, .emc_inv_prob = 100, .is_bypass = true};
	bench.run.lane = &bench.lane;
	sw_pmd_set_keepalive(&bench.run, false);
	bench.run.counters = bench.lane.body.counters;
	bench.run.flows = sw_flow_table_ref(bench.flows);
	bench.run.flow_stats = sw_flow_stats_attach(bench.flows);
	bench.run.plan = bench.plan;
	bench.run.is_tsc = true;
	bench.run.now_ticks = rte_rdtsc();
	if (!bench.run.flow_stats || sw_rules_parse(NULL, rules, n_rules, &parsed, &n, &err) < 0 ||
	    sw_flow_add(bench.flows, parsed, n, &err) < 0)
		return false;
	sw_rules_free(parsed, n);
	sw_pipe_begin(&bench.run);
	return true;
}

static void close_bench(void)
{
	sw_pipe_flush(&bench.run);
	sw_pipe_destroy(bench.run.pipe);
	sw_flow_stats_detach(bench.flows, bench.run.flow_stats);
	sw_flow_table_destroy(bench.flows);
	free(bench.plan);
}

// Rounds over the ring, in cycles per packet, sorted.
static void measure(const struct ring *ring, bool is_pipe, double seconds, double *rounds)
{
	struct sw_pipe *pipe = bench.run.pipe;
	struct rte_mbuf *pkts[BURST];
	uint32_t at = 0;

	for (unsigned int r = 0; r < N_ROUNDS; r++) {
		double end_s = now_s() + seconds / N_ROUNDS;
		uint64_t start = rte_rdtsc(), n_packets = 0;

		do {
			for (unsigned int i = 0; i < 64; i++) {
				memcpy(pkts, ring->pkts + at, sizeof(pkts));
				if (is_pipe)
					sw_pipe_burst(&bench.run, &bench.plan->rxqs[0], pkts,
						      BURST);
				else
					bench.plan->impl->extract(pkts, BURST, 1, pipe->keys,
								  pipe->bad);
				at = at + BURST >= ring->n ? 0 : at + BURST;
				n_packets += BURST;
			}
		} while (now_s() < end_s);
		rounds[r] = (double)(rte_rdtsc() - start) / (double)n_packets;
		sw_sweep(&bench.run);
	}
	qsort(rounds, N_ROUNDS, sizeof(rounds[0]), compare);
}

static void run(const char *name, const char *const *rules, uint32_t n_buffers, double seconds,
		bool *is_first)
{
	double extract[N_ROUNDS], pipe[N_ROUNDS];
	const struct sw_impl *impl;
	struct ring ring = {.n = 0};

	if (make_ring(&ring, n_buffers) < 0) {
		fprintf(stderr, "%s: no memory\n", name);
		exit(1);
	}
	for (uint32_t i = 0; (impl = sw_impl_at(i)) != NULL; i++) {
		if (!sw_impl_is_usable(impl) || impl == &sw_impl_autovalidator)
			continue;
		if (!open_bench(rules, impl)) {
			fprintf(stderr, "%s: no memory, or a rule that can't be\n", name);
			exit(1);
		}
		measure(&ring, false, seconds / 2, extract);
		measure(&ring, true, seconds / 2, pipe);
		printf("%s{\"rules\": \"%s\", \"impl\": \"%s\", \"flows\": %u, \"extract\": %.1f, "
		       "\"pipe\": %.1f, \"best\": %.1f}",
		       *is_first ? "" : ", ", name, impl->name, n_buffers, extract[N_ROUNDS / 2],
		       pipe[N_ROUNDS / 2], pipe[1]);
		*is_first = false;
		close_bench();
	}
	free(ring.memory);
	free(ring.pkts);
}

int main(int argc, char **argv)
{
	static const char *const by_port[] = {"in_port=1,actions=output:2", NULL};
	static const char *const five[] = {
		"in_port=1,ip,nw_dst=20.0.0.0/24,udp,tp_dst=63,actions=output:2", NULL};
	static const char *const l2[] = {"in_port=1,dl_dst=02:00:00:00:00:02,actions=output:2",
					 NULL};
	static const char *twenty[21];
	static char texts[20][96];
	static const char *const each[] = {"in_port=1,udp,nw_src=10.0.0.0/31,actions=output:2",
					   "actions=output:2", NULL};
	static void *queue;
	double seconds = argc > 1 ? atof(argv[1]) : 0.5;
	bool is_first = true;
	cpu_set_t core;

	CPU_ZERO(&core);
	CPU_SET(1, &core);
	if (!test_eal_start("sw_classify", 256))
		return 1;
	sched_setaffinity(0, sizeof(core), &core); // without core 1 it runs where it is
	sw_impl_init();
	rte_eth_fp_ops[0].tx_pkt_burst = sink;
	rte_eth_fp_ops[0].txq.data = &queue;

	// Nineteen that do not match stand before the one that does.
	for (unsigned int i = 0; i < 20; i++) {
		snprintf(texts[i], sizeof(texts[i]),
			 "in_port=1,priority=%u,ip,nw_dst=20.0.0.0/24,udp,tp_dst=%u,"
			 "actions=output:2",
			 100 - i, i < 19 ? 1000 + i : 63);
		twenty[i] = texts[i];
	}
	printf("{\"bench\": \"classify\", \"cases\": [");
	run("in_port", by_port, 512, seconds, &is_first);
	run("l2", l2, 512, seconds, &is_first);
	run("5-tuple", five, 512, seconds, &is_first);
	run("5-tuple", five, 8192, seconds, &is_first);
	run("20 rules", twenty, 512, seconds, &is_first);
	run("many megaflows", each, 8192, seconds, &is_first);
	printf("]}\n");
	return 0;
}
