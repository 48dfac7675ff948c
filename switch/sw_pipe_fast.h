// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The pipeline of a PMD: from a burst to its megaflows, then to what they do.
 *
 *   flow mark -> extraction -> EMC -> SMC -> megaflows -> upcall (one by one)
 *   -> actions: output, or sw_exec_fast.h -> recirculated packets again, to a limit
 *
 * A port whose megaflows need no field at all is not even extracted, and one whose megaflows have
 * one mask alone is classified without the EMC, because it would cost more than it saves (setting
 * cache-bypass; an insertion probability of 1 overrides it, and the SMC is not concerned). Packets
 * of one port keep their order, but for those that are recirculated.
 */
#pragma once

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sw_emc_fast.h"
#include "sw_mega_fast.h"
#include "sw_pmd_fast.h"
#include "sw_smc_fast.h"
#include "sw_xlate_fast.h"

#define SW_RECIRC_LIMIT 6
#define SW_MAX_MARKS 4096

// Packets that wait for their next pass, at most one for each of a burst.
struct sw_recirc {
	uint16_t n;
	struct rte_mbuf *pkts[SW_BURST];
	uint32_t ids[SW_BURST];
};

struct sw_pipe {
	struct sw_mega mega;
	struct sw_emc *emc;
	struct sw_smc
		*_Atomic smc; // W: control, release; NULL until it is enabled for the first time

	// Of the burst at hand.
	const struct sw_tables *tables;
	uint32_t generation; // of tables, lower half
	uint32_t used;       // now, in the unit of struct sw_megaflow.used
	bool has_runs;       // the last burst had equal packets in a row
	uint16_t depth;      // of recirculation
	uint32_t transient;  // bits: transient flows in use
	uint32_t settled;    // all flows are of this generation
	struct sw_recirc recirc[2];
	struct sw_recirc *waiting; // where actions put packets
	alignas(64) struct sw_key keys[SW_BURST];
	uint32_t hashes[SW_BURST];
	uint32_t flows[SW_BURST];
	uint8_t bad[SW_BURST];
	struct sw_xlate xlate;

	// Of the sweep.
	uint32_t sweep_at;
	uint64_t pass_generation; // what all flows have at least when the sweep comes round
	uint64_t sorted_ticks;
	uint32_t random;

	// By control: which flow a device's mark means: its id << 32 | number, 0: none.
	alignas(64) _Atomic uint32_t n_marks; // W: control, relaxed
	_Atomic uint64_t marks[SW_MAX_MARKS]; // W: control, relaxed: a stale one fails by its id
};

// Caches that a packet may use.
struct sw_caches {
	bool is_emc;
	bool is_smc;
};

// One pass of packets through the pipeline.
struct sw_pass {
	struct rte_mbuf **pkts;
	uint32_t n;
	struct sw_classifier *cls;
	struct sw_caches caches;
	uint32_t wide; // bits: keys with more in their second line than word 8
};

// One burst of a queue; takes the packets over.
void sw_pipe_burst(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq, struct rte_mbuf **pkts,
		   uint16_t n);

// The flows of all packets of the pass, whose keys stand in keys[].
void sw_pipe_lookup(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq, struct sw_pass *pass);

/*
 * Packet i of the burst, whose key stands in keys[i]: look it up alone, with revalidation of an old
 * flow and translation where there is none. Counts what it was. Returns a flow of the present
 * generation, perhaps a transient one.
 */
uint32_t sw_upcall(struct sw_pmd_run *run, const struct sw_plan_rxq *rxq, struct sw_classifier *cls,
		   uint32_t i, const struct rte_mbuf *pkt, bool is_wide, struct sw_caches caches);

// Is an older flow as the present tables want it? Otherwise it is deleted.
bool sw_upcall_revalidate(struct sw_pmd_run *run, uint32_t flow);

// How many megaflow hits go by until the next key goes into the EMC: by chance, inv_prob - 1 on
// average.
uint32_t sw_upcall_emc_skip(struct sw_pipe *pipe, uint32_t inv_prob);

// Add what the flow has counted to its rules.
void sw_pipe_push(struct sw_pmd_run *run, uint32_t flow);

// A slice of sweeping, at each housekeeping.
void sw_sweep(struct sw_pmd_run *run);

// All flows end: before the PMD sleeps or exits.
void sw_pipe_flush(struct sw_pmd_run *run);
// The PMD works again: with the tables that there are now.
void sw_pipe_begin(struct sw_pmd_run *run);

// One writer per counter: a load and a store, no read-modify-write.
static inline void sw_pipe_add(_Atomic uint64_t *counter, uint64_t n)
{
	uint64_t old = atomic_load_explicit(counter, memory_order_relaxed);

	atomic_store_explicit(counter, old + n, memory_order_relaxed);
}
