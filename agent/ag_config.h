// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Settings of the agent (pmdp_settings.h): /etc/pmdpulse/agent.conf, then the command line.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pmdp_settings.h"

#define AG_CONFIG_FILE "/etc/pmdpulse/agent.conf"
#define AG_PATH_BYTES PMDP_SETTING_BYTES
#define AG_MAX_INSTANCES 64
#define AG_MAX_JSON 4

enum ag_journal_mode {
	AG_JOURNAL_AUTO,
	AG_JOURNAL_ON,
	AG_JOURNAL_OFF
};

struct ag_config {
	char instances[AG_MAX_INSTANCES][PMDP_INSTANCE_BYTES];
	uint32_t n_instances;       // 0: follow all that are found, and "default"
	char rundir[AG_PATH_BYTES]; // empty: see pmdp_rundir()
	uid_t publisher_uid;
	bool has_publisher_uid;
	uint64_t interval_ns; // 0: follow the publisher
	bool notify_missing;
	uint64_t hold_ns;    // 0: the detector's default
	uint32_t starve_pct; // 0: the detector's default
	enum ag_journal_mode journal;
	char json[AG_MAX_JSON][AG_PATH_BYTES]; // "-": stdout
	uint32_t n_json;
	char hook[AG_PATH_BYTES]; // empty: none
	uint64_t hook_timeout_ms;
	char group[64];        // empty: the folder's group
	uint32_t mode;         // 0: 0640
	uint32_t fifo_prio;    // 0: nice -20
	bool is_fifo_required; // set, not only tried
	bool is_debug;
};

void ag_config_init(struct ag_config *config);

extern const struct pmdp_settings ag_settings; // of a struct ag_config
