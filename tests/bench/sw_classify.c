// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Cycles per packet of classification alone: bursts of 32 frames of 60 bytes from a ring of buffers,
 * of which each is touched anew only after all others. Last line: one JSON document,
 * {"bench": "classify", "cases": [{"rules", "buffers", "cycles_per_packet", "best"}]}: the median and the
 * second best of many short rounds, because on a shared machine only the best ones are undisturbed.
 *
 * sw_classify [SECONDS per case, default 0.5]; runs on core 1 where there is one.
 */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_mbuf.h>

#include "sw_flow.h"

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
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void run(const char *name, const char *const *rules, uint32_t n_buffers, double seconds,
		bool *is_first)
{
	struct sw_flow_table *table = sw_flow_table_create(NULL);
	struct sw_flow_stats *stats = table ? sw_flow_stats_attach(table) : NULL;
	double rounds[N_ROUNDS];
	struct ring ring = {.n = 0};
	struct sw_rule *parsed;
	struct sw_error err;
	uint32_t n_rules = 0, n, at = 0;
	uint16_t out[BURST];

	while (rules[n_rules])
		n_rules++;
	if (!stats || make_ring(&ring, n_buffers) < 0 ||
	    sw_rules_parse(NULL, rules, n_rules, &parsed, &n, &err) < 0 ||
	    sw_flow_add(table, parsed, n, &err) < 0) {
		fprintf(stderr, "%s: %s\n", name, stats ? err.text : "no memory");
		exit(1);
	}
	for (unsigned int r = 0; r < N_ROUNDS; r++) {
		double end_s = now_s() + seconds / N_ROUNDS;
		uint64_t start = rte_rdtsc(), n_packets = 0;

		do {
			for (unsigned int i = 0; i < 64; i++) {
				sw_flow_classify(sw_flow_set_get(sw_flow_table_ref(table)), stats,
						 1, ring.pkts + at, BURST, out);
				at = at + BURST >= ring.n ? 0 : at + BURST;
				n_packets += BURST;
			}
		} while (now_s() < end_s);
		rounds[r] = (double)(rte_rdtsc() - start) / (double)n_packets;
	}
	qsort(rounds, N_ROUNDS, sizeof(rounds[0]), compare);
	printf("%s{\"rules\": \"%s\", \"buffers\": %u, \"cycles_per_packet\": %.1f, \"best\": %.1f}",
	       *is_first ? "" : ", ", name, n_buffers, rounds[N_ROUNDS / 2], rounds[1]);
	*is_first = false;
	free(parsed);
	free(ring.memory);
	free(ring.pkts);
	sw_flow_table_destroy(table);
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
	double seconds = argc > 1 ? atof(argv[1]) : 0.5;
	bool is_first = true;
	cpu_set_t core;

	CPU_ZERO(&core);
	CPU_SET(1, &core);
	sched_setaffinity(0, sizeof(core), &core); // without core 1 it runs where it is

	// Nineteen that do not match stand before the one that does.
	for (unsigned int i = 0; i < 20; i++) {
		snprintf(
			texts[i], sizeof(texts[i]),
			"in_port=1,priority=%u,ip,nw_dst=20.0.0.0/24,udp,tp_dst=%u,actions=output:2",
			100 - i, i < 19 ? 1000 + i : 63);
		twenty[i] = texts[i];
	}
	printf("{\"bench\": \"classify\", \"cases\": [");
	run("in_port", by_port, 512, seconds, &is_first);
	run("l2", l2, 512, seconds, &is_first);
	run("5-tuple", five, 512, seconds, &is_first);
	run("5-tuple", five, 8192, seconds, &is_first);
	run("20 rules", twenty, 512, seconds, &is_first);
	printf("]}\n");
	return 0;
}
