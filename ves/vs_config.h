// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Settings of the poster (pmdp_settings.h): /etc/pmdpulse/ves.conf, then the command line.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "pmdp_settings.h"

#define VS_CONFIG_FILE "/etc/pmdpulse/ves.conf"
#define VS_PATH_BYTES PMDP_SETTING_BYTES
#define VS_MAX_INSTANCES 64
#define VS_NAME_BYTES 256
#define VS_USERPWD_BYTES 512
#define VS_LISTENER "/eventListener/v7"

// Domains that are sent.
#define VS_FAULT 1u
#define VS_STATE_CHANGE 2u
#define VS_HEARTBEAT 4u
#define VS_N_DOMAINS 3

struct vs_config {
	char instances[VS_MAX_INSTANCES][PMDP_INSTANCE_BYTES];
	uint32_t n_instances;       // 0: all that are found
	char rundir[VS_PATH_BYTES]; // empty: see pmdp_rundir()
	uid_t publisher_uid;
	bool has_publisher_uid;
	char url[VS_PATH_BYTES];         // empty: the start stops
	char credentials[VS_PATH_BYTES]; // files; empty: none
	char ca_file[VS_PATH_BYTES];
	char client_cert[VS_PATH_BYTES];
	char client_key[VS_PATH_BYTES];
	char source_name[VS_NAME_BYTES];
	uint32_t domains;     // 0: all
	uint64_t heartbeat_s; // 0: none
	uint64_t timeout_ms, retry_min_ms, retry_max_ms, agent_timeout_ms;
	uint64_t queue, batch;
	char state_dir[VS_PATH_BYTES]; // empty: nothing is kept
	bool is_debug;
};

// source_name: the host's; state_dir: $STATE_DIRECTORY.
void vs_config_init(struct vs_config *config);

extern const struct pmdp_settings vs_settings; // of a struct vs_config

/*
 * What no single value tells: is there a URL, do the retry times agree, are there credentials? 0 or
 * -EINVAL with a text that names the key and what would be right. Reads the credentials.
 */
int vs_config_check(const struct vs_config *config, char *error, size_t error_size);

static inline bool vs_config_sends(const struct vs_config *config, uint32_t domain)
{
	return !config->domains || (config->domains & domain);
}

/*
 * First line of the credentials file, USER:PASSWORD. 0; -EINVAL: no such line, or others may read
 * the file; -errno of reading it. error names the file and the remedy.
 */
int vs_config_credentials(const char *path, char *out, size_t size, char *error, size_t error_size);
