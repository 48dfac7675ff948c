// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * One instance: its incidents segment is followed from where the collector's knowledge ends, over
 * restarts of the agent and replaced segments. What was overwritten before it could be read is
 * counted as lost, one by one. An agent that shows no sign of life is an incident of its own.
 *
 * Without a remembered place, what is open now is raised, and older history is left alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "pmdpulse.h"
#include "vs_config.h"
#include "vs_queue.h"
#include "vs_state.h"

enum vs_agent {
	VS_AGENT_ABSENT, // never seen
	VS_AGENT_UP,
	VS_AGENT_GONE,
};

struct vs_follower {
	char name[PMDP_INSTANCE_BYTES];
	uint32_t index; // source of its items
	const struct vs_config *config;
	const char *rundir;
	struct vs_queue *queue;
	struct pmdp_reader *reader; // NULL: no segment
	struct pmdp_incident *batch;
	uint64_t cursor;
	uint64_t next_seq; // 0: nothing is known
	char last_id[PMDP_ID_BYTES];
	bool is_poked; // inotify tells of events: no need to ask often
	int open_error;
	uint64_t step_ns, read_due_ns, check_due_ns;
	enum vs_agent agent;
	bool is_stopped;
	uint64_t generation, stamp_ns, stamp_seen_ns;
	struct pmdp_incident gone; // id empty: not raised
	uint64_t n_own;
};

// place: what an earlier run knew, or NULL. -ENOMEM.
int vs_follower_init(struct vs_follower *follower, const char *name, uint32_t index,
		     const struct vs_config *config, const char *rundir, struct vs_queue *queue,
		     const struct vs_place *place);
void vs_follower_fini(struct vs_follower *follower);

// Do what is due; events go to the queue. Returns the CLOCK_MONOTONIC time of the next call.
uint64_t vs_follower_step(struct vs_follower *follower, uint64_t now_ns);
// The segment was touched, made or replaced: look at once.
void vs_follower_poke(struct vs_follower *follower);

// What is to be remembered: first event not dealt with, open agent-gone.
void vs_follower_place(const struct vs_follower *follower, struct vs_place *place);
// Incidents that the agent has open now.
uint32_t vs_follower_n_open(struct vs_follower *follower);
