// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Marks: devices are asked to recognise the packets of busy megaflows and to mark them, so that a
 * PMD need not look at their headers (setting hw-offload). Control thread only.
 *
 * A mark is a number that means one megaflow in each PMD that has it. The PMD finds it in its table
 * (sw_pipe_fast.h) with the id of the flow's life, so that a mark that comes late, from a rule that
 * is being taken back, can't mean another flow. A mark's number is used again only after its rule
 * is gone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sw_error.h"
#include "sw_key.h"

struct sw_port;
struct sw_switch;

// How rules get into a device. 0, or -ENOTSUP: not for these fields; -ENOSYS: the device marks
// nothing at all; other: it refuses this one.
struct sw_marker {
	int (*create)(const struct sw_port *port, const struct sw_key *key,
		      const struct sw_key *mask, uint32_t mark, void **out_rule,
		      struct sw_error *err);
	void (*destroy)(const struct sw_port *port, void *rule);
};

extern const struct sw_marker sw_marker_rte; // rte_flow

// -ENOMEM.
int sw_offload_create(struct sw_switch *sw);
void sw_offload_destroy(struct sw_switch *sw);

// One step: rules for megaflows that have become busy, away with those of dead ones.
void sw_offload_poll(struct sw_switch *sw);

// The port or the PMD goes away.
void sw_offload_forget_port(struct sw_switch *sw, const struct sw_port *port);
void sw_offload_forget_pmd(struct sw_switch *sw, uint16_t pmd);
