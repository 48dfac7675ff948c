// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The sweep: at each housekeeping a few flows, one after the other. Their counts go to the rules,
 * idle ones end, those of older rules are revalidated. When it has come round, no flow is older
 * than the tables were at its beginning, which control is told (O1).
 */
#include <rte_cycles.h>

#include "sw_flow_count_fast.h"
#include "sw_pipe_fast.h"

#define FLOWS_PER_SLICE 64
#define REVALIDATE_US 50 // of a slice, while there are flows of older rules

static void tables_look(struct sw_pmd_run *run)
{
	struct sw_pipe *pipe = run->pipe;

	pipe->tables = sw_tables_get(run->flows);
	pipe->generation = (uint32_t)sw_tables_generation(pipe->tables);
	pipe->used = (uint32_t)(run->now_ticks >> SW_MEGA_USED_SHIFT);
}

static void publish_oldest(struct sw_pmd_run *run, uint64_t generation)
{
	atomic_store_explicit(&run->flow_stats->oldest_generation, generation,
			      memory_order_release); // O1
}

static void sweep_flow(struct sw_pmd_run *run, uint32_t flow)
{
	struct sw_pipe *pipe = run->pipe;
	struct sw_megaflow *f = &pipe->mega.flows[flow];
	uint32_t used = atomic_load_explicit(&f->used, memory_order_relaxed);

	if (f->id == 0)
		return;
	// Idle first: it need not be asked for. A flow that was hit later than now is not idle.
	// And the limit may have been lowered.
	if (((int32_t)(pipe->used - used) > 0 && pipe->used - used > run->plan->max_idle_used) ||
	    pipe->mega.n_flows > run->plan->flow_limit) {
		sw_pipe_push(run, flow);
		sw_mega_delete(&pipe->mega, flow);
		return;
	}
	sw_pipe_push(run, flow);
	if (f->generation != pipe->generation)
		sw_upcall_revalidate(run, flow);
}

static void pass_end(struct sw_pmd_run *run)
{
	struct sw_pipe *pipe = run->pipe;
	struct sw_mega *mega = &pipe->mega;

	publish_oldest(run, pipe->pass_generation);
	pipe->settled = (uint32_t)pipe->pass_generation;
	pipe->pass_generation = sw_tables_generation(pipe->tables);
	pipe->sweep_at = 0;
	while (mega->n_high > 0 && mega->flows[mega->n_high - 1].id == 0)
		mega->n_high--;
}

static void sweep_flows(struct sw_pmd_run *run)
{
	struct sw_pipe *pipe = run->pipe;
	uint64_t end_ticks = 0;
	uint32_t n = 0;

	// A revalidation takes some microseconds: time is what bounds it.
	if (pipe->settled != pipe->generation && run->is_tsc)
		end_ticks = rte_rdtsc() + rte_get_tsc_hz() / 1000000 * REVALIDATE_US;
	while (pipe->sweep_at < pipe->mega.n_high) {
		if (n++ >= FLOWS_PER_SLICE && end_ticks == 0)
			return;
		if (end_ticks != 0 && n % 8 == 0 && (int64_t)(rte_rdtsc() - end_ticks) >= 0)
			return;
		sweep_flow(run, pipe->sweep_at++);
	}
	pass_end(run);
}

static void sort_all(struct sw_pmd_run *run)
{
	struct sw_pipe *pipe = run->pipe;
	uint64_t second_ticks = run->is_tsc ? rte_get_tsc_hz() : UINT64_C(1000000000);

	if (run->now_ticks - pipe->sorted_ticks < second_ticks)
		return;
	pipe->sorted_ticks = run->now_ticks;
	for (uint32_t i = 0; i < SW_MAX_PORTS * 2; i++) {
		if (pipe->mega.classifiers[i].n > 1)
			sw_mega_sort(&pipe->mega, &pipe->mega.classifiers[i]);
	}
}

static void gauges(struct sw_pmd_run *run)
{
	const struct sw_pipe *pipe = run->pipe;
	const struct sw_smc *smc = atomic_load_explicit(&pipe->smc, memory_order_relaxed);

	run->counters[PMDP_C_EMC_ENTRIES] = pipe->emc->n_entries;
	run->counters[PMDP_C_SMC_ENTRIES] = smc != NULL ? smc->n_entries : 0;
	run->counters[PMDP_C_MEGAFLOWS] = pipe->mega.n_flows;
	run->counters[PMDP_C_SHAPES] = pipe->mega.n_shapes;
	run->counters[PMDP_C_MARKS] = atomic_load_explicit(&pipe->n_marks, memory_order_relaxed);
}

void sw_sweep(struct sw_pmd_run *run)
{
	struct sw_pipe *pipe = run->pipe;
	struct sw_smc *smc = atomic_load_explicit(&pipe->smc, memory_order_acquire);

	tables_look(run);
	sweep_flows(run);
	sort_all(run);
	sw_emc_sweep(pipe->emc, &pipe->mega);
	if (smc != NULL && smc->n_entries > 0)
		sw_smc_sweep(smc, &pipe->mega);
	gauges(run);
}

void sw_pipe_flush(struct sw_pmd_run *run)
{
	struct sw_pipe *pipe = run->pipe;

	for (uint32_t flow = 0; flow < pipe->mega.n_high; flow++) {
		if (pipe->mega.flows[flow].id == 0)
			continue;
		sw_pipe_push(run, flow);
		sw_mega_delete(&pipe->mega, flow);
	}
	pipe->mega.n_high = 0;
	pipe->sweep_at = 0;
	gauges(run);
	publish_oldest(run, UINT64_MAX);
}

void sw_pipe_begin(struct sw_pmd_run *run)
{
	struct sw_pipe *pipe = run->pipe;

	tables_look(run);
	pipe->pass_generation = sw_tables_generation(pipe->tables);
	pipe->settled = pipe->generation;
	publish_oldest(run, pipe->pass_generation);
}
