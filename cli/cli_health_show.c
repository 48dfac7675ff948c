// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// pmd-health-show: the table and its JSON.
#include <stdlib.h>
#include <string.h>

#include "cli_health.h"
#include "pmdp_json.h"
#include "pmdp_names.h"

static void json_stall(yajl_gen gen, const struct cli_stall *stall)
{
	const struct pmdp_incident *i = &stall->incident;
	char when[64];

	pmdp_json_key(gen, "last_stall");
	if (!stall->is_known) {
		yajl_gen_null(gen);
		return;
	}
	yajl_gen_map_open(gen);
	pmdp_json_kv_text(gen, "id", i->id[0] ? i->id : NULL);
	pmdp_json_kv_text(gen, "started_at",
			  pmdp_rfc3339(i->started_realtime_us, when, sizeof(when)));
	pmdp_json_kv_seconds(gen, "duration_s", i->duration_ns);
	pmdp_json_kv_text(gen, "cause", pmdp_cause_name(i->cause));
	pmdp_json_key(gen, "culprit");
	pmdp_json_culprit(gen, i);
	yajl_gen_map_close(gen);
}

static void json_core(yajl_gen gen, const char *key, int32_t value)
{
	if (value < 0)
		pmdp_json_kv_null(gen, key);
	else
		pmdp_json_kv_int(gen, key, value);
}

void cli_health_json_threads(yajl_gen gen, const struct cli_health *health)
{
	pmdp_json_key(gen, "threads");
	yajl_gen_array_open(gen);
	for (uint32_t i = 0; i < health->n_threads; i++) {
		const struct cli_thread *t = &health->threads[i];

		yajl_gen_map_open(gen);
		pmdp_json_kv_text(gen, "name", t->body.name);
		pmdp_json_kv_int(gen, "tid", t->body.tid);
		json_core(gen, "core", t->body.core);
		json_core(gen, "numa", t->body.numa);
		pmdp_json_kv_text(gen, "kind", pmdp_lane_kind_name(t->body.kind));
		pmdp_json_kv_text(gen, "state", pmdp_state_name(t->state));
		pmdp_json_kv_int(gen, "state_code", t->state);
		if (t->look.beats == 0)
			pmdp_json_kv_null(gen, "beat_age_s");
		else
			pmdp_json_kv_seconds(gen, "beat_age_s", t->age_ns);
		pmdp_json_kv_u64(gen, "beats", t->look.beats);
		pmdp_json_kv_u64(gen, "stalls", t->look.n_stalls);
		pmdp_json_kv_seconds(gen, "stalled_s", t->look.stall_ns);
		pmdp_json_kv_u64(gen, "gaps", t->look.n_gaps);
		pmdp_json_kv_seconds(gen, "gaps_s", t->look.gap_ns);
		pmdp_json_kv_seconds(gen, "longest_gap_s", t->look.longest_gap_ns);
		json_stall(gen, &t->stall);
		yajl_gen_map_close(gen);
	}
	yajl_gen_array_close(gen);
}

yajl_gen cli_health_json_begin(struct cli *cli, const struct cli_health *health)
{
	bool is_up = strcmp(health->switch_state, "up") == 0;
	yajl_gen gen = cli_json_begin();

	yajl_gen_map_open(gen);
	pmdp_json_kv_text(gen, "instance", cli->instance);
	pmdp_json_key(gen, "switch");
	yajl_gen_map_open(gen);
	pmdp_json_kv_text(gen, "state", health->switch_state);
	if (health->is_attached)
		pmdp_json_kv_int(gen, "pid", health->switch_pid);
	else
		pmdp_json_kv_null(gen, "pid");
	if (is_up)
		pmdp_json_kv_real(gen, "uptime_s", health->switch_uptime_s);
	else
		pmdp_json_kv_null(gen, "uptime_s");
	if (health->is_attached)
		pmdp_json_kv_u64(gen, "generation", health->generation);
	else
		pmdp_json_kv_null(gen, "generation");
	yajl_gen_map_close(gen);
	return gen;
}

static const char *colour_of(const struct cli *cli, uint32_t state)
{
	if (!cli->is_colour)
		return "";
	switch (state) {
	case PMDP_STATE_ALIVE:
		return "\033[32m";
	case PMDP_STATE_DEAD:
	case PMDP_STATE_GONE:
		return "\033[1;31m";
	case PMDP_STATE_MISSING:
		return "\033[33m";
	default:
		return "";
	}
}

static void stall_text(const struct cli_stall *stall, char *out, size_t size)
{
	const struct pmdp_incident *i = &stall->incident;
	char when[64], length[32];
	int n;

	if (!stall->is_known) {
		snprintf(out, size, "none");
		return;
	}
	pmdp_rfc3339(i->started_realtime_us, when, sizeof(when));
	n = snprintf(out, size, "%s at %.8s, %s",
		     cli_duration(i->duration_ns, length, sizeof(length)), when + 11,
		     pmdp_cause_name(i->cause));
	if (i->culprit_pid != 0 && n > 0 && (size_t)n < size)
		snprintf(out + n, size - (size_t)n, " by %s (pid %u)", i->culprit_comm,
			 i->culprit_pid);
}

void cli_health_table(struct cli *cli, const struct cli_health *health, FILE *out)
{
	static const char *const headers[] = {"NAME",    "TID",         "CORE",
					      "STATE",   "BEAT AGE",    "STALLS",
					      "STALLED", "LONGEST GAP", "LAST STALL"};
	struct cli_table *table = cli_table_new(headers, 9);

	for (uint32_t i = 0; i < health->n_threads; i++) {
		const struct cli_thread *t = &health->threads[i];
		char tid[16], core[16], state[48], age[32], stalls[24], stalled[32], longest[32],
			last[128];
		const char *cells[] = {t->body.name, tid,     core,    state, age,
				       stalls,       stalled, longest, last};

		snprintf(tid, sizeof(tid), "%u", t->body.tid);
		snprintf(core, sizeof(core), t->body.core < 0 ? "-" : "%d", t->body.core);
		snprintf(state, sizeof(state), "%s", pmdp_state_name(t->state));
		if (t->look.beats == 0)
			strcpy(age, "never");
		else
			cli_duration(t->age_ns, age, sizeof(age));
		snprintf(stalls, sizeof(stalls), "%llu", (unsigned long long)t->look.n_stalls);
		cli_duration(t->look.stall_ns, stalled, sizeof(stalled));
		cli_duration(t->look.longest_gap_ns, longest, sizeof(longest));
		stall_text(&t->stall, last, sizeof(last));
		cli_table_row_coloured(table, cells, 3, colour_of(cli, t->state));
	}
	cli_table_print(table, out);
}

static void print_heading(const struct cli_health *health)
{
	char up[32], interval[32];

	if (health->reason[0] != 0)
		printf("switch: segment refused: %s\n", health->reason);
	else if (strcmp(health->switch_state, "up") == 0)
		printf("switch: up, pid %u, for %s; keepalive %s, interval %s\n",
		       health->switch_pid,
		       cli_duration((uint64_t)(health->switch_uptime_s * 1e9), up, sizeof(up)),
		       health->is_keepalive ? "on" : "off",
		       cli_duration(health->interval_ns, interval, sizeof(interval)));
	else if (strcmp(health->switch_state, "gone") == 0)
		printf("switch: GONE (pid %u died); what it last wrote:\n", health->switch_pid);
	else
		printf("switch: %s\n", health->switch_state);
}

int cmd_health(struct cli *cli, int argc, char **argv)
{
	struct cli_health health;

	(void)argc;
	(void)argv;
	cli_health_read(cli, &health);
	if (cli->is_json) {
		yajl_gen gen = cli_health_json_begin(cli, &health);

		cli_health_json_agent(cli, gen, &health);
		cli_health_json_threads(gen, &health);
		yajl_gen_map_close(gen);
		cli_json_end(gen);
	} else {
		print_heading(&health);
		if (health.n_threads > 0)
			cli_health_table(cli, &health, stdout);
	}
	cli_health_free(&health);
	if (health.reason[0] != 0)
		return cli_fail("instance \"%s\": %s", cli->instance, health.reason);
	if (!health.is_attached)
		return cli_fail("instance \"%s\": no switch has published in %s", cli->instance,
				cli->rundir);
	return CLI_OK;
}
