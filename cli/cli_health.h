// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Health of one instance, gathered from its segments alone: what status, pmd-health-show and top
 * show.
 */
#pragma once

#include "cli.h"
#include "pmdp_incident.h"

// A thread's newest stall; id empty when only the thread itself timed it (no agent).
struct cli_stall {
	bool is_known;
	struct pmdp_incident incident;
};

struct cli_thread {
	struct pmdp_lane_body body;
	struct pmdp_lane_look look;
	bool is_body_whole; // false: the writer stood in the middle of an update
	uint32_t state;     // PMDP_STATE_*
	uint64_t age_ns;
	struct cli_stall stall;
};

struct cli_health {
	const char *switch_state; // up, stopped, gone, absent
	char reason[128];         // why the segment can't be read, or empty
	uint32_t switch_pid;
	double switch_uptime_s;
	uint64_t generation;
	bool is_attached;
	bool is_keepalive;
	uint64_t interval_ns;

	const char *agent_state; // up, stale, absent
	uint32_t agent_pid;
	uint32_t open_incidents;
	double agent_uptime_s;
	uint64_t late_events; // agent-late incidents in the history

	struct cli_thread *threads;
	uint32_t n_threads;
	uint32_t n_in_state[7];
};

// Never fails: what can't be known is told in the fields. Free with cli_health_free.
void cli_health_read(struct cli *cli, struct cli_health *out_health);
void cli_health_free(struct cli_health *health);
void cli_health_json_threads(yajl_gen gen, const struct cli_health *health);
void cli_health_json_agent(struct cli *cli, yajl_gen gen, const struct cli_health *health);
// A document of one map, still open, that begins with the instance and its switch.
yajl_gen cli_health_json_begin(struct cli *cli, const struct cli_health *health);
void cli_health_table(struct cli *cli, const struct cli_health *health, FILE *out);

// The collectd plugin's word on itself; false when no living collectd has the plugin loaded.
struct cli_relay {
	uint32_t pid;
	bool is_relaying;
};

bool cli_relay_read(struct cli *cli, struct cli_relay *out_relay);
