// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_stats.h"

#include <errno.h>
#include <string.h>

#include <rte_ethdev.h>

#include "pmdp_clock.h"
#include "pmdp_shm.h"
#include "pmdpulse.h"
#include "sw_pmd.h"
#include "sw_port.h"
#include "sw_switch.h"

#define SW_STATS_TRIES 1000

// These show what is, not what was counted.
static bool is_gauge(uint32_t index)
{
	return index >= PMDP_C_N_RXQ && index <= PMDP_C_MARKS;
}

// S2: a copy is whole if the same even number stands before and after it. The PMD holds the odd one
// for some hundred cycles, so many tries in vain mean that it stands there.
static int read_body(const struct pmdp_lane_shm *shm, struct pmdp_lane_body *out_body)
{
	for (uint32_t i = 0; i < SW_STATS_TRIES; i++) {
		uint64_t before = atomic_load_explicit(&shm->seq, memory_order_acquire);

		if ((before & 1) != 0)
			continue;
		pmdp_words_load(out_body, &shm->body, sizeof(*out_body));
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load_explicit(&shm->seq, memory_order_relaxed) == before)
			return 0;
	}
	return -EAGAIN;
}

static int read_counters(const struct sw_pmd *pmd, struct pmdp_lane_body *out_body)
{
	if (atomic_load_explicit(&pmd->life, memory_order_acquire) != SW_PMD_RUNNING)
		return -EAGAIN;
	return read_body(pmd->shm, out_body);
}

int sw_stats_pmd(const struct sw_pmd *pmd, struct sw_pmd_stats *out)
{
	struct pmdp_lane_body body;
	int rc = read_counters(pmd, &body);

	if (rc != 0)
		return rc;
	for (uint32_t i = 0; i < PMDP_N_COUNTERS; i++)
		out->counters[i] = body.counters[i] - (is_gauge(i) ? 0 : pmd->clear_base[i]);
	out->ticks_hz = pmd->sw->tsc_hz != 0 ? pmd->sw->tsc_hz : UINT64_C(1000000000);
	out->snapshot_ticks = body.snapshot_ticks;
	out->flow_limit = pmd->sw->settings.flow_limit;
	return 0;
}

int sw_stats_raw(const struct sw_pmd *pmd, uint64_t out_counters[PMDP_N_COUNTERS])
{
	struct pmdp_lane_body body;
	int rc = read_counters(pmd, &body);

	if (rc == 0)
		memcpy(out_counters, body.counters, sizeof(body.counters));
	return rc;
}

void sw_stats_clear(struct sw_switch *sw, int core)
{
	struct sw_pmd *pmd = NULL;
	struct pmdp_lane_body body;

	while ((pmd = sw_pmd_next(sw, pmd)) != NULL) {
		if (core >= 0 && pmd->core != core)
			continue;
		pmd->cleared_ns = pmdp_mono_now_ns();
		sw_perf_clear(pmd);
		if (read_counters(pmd, &body) == 0)
			memcpy(pmd->clear_base, body.counters, sizeof(pmd->clear_base));
	}
}

static void look_at_link(struct sw_port *port)
{
	struct rte_eth_link link = {0};
	uint32_t state = PMDP_LINK_UNKNOWN;

	// A device that can't tell is not a device that is down.
	if (rte_eth_link_get_nowait(port->port_id, &link) == 0)
		state = link.link_status == RTE_ETH_LINK_UP ? PMDP_LINK_UP : PMDP_LINK_DOWN;
	if (port->is_link_seen && state != port->link_state)
		port->link_changes++;
	port->is_link_seen = true;
	port->link_state = state;
	port->link_speed_mbps = 0;
	if (state == PMDP_LINK_UP && link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
		port->link_speed_mbps = link.link_speed;
}

void sw_stats_port(struct sw_switch *sw, struct sw_port *port, struct sw_port_stats *out)
{
	struct rte_eth_stats eth = {0};
	struct sw_pmd *pmd = NULL;

	look_at_link(port);
	memset(out, 0, sizeof(*out));
	out->admin_state = port->state == SW_PORT_ACTIVE ? PMDP_LINK_UP : PMDP_LINK_DOWN;
	out->link_state = port->link_state;
	out->link_speed_mbps = port->link_speed_mbps;
	for (uint32_t i = 0; i < PMDP_P_N_COUNTERS; i++)
		out->counters[i] = port->retired[i] - port->base[i];
	while ((pmd = sw_pmd_next(sw, pmd)) != NULL)
		for (uint32_t i = 0; i < PMDP_P_N_COUNTERS; i++)
			out->counters[i] += atomic_load_explicit(
				&pmd->port_counts[port->index].n[i], memory_order_relaxed);
	if (rte_eth_stats_get(port->port_id, &eth) == 0)
		port->eth = eth;
	out->counters[PMDP_P_RX_PACKETS] = port->eth.ipackets;
	out->counters[PMDP_P_RX_BYTES] = port->eth.ibytes;
	out->counters[PMDP_P_RX_ERRORS] = port->eth.ierrors;
	out->counters[PMDP_P_RX_MISSED] = port->eth.imissed;
	out->counters[PMDP_P_RX_NOMBUF] = port->eth.rx_nombuf;
	out->counters[PMDP_P_TX_PACKETS] = port->eth.opackets;
	out->counters[PMDP_P_TX_BYTES] = port->eth.obytes;
	out->counters[PMDP_P_TX_ERRORS] = port->eth.oerrors;
	out->counters[PMDP_P_LINK_CHANGES] = port->link_changes;
}
