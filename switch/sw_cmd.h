// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Commands: what the control socket and the start-up file can say. Main thread only; a command may
 * wait for PMDs (setting reconfigure-timeout), never longer.
 */
#pragma once

#include <stdbool.h>

#include <yajl/yajl_gen.h>

#include "sw_error.h"

struct sw_switch;

struct sw_cmd_call {
	struct sw_switch *sw;
	int argc; // without the command's name
	const char *const *argv;
	yajl_gen gen; // for one JSON value: the reply's data; NULL: nobody reads it
};

// -ENOENT no such command, -EINVAL wrong use, or what the command says. On failure, what has been
// written to gen is to be thrown away; on success it is exactly one value.
int sw_cmd_run(struct sw_switch *sw, const char *name, int argc, const char *const *argv,
	       yajl_gen gen, struct sw_error *err);
