// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Port commands.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "build_info.h"
#include "pmdp_clock.h"
#include "pmdp_json.h"
#include "pmdp_names.h"
#include "sw_cmd_impl.h"
#include "sw_stats.h"
#include "sw_switch.h"

static void port_facts(yajl_gen gen, const struct sw_port *port, const struct sw_port_stats *stats)
{
	pmdp_json_kv_text(gen, "name", port->conf.name);
	pmdp_json_kv_int(gen, "ofport", port->ofport);
	pmdp_json_kv_text(gen, "devargs", port->conf.devargs);
	pmdp_json_kv_text(gen, "driver", port->driver);
	pmdp_json_kv_text(gen, "state", port->state == SW_PORT_ACTIVE ? "active" : "removing");
	pmdp_json_kv_text(gen, "admin", pmdp_link_name(stats->admin_state));
	pmdp_json_kv_text(gen, "link", pmdp_link_name(stats->link_state));
	if (stats->link_speed_mbps)
		pmdp_json_kv_int(gen, "link_speed_mbps", stats->link_speed_mbps);
	else
		pmdp_json_kv_null(gen, "link_speed_mbps");
	pmdp_json_kv_int(gen, "n_rxq", port->n_rxq);
	pmdp_json_kv_int(gen, "n_txq", port->n_txq);
	pmdp_json_kv_int(gen, "mtu", port->mtu);
}

static void port_counters(yajl_gen gen, const struct sw_port_stats *stats)
{
	for (uint32_t i = 0; i < PMDP_P_DROP0; i++) {
		const char *name = pmdp_port_counter_name(i);

		if (name[0] != 0)
			pmdp_json_kv_u64(gen, name, stats->counters[i]);
	}
	pmdp_json_kv_drops(gen, "drops", &stats->counters[PMDP_P_DROP0]);
}

static void ports(const struct sw_cmd_call *call, bool has_counters)
{
	struct sw_port *port = NULL;

	pmdp_json_key(call->gen, "ports");
	yajl_gen_array_open(call->gen);
	while ((port = sw_port_next(call->sw, port))) {
		struct sw_port_stats stats;

		sw_stats_port(call->sw, port, &stats);
		yajl_gen_map_open(call->gen);
		port_facts(call->gen, port, &stats);
		if (has_counters)
			port_counters(call->gen, &stats);
		yajl_gen_map_close(call->gen);
	}
	yajl_gen_array_close(call->gen);
}

int sw_cmd_show(const struct sw_cmd_call *call, struct sw_error *err)
{
	(void)err;
	yajl_gen_map_open(call->gen);
	pmdp_json_kv_text(call->gen, "instance", call->sw->options.instance);
	pmdp_json_kv_text(call->gen, "version", PMDP_VERSION);
	pmdp_json_kv_int(call->gen, "pid", getpid());
	pmdp_json_kv_seconds(call->gen, "uptime_s", pmdp_mono_now_ns() - call->sw->start_ns);
	pmdp_json_kv_bool(call->gen, "hugepages", call->sw->has_hugepages);
	pmdp_json_kv_int(call->gen, "n_pmds", call->sw->pmds.n);
	ports(call, false);
	yajl_gen_map_close(call->gen);
	return 0;
}

int sw_cmd_dump_ports(const struct sw_cmd_call *call, struct sw_error *err)
{
	(void)err;
	yajl_gen_map_open(call->gen);
	ports(call, true);
	yajl_gen_map_close(call->gen);
	return 0;
}

int sw_cmd_add_port(const struct sw_cmd_call *call, struct sw_error *err)
{
	struct sw_port_conf conf;
	int rc = sw_port_conf_init(&conf, call->argv[0], call->argv[1], err);

	for (int i = 2; rc == 0 && i < call->argc; i++) {
		const char *equals = strchr(call->argv[i], '=');
		char key[64];

		if (!equals || equals == call->argv[i])
			return sw_fail(
				err, -EINVAL,
				"%.100s: write KEY=VALUE (keys are ofport, n_rxq, n_txq, ...)",
				call->argv[i]);
		snprintf(key, sizeof(key), "%.*s", (int)(equals - call->argv[i]), call->argv[i]);
		rc = sw_port_conf_set(&conf, key, equals + 1, err);
	}
	return rc < 0 ? rc : sw_port_add(call->sw, &conf, err);
}

int sw_cmd_del_port(const struct sw_cmd_call *call, struct sw_error *err)
{
	return sw_port_del(call->sw, call->argv[0], err);
}
