// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * What the agent does so that it wakes when it wants to: timer slack, the lowest SCHED_FIFO
 * priority or nice -20, locked memory, and CPUs that no PMD uses. What the kernel refuses is said
 * once and the agent goes on. Beside three busy tasks on one CPU, wake-ups late by (p99):
 * SCHED_FIFO 0.06 ms, nice -20 0.2 to 1.3 ms, since a task of the fair class may finish its slice
 * first.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

// For the calling thread and the process, called once at start. Logs what was refused. fifo_prio 0:
// nice -20 only.
void ag_prio_raise(uint32_t fifo_prio, bool is_fifo_required);

// Take it all back, in a forked child.
void ag_prio_reset(void);

// Keep off these CPUs, as far as others remain. Cheap when nothing changed.
void ag_prio_avoid(const cpu_set_t *pmd_cpus);

// Names of what is in effect ("nice") or missing ("-nice: reason"). Returns their number.
uint32_t ag_prio_rights(const char **out_names, uint32_t n);
