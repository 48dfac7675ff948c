// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// pmd-perf-show, pmd-perf-log and pmd-perf-log-set, with the options of their OVS namesakes.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "pmdp_clock.h"
#include "pmdp_json.h"
#include "sw_cmd_impl.h"
#include "sw_stats.h"
#include "sw_switch.h"

#define MAX_SHOWN 1000 // items of a history
#define MAX_LIMIT_US 1000000

struct shown {
	bool is_without_histograms;
	int core; // -1: all
	uint32_t n_iterations;
	uint32_t n_ms;
};

static int parse_shown(const struct sw_cmd_call *call, struct shown *out, struct sw_error *err)
{
	int rc = 0;

	*out = (struct shown){.core = -1};
	for (int i = 0; i < call->argc && rc == 0; i++) {
		const char *option = call->argv[i];

		if (strcmp(option, "-nh") == 0) {
			out->is_without_histograms = true;
		} else if (strcmp(option, "-it") == 0) {
			rc = sw_cmd_number(call, &i, MAX_SHOWN, &out->n_iterations, err);
		} else if (strcmp(option, "-ms") == 0) {
			rc = sw_cmd_number(call, &i, MAX_SHOWN, &out->n_ms, err);
		} else {
			rc = sw_cmd_core(call, &i, &out->core, err);
		}
	}
	return rc;
}

// "key": a list of n records, each a map that put() fills.
static void put_list(yajl_gen gen, const char *key, const void *records, size_t record_bytes,
		     size_t n, void (*put)(yajl_gen gen, const void *record))
{
	pmdp_json_key(gen, key);
	yajl_gen_array_open(gen);
	for (size_t i = 0; i < n; i++) {
		yajl_gen_map_open(gen);
		put(gen, (const char *)records + i * record_bytes);
		yajl_gen_map_close(gen);
	}
	yajl_gen_array_close(gen);
}

static void totals(yajl_gen gen, const struct sw_perf_totals *n)
{
	pmdp_json_kv_u64(gen, "iterations", n->n_iterations);
	pmdp_json_kv_u64(gen, "iterations_idle", n->n_idle);
	pmdp_json_kv_u64(gen, "cycles", n->cycles);
	pmdp_json_kv_u64(gen, "cycles_idle", n->idle_cycles);
	pmdp_json_kv_u64(gen, "packets", n->n_packets);
	pmdp_json_kv_u64(gen, "batches", n->n_batches);
	pmdp_json_kv_u64(gen, "upcalls", n->n_upcalls);
	pmdp_json_kv_u64(gen, "cycles_upcalls", n->upcall_cycles);
	pmdp_json_kv_u64(gen, "suspicious", n->n_suspicious);
	pmdp_json_kv_u64(gen, "suspicious_not_logged", n->n_lost);
}

// Bins that have something: {"from": lowest value, "n": how many}.
static void histograms(yajl_gen gen, const struct sw_perf_totals *n)
{
	pmdp_json_key(gen, "histograms");
	yajl_gen_map_open(gen);
	for (uint32_t hist = 0; hist < SW_PERF_N_HISTS; hist++) {
		pmdp_json_key(gen, sw_perf_hist_name(hist));
		yajl_gen_array_open(gen);
		for (uint32_t bin = 0; bin < SW_PERF_N_BINS; bin++) {
			if (n->bins[hist][bin] == 0)
				continue;
			yajl_gen_map_open(gen);
			pmdp_json_kv_u64(gen, "from", sw_perf_bin_low(bin));
			pmdp_json_kv_u64(gen, "n", n->bins[hist][bin]);
			yajl_gen_map_close(gen);
		}
		yajl_gen_array_close(gen);
	}
	yajl_gen_map_close(gen);
}

static void iteration(yajl_gen gen, const void *record)
{
	const struct sw_perf_iteration *it = record;

	pmdp_json_kv_u64(gen, "begin_cycles", it->begin_ticks);
	pmdp_json_kv_u64(gen, "cycles", it->cycles);
	pmdp_json_kv_int(gen, "packets", it->n_packets);
	pmdp_json_kv_int(gen, "batches", it->n_batches);
	pmdp_json_kv_int(gen, "upcalls", it->n_upcalls);
	pmdp_json_kv_u64(gen, "cycles_upcalls", it->upcall_cycles);
	pmdp_json_kv_int(gen, "idle_before", it->n_idle);
}

static void iterations(yajl_gen gen, const struct sw_pmd *pmd, uint32_t n)
{
	struct sw_perf_iteration *list = calloc(n, sizeof(*list));

	n = list == NULL ? 0 : sw_perf_iterations(pmd, list, n);
	put_list(gen, "recent_iterations", list, sizeof(*list), n, iteration);
	free(list);
}

static void millisecond(yajl_gen gen, const void *record)
{
	const struct sw_perf_ms *ms = record;

	pmdp_json_kv_u64(gen, "begin_cycles", ms->begin_ticks);
	pmdp_json_kv_u64(gen, "cycles", ms->cycles);
	pmdp_json_kv_int(gen, "iterations", ms->n_iterations);
	pmdp_json_kv_int(gen, "iterations_idle", ms->n_idle);
	pmdp_json_kv_u64(gen, "packets", ms->n_packets);
	pmdp_json_kv_int(gen, "batches", ms->n_batches);
	pmdp_json_kv_int(gen, "upcalls", ms->n_upcalls);
	pmdp_json_kv_u64(gen, "cycles_upcalls", ms->upcall_cycles);
}

static void milliseconds(yajl_gen gen, const struct sw_pmd *pmd, uint32_t n)
{
	struct sw_perf_ms *list = calloc(n, sizeof(*list));

	n = list == NULL ? 0 : sw_perf_milliseconds(pmd, list, n);
	put_list(gen, "recent_ms", list, sizeof(*list), n, millisecond);
	free(list);
}

static void show_pmd(const struct sw_cmd_call *call, const struct sw_pmd *pmd, const void *ctx)
{
	const struct shown *shown = ctx;
	yajl_gen gen = call->gen;
	struct sw_perf_totals perf;
	int rc;

	pmdp_json_kv_seconds(gen, "measured_s",
			     pmdp_mono_now_ns() - RTE_MAX(pmd->cleared_ns, call->sw->start_ns));
	sw_cmd_pmd_counters(call, pmd, NULL);
	rc = sw_perf_totals(pmd, &perf);
	pmdp_json_key(gen, "perf");
	if (rc == 0) {
		yajl_gen_map_open(gen);
		totals(gen, &perf);
		if (!shown->is_without_histograms)
			histograms(gen, &perf);
		if (shown->n_iterations > 0)
			iterations(gen, pmd, shown->n_iterations);
		if (shown->n_ms > 0)
			milliseconds(gen, pmd, shown->n_ms);
		yajl_gen_map_close(gen);
	} else {
		yajl_gen_null(gen); // never recorded, or stuck while it did
	}
}

int sw_cmd_pmd_perf_show(const struct sw_cmd_call *call, struct sw_error *err)
{
	struct shown shown;
	int rc = parse_shown(call, &shown, err);

	if (rc != 0)
		return rc;
	yajl_gen_map_open(call->gen);
	pmdp_json_kv_bool(call->gen, "pmd_perf_metrics", call->sw->settings.pmd_perf_metrics);
	sw_cmd_pmds(call, shown.core, show_pmd, &shown);
	yajl_gen_map_close(call->gen);
	return 0;
}

static void log_of(yajl_gen gen, const struct sw_perf_log *log)
{
	yajl_gen_map_open(gen);
	pmdp_json_kv_int(gen, "suspicious", log->n_suspicious);
	pmdp_json_kv_int(gen, "at", log->at);
	put_list(gen, "iterations", log->iterations, sizeof(log->iterations[0]), log->n, iteration);
	yajl_gen_map_close(gen);
}

static void log_pmd(const struct sw_cmd_call *call, const struct sw_pmd *pmd, const void *ctx)
{
	const struct sw_perf_kept *kept = &pmd->perf;
	uint64_t n = kept->n_logs < SW_PERF_N_KEPT ? kept->n_logs : SW_PERF_N_KEPT;
	yajl_gen gen = call->gen;

	(void)ctx;
	pmdp_json_kv_u64(gen, "tsc_hz",
			 pmd->sw->tsc_hz != 0 ? pmd->sw->tsc_hz : UINT64_C(1000000000));
	pmdp_json_kv_u64(gen, "logged", kept->n_logs);
	pmdp_json_key(gen, "logs");
	yajl_gen_array_open(gen);
	for (uint64_t i = kept->n_logs - n; i < kept->n_logs; i++)
		log_of(gen, kept->logs[i % SW_PERF_N_KEPT]);
	yajl_gen_array_close(gen);
}

int sw_cmd_pmd_perf_log(const struct sw_cmd_call *call, struct sw_error *err)
{
	const struct sw_perf_limits *limits = &call->sw->perf_limits;
	int core = -1, rc = 0;

	for (int i = 0; i < call->argc && rc == 0; i++)
		rc = sw_cmd_core(call, &i, &core, err);
	if (rc != 0)
		return rc;
	sw_perf_poll(call->sw);
	yajl_gen_map_open(call->gen);
	pmdp_json_kv_bool(call->gen, "pmd_perf_metrics", call->sw->settings.pmd_perf_metrics);
	pmdp_json_kv_bool(call->gen, "on", limits->is_logging);
	pmdp_json_kv_int(call->gen, "limit_us", limits->limit_us);
	pmdp_json_kv_int(call->gen, "before", limits->n_before);
	pmdp_json_kv_int(call->gen, "after", limits->n_after);
	pmdp_json_kv_bool(call->gen, "extend", limits->is_extending);
	sw_cmd_pmds(call, core, log_pmd, NULL);
	yajl_gen_map_close(call->gen);
	return 0;
}

int sw_cmd_pmd_perf_log_set(const struct sw_cmd_call *call, struct sw_error *err)
{
	struct sw_perf_limits limits = call->sw->perf_limits;
	int rc = 0;

	for (int i = 0; i < call->argc && rc == 0; i++) {
		const char *word = call->argv[i];

		if (strcmp(word, "on") == 0 || strcmp(word, "off") == 0)
			limits.is_logging = strcmp(word, "on") == 0;
		else if (strcmp(word, "-e") == 0 || strcmp(word, "-ne") == 0)
			limits.is_extending = strcmp(word, "-e") == 0;
		else if (strcmp(word, "-b") == 0)
			rc = sw_cmd_number(call, &i, SW_PERF_MAX_NEIGHBOURS, &limits.n_before, err);
		else if (strcmp(word, "-a") == 0)
			rc = sw_cmd_number(call, &i, SW_PERF_MAX_NEIGHBOURS, &limits.n_after, err);
		else if (strcmp(word, "-us") == 0)
			rc = sw_cmd_number(call, &i, MAX_LIMIT_US, &limits.limit_us, err);
		else
			rc = sw_fail(err, -EINVAL,
				     "%.40s: on, off, -b, -a, -us, -e and -ne are known", word);
	}
	if (rc == 0 && limits.limit_us == 0)
		rc = sw_fail(err, -EINVAL, "-us 0: every iteration would be suspicious");
	if (rc != 0)
		return rc;
	call->sw->perf_limits = limits;
	sw_perf_apply(call->sw);
	return 0;
}
