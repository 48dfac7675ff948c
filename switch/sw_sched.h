// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Scheduling: which cores and which priority the threads of the switch have, and locked memory.
 * Control thread only. What the kernel refuses is said once, with the remedy, and the switch goes
 * on.
 */
#pragma once

#include <sched.h>

struct sw_pmd;
struct sw_switch;

/*
 * Cores for everything but PMDs: the allowed ones without PMDs, or, if PMDs have them all, the
 * first of the allowed ones.
 */
void sw_sched_control_cpus(const cpu_set_t *allowed, const cpu_set_t *pmds, cpu_set_t *out_cpus);

// Move all threads of the process but the PMDs to the control cores. EAL makes threads at many
// occasions, so this is called after each.
void sw_sched_move_control(struct sw_switch *sw);

// Give a PMD its scheduling class as the settings say: nice -20 (0 if it shares its core with the
// control threads), or SCHED_FIFO.
void sw_sched_pmd(struct sw_switch *sw, struct sw_pmd *pmd);

// Lock what is and will be touched; needs CAP_IPC_LOCK or an unlimited LimitMEMLOCK.
void sw_sched_lock_memory(void);
