// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Commands about PMD threads.
#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_ethdev.h>

#include "pmdp_json.h"
#include "sw_cmd_impl.h"
#include "sw_emc_fast.h"
#include "sw_flow.h"
#include "sw_smc_fast.h"
#include "sw_stats.h"
#include "sw_switch.h"
#include "sw_usage.h"

static void identity(yajl_gen gen, const struct sw_pmd *pmd)
{
	pmdp_json_kv_text(gen, "name", pmd->name);
	pmdp_json_kv_int(gen, "tid", pmd->tid);
	pmdp_json_kv_int(gen, "core", pmd->core);
	if (pmd->numa >= 0)
		pmdp_json_kv_int(gen, "numa", pmd->numa);
	else
		pmdp_json_kv_null(gen, "numa");
}

int sw_cmd_number(const struct sw_cmd_call *call, int *i, uint32_t max, uint32_t *out,
		  struct sw_error *err)
{
	const char *option = call->argv[*i];
	const char *text = *i + 1 < call->argc ? call->argv[*i + 1] : "";
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end != 0 || errno != 0 || n > max)
		return sw_fail(err, -EINVAL, "%s: wants a number from 0 to %u, not \"%.40s\"",
			       option, max, text);
	*out = (uint32_t)n;
	++*i;
	return 0;
}

int sw_cmd_core(const struct sw_cmd_call *call, int *i, int *out_core, struct sw_error *err)
{
	const char *option = call->argv[*i];
	uint32_t core;
	int rc;

	if (strcmp(option, "-pmd") != 0)
		return sw_fail(err, -EINVAL, "%.40s: no such option", option);
	rc = sw_cmd_number(call, i, CPU_SETSIZE - 1, &core, err);
	if (rc == 0 && sw_pmd_by_core(call->sw, (int)core) == NULL)
		rc = sw_fail(err, -ENOENT, "-pmd %u: no PMD runs on that core", core);
	if (rc == 0)
		*out_core = (int)core;
	return rc;
}

// Of a command without other options: the core, or -1 for all.
static int core_of(const struct sw_cmd_call *call, int *out_core, struct sw_error *err)
{
	int rc = 0;

	*out_core = -1;
	for (int i = 0; i < call->argc && rc == 0; i++)
		rc = sw_cmd_core(call, &i, out_core, err);
	return rc;
}

void sw_cmd_pmds(const struct sw_cmd_call *call, int core, sw_cmd_pmd_fn *put, const void *ctx)
{
	struct sw_pmd *pmd = NULL;

	pmdp_json_key(call->gen, "pmds");
	yajl_gen_array_open(call->gen);
	while ((pmd = sw_pmd_next(call->sw, pmd)) != NULL) {
		if (core >= 0 && pmd->core != core)
			continue;
		yajl_gen_map_open(call->gen);
		identity(call->gen, pmd);
		put(call, pmd, ctx);
		yajl_gen_map_close(call->gen);
	}
	yajl_gen_array_close(call->gen);
}

static double ratio(uint64_t n, uint64_t of)
{
	return of ? (double)n / (double)of : 0.0;
}

static void counters(yajl_gen gen, const struct sw_pmd_stats *stats)
{
	// Keys of the reply, and what the OVS namesake calls them.
	static const struct {
		const char *key;
		uint32_t index;
	} shown[] = {
		{"packets_received", PMDP_C_RX_PACKETS},
		{"recirculations", PMDP_C_RECIRCULATIONS},
		{"phwol_hits", PMDP_C_PHWOL_HITS},
		{"emc_hits", PMDP_C_EMC_HITS},
		{"smc_hits", PMDP_C_SMC_HITS},
		{"megaflow_hits", PMDP_C_MEGAFLOW_HITS},
		{"misses", PMDP_C_MISSES},
		{"lost", PMDP_C_LOST},
		{"malformed", PMDP_C_MALFORMED},
		{"packets_sent", PMDP_C_TX_PACKETS},
		{"rx_batches", PMDP_C_RX_BATCHES},
		{"tx_batches", PMDP_C_TX_BATCHES},
		{"in_flight", PMDP_C_IN_FLIGHT},
		{"iterations", PMDP_C_ITERATIONS},
		{"cycles_idle", PMDP_C_IDLE_TICKS},
		{"cycles_busy", PMDP_C_BUSY_TICKS},
		{"cycles_sleep", PMDP_C_SLEEP_TICKS},
		{"cycles_upcalls", PMDP_C_UPCALL_TICKS},
		{"run_hits", PMDP_C_RUN_HITS},
		{"subtable_lookups", PMDP_C_LOOKUPS},
		{"flow_limit_hits", PMDP_C_FLOW_LIMIT_HITS},
		{"shape_limit_hits", PMDP_C_SHAPE_LIMIT_HITS},
		{"copies", PMDP_C_COPIES},
		{"emc_entries", PMDP_C_EMC_ENTRIES},
		{"smc_entries", PMDP_C_SMC_ENTRIES},
		{"megaflows", PMDP_C_MEGAFLOWS},
		{"megaflow_shapes", PMDP_C_SHAPES},
		{"marked_megaflows", PMDP_C_MARKS},
		{"n_rxq", PMDP_C_N_RXQ},
	};
	const uint64_t *n = stats->counters;

	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		pmdp_json_kv_u64(gen, shown[i].key, n[shown[i].index]);
	pmdp_json_kv_u64(gen, "tsc_hz", stats->ticks_hz);
	pmdp_json_kv_real(gen, "packets_per_batch",
			  ratio(n[PMDP_C_TX_PACKETS], n[PMDP_C_TX_BATCHES]));
	pmdp_json_kv_real(gen, "packets_per_rx_batch",
			  ratio(n[PMDP_C_RX_PACKETS], n[PMDP_C_RX_BATCHES]));
	pmdp_json_kv_real(gen, "cycles_per_packet",
			  ratio(n[PMDP_C_BUSY_TICKS] + n[PMDP_C_IDLE_TICKS], n[PMDP_C_RX_PACKETS]));
	// What the entries above are to be compared with.
	pmdp_json_kv_int(gen, "emc_size", SW_EMC_ENTRIES);
	pmdp_json_kv_int(gen, "smc_size", SW_SMC_WAYS * SW_SMC_BUCKETS);
	pmdp_json_kv_int(gen, "flow_limit", stats->flow_limit);
	// Subtables that misses visited are among them, as in OVS.
	pmdp_json_kv_real(gen, "subtable_lookups_per_hit",
			  ratio(n[PMDP_C_LOOKUPS], n[PMDP_C_MEGAFLOW_HITS]));
	pmdp_json_kv_bool(gen, "keepalive", n[PMDP_C_KEEPALIVE] != 0);
	pmdp_json_kv_drops(gen, "drops", &n[PMDP_C_DROP0]);
}

void sw_cmd_pmd_counters(const struct sw_cmd_call *call, const struct sw_pmd *pmd, const void *ctx)
{
	struct sw_pmd_stats stats;
	int rc = sw_stats_pmd(pmd, &stats);

	(void)ctx;
	// A PMD that is stuck while it publishes: no numbers are better than torn ones.
	pmdp_json_kv_bool(call->gen, "readable", rc == 0);
	if (rc == 0)
		counters(call->gen, &stats);
}

int sw_cmd_pmd_stats_show(const struct sw_cmd_call *call, struct sw_error *err)
{
	yajl_gen gen = call->gen;
	uint64_t bad[SW_N_BAD];
	int core, rc = core_of(call, &core, err);

	if (rc != 0)
		return rc;
	yajl_gen_map_open(gen);
	sw_cmd_pmds(call, core, sw_cmd_pmd_counters, NULL);
	sw_flow_bad_counts(call->sw->flows, bad);
	pmdp_json_key(gen, "malformed_since_start");
	yajl_gen_map_open(gen);
	for (uint32_t i = SW_BAD_NONE + 1; i < SW_N_BAD; i++)
		pmdp_json_kv_u64(gen, sw_bad_name(i), bad[i]);
	yajl_gen_map_close(gen);
	yajl_gen_map_close(gen);
	return 0;
}

int sw_cmd_pmd_stats_clear(const struct sw_cmd_call *call, struct sw_error *err)
{
	int core, rc = core_of(call, &core, err);

	if (rc == 0)
		sw_stats_clear(call->sw, core);
	return rc;
}

// Whether the device has the queue switched on; one that can't tell has.
static bool is_enabled(const struct sw_pmd_rxq *rxq)
{
	struct rte_eth_rxq_info info = {.queue_state = RTE_ETH_QUEUE_STATE_STARTED};

	return rxq->port->state == SW_PORT_ACTIVE &&
	       (rte_eth_rx_queue_info_get(rxq->port->port_id, rxq->queue, &info) != 0 ||
		info.queue_state == RTE_ETH_QUEUE_STATE_STARTED);
}

static void pct(yajl_gen gen, const char *key, bool is_known, double value)
{
	if (is_known)
		pmdp_json_kv_real(gen, key, value);
	else
		pmdp_json_kv_null(gen, key);
}

static void put_rxqs(yajl_gen gen, const struct sw_pmd *pmd, const struct sw_pmd_rxq *list,
		     uint32_t n, uint32_t seconds, double *usage)
{
	double overhead = 0;
	bool is_known = n > 0 && sw_usage_of(pmd, list, n, seconds, usage, &overhead) == 0;

	// No queue can be pinned to a PMD, so none is kept for pinned ones.
	pmdp_json_kv_bool(gen, "isolated", false);
	pmdp_json_key(gen, "rxqs");
	yajl_gen_array_open(gen);
	for (uint32_t i = 0; i < n; i++) {
		yajl_gen_map_open(gen);
		pmdp_json_kv_text(gen, "port", list[i].port->conf.name);
		pmdp_json_kv_int(gen, "queue", list[i].queue);
		pmdp_json_kv_bool(gen, "enabled", is_enabled(&list[i]));
		pct(gen, "usage_pct", is_known, usage[i]);
		yajl_gen_map_close(gen);
	}
	yajl_gen_array_close(gen);
	pct(gen, "overhead_pct", is_known, overhead);
}

static void rxqs(const struct sw_cmd_call *call, const struct sw_pmd *pmd, const void *ctx)
{
	uint32_t n = sw_pmd_rxqs(call->sw, pmd, NULL, 0);
	struct sw_pmd_rxq *list = calloc(n + 1, sizeof(*list));
	double *usage = calloc(n + 1, sizeof(*usage));
	const uint32_t *seconds = ctx;

	if (list != NULL && usage != NULL)
		n = RTE_MIN(n, sw_pmd_rxqs(call->sw, pmd, list, n));
	else
		n = 0;
	put_rxqs(call->gen, pmd, list, n, *seconds, usage);
	free(list);
	free(usage);
}

int sw_cmd_pmd_rxq_show(const struct sw_cmd_call *call, struct sw_error *err)
{
	uint32_t seconds = SW_USAGE_MAX_S;
	int core = -1, rc = 0;

	for (int i = 0; i < call->argc && rc == 0; i++) {
		if (strcmp(call->argv[i], "-secs") == 0)
			rc = sw_cmd_number(call, &i, SW_USAGE_MAX_S, &seconds, err);
		else
			rc = sw_cmd_core(call, &i, &core, err);
	}
	if (rc == 0 && (seconds == 0 || seconds % SW_USAGE_STEP_S != 0))
		rc = sw_fail(err, -EINVAL, "-secs %u: must be a multiple of %u from %u to %u",
			     seconds, SW_USAGE_STEP_S, SW_USAGE_STEP_S, SW_USAGE_MAX_S);
	if (rc != 0)
		return rc;
	yajl_gen_map_open(call->gen);
	pmdp_json_kv_int(call->gen, "usage_s", seconds);
	sw_cmd_pmds(call, core, rxqs, &seconds);
	yajl_gen_map_close(call->gen);
	return 0;
}
