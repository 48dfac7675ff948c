// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The settings of the switch: what `set KEY=VALUE` changes and `get` shows.
 *
 * A struct of plain values. The table of keys (sw_settings.c) parses into a copy; sw_switch_apply()
 * (sw_switch.h) brings the running switch in line with the copy and then keeps it, or refuses and
 * leaves all as it was. Control thread only.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sw_error.h"

struct sw_settings {
	cpu_set_t pmd_cpus;              // pmd-cpu-mask: hex mask; empty (0) = the default
	bool is_pmd_cpus_given;          // false: all but the first core of the process' affinity
	bool enable_keepalive;           // enable-keepalive
	uint64_t keepalive_interval_ns;  // keepalive-interval, given in ms (fractions allowed)
	int fifo_priority;               // pmd-sched: "nice" = 0, "fifo:PRIO" = 1..99
	bool watchdog_needs_pmds;        // watchdog-needs-pmds: a dead PMD stops feeding systemd's
					 // watchdog
	uint32_t n_mbufs;                // mbufs: of the shared pool; 0 = by default
	uint32_t reconfigure_timeout_ms; // reconfigure-timeout: patience with PMDs
	uint32_t tx_flush_interval_us;   // tx-flush-interval
	uint32_t emc_inv_prob;           // emc-insert-inv-prob; 0: EMC off
	uint32_t flow_limit;             // flow-limit: megaflows of a PMD
	uint32_t max_idle_ms;            // max-idle: of a megaflow
	bool smc_enable;                 // smc-enable
	bool cache_bypass;               // cache-bypass
	bool hw_offload;                 // hw-offload
	uint32_t mac_aging_s;            // mac-aging-time
	bool pmd_perf_metrics;           // pmd-perf-metrics
};

#define SW_SETTINGS_VALUE_BYTES 320 // of any value as text

// Defaults.
void sw_settings_init(struct sw_settings *settings);

/*
 * Change one key in *settings (a copy; nothing is applied). -ENOENT no such key, -EINVAL bad value;
 * err names the key and what would be right.
 */
int sw_settings_set(struct sw_settings *settings, const char *key, const char *value,
		    struct sw_error *err);

// The value as `set` would take it. -ENOENT, -ENOSPC.
int sw_settings_get(const struct sw_settings *settings, const char *key, char *out_value,
		    size_t size);

// Keys in the order of the table; NULL after the last.
const char *sw_settings_key(size_t i);

// A line of explanation; NULL: no such key.
const char *sw_settings_help(const char *key);

// -ENOENT: no such key; err names near ones.
int sw_settings_check(const char *key, struct sw_error *err);
