// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * What a translation writes down when somebody wants to know (the command trace).
 */
#pragma once

#include <stdint.h>

#define SW_TRACE_MAX_STEPS 512

#define SW_TRACE_RULE 1    // table was looked up, slot is the rule
#define SW_TRACE_NO_RULE 2 // table was looked up in vain
#define SW_TRACE_ACT 3     // action number act of the rule in slot
#define SW_TRACE_SKIPPED 4 // the action before has no effect on this packet
#define SW_TRACE_LIMIT 5   // too many rules, resubmits or actions: the packet is dropped
#define SW_TRACE_TTL 6     // TTL exceeded: the packet goes no further

struct sw_trace_step {
	uint8_t what;
	uint8_t table;
	uint8_t depth; // of resubmits
	uint8_t act;
	uint32_t slot;
};

struct sw_trace {
	uint32_t n; // may exceed SW_TRACE_MAX_STEPS: then the rest is missing
	struct sw_trace_step step[SW_TRACE_MAX_STEPS];
};

static inline void sw_trace_add(struct sw_trace *trace, struct sw_trace_step step)
{
	if (trace && trace->n++ < SW_TRACE_MAX_STEPS)
		trace->step[trace->n - 1] = step;
}
