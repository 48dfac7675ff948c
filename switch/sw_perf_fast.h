// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * What pmd-perf-show knows of a PMD's iterations, recorded by the PMD while pmd-perf-metrics is on.
 *
 * One struct for each PMD, in memory that control allocates and the PMD alone writes (but for the
 * limits and log.n_taken, which are control's). Totals and histograms are the PMD's own; twice a
 * millisecond it publishes them under a sequence word (S1, S2): a copy of control's is whole, so
 * the bins of a histogram add up to the totals beside them. (Under the word all the time they could
 * not be copied from an idle PMD, whose iterations are shorter than the copy.) The histories are
 * rings of items that are proved one by one (R1 to R4). A suspicious iteration is kept with its
 * neighbours in a slot of the log, which control empties (D3, D4); a full log loses the new one,
 * counted. Nobody waits.
 */
#pragma once

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "pmdp_abi.h"

// Histograms, all of one iteration that had something to count.
#define SW_PERF_CYCLES 0
#define SW_PERF_PACKETS 1
#define SW_PERF_CYCLES_PER_PACKET 2
#define SW_PERF_PACKETS_PER_BATCH 3
#define SW_PERF_UPCALLS 4
#define SW_PERF_CYCLES_PER_UPCALL 5
#define SW_PERF_BATCHES 6
#define SW_PERF_N_HISTS 7

// Two bins an octave: 0, 1, 2, 3, 4-5, 6-7, 8-11, 12-15, ... (sw_perf_bin). The last has all above.
#define SW_PERF_N_BINS 64

#define SW_PERF_N_ITERATIONS \
	2048 // in the ring; some of the oldest may be lost while control copies
#define SW_PERF_N_MS 1024
#define SW_PERF_N_LOGS 8
#define SW_PERF_LOG_ITERATIONS 128

// One iteration with packets, or a suspicious one; the others in between are n_idle.
struct sw_perf_iteration {
	uint64_t begin_ticks;
	uint64_t cycles;
	uint64_t upcall_cycles;
	uint32_t n_packets;
	uint32_t n_idle; // iterations without packets since the one before
	uint32_t n_batches;
	uint32_t n_upcalls;
	uint64_t reserved[2];
};

// All iterations of about a millisecond.
struct sw_perf_ms {
	uint64_t begin_ticks;
	uint64_t cycles;
	uint64_t upcall_cycles;
	uint32_t n_iterations;
	uint32_t n_idle;
	uint64_t n_packets;
	uint32_t n_batches;
	uint32_t n_upcalls;
	uint64_t reserved;
};

struct sw_perf_totals {
	uint64_t n_iterations;
	uint64_t n_idle; // of these, without packets
	uint64_t cycles;
	uint64_t idle_cycles;
	uint64_t n_packets;
	uint64_t n_batches;
	uint64_t n_upcalls;
	uint64_t upcall_cycles;
	uint64_t n_suspicious;
	uint64_t n_lost; // of these, the log had no room for
	uint64_t bins[SW_PERF_N_HISTS][SW_PERF_N_BINS];
};

// A suspicious iteration with its neighbours, in order.
struct sw_perf_log {
	uint32_t n;
	uint32_t at;           // which of them
	uint32_t n_suspicious; // of them, at least this one
	uint32_t reserved;
	struct sw_perf_iteration iterations[SW_PERF_LOG_ITERATIONS];
};

struct sw_perf_item {
	alignas(64) _Atomic uint64_t seq;
	uint64_t body[7]; // one of the structs above
};

_Static_assert(sizeof(struct sw_perf_iteration) == 56, "fits an item");
_Static_assert(sizeof(struct sw_perf_ms) == 56, "fits an item");
_Static_assert(sizeof(struct sw_perf_item) == 64, "one line an iteration");

struct sw_perf {
	// W: control, relaxed.
	alignas(128) _Atomic uint64_t limit_cycles; // longer ones are suspicious; UINT64_MAX: none
	_Atomic uint32_t n_before;                  // neighbours to keep with it
	_Atomic uint32_t n_after;
	_Atomic uint32_t
		is_extending; // a further one meanwhile is kept in the same log, with its own
	uint64_t ms_ticks;    // constant

	// The PMD's own.
	alignas(128) uint64_t seen_batches; // counters of the lane at the end of the last iteration
	uint64_t seen_upcalls;
	uint64_t seen_upcall_ticks;
	uint64_t n_iterations; // items written
	uint64_t n_ms;
	uint32_t n_idle;
	bool is_log_open;
	uint32_t n_log_suspicious;
	uint64_t log_at;        // number of the suspicious iteration
	uint64_t log_end;       // number of the last neighbour
	uint64_t log_due_ticks; // when it is closed, for want of packets
	struct sw_perf_ms ms;   // being filled
	struct sw_perf_totals totals;

	// W: PMD. R: control.
	alignas(128) _Atomic uint64_t seq;     // odd while published changes (S1/S2)
	struct sw_perf_totals published;       // in relaxed words
	_Atomic uint64_t n_iterations_written; // R1/R2
	_Atomic uint64_t n_ms_written;         // R1/R2
	struct {
		alignas(64) _Atomic uint64_t n_written; // W: PMD, release (D3)
		alignas(64) _Atomic uint64_t n_taken;   // W: control, release (D4)
		struct sw_perf_log slots[SW_PERF_N_LOGS];
	} log;
	struct sw_perf_item iterations[SW_PERF_N_ITERATIONS];
	struct sw_perf_item milliseconds[SW_PERF_N_MS];
};

static inline uint32_t sw_perf_bin(uint64_t value)
{
	uint32_t octave;

	if (value < 2)
		return (uint32_t)value;
	octave = 63 - (uint32_t)__builtin_clzll(value);
	if (octave > (SW_PERF_N_BINS - 1) / 2)
		return SW_PERF_N_BINS - 1;
	return 2 * octave + (uint32_t)(value >> (octave - 1) & 1);
}

// The PMD begins to record: what its counters show now is not of an iteration of ours.
void sw_perf_begin(struct sw_perf *perf, const uint64_t *counters);

// An iteration from begin to end that received n_packets; counters are the lane's, up to date.
void sw_perf_record(struct sw_perf *perf, const uint64_t *counters, uint64_t begin, uint64_t end,
		    uint64_t n_packets);

// Let control see the totals as they are now.
void sw_perf_publish(struct sw_perf *perf);
