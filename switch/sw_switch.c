// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_switch.h"

#include <errno.h>

#include <rte_rcu_qsbr.h>

#include "pmdp_clock.h"
#include "pmdpulse.h"
#include "sw_flow.h"
#include "sw_log.h"
#include "sw_mac.h"
#include "sw_notify.h"
#include "sw_offload.h"
#include "sw_plan.h"
#include "sw_pool.h"
#include "sw_sched.h"

#define SW_PORTS_PUBLISH_NS UINT64_C(200000000)

void sw_switch_pmd_cpus(const struct sw_switch *sw, const struct sw_settings *settings,
			cpu_set_t *out_cpus)
{
	int first = 0;

	if (settings->is_pmd_cpus_given) {
		*out_cpus = settings->pmd_cpus;
		return;
	}
	*out_cpus = sw->allowed_cpus;
	while (first < CPU_SETSIZE && !CPU_ISSET(first, out_cpus))
		first++;
	if (CPU_COUNT(out_cpus) > 1)
		CPU_CLR(first, out_cpus);
}

static int check_settings(const struct sw_switch *sw, const struct sw_settings *wanted,
			  struct sw_error *err)
{
	cpu_set_t cpus;

	for (int cpu = 0; wanted->is_pmd_cpus_given && cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &wanted->pmd_cpus) && !CPU_ISSET(cpu, &sw->allowed_cpus))
			return sw_fail(
				err, -EINVAL,
				"pmd-cpu-mask: core %d is not among those that this process may "
				"use (see Cpus_allowed_list in /proc/self/status)",
				cpu);
	sw_switch_pmd_cpus(sw, wanted, &cpus);
	if (CPU_COUNT(&cpus) > SW_MAX_PMDS)
		return sw_fail(err, -EINVAL, "pmd-cpu-mask: at most %d PMD threads", SW_MAX_PMDS);
	return 0;
}

// PMDs for the cores that have none; those of other cores are told to leave.
static int apply_pmds(struct sw_switch *sw, struct sw_error *err)
{
	struct sw_pmd *pmd = NULL;
	cpu_set_t cpus;
	int first_rc = 0;
	int rc;

	sw_switch_pmd_cpus(sw, &sw->settings, &cpus);
	while ((pmd = sw_pmd_next(sw, pmd)) != NULL) {
		if (!pmd->is_leaving && !CPU_ISSET(pmd->core, &cpus)) {
			pmd->is_leaving = true;
			sw_plan_changed_pmds(sw);
		}
	}
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &cpus) || sw_pmd_by_core(sw, cpu) != NULL)
			continue;
		rc = sw_pmd_create(sw, cpu, first_rc == 0 ? err : NULL);
		first_rc = first_rc == 0 ? rc : first_rc;
		sw_plan_changed_pmds(sw);
	}
	rc = sw_perf_apply(sw);
	if (rc != 0 && first_rc == 0)
		first_rc = sw_fail(err, rc,
				   "pmd-perf-metrics: no memory to record a PMD's iterations");
	return first_rc;
}

static bool is_sched_changed(const struct sw_settings *a, const struct sw_settings *b)
{
	return a->fifo_priority != b->fifo_priority ||
	       a->is_pmd_cpus_given != b->is_pmd_cpus_given ||
	       !CPU_EQUAL(&a->pmd_cpus, &b->pmd_cpus);
}

// Settings that PMDs find in their plans.
static bool is_plan_changed(const struct sw_settings *a, const struct sw_settings *b)
{
	return a->tx_flush_interval_us != b->tx_flush_interval_us ||
	       a->emc_inv_prob != b->emc_inv_prob || a->smc_enable != b->smc_enable ||
	       a->cache_bypass != b->cache_bypass || a->flow_limit != b->flow_limit ||
	       a->max_idle_ms != b->max_idle_ms;
}

// A thread could not be made: back to what was. Plans go out when all this settles, so PMDs that
// were to leave by it know nothing of it yet; those in stays were there before and were not
// leaving.
static void revert(struct sw_switch *sw, const struct sw_settings *old, const bool *stays)
{
	struct sw_pmd *pmd = NULL;

	sw->settings = *old;
	pmdp_publisher_set_interval(sw->pub, old->keepalive_interval_ns);
	sw_mac_set_aging(sw->macs, old->mac_aging_s);
	while ((pmd = sw_pmd_next(sw, pmd)) != NULL) {
		if (stays[pmd->index])
			pmd->is_leaving = false;
		if (pmd->is_known)
			sw_sched_pmd(sw, pmd);
	}
	sw_sched_move_control(sw);
	apply_pmds(sw, NULL);
	sw_plan_changed(sw);
	sw_plan_changed_pmds(sw);
}

int sw_switch_apply(struct sw_switch *sw, const struct sw_settings *wanted, struct sw_error *err)
{
	struct sw_settings old = sw->settings;
	bool stays[SW_MAX_PMDS] = {false};
	struct sw_pmd *pmd = NULL;
	int rc = check_settings(sw, wanted, err);
	int settle_rc;

	if (rc == 0 && wanted->keepalive_interval_ns != old.keepalive_interval_ns) {
		rc = pmdp_publisher_set_interval(sw->pub, wanted->keepalive_interval_ns);
		if (rc != 0)
			return sw_fail(err, -EINVAL, "keepalive-interval: must be 1 ms to 1 h");
	}
	if (rc != 0)
		return rc;
	sw->settings = *wanted;
	sw_mac_set_aging(sw->macs, wanted->mac_aging_s);
	if (sw->is_starting)
		return 0; // sw_switch_start() does the rest at once
	if (is_sched_changed(wanted, &old)) {
		while ((pmd = sw_pmd_next(sw, pmd)) != NULL)
			if (pmd->is_known)
				sw_sched_pmd(sw, pmd);
		sw_sched_move_control(sw);
	}
	if (is_plan_changed(wanted, &old))
		sw_plan_changed(sw);
	while ((pmd = sw_pmd_next(sw, pmd)) != NULL)
		stays[pmd->index] = !pmd->is_leaving;
	rc = apply_pmds(sw, err);
	if (rc != 0 && rc != -ETIMEDOUT)
		revert(sw, &old, stays);
	settle_rc = sw_plan_settle(sw, rc == 0 ? err : NULL);
	return rc != 0 ? rc : settle_rc;
}

int sw_switch_start(struct sw_switch *sw, struct sw_error *err)
{
	int rc;
	int settle_rc;

	sw->is_starting = false;
	rc = apply_pmds(sw, err);
	sw_plan_changed(sw);
	settle_rc = sw_plan_settle(sw, rc == 0 ? err : NULL);
	return rc != 0 ? rc : settle_rc;
}

void sw_switch_housekeep(struct sw_switch *sw)
{
	uint64_t now_ns = pmdp_mono_now_ns();
	struct sw_port *port = NULL;

	pmdp_publisher_housekeep(sw->pub);
	sw_plan_poll(sw);
	if (now_ns - sw->ports_published_ns >= SW_PORTS_PUBLISH_NS) {
		sw->ports_published_ns = now_ns;
		while ((port = sw_port_next(sw, port)) != NULL)
			sw_port_publish(sw, port, now_ns);
	}
	sw_perf_poll(sw);
	sw_usage_poll(sw, now_ns);
	sw_flow_reap(sw->flows);
	if (sw->macs)
		sw_mac_poll(sw->macs, (uint32_t)(now_ns / UINT64_C(1000000000)));
	sw_pools_reap(sw->pools);
	sw_offload_poll(sw);
	sw_notify_tick(sw, now_ns);
}
