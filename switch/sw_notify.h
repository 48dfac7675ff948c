// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * What systemd is told: ready, status, stopping, and the watchdog, fed by the control loop.
 * Without systemd nothing happens.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sw_switch;

void sw_notify_ready(struct sw_switch *sw);
void sw_notify_stopping(void);
// From every housekeeping. Sends status about once a second, the watchdog twice in its time.
void sw_notify_tick(struct sw_switch *sw, uint64_t now_ns);
