// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Sinks: where published events go beside the incident segment. A sink never waits: what its
 * receiver doesn't take is queued within bounds, then lost and counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ag_config;
struct ag_loop;
struct pmdp_incident;

#define AG_MAX_SINKS 8
#define AG_JOURNAL_SOCKET "/run/systemd/journal/socket"

struct ag_sink_stats {
	uint64_t n_written;
	uint64_t n_lost;
	uint32_t n_waiting;
	const char *error; // NULL: well
};

struct ag_sink {
	char name[64]; // "journal", "json:/path", "hook:/path"
	void (*event)(struct ag_sink *sink, const struct pmdp_incident *incident, const char *json,
		      size_t json_len);
	void (*reopen)(struct ag_sink *sink); // SIGHUP
	void (*stats)(const struct ag_sink *sink, struct ag_sink_stats *out_stats);
	void (*close)(struct ag_sink *sink); // frees it
};

struct ag_sinks {
	struct ag_sink *sinks[AG_MAX_SINKS];
	uint32_t n;
};

// Each: -ENOMEM, or -errno with the reason logged. May allocate and fork; called at start.
int ag_journal_open(struct ag_loop *loop, const char *socket_path, bool is_required,
		    struct ag_sink **out_sink);
int ag_json_open(struct ag_loop *loop, const char *path, struct ag_sink **out_sink);
int ag_hook_open(struct ag_loop *loop, const char *path, uint64_t timeout_ms,
		 struct ag_sink **out_sink);

// All that the settings ask for. On failure none is left open.
int ag_sinks_open(struct ag_sinks *sinks, const struct ag_config *config, struct ag_loop *loop);
void ag_sinks_close(struct ag_sinks *sinks);
void ag_sinks_event(struct ag_sinks *sinks, const struct pmdp_incident *incident);
void ag_sinks_reopen(struct ag_sinks *sinks);
