// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The instances that the plugin follows, and the numbers that its threads share about each.
 *
 * The table only grows until cp_instances_clear(): a pointer stays good, and a walk over
 * cp_instances_count() entries needs no lock. Any thread may add (discovery by the look thread and
 * by the values thread); a mutex, held for a few stores only, orders the additions.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cp_tally.h"
#include "pmdp_names.h"
#include "pmdpulse.h"

#define CP_MAX_INSTANCES 64

// W: look thread. R: values thread. Relaxed: each number stands for itself.
struct cp_relay_numbers {
	_Atomic uint64_t is_agent_up;
	_Atomic uint64_t agent_alive_ns; // CLOCK_MONOTONIC of its last sign of life, 0 never
	_Atomic uint64_t n_agent_late;
	_Atomic uint64_t n_agent_events;
	_Atomic uint64_t is_relaying;
	_Atomic uint64_t n_events_lost;
	_Atomic uint64_t n_raised[PMDP_N_KINDS];
	_Atomic uint64_t n_open[PMDP_N_KINDS];
	_Atomic uint64_t n_cleared[PMDP_N_CAUSES];
	_Atomic uint64_t n_open_cause[PMDP_N_CAUSES];
	_Atomic uint64_t cleared_ns[PMDP_N_CAUSES];
	// W: queue and dispatch thread.
	_Atomic uint64_t n_sent;
	_Atomic uint64_t n_lost;
	_Atomic uint64_t n_queued;
};

struct cp_instance {
	char name[PMDP_INSTANCE_BYTES];
	struct cp_relay_numbers numbers;
	struct cp_tally tally;
	struct cp_relay *relay;     // the look thread's
	struct cp_sampler *sampler; // the values thread's
};

// Existing or new. NULL: the table is full or there is no memory.
struct cp_instance *cp_instances_add(const char *name);
size_t cp_instances_count(void);
struct cp_instance *cp_instances_at(size_t i);

// Add every instance that has a ring or an incidents file in the folder.
void cp_instances_discover(const char *rundir);

// After all threads are joined. free_relay and free_sampler get the parts, which may be NULL.
void cp_instances_clear(void (*free_relay)(struct cp_relay *),
			void (*free_sampler)(struct cp_sampler *));
