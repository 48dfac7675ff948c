// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Freeing what PMDs may still read: quiescent-state RCU over rte_rcu_qsbr.
 *
 * Every PMD reports a quiescent state about every half millisecond, between two iterations, and goes
 * offline while it sleeps. Control replaces a pointer (release), then hands the old memory to
 * sw_rcu_defer(); the control loop frees it when every PMD has reported since. Nobody waits: a stalled
 * PMD only keeps memory from being freed. Control thread only, except where said.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sw_error.h"

struct sw_rcu;

// -ENOMEM
int sw_rcu_create(struct sw_rcu **out_rcu);
void sw_rcu_destroy(struct sw_rcu *rcu); // runs all that is pending: no PMD may be left

/*
 * Run fn(arg) when no PMD can hold what was reachable before this call. Never fails: if memory for
 * the note is short, it waits for it in the note that is embedded in nothing; see sw_rcu_room().
 */
void sw_rcu_defer(struct sw_rcu *rcu, void (*fn)(void *arg), void *arg);

/*
 * Is there room for another change? -EBUSY when too much waits already, with the text that a PMD
 * does not answer: refuse the command then.
 */
int sw_rcu_room(const struct sw_rcu *rcu, struct sw_error *err);

// For the control loop: run what is due.
void sw_rcu_poll(struct sw_rcu *rcu);

// For PMDs, by their index. online before the first use, offline before blocking.
void sw_rcu_online(struct sw_rcu *rcu, uint16_t index);
void sw_rcu_offline(struct sw_rcu *rcu, uint16_t index);
void sw_rcu_quiescent(struct sw_rcu *rcu, uint16_t index);
