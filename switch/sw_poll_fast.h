// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// What becomes of a received burst: the same in the poll loop and in an iteration that is timed.
#pragma once

#include "sw_pipe_fast.h"
#include "sw_pmd_fast.h"
#include "sw_tx_fast.h"

static inline __attribute__((always_inline)) void sw_poll_process(struct sw_pmd_run *run,
								  const struct sw_plan_rxq *rxq,
								  struct rte_mbuf **pkts,
								  uint16_t n)
{
	sw_pipe_burst(run, rxq, pkts, n);
	run->counters[PMDP_C_RX_BATCHES]++;
	if (run->n_touched > 0)
		sw_tx_flush_all(run, false);
}
