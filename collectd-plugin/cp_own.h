// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The plugin's own detection, for when no agent judges.
 *
 * It always runs, so that a stall in the second between the agent's death and its being noticed is
 * known; but it tells nothing, and looks less often, until cp_own_begin(). Ids are
 * INSTANCE-GENERATION-N-c, seq counts the events told here. The look thread's alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cp_book.h"
#include "cp_instance.h"
#include "pmdp_watch.h"

#define CP_OWN_SILENT_NS UINT64_C(50000000) // between silent looks, at multiples of it

struct cp_own {
	struct cp_instance *instance;
	struct pmdp_watch *watch;
	struct cp_book book;             // open ones, told or not
	struct pmdp_incident agent_gone; // id empty: not raised
	uint64_t generation, n_ids, seq;
	uint64_t due_ns;
	bool is_telling;
};

// -ENOMEM.
int cp_own_init(struct cp_own *own, struct cp_instance *instance);
void cp_own_fini(struct cp_own *own);

// Look if it is time. Returns the CLOCK_MONOTONIC time of the next look.
uint64_t cp_own_step(struct cp_own *own, uint64_t now_ns);

// From now on tell: first what is open already.
void cp_own_begin(struct cp_own *own);
// Clear what was told, and be silent.
void cp_own_end(struct cp_own *own);

// Raise and clear agent-gone: once each, whatever is called how often.
void cp_own_agent_gone(struct cp_own *own, uint64_t since_ns, const char *why);
void cp_own_agent_back(struct cp_own *own);
