// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_perf_fast.h"

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "pmdp_shm.h"

// For want of packets, a log is closed after this many of its milliseconds.
#define SW_PERF_LOG_OPEN_MS 10

static void add_sample(struct sw_perf *perf, uint32_t hist, uint64_t value)
{
	perf->totals.bins[hist][sw_perf_bin(value)]++;
}

void sw_perf_begin(struct sw_perf *perf, const uint64_t *counters)
{
	perf->seen_batches = counters[PMDP_C_RX_BATCHES];
	perf->seen_upcalls = counters[PMDP_C_MISSES];
	perf->seen_upcall_ticks = counters[PMDP_C_UPCALL_TICKS];
	perf->n_idle = 0;
	perf->is_log_open = false;
	perf->ms = (struct sw_perf_ms){0};
}

void sw_perf_publish(struct sw_perf *perf)
{
	uint64_t seq = pmdp_seq_write_begin(&perf->seq); // S1

	pmdp_words_store(&perf->published, &perf->totals, sizeof(perf->totals));
	pmdp_seq_write_end(&perf->seq, seq);
}

static void count(struct sw_perf *perf, const struct sw_perf_iteration *it, bool is_suspicious)
{
	struct sw_perf_totals *totals = &perf->totals;

	totals->n_iterations++;
	totals->cycles += it->cycles;
	add_sample(perf, SW_PERF_CYCLES, it->cycles);
	add_sample(perf, SW_PERF_PACKETS, it->n_packets);
	add_sample(perf, SW_PERF_BATCHES, it->n_batches);
	add_sample(perf, SW_PERF_UPCALLS, it->n_upcalls);
	if (it->n_packets == 0) {
		totals->n_idle++;
		totals->idle_cycles += it->cycles;
	} else {
		totals->n_packets += it->n_packets;
		add_sample(perf, SW_PERF_CYCLES_PER_PACKET, it->cycles / it->n_packets);
	}
	if (it->n_batches > 0) {
		totals->n_batches += it->n_batches;
		add_sample(perf, SW_PERF_PACKETS_PER_BATCH, it->n_packets / it->n_batches);
	}
	if (unlikely(it->n_upcalls > 0)) {
		totals->n_upcalls += it->n_upcalls;
		totals->upcall_cycles += it->upcall_cycles;
		add_sample(perf, SW_PERF_CYCLES_PER_UPCALL, it->upcall_cycles / it->n_upcalls);
	}
	if (unlikely(is_suspicious))
		totals->n_suspicious++;
}

static void count_ms(struct sw_perf *perf, const struct sw_perf_iteration *it, uint64_t end)
{
	struct sw_perf_ms *ms = &perf->ms;

	if (ms->n_iterations == 0)
		ms->begin_ticks = it->begin_ticks;
	ms->cycles += it->cycles;
	ms->n_iterations++;
	ms->n_idle += it->n_packets == 0;
	ms->n_packets += it->n_packets;
	ms->n_batches += it->n_batches;
	ms->n_upcalls += it->n_upcalls;
	ms->upcall_cycles += it->upcall_cycles;
	if (likely(end - ms->begin_ticks < perf->ms_ticks))
		return;
	pmdp_ring_write(&perf->milliseconds[perf->n_ms % SW_PERF_N_MS].seq,
			perf->milliseconds[perf->n_ms % SW_PERF_N_MS].body, ms, sizeof(*ms),
			&perf->n_ms_written, perf->n_ms);
	perf->n_ms++;
	*ms = (struct sw_perf_ms){0};
}

static uint32_t setting(const _Atomic uint32_t *value)
{
	return RTE_MIN(atomic_load_explicit(value, memory_order_relaxed),
		       (uint32_t)SW_PERF_LOG_ITERATIONS / 2 - 1);
}

// The iteration number n is suspicious.
static void window_open(struct sw_perf *perf, uint64_t n, uint64_t end)
{
	if (!perf->is_log_open) {
		perf->is_log_open = true;
		perf->log_at = n;
		perf->n_log_suspicious = 0;
	} else if (atomic_load_explicit(&perf->is_extending, memory_order_relaxed) == 0) {
		perf->n_log_suspicious++;
		return;
	}
	perf->n_log_suspicious++;
	perf->log_end = n + setting(&perf->n_after);
	perf->log_due_ticks = end + SW_PERF_LOG_OPEN_MS * perf->ms_ticks;
}

// All neighbours are there: put them where control finds them. n: the newest iteration's number.
static void window_close(struct sw_perf *perf, uint64_t n)
{
	uint64_t n_written = atomic_load_explicit(&perf->log.n_written, memory_order_relaxed);
	struct sw_perf_log *slot = &perf->log.slots[n_written % SW_PERF_N_LOGS];
	uint64_t first = perf->log_at - RTE_MIN(perf->log_at, (uint64_t)setting(&perf->n_before));

	perf->is_log_open = false;
	// D4: what control has taken may be overwritten.
	if (n_written - atomic_load_explicit(&perf->log.n_taken, memory_order_acquire) >=
	    SW_PERF_N_LOGS) {
		perf->totals.n_lost += perf->n_log_suspicious;
		return;
	}
	slot->n = (uint32_t)RTE_MIN(n - first + 1, (uint64_t)SW_PERF_LOG_ITERATIONS);
	slot->at = (uint32_t)(perf->log_at - first);
	slot->n_suspicious = perf->n_log_suspicious;
	for (uint32_t i = 0; i < slot->n; i++)
		pmdp_words_load(&slot->iterations[i],
				perf->iterations[(first + i) % SW_PERF_N_ITERATIONS].body,
				sizeof(slot->iterations[i]));
	atomic_store_explicit(&perf->log.n_written, n_written + 1, memory_order_release); // D3
}

static void keep(struct sw_perf *perf, struct sw_perf_iteration *it, uint64_t end,
		 bool is_suspicious)
{
	uint64_t n = perf->n_iterations++;
	struct sw_perf_item *item = &perf->iterations[n % SW_PERF_N_ITERATIONS];

	it->n_idle = perf->n_idle;
	perf->n_idle = 0;
	pmdp_ring_write(&item->seq, item->body, it, sizeof(*it), &perf->n_iterations_written, n);
	if (unlikely(is_suspicious))
		window_open(perf, n, end);
}

void sw_perf_record(struct sw_perf *perf, const uint64_t *counters, uint64_t begin, uint64_t end,
		    uint64_t n_packets)
{
	struct sw_perf_iteration it = {
		.begin_ticks = begin,
		.cycles = end - begin,
		.upcall_cycles = counters[PMDP_C_UPCALL_TICKS] - perf->seen_upcall_ticks,
		.n_packets = (uint32_t)n_packets,
		.n_batches = (uint32_t)(counters[PMDP_C_RX_BATCHES] - perf->seen_batches),
		.n_upcalls = (uint32_t)(counters[PMDP_C_MISSES] - perf->seen_upcalls),
	};
	bool is_suspicious = it.cycles >
			     atomic_load_explicit(&perf->limit_cycles, memory_order_relaxed);

	perf->seen_upcall_ticks = counters[PMDP_C_UPCALL_TICKS];
	perf->seen_batches = counters[PMDP_C_RX_BATCHES];
	perf->seen_upcalls = counters[PMDP_C_MISSES];
	count(perf, &it, is_suspicious);
	count_ms(perf, &it, end);
	if (n_packets > 0 || is_suspicious)
		keep(perf, &it, end, is_suspicious);
	else
		perf->n_idle++;
	// The newest iteration of a full slot ends it too.
	if (unlikely(perf->is_log_open) &&
	    (perf->n_iterations > perf->log_end || (int64_t)(end - perf->log_due_ticks) >= 0 ||
	     perf->n_iterations - perf->log_at >= SW_PERF_LOG_ITERATIONS / 2))
		window_close(perf, perf->n_iterations - 1);
}
