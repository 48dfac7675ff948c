// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * What the agent does so that it wakes when it wants to: timer slack, nice -20, locked memory, and
 * CPUs that no PMD uses. What the kernel refuses is said once and the agent goes on.
 */
#pragma once

#include <sched.h>
#include <stdint.h>

// Process-wide, called once at start. Logs what was refused.
void ag_prio_raise(void);

// Take it all back, in a forked child.
void ag_prio_reset(void);

// Keep off these CPUs, as far as others remain. Cheap when nothing changed.
void ag_prio_avoid(const cpu_set_t *pmd_cpus);

// Names of what is in effect ("nice") or missing ("-nice: reason"). Returns their number.
uint32_t ag_prio_rights(const char **out_names, uint32_t n);
