// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * One instance's relay: follows the agent while it is alive, falls back to own detection when not.
 *
 *	           agent fresh                     no sign of life for STALE
 *	undecided -------------> relaying <-----------------------------------> own
 *	     `------------------------- nothing within STALE --------------------^
 *
 * Fresh: the alive stamp of the incidents segment changed within the last second as seen from here,
 * so neither a stamp from the future nor our own absence misleads (after a pause of the look thread
 * the second begins anew). On the way back the own incidents are cleared before the first event of
 * the agent is told. The look thread's alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cp_instance.h"

#define CP_STALE_NS UINT64_C(1000000000)

struct cp_relay;

struct cp_relay *cp_relay_new(struct cp_instance *instance, uint64_t now_ns); // NULL without memory
// Also removes INSTANCE.relay. Accepts NULL.
void cp_relay_free(struct cp_relay *relay);

// Do what is due. Returns the CLOCK_MONOTONIC time of the next call.
uint64_t cp_relay_step(struct cp_relay *relay, uint64_t now_ns);

// Will cp_relay_poke() be called from now on? Else, as at first, events are polled for.
void cp_relay_set_touch_told(struct cp_relay *relay, bool is_touch_told);
// The agent's file was touched: read at once.
void cp_relay_poke(struct cp_relay *relay);
