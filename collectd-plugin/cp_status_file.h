// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * INSTANCE.relay in the run directory: one JSON line, {"pid", "relaying"}, by which `pmdpulse
 * status` knows whether collectd relays the agent. Replaced as a whole at every change.
 */
#pragma once

#include <stdbool.h>

// A folder that can't be written to is told once; nothing else depends on the file.
void cp_status_file_write(const char *instance, bool is_relaying);
void cp_status_file_remove(const char *instance);
