// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Devargs that would end the switch, or leave it without buffers, before DPDK or its driver refuses
 * them:
 * - a device named by bus=... or class=...: dereferences NULL;
 * - net_pcap that replays (infinite_rx) a file without a whole frame: the driver takes buffers at
 *   each poll and gives none back, so that the shared pool is empty within milliseconds;
 * - net_null with frames longer than a buffer: writes beyond it.
 */
#pragma once

#include <stdint.h>

#include "sw_error.h"

// room_bytes: what a buffer of the port holds. -EINVAL. A file that can't be read is left to the
// driver, which says why.
int sw_devargs_check(const char *port_name, const char *devargs, uint32_t room_bytes,
		     struct sw_error *err);
