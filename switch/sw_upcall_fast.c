// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// What bursts leave over: packets that no cache and no megaflow knows, and flows of older rules.
#include <rte_cycles.h>

#include "sw_flow_count_fast.h"
#include "sw_pipe_fast.h"

static uint64_t clock_now(const struct sw_pmd_run *run)
{
	return run->is_tsc ? rte_rdtsc() : pmdp_lane_clock(run->lane);
}

// Chance is enough: no packet's sender can see what it is.
static uint32_t random_next(struct sw_pipe *pipe)
{
	uint32_t x = pipe->random;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	pipe->random = x;
	return x;
}

uint32_t sw_upcall_emc_skip(struct sw_pipe *pipe, uint32_t inv_prob)
{
	return inv_prob <= 1 ? 0 : (uint32_t)(random_next(pipe) % (2 * (uint64_t)inv_prob - 1));
}

static bool is_chosen(struct sw_pipe *pipe, uint32_t inv_prob)
{
	return inv_prob != 0 && (inv_prob == 1 || random_next(pipe) < UINT32_MAX / inv_prob);
}

void sw_pipe_push(struct sw_pmd_run *run, uint32_t flow)
{
	struct sw_mega *mega = &run->pipe->mega;
	struct sw_mega_cold *cold = &mega->cold[flow];
	const struct sw_megaflow *f = &mega->flows[flow];
	uint64_t packets = atomic_load_explicit(&f->packets, memory_order_relaxed);
	uint64_t bytes = atomic_load_explicit(&f->bytes, memory_order_relaxed);
	const uint32_t *slots = sw_mega_slots(mega, flow);

	if (packets == cold->pushed_packets)
		return;
	for (uint32_t i = 0; i < cold->n_slots; i++) {
		struct sw_flow_count *rule = &run->flow_stats->rules[slots[i]];

		sw_pipe_add(&rule->packets, packets - cold->pushed_packets);
		sw_pipe_add(&rule->bytes, bytes - cold->pushed_bytes);
	}
	cold->pushed_packets = packets;
	cold->pushed_bytes = bytes;
}

bool sw_upcall_revalidate(struct sw_pmd_run *run, uint32_t flow)
{
	struct sw_pipe *pipe = run->pipe;
	struct sw_mega *mega = &pipe->mega;
	uint64_t begin = clock_now(run);
	bool is_same;

	sw_xlate(pipe->tables, &mega->cold[flow].key, &pipe->xlate);
	is_same = sw_mega_is_same(mega, flow, &pipe->xlate);
	if (is_same) {
		mega->flows[flow].generation = pipe->generation;
	} else {
		sw_pipe_push(run, flow);
		sw_mega_delete(mega, flow);
	}
	run->counters[PMDP_C_UPCALL_TICKS] += clock_now(run) - begin;
	return is_same;
}

static bool is_good(struct sw_pmd_run *run, uint32_t flow)
{
	return flow != SW_MEGA_NONE &&
	       (run->pipe->mega.flows[flow].generation == run->pipe->generation ||
		sw_upcall_revalidate(run, flow));
}

static void remember(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq, uint32_t i,
		     uint32_t hash, bool is_wide, struct sw_caches caches, uint32_t flow)
{
	struct sw_pipe *pipe = run->pipe;

	if (caches.is_smc)
		sw_smc_insert(run->plan->smc, hash, flow);
	if (caches.is_emc && is_chosen(pipe, rxq->emc_inv_prob))
		sw_emc_insert(pipe->emc, &pipe->mega, &pipe->keys[i], hash, is_wide, flow);
}

// No flow: ask the tables, and make one.
static uint32_t translate(struct sw_pmd_run *run, struct sw_classifier *cls, uint32_t i)
{
	struct sw_pipe *pipe = run->pipe;
	uint64_t begin = clock_now(run);
	uint32_t flow = SW_MEGA_NONE;
	uint32_t result;

	sw_xlate(pipe->tables, &pipe->keys[i], &pipe->xlate);
	result = sw_mega_add(&pipe->mega, cls, &pipe->keys[i], &pipe->xlate, pipe->generation,
			     begin, run->plan->flow_limit, &flow);
	if (result != SW_MEGA_ADDED) {
		run->counters[result == SW_MEGA_FULL ? PMDP_C_FLOW_LIMIT_HITS
						     : PMDP_C_SHAPE_LIMIT_HITS]++;
		flow = sw_mega_transient(&pipe->mega, i, &pipe->xlate);
		pipe->transient |= UINT32_C(1) << i;
	}
	run->counters[PMDP_C_MISSES]++;
	run->counters[PMDP_C_UPCALL_TICKS] += clock_now(run) - begin;
	return flow;
}

static uint32_t find_or_make(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq,
			     struct sw_classifier *cls, uint32_t i, const struct rte_mbuf *pkt,
			     bool is_wide, struct sw_caches caches)
{
	struct sw_pipe *pipe = run->pipe;
	const struct sw_key *key = &pipe->keys[i];
	bool is_cached = caches.is_emc || caches.is_smc;
	uint32_t hash = is_cached ? sw_key_hash(key, pkt) : 0;
	uint32_t flow = SW_MEGA_NONE;

	if (caches.is_emc) {
		flow = sw_emc_find(pipe->emc, &pipe->mega, key, hash, is_wide);
		if (is_good(run, flow)) {
			run->counters[PMDP_C_EMC_HITS]++;
			return flow;
		}
	}
	if (caches.is_smc) {
		flow = sw_smc_find(run->plan->smc, &pipe->mega, cls, key, hash);
		if (is_good(run, flow)) {
			run->counters[PMDP_C_SMC_HITS]++;
			remember(run, rxq, i, hash, is_wide, caches, flow);
			return flow;
		}
	}
	flow = sw_mega_find(&pipe->mega, cls, key, &run->counters[PMDP_C_LOOKUPS]);
	if (is_good(run, flow)) {
		run->counters[PMDP_C_MEGAFLOW_HITS]++;
		remember(run, rxq, i, hash, is_wide, caches, flow);
		return flow;
	}
	flow = translate(run, cls, i);
	if (flow < pipe->mega.max_flows)
		remember(run, rxq, i, hash, is_wide, caches, flow);
	return flow;
}

uint32_t sw_upcall(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq, struct sw_classifier *cls,
		   uint32_t i, const struct rte_mbuf *pkt, bool is_wide, struct sw_caches caches)
{
	uint32_t flow;

	sw_pmd_crumb(run, PMDP_CRUMB(PMDP_STAGE_UPCALL, rxq->in_port, rxq->queue));
	flow = find_or_make(run, rxq, cls, i, pkt, is_wide, caches);
	sw_pmd_crumb(run, rxq->crumb_process);
	return flow;
}
