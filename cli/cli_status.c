// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// status: one glance at switch, agent and relay.
#include <ctype.h>
#include <string.h>

#include "cli_health.h"
#include "pmdp_json.h"
#include "pmdp_names.h"

void cli_health_json_agent(struct cli *cli, yajl_gen gen, const struct cli_health *health)
{
	yajl_val reply = NULL, rights = NULL;

	if (strcmp(health->agent_state, "up") == 0 && cli_ask(cli, "agent.ctl", "status", &reply))
		rights = cli_get(cli_get(reply, "data"), "rights");
	pmdp_json_key(gen, "agent");
	yajl_gen_map_open(gen);
	pmdp_json_kv_text(gen, "state", health->agent_state);
	if (strcmp(health->agent_state, "up") == 0) {
		pmdp_json_kv_int(gen, "pid", health->agent_pid);
		pmdp_json_kv_real(gen, "uptime_s", health->agent_uptime_s);
	} else {
		pmdp_json_kv_null(gen, "pid");
		pmdp_json_kv_null(gen, "uptime_s");
	}
	pmdp_json_kv_u64(gen, "late_events", health->late_events);
	pmdp_json_key(gen, "rights");
	if (rights != NULL) {
		cli_json_value(gen, rights);
	} else {
		yajl_gen_array_open(gen);
		yajl_gen_array_close(gen);
	}
	yajl_gen_map_close(gen);
	yajl_tree_free(reply);
}

static void json_states(yajl_gen gen, const struct cli_health *health)
{
	pmdp_json_key(gen, "threads");
	yajl_gen_map_open(gen);
	for (uint32_t state = 1; state < PMDP_N_STATES; state++) {
		char name[16] = "";

		for (size_t i = 0; i + 1 < sizeof(name) && pmdp_state_name(state)[i] != 0; i++)
			name[i] = (char)tolower((unsigned char)pmdp_state_name(state)[i]);
		pmdp_json_kv_int(gen, name, health->n_in_state[state]);
	}
	yajl_gen_map_close(gen);
}

static void json_relay(struct cli *cli, yajl_gen gen)
{
	struct cli_relay relay;

	pmdp_json_key(gen, "collectd");
	if (!cli_relay_read(cli, &relay)) {
		yajl_gen_null(gen);
		return;
	}
	yajl_gen_map_open(gen);
	pmdp_json_kv_bool(gen, "relaying", relay.is_relaying);
	pmdp_json_kv_int(gen, "pid", relay.pid);
	yajl_gen_map_close(gen);
}

static void print_text(struct cli *cli, const struct cli_health *health)
{
	struct cli_relay relay;
	char up[32];

	printf("instance  %s\n", cli->instance);
	printf("switch    %s", health->reason[0] ? health->reason : health->switch_state);
	if (strcmp(health->switch_state, "up") == 0)
		printf(", pid %u, for %s", health->switch_pid,
		       cli_duration((uint64_t)(health->switch_uptime_s * 1e9), up, sizeof(up)));
	else if (health->is_attached)
		printf(", was pid %u", health->switch_pid);
	printf("\nagent     %s", health->agent_state);
	if (strcmp(health->agent_state, "up") == 0)
		printf(", pid %u, for %s", health->agent_pid,
		       cli_duration((uint64_t)(health->agent_uptime_s * 1e9), up, sizeof(up)));
	if (health->late_events > 0)
		printf(", late %llu times", (unsigned long long)health->late_events);
	printf("\ncollectd  %s\nthreads  ", !cli_relay_read(cli, &relay) ? "not loaded"
					    : relay.is_relaying          ? "relays the agent"
								: "judges by itself (agent stale)");
	for (uint32_t state = 1; state < PMDP_N_STATES; state++) {
		if (health->n_in_state[state] > 0)
			printf(" %u %s", health->n_in_state[state], pmdp_state_name(state));
	}
	printf("%s\nincidents %u open\n", health->n_threads == 0 ? " none" : "",
	       health->open_incidents);
}

int cmd_status(struct cli *cli, int argc, char **argv)
{
	struct cli_health health;

	(void)argc;
	(void)argv;
	cli_health_read(cli, &health);
	if (cli->is_json) {
		yajl_gen gen = cli_health_json_begin(cli, &health);

		cli_health_json_agent(cli, gen, &health);
		json_relay(cli, gen);
		json_states(gen, &health);
		pmdp_json_kv_int(gen, "open_incidents", health.open_incidents);
		yajl_gen_map_close(gen);
		cli_json_end(gen);
	} else {
		print_text(cli, &health);
	}
	cli_health_free(&health);
	return CLI_OK;
}
