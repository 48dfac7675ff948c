// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// From the keys of a burst to its flows: caches, then megaflows, then one by one what is left.
#include <string.h>

#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "sw_bits_fast.h"
#include "sw_impl_fast.h"
#include "sw_pipe_fast.h"

// A packet like the one before goes where that one went. Returns those of found's packets and
// after.
static uint32_t follow(uint32_t runs, uint32_t found)
{
	for (uint32_t shift = 1; shift < 32; shift *= 2) {
		found |= runs & found << shift;
		runs &= runs << shift;
	}
	return found;
}

static inline void follow_flows(struct sw_pipe *pipe, uint32_t runs, uint32_t n)
{
	uint32_t flow = pipe->flows[0];

	for (uint32_t i = 1; i < n; i++) {
		flow = runs >> i & 1 ? flow : pipe->flows[i];
		pipe->flows[i] = flow;
	}
}

// Packets by where their flow was found.
struct found {
	uint32_t emc;
	uint32_t smc;
	uint32_t mega;
};

static __rte_noinline void lookup_caches(struct sw_pmd_run *run, const struct sw_pass *pass,
					 uint32_t want, struct found *found)
{
	struct sw_pipe *pipe = run->pipe;

	SW_FOR_EACH_BIT(i, want)
	{
		pipe->hashes[i] = sw_key_hash(&pipe->keys[i], pass->pkts[i]);
		rte_prefetch0(sw_emc_set(pipe->emc, pipe->hashes[i]));
		if (pass->caches.is_smc)
			rte_prefetch0(sw_smc_at(run->plan->smc, pipe->hashes[i]));
	}
	if (pass->caches.is_emc)
		found->emc = run->plan->impl->emc_lookup(pipe->emc, &pipe->mega, pipe->keys,
							 pipe->hashes, want, pass->wide,
							 pipe->flows);
	if (pass->caches.is_smc)
		found->smc = sw_smc_lookup(run->plan->smc, &pipe->mega, pass->cls, pipe->keys,
					   pipe->hashes, want & ~found->emc, pipe->flows);
}

// Into the caches: what a slower one has found. Each wait for the EMC is of random length, and
// inv_prob on average.
static __rte_noinline void remember(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq,
				    const struct sw_pass *pass, const struct found *found)
{
	struct sw_pipe *pipe = run->pipe;

	if (pass->caches.is_smc) {
		SW_FOR_EACH_BIT(i, found->mega)
		sw_smc_insert(run->plan->smc, pipe->hashes[i], pipe->flows[i]);
	}
	if (!pass->caches.is_emc)
		return;
	SW_FOR_EACH_BIT(i, found->smc | found->mega)
	{
		if (pass->cls->emc_skip > 0 && rxq->emc_inv_prob > 1) {
			pass->cls->emc_skip--;
			continue;
		}
		pass->cls->emc_skip = sw_upcall_emc_skip(pipe, rxq->emc_inv_prob);
		sw_emc_insert(pipe->emc, &pipe->mega, &pipe->keys[i], pipe->hashes[i],
			      (pass->wide & SW_BIT(i)) != 0, pipe->flows[i]);
	}
}

static uint32_t old_flows(const struct sw_pipe *pipe, uint32_t resolved)
{
	uint32_t old = 0;

	if (likely(pipe->settled == pipe->generation))
		return 0;
	SW_FOR_EACH_BIT(i, resolved)
	old |= (uint32_t)(pipe->mega.flows[pipe->flows[i]].generation != pipe->generation) << i;
	return old;
}

// flows[] of all packets of the pass.
void sw_pipe_lookup(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq, struct sw_pass *pass)
{
	struct sw_pipe *pipe = run->pipe;
	const struct sw_impl *impl = run->plan->impl;
	uint32_t all = sw_bits_below(pass->n);
	// One look whether there are any is enough where there were none.
	uint32_t runs =
		impl->runs(pipe->keys, pipe->has_runs ? pass->n : RTE_MIN(pass->n, 2u), pass->wide);
	struct found found = {0, 0, 0};
	bool is_cached = pass->caches.is_emc || pass->caches.is_smc;
	uint32_t resolved, good, want = all & ~runs;

	pipe->has_runs = runs != 0;
	if (is_cached)
		lookup_caches(run, pass, want, &found);
	want &= ~(found.emc | found.smc);
	if (want != 0)
		found.mega = impl->mega_lookup(&pipe->mega, pass->cls, pipe->keys, want,
					       pipe->flows, &run->counters[PMDP_C_LOOKUPS]);
	resolved = found.emc | found.smc | found.mega;
	good = resolved & ~old_flows(pipe, resolved);
	if (is_cached && ((found.smc | found.mega) & good) != 0) {
		const struct found kept = {0, found.smc & good, found.mega & good};

		remember(run, rxq, pass, &kept);
	}
	found.emc &= good;
	found.smc &= good;
	if (runs != 0) {
		follow_flows(pipe, runs, pass->n);
		found.emc = follow(runs, found.emc);
		found.smc = follow(runs, found.smc);
		good = follow(runs, good);
		run->counters[PMDP_C_RUN_HITS] += sw_n_bits(good & runs);
	}
	run->counters[PMDP_C_EMC_HITS] += sw_n_bits(found.emc);
	run->counters[PMDP_C_SMC_HITS] += sw_n_bits(found.smc);
	run->counters[PMDP_C_MEGAFLOW_HITS] += sw_n_bits(good & ~found.emc & ~found.smc);
	// In order: the first packet of a new flow makes it, the next ones find it.
	SW_FOR_EACH_BIT(i, all & ~good)
	pipe->flows[i] = sw_upcall(run, rxq, pass->cls, i, pass->pkts[i],
				   (pass->wide & SW_BIT(i)) != 0, pass->caches);
	SW_FOR_EACH_BIT(i, pass->wide)
	memset(&pipe->keys[i].word[SW_KEY_META_WORD], 0, 64);
}
