// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The agent as a whole: settings, loop, sinks and the instances that it follows.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ag_config.h"
#include "ag_loop.h"
#include "ag_sink.h"

struct ag_instance;

#define AG_MAX_REFUSED 16

// An instance that was found and could not be followed: tried again after a while, not at each
// look.
struct ag_refused {
	char name[PMDP_INSTANCE_BYTES];
	uint64_t retry_ns;
};

struct ag_agent {
	struct ag_config config;
	char rundir[AG_PATH_BYTES];
	struct ag_loop loop;
	struct ag_sinks sinks;
	struct ag_instance *instances[AG_MAX_INSTANCES];
	uint32_t n_instances;
	struct ag_refused refused[AG_MAX_REFUSED];
	uint32_t n_refused; // so far; the newest stand in the table
	uint64_t started_ns;
	struct ag_source signal_source;
	struct ag_source rundir_source; // inotify; fd -1: none
	struct ag_timer rescan_timer;
	struct ag_timer house_timer;
	uint64_t watchdog_ns; // ping this often, 0: never
	uint64_t watchdog_due_ns;
	bool is_full_told;
	bool is_failed;   // stop with an error
	char status[512]; // as systemd knows it
};

// Errors have been logged. The agent is then run by ag_loop_run(&agent->loop).
int ag_agent_start(struct ag_agent *agent);
void ag_agent_stop(struct ag_agent *agent);

// An instance's status changed: tell systemd at the next housekeeping.
void ag_agent_changed(struct ag_agent *agent);
// A lane came, went or moved: keep off the PMDs' CPUs.
void ag_agent_lanes_changed(struct ag_agent *agent);

// ag_follow.c: which instances to follow.
int ag_follow_start(struct ag_agent *agent);
void ag_follow_stop(struct ag_agent *agent);
