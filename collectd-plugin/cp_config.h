// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Options of the plugin, read by collectd's configuration callback before init; constant
 * afterwards.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cp_select.h"
#include "pmdpulse.h"

struct oconfig_item_s; // collectd's

struct cp_config {
	char (*instances)[PMDP_INSTANCE_BYTES]; // Instance; none: all that are found
	size_t n_instances;
	char *rundir;                   // RunDir; NULL: as pmdp_rundir() decides
	uint64_t keepalive_interval_ns; // KeepaliveInterval; 0: the switch's own
	bool is_notifying;              // SendNotification
	bool is_dispatching;            // DispatchValues
	bool has_publisher_uid;         // PublisherUser
	uid_t publisher_uid;
	struct cp_select threads; // Thread, IgnoreSelected
};

extern struct cp_config cp_config;

// The callback: 0, or -1 after an ERROR that names option and value (collectd then refuses to
// start).
int cp_config_read(struct oconfig_item_s *block);
void cp_config_clear(void);
