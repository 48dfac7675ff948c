// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Control socket INSTANCE.agent.ctl: one JSON request a line, one JSON reply a line, in order.
 * Commands: status, get [KEY], version. A client that sends nonsense gets an error; one that
 * doesn't read its replies is closed, and when there are too many the one silent longest goes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <yajl/yajl_gen.h>

#include "ag_loop.h"

struct ag_client;
struct ag_instance;

struct ag_ctl {
	struct ag_instance *instance;
	struct ag_source listen_source; // fd -1: closed
	struct ag_client *clients;
	uint32_t n_clients;
	char path[108]; // empty: nothing to unlink
};

// Errors have been logged. -ENAMETOOLONG, -errno of bind.
int ag_ctl_open(struct ag_ctl *ctl, struct ag_instance *instance);
void ag_ctl_close(struct ag_ctl *ctl);

/*
 * ag_status.c: the data of a reply. Writes one JSON value and returns true, or returns false with a
 * text in error.
 */
bool ag_status_answer(const struct ag_instance *instance, const char *command, const char *arg,
		      yajl_gen gen, char *error, size_t error_size);
