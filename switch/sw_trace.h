// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * What the tables do with a packet, told step by step. Control thread; allocates.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "sw_key.h"

struct sw_act;
struct sw_flow_table;
struct sw_xlate;

/*
 * Write the way of a packet with this key through the tables, as the current snapshot has it, and
 * what becomes of it: megaflow and actions. *out_next is the key with which it comes back, when it
 * is recirculated (true). *out_result is what the PMDs would get. -ENOMEM.
 */
int sw_trace_pass(const struct sw_flow_table *table, const struct sw_key *key, FILE *to,
		  struct sw_xlate *out_result, struct sw_key *out_next, bool *out_comes_back);

// What an action makes of the packet's key. false: the packet ends here.
bool sw_trace_act(const struct sw_act *act, struct sw_key *key);
