// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * A PMD's plan as its poll loop reads it: queues to poll, ports to send to.
 *
 * Built by control (sw_plan_build.c) and constant from its publication on, except for the batches
 * of the outs, the claims and the samples, which say who writes them. Control frees a plan after
 * the PMD has acknowledged the next one (labels P1 to P4, sw_plan.h).
 */
#pragma once

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sw_pmd.h"
#include "sw_port.h"

struct rte_mbuf;
struct sw_impl;
struct sw_smc;

#define SW_BURST 32
#define SW_NO_OUT 0xffff

struct sw_plan_rxq {
	uint64_t crumb_rx; // breadcrumbs, built beforehand
	uint64_t crumb_process;
	struct sw_port_counts *counts; // of the port, this PMD's
	uint16_t port_id;
	uint16_t queue;
	uint16_t in_port;      // ofport
	uint16_t index;        // of the port
	uint32_t emc_inv_prob; // one in so many megaflow hits goes into the EMC; 0: EMC off
	bool is_bypass;        // no EMC while one mask is all that the port has
};

/*
 * A transmit queue shared by several PMDs, because the device has fewer queues than there are PMDs.
 * A PMD claims it for one burst and never waits for another: when the queue is taken, it tries a
 * bounded number of times and then keeps the packets for its next iteration, or drops them when its
 * batch is full. So a PMD that is stalled inside a burst can't stall its neighbours.
 */
struct sw_tx_claim {
	alignas(64) _Atomic uint32_t is_taken; // W: PMDs, exchange acquire (X1), store release (X2)
};

struct sw_plan_out {
	alignas(64) uint64_t crumb_tx;
	struct sw_tx_claim *claim;     // NULL: the queue is this PMD's own
	struct sw_port_counts *counts; // of the port, this PMD's
	uint32_t max_len;              // longest frame that the port takes
	uint16_t port_id;
	uint16_t queue;
	uint16_t index; // of the port
	uint16_t n;     // W: PMD; packets that wait in pkts
	uint8_t n_retries;
	bool is_touched;      // W: PMD; on the list of outs to flush
	uint64_t flush_ticks; // W: PMD; when they leave at the latest (tx-flush-interval)
	struct rte_mbuf *pkts[SW_BURST]; // W: PMD
};

struct sw_plan_pmd {
	uint64_t generation;
	bool is_exit; // take this over, acknowledge and leave
	uint32_t n_rxq;
	uint32_t n_outs;
	uint64_t flush_interval_ticks;
	const struct sw_impl *impl; // of extraction and lookup
	struct sw_smc *smc;         // NULL: off
	uint32_t flow_limit;        // megaflows at most
	uint32_t max_idle_used;     // of a megaflow, in the unit of its time of use
	const uint16_t *out_of;     // ofport to index in outs, SW_NO_OUT
	struct sw_plan_out *outs;
	// Cycles of each queue, then of all, in the iterations that were timed (sw_sample_fast.c);
	// W: PMD, relaxed. NULL: there are not several queues.
	_Atomic uint64_t *sampled;
	uint32_t n_samples; // W: PMD
	struct sw_plan_rxq rxqs[];
};
