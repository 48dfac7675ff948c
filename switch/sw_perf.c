// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_perf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_malloc.h>

#include "pmdp_clock.h"
#include "pmdp_shm.h"
#include "pmdpulse.h"
#include "sw_log.h"
#include "sw_pmd.h"
#include "sw_switch.h"

#define SW_PERF_TRIES 1000
#define SW_PERF_DEFAULT_LIMIT_US 250
#define SW_PERF_DEFAULT_NEIGHBOURS 5
#define SW_PERF_TELL_NS UINT64_C(1000000000)

static const char *const hist_names[SW_PERF_N_HISTS] = {
	[SW_PERF_CYCLES] = "cycles_per_iteration",
	[SW_PERF_PACKETS] = "packets_per_iteration",
	[SW_PERF_CYCLES_PER_PACKET] = "cycles_per_packet",
	[SW_PERF_PACKETS_PER_BATCH] = "packets_per_batch",
	[SW_PERF_UPCALLS] = "upcalls_per_iteration",
	[SW_PERF_CYCLES_PER_UPCALL] = "cycles_per_upcall",
	[SW_PERF_BATCHES] = "batches_per_iteration",
};

const char *sw_perf_hist_name(uint32_t hist)
{
	return hist_names[hist];
}

uint64_t sw_perf_bin_low(uint32_t bin)
{
	uint32_t octave = bin / 2;

	if (bin < 2)
		return bin;
	return (UINT64_C(1) << octave) + (bin % 2 != 0 ? UINT64_C(1) << (octave - 1) : 0);
}

void sw_perf_limits_init(struct sw_perf_limits *limits)
{
	*limits = (struct sw_perf_limits){
		.limit_us = SW_PERF_DEFAULT_LIMIT_US,
		.n_before = SW_PERF_DEFAULT_NEIGHBOURS,
		.n_after = SW_PERF_DEFAULT_NEIGHBOURS,
	};
}

static uint64_t ticks_hz(const struct sw_switch *sw)
{
	return sw->tsc_hz != 0 ? sw->tsc_hz : UINT64_C(1000000000);
}

static void set_limits(struct sw_switch *sw, struct sw_perf *perf)
{
	const struct sw_perf_limits *limits = &sw->perf_limits;
	uint64_t cycles = limits->is_logging ? ticks_hz(sw) / 1000000 * limits->limit_us
					     : UINT64_MAX;

	atomic_store_explicit(&perf->n_before, limits->n_before, memory_order_relaxed);
	atomic_store_explicit(&perf->n_after, limits->n_after, memory_order_relaxed);
	atomic_store_explicit(&perf->is_extending, limits->is_extending, memory_order_relaxed);
	atomic_store_explicit(&perf->limit_cycles, cycles, memory_order_relaxed);
}

// Zeroed, so that the PMD finds every page there.
static int attach(struct sw_pmd *pmd)
{
	struct sw_perf *perf = rte_zmalloc_socket("pmd perf", sizeof(*perf), 128, pmd->numa);

	if (perf == NULL)
		perf = rte_zmalloc("pmd perf", sizeof(*perf), 128);
	if (perf == NULL)
		return -ENOMEM;
	perf->ms_ticks = ticks_hz(pmd->sw) / 1000;
	pmd->perf.perf = perf;
	return 0;
}

int sw_perf_apply(struct sw_switch *sw)
{
	struct sw_pmd *pmd = NULL;
	int rc = 0;

	while ((pmd = sw_pmd_next(sw, pmd)) != NULL) {
		bool is_on = sw->settings.pmd_perf_metrics;

		if (is_on && pmd->perf.perf == NULL && attach(pmd) != 0)
			rc = -ENOMEM;
		if (pmd->perf.perf != NULL)
			set_limits(sw, pmd->perf.perf);
		// D1: all of it, before the PMD sees it.
		atomic_store_explicit(&pmd->want_perf, is_on ? pmd->perf.perf : NULL,
				      memory_order_release);
	}
	return rc;
}

void sw_perf_detach(struct sw_pmd *pmd)
{
	for (uint32_t i = 0; i < SW_PERF_N_KEPT; i++)
		free(pmd->perf.logs[i]);
	rte_free(pmd->perf.perf);
	memset(&pmd->perf, 0, sizeof(pmd->perf));
}

// At most one line a second and PMD.
static void tell(struct sw_pmd *pmd, const struct sw_perf_log *log)
{
	const struct sw_perf_iteration *it = &log->iterations[log->at];
	double us = 1e6 / (double)ticks_hz(pmd->sw);
	uint64_t now_ns = pmdp_mono_now_ns();
	char others[48] = "";

	if (pmd->perf.told_ns != 0 && now_ns - pmd->perf.told_ns < SW_PERF_TELL_NS) {
		pmd->perf.n_untold++;
		return;
	}
	if (pmd->perf.n_untold > 0)
		snprintf(others, sizeof(others), " (and %u since the last line)",
			 pmd->perf.n_untold);
	pmd->perf.told_ns = now_ns;
	pmd->perf.n_untold = 0;
	sw_log(SW_LOG_WARNING,
	       "%s: suspicious iteration%s: %.1f us (limit %u), %u packets, %u upcalls in %.1f us; "
	       "pmd-perf-log shows its neighbours",
	       pmd->name, others, (double)it->cycles * us, pmd->sw->perf_limits.limit_us,
	       it->n_packets, it->n_upcalls, (double)it->upcall_cycles * us);
}

static void take_logs(struct sw_pmd *pmd)
{
	struct sw_perf_kept *kept = &pmd->perf;
	struct sw_perf *perf = kept->perf;
	uint64_t n_taken = atomic_load_explicit(&perf->log.n_taken, memory_order_relaxed);
	// D3: the slots below are whole.
	uint64_t n_written = atomic_load_explicit(&perf->log.n_written, memory_order_acquire);

	for (; n_taken < n_written; n_taken++) {
		struct sw_perf_log **place = &kept->logs[kept->n_logs % SW_PERF_N_KEPT];

		if (*place == NULL)
			*place = malloc(sizeof(**place));
		if (*place == NULL)
			break;
		**place = perf->log.slots[n_taken % SW_PERF_N_LOGS];
		kept->n_logs++;
		tell(pmd, *place);
	}
	atomic_store_explicit(&perf->log.n_taken, n_taken, memory_order_release); // D4
}

void sw_perf_poll(struct sw_switch *sw)
{
	struct sw_pmd *pmd = NULL;

	while ((pmd = sw_pmd_next(sw, pmd)) != NULL)
		if (pmd->perf.perf != NULL)
			take_logs(pmd);
}

// S2, as in sw_stats.c. The PMD holds the odd number for some hundred cycles in half a millisecond.
static int copy_totals(const struct sw_perf *perf, struct sw_perf_totals *out)
{
	for (uint32_t i = 0; i < SW_PERF_TRIES; i++) {
		uint64_t before = atomic_load_explicit(&perf->seq, memory_order_acquire);

		if ((before & 1) != 0)
			continue;
		pmdp_words_load(out, &perf->published, sizeof(*out));
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load_explicit(&perf->seq, memory_order_relaxed) == before)
			return 0;
	}
	return -EAGAIN;
}

int sw_perf_totals(const struct sw_pmd *pmd, struct sw_perf_totals *out)
{
	struct sw_perf_totals now;
	uint64_t words[sizeof(now) / 8], base[sizeof(now) / 8];
	int rc;

	if (pmd->perf.perf == NULL)
		return -ENOENT;
	rc = copy_totals(pmd->perf.perf, &now);
	if (rc != 0)
		return rc;
	memcpy(words, &now, sizeof(now));
	memcpy(base, &pmd->perf.base, sizeof(base));
	for (uint32_t i = 0; i < sizeof(now) / 8; i++)
		words[i] -= base[i];
	memcpy(out, words, sizeof(*out));
	return 0;
}

void sw_perf_clear(struct sw_pmd *pmd)
{
	struct sw_perf_totals now;

	if (pmd->perf.perf == NULL || copy_totals(pmd->perf.perf, &now) != 0)
		return;
	pmd->perf.base = now;
	pmd->perf.base_ticks = pmd->sw->tsc_hz != 0 ? rte_rdtsc() : pmdp_mono_now_ns();
}

// The newest whole items of a ring, oldest first.
static uint32_t copy_ring(const struct sw_perf_item *items, uint32_t size,
			  const _Atomic uint64_t *n_written, uint64_t base_ticks, void *out,
			  uint32_t n_wanted)
{
	uint64_t end = atomic_load_explicit(n_written, memory_order_acquire); // R2
	uint64_t n = end - (end < n_wanted ? end : n_wanted);
	struct sw_perf_iteration body; // of any kind: begin_ticks comes first in all
	uint32_t n_out = 0;

	if (end - n > size)
		n = end - size;
	for (; n < end; n++) {
		const struct sw_perf_item *item = &items[n % size];

		if (atomic_load_explicit(&item->seq, memory_order_acquire) != 2 * n + 2) // R4a
			continue;
		pmdp_words_load(&body, item->body, sizeof(body));
		atomic_thread_fence(memory_order_acquire); // R4b
		if (atomic_load_explicit(&item->seq, memory_order_relaxed) != 2 * n + 2 ||
		    (int64_t)(body.begin_ticks - base_ticks) < 0)
			continue;
		memcpy((char *)out + n_out++ * sizeof(body), &body, sizeof(body));
	}
	return n_out;
}

uint32_t sw_perf_iterations(const struct sw_pmd *pmd, struct sw_perf_iteration *out, uint32_t n)
{
	const struct sw_perf *perf = pmd->perf.perf;

	return perf == NULL ? 0
			    : copy_ring(perf->iterations, SW_PERF_N_ITERATIONS,
					&perf->n_iterations_written, pmd->perf.base_ticks, out, n);
}

uint32_t sw_perf_milliseconds(const struct sw_pmd *pmd, struct sw_perf_ms *out, uint32_t n)
{
	const struct sw_perf *perf = pmd->perf.perf;

	return perf == NULL ? 0
			    : copy_ring(perf->milliseconds, SW_PERF_N_MS, &perf->n_ms_written,
					pmd->perf.base_ticks, out, n);
}
