// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_usage.h"

#include <errno.h>
#include <stdatomic.h>

#include <rte_common.h>

#include "sw_plan.h"
#include "sw_plan_fast.h"
#include "sw_pmd.h"
#include "sw_stats.h"
#include "sw_switch.h"

#define SW_USAGE_RARE 0.01

static int ticks_now(const struct sw_pmd *pmd, uint64_t *out_busy, uint64_t *out_all)
{
	uint64_t counters[PMDP_N_COUNTERS];
	int rc = sw_stats_raw(pmd, counters);

	if (rc != 0)
		return rc;
	*out_busy = counters[PMDP_C_BUSY_TICKS];
	*out_all = *out_busy + counters[PMDP_C_IDLE_TICKS] + counters[PMDP_C_SLEEP_TICKS];
	return 0;
}

void sw_usage_poll(struct sw_switch *sw, uint64_t now_ns)
{
	struct sw_pmd *pmd = NULL;

	while ((pmd = sw_pmd_next(sw, pmd)) != NULL) {
		struct sw_usage *usage = &pmd->usage;
		uint32_t at = usage->n % SW_USAGE_N_MARKS;

		if (now_ns < pmd->usage_due_ns ||
		    ticks_now(pmd, &usage->busy_ticks[at], &usage->all_ticks[at]) != 0)
			continue;
		usage->n++;
		pmd->usage_due_ns = now_ns + SW_USAGE_STEP_S * UINT64_C(1000000000);
	}
}

// The share of busy cycles since the mark that is so old.
static int busy_share(const struct sw_pmd *pmd, uint32_t seconds, double *out_share)
{
	const struct sw_usage *usage = &pmd->usage;
	uint32_t n_kept = RTE_MIN(usage->n, (uint32_t)SW_USAGE_N_MARKS);
	uint32_t back = RTE_MIN(1 + seconds / SW_USAGE_STEP_S, n_kept);
	uint32_t at = (usage->n - back) % SW_USAGE_N_MARKS;
	uint64_t busy, all;
	int rc = ticks_now(pmd, &busy, &all);

	if (rc != 0)
		return rc;
	if (n_kept == 0 || all == usage->all_ticks[at])
		return -EAGAIN;
	*out_share = (double)(busy - usage->busy_ticks[at]) / (double)(all - usage->all_ticks[at]);
	return 0;
}

static uint64_t sampled_of(const struct sw_plan_pmd *plan, const struct sw_pmd_rxq *rxq)
{
	for (uint32_t i = 0; i < plan->n_rxq; i++)
		if (plan->rxqs[i].index == rxq->port->index && plan->rxqs[i].queue == rxq->queue)
			return atomic_load_explicit(&plan->sampled[i], memory_order_relaxed);
	return 0;
}

int sw_usage_of(const struct sw_pmd *pmd, const struct sw_pmd_rxq *rxqs, uint32_t n,
		uint32_t seconds, double *out_pct, double *out_overhead_pct)
{
	const struct sw_plan_pmd *plan = sw_plan_of(pmd);
	double share, rest = 1, all;
	int rc = busy_share(pmd, seconds, &share);

	if (rc != 0 || plan == NULL)
		return -EAGAIN;
	// All that a PMD with one queue does is for that one.
	if (plan->sampled == NULL) {
		for (uint32_t i = 0; i < n; i++)
			out_pct[i] = 100 * share / n;
		*out_overhead_pct = 0;
		return 0;
	}
	all = (double)atomic_load_explicit(&plan->sampled[plan->n_rxq], memory_order_relaxed);
	// None of the samples was busy: too few yet, or packets are that rare.
	if (all <= 0 && share > SW_USAGE_RARE)
		return -EAGAIN;
	for (uint32_t i = 0; i < n; i++) {
		double part = all > 0 ? (double)sampled_of(plan, &rxqs[i]) / all : 0;

		out_pct[i] = 100 * share * part;
		rest -= part;
	}
	*out_overhead_pct = rest > 0 ? 100 * share * rest : 0;
	return 0;
}
