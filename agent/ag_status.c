// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ag_agent.h"
#include "ag_ctl.h"
#include "ag_instance.h"
#include "ag_log.h"
#include "ag_prio.h"
#include "build_info.h"
#include "pmdp_clock.h"
#include "pmdp_json.h"

#define AG_MAX_RIGHTS 32

static void put_rights(const struct ag_instance *instance, yajl_gen gen)
{
	const char *names[AG_MAX_RIGHTS];
	uint32_t n = ag_prio_rights(names, AG_MAX_RIGHTS);

	n += ag_diag_rights(instance->diag, names + n, AG_MAX_RIGHTS - n);
	pmdp_json_key(gen, "rights");
	yajl_gen_array_open(gen);
	for (uint32_t i = 0; i < n && i < AG_MAX_RIGHTS; i++)
		pmdp_json_text(gen, names[i]);
	yajl_gen_array_close(gen);
}

static void put_sinks(const struct ag_sinks *sinks, yajl_gen gen)
{
	pmdp_json_key(gen, "sinks");
	yajl_gen_array_open(gen);
	for (uint32_t i = 0; i < sinks->n; i++) {
		struct ag_sink_stats stats;

		sinks->sinks[i]->stats(sinks->sinks[i], &stats);
		yajl_gen_map_open(gen);
		pmdp_json_kv_text(gen, "name", sinks->sinks[i]->name);
		pmdp_json_kv_u64(gen, "written", stats.n_written);
		pmdp_json_kv_u64(gen, "lost", stats.n_lost);
		pmdp_json_kv_u64(gen, "waiting", stats.n_waiting);
		pmdp_json_kv_text(gen, "error", stats.error);
		yajl_gen_map_close(gen);
	}
	yajl_gen_array_close(gen);
}

static void put_switch(const struct ag_instance *instance, yajl_gen gen)
{
	static const char *const states[] = {
		[PMDP_WATCH_ABSENT] = "absent",   [PMDP_WATCH_UP] = "up",
		[PMDP_WATCH_STOPPED] = "stopped", [PMDP_WATCH_GONE] = "gone",
		[PMDP_WATCH_REFUSED] = "refused",
	};
	const struct pmdp_segment_info *info = pmdp_watch_info(instance->watch);
	uint32_t status = pmdp_watch_status(instance->watch);
	uint64_t since_us = pmdp_watch_since_realtime_us(instance->watch);
	char since[64];

	pmdp_json_key(gen, "switch");
	yajl_gen_map_open(gen);
	pmdp_json_kv_text(gen, "state", status < 5 ? states[status] : "unknown");
	pmdp_json_kv_text(gen, "since",
			  since_us ? pmdp_rfc3339(since_us, since, sizeof(since)) : NULL);
	pmdp_json_kv_text(gen, "reason",
			  status == PMDP_WATCH_REFUSED ? pmdp_watch_reason(instance->watch) : NULL);
	if (info) {
		pmdp_json_kv_u64(gen, "pid", info->writer_pid);
		pmdp_json_kv_u64(gen, "generation", info->generation);
	} else {
		pmdp_json_kv_null(gen, "pid");
		pmdp_json_kv_null(gen, "generation");
	}
	yajl_gen_map_close(gen);
}

static void put_threads(const struct ag_instance *instance, yajl_gen gen)
{
	static const char *const keys[PMDP_N_STATES] = {
		"unused", "alive", "dead", "gone", "missing", "dozing", "sleep",
	};
	uint32_t counts[PMDP_N_STATES] = {0};

	for (uint32_t i = 0; i < instance->n_lanes; i++) {
		uint32_t state = pmdp_watch_lane_state(instance->watch, i);

		if (state < PMDP_N_STATES && instance->lanes[i].is_watched)
			counts[state]++;
	}
	pmdp_json_key(gen, "threads");
	yajl_gen_map_open(gen);
	for (uint32_t i = 0; i < PMDP_N_STATES; i++)
		pmdp_json_kv_u64(gen, keys[i], counts[i]);
	yajl_gen_map_close(gen);
}

static void put_status(const struct ag_instance *instance, yajl_gen gen)
{
	const struct ag_agent *agent = instance->agent;

	yajl_gen_map_open(gen);
	pmdp_json_kv_text(gen, "instance", instance->name);
	pmdp_json_kv_u64(gen, "pid", (uint64_t)getpid());
	pmdp_json_kv_seconds(gen, "uptime_s", pmdp_mono_now_ns() - agent->started_ns);
	pmdp_json_kv_u64(gen, "late_events", instance->book.n_late);
	put_rights(instance, gen);
	pmdp_json_key(gen, "instances");
	yajl_gen_array_open(gen);
	for (uint32_t i = 0; i < agent->n_instances; i++)
		pmdp_json_text(gen, agent->instances[i]->name);
	yajl_gen_array_close(gen);
	put_switch(instance, gen);
	put_threads(instance, gen);
	pmdp_json_kv_u64(gen, "events", instance->book.n_events);
	pmdp_json_kv_u64(gen, "open_incidents", instance->book.n_opens);
	pmdp_json_kv_u64(gen, "open_overflows", pmdp_incident_log_overflows(instance->log));
	pmdp_json_key(gen, "open");
	yajl_gen_array_open(gen);
	for (uint32_t i = 0; i < instance->book.n_opens; i++)
		pmdp_json_incident(gen, &instance->book.opens[i].incident);
	yajl_gen_array_close(gen);
	put_sinks(&agent->sinks, gen);
	pmdp_json_kv_u64(gen, "wakes", agent->loop.n_wakes);
	pmdp_json_kv_u64(gen, "log_lines_lost", ag_log_lost());
	yajl_gen_map_close(gen);
}

static bool put_settings(const struct ag_config *config, const char *wanted, yajl_gen gen)
{
	static struct ag_config defaults;
	static char value[AG_PATH_BYTES * AG_MAX_JSON];
	const char *key, *help;
	bool is_found = !wanted;

	ag_config_init(&defaults);
	yajl_gen_map_open(gen);
	pmdp_json_key(gen, "settings");
	yajl_gen_array_open(gen);
	for (uint32_t i = 0;
	     pmdp_settings_get(&ag_settings, config, i, &key, &help, value, sizeof(value)); i++) {
		if (wanted && strcmp(wanted, key))
			continue;
		is_found = true;
		yajl_gen_map_open(gen);
		pmdp_json_kv_text(gen, "key", key);
		pmdp_json_kv_text(gen, "value", value);
		pmdp_settings_get(&ag_settings, &defaults, i, &key, NULL, value, sizeof(value));
		pmdp_json_kv_text(gen, "default", value);
		pmdp_json_kv_text(gen, "help", help);
		yajl_gen_map_close(gen);
	}
	yajl_gen_array_close(gen);
	yajl_gen_map_close(gen);
	return is_found;
}

static void put_version(yajl_gen gen)
{
	yajl_gen_map_open(gen);
	pmdp_json_kv_text(gen, "program", "pmdpulse-agent");
	pmdp_json_kv_text(gen, "version", PMDP_VERSION);
	pmdp_json_kv_int(gen, "abi", PMDP_ABI_VERSION);
	pmdp_json_kv_text(gen, "compiler", PMDP_BUILD_CC);
	pmdp_json_kv_text(gen, "flags", PMDP_BUILD_FLAGS);
	yajl_gen_map_close(gen);
}

bool ag_status_answer(const struct ag_instance *instance, const char *command, const char *arg,
		      yajl_gen gen, char *error, size_t error_size)
{
	if (!strcmp(command, "status")) {
		put_status(instance, gen);
	} else if (!strcmp(command, "version")) {
		put_version(gen);
	} else if (!strcmp(command, "get")) {
		if (!put_settings(&instance->agent->config, arg, gen)) {
			snprintf(error, error_size,
				 "%.64s: no such setting; get without a name lists them", arg);
			return false;
		}
	} else {
		snprintf(error, error_size,
			 "%.64s: no such command; the agent knows status, get, version", command);
		return false;
	}
	return true;
}
