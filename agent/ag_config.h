// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Settings of the agent: an ini-like file, then the command line, which wins. One table
 * (ag_config.c) holds every key with its parser and its help text, so that file, --key and --help
 * never differ.
 *
 * A setting that is wrong stops the start: the error names where it stands (file and line, or the
 * option), the key, and what would be right.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "pmdp_abi.h"

#define AG_CONFIG_FILE "/etc/pmdpulse/agent.conf"
#define AG_PATH_BYTES 4096
#define AG_MAX_INSTANCES 64
#define AG_MAX_JSON 4
#define AG_ERROR_BYTES 1024

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

/*
 * Read a settings file. Returns 0, or a negative errno with a text in error: -ENOENT and the like
 * when it can't be read, -EINVAL for a wrong line. Blocks on the file.
 */
int ag_config_file(struct ag_config *config, const char *path, char *error, size_t error_size);

/*
 * Take one "key=value" of the command line (without the dashes). The first use of a repeatable key
 * replaces what the file said; *list_seen (0 at first) remembers which were used. 0 or -EINVAL.
 */
int ag_config_arg(struct ag_config *config, const char *arg, uint64_t *list_seen, char *error,
		  size_t error_size);

// Is this the name of a setting?
bool ag_config_has_key(const char *key);

// The table of settings, for --help.
void ag_config_help(FILE *out);

// Settings in effect, by index: false past the last one. value has room for AG_PATH_BYTES; out_help may
// be NULL.
bool ag_config_get(const struct ag_config *config, uint32_t index, const char **out_key,
		   const char **out_help, char *out_value, size_t value_size);
