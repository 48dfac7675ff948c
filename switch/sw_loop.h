// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The control loop of the main thread: signals, the housekeeping timer, the control socket.
 */
#pragma once

#include "sw_error.h"

struct sw_switch;

// Block the signals that the loop takes; before any thread is made, so that all inherit it.
void sw_loop_block_signals(void);

// -errno
int sw_loop_open(struct sw_switch *sw, struct sw_error *err);
// Until SIGTERM, SIGINT or SIGHUP.
void sw_loop_run(struct sw_switch *sw);
void sw_loop_close(struct sw_switch *sw);
