// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Execution of a flow's actions, where they are more than one output or a drop.
#pragma once

#include <stdint.h>

#include "sw_pmd_fast.h"

struct rte_mbuf;

// Takes the packets over, in order. What is made besides them is counted as copies.
void sw_exec(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq, uint32_t flow,
	     struct rte_mbuf **pkts, uint16_t n);
