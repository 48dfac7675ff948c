// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The environment abstraction layer, made to start in one try: it can't be initialised again after
 * it failed, so what it needs is found out before.
 */
#pragma once

#include "sw_error.h"
#include "sw_switch.h"

/*
 * Initialise EAL with the user's options (argv[0] is the program) and ours: hugepages if there are
 * enough (otherwise none, and a line says so), own file prefix, no PCI scan unless a device is
 * allowed by -a, control threads on the control cores, no file left behind. Sets sw->has_hugepages.
 * -EINVAL, -EIO (EAL has said why).
 */
int sw_eal_init(struct sw_switch *sw, int argc, char **argv, struct sw_error *err);

// Devices must be closed. Removes EAL's folder.
void sw_eal_cleanup(void);

// Only remove the folder: a PMD that can't be ended still uses EAL's memory.
void sw_eal_remove_files(void);
