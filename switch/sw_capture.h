// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Captures that a net_pcap device is to replay for ever. Its driver takes packet buffers at each
 * poll and gives none back when it has read no frame to replay: an empty file used up the shared
 * pool within milliseconds, and no port received any more. So such a file is refused before.
 */
#pragma once

#include "sw_error.h"

// -EINVAL: devargs asks for such a replay of a file without a whole frame. A file that can't be
// read is left to the driver, which says why.
int sw_capture_check(const char *port_name, const char *devargs, struct sw_error *err);
