// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Is there an agent that would raise an incident? Part of vs_follow.c. The sign of life counts as
 * seen from here: neither a stamp from the future nor a pause of our own misleads.
 */
#pragma once

#include "vs_follow.h"

void vs_follow_agent_restore(struct vs_follower *follower, const struct vs_place *place);
void vs_follow_agent_attached(struct vs_follower *follower, uint64_t now_ns);
void vs_follow_agent_look(struct vs_follower *follower, const struct pmdp_look *look,
			  uint64_t now_ns);
// First in every step: what was not looked at is not held against the agent.
void vs_follow_agent_woke(struct vs_follower *follower, uint64_t now_ns);
void vs_follow_agent_judge(struct vs_follower *follower, uint64_t now_ns);
