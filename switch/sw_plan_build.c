// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_plan_build.h"

#include <string.h>

#include <rte_malloc.h>

#include "pmdpulse.h"
#include "sw_mega_fast.h"
#include "sw_pipe.h"
#include "sw_switch.h"

// Ethernet header and two tags on top of the MTU.
#define SW_FRAME_OVERHEAD 22

void sw_assignment_clear(struct sw_assignment *assignment)
{
	memset(assignment, 0xff, sizeof(*assignment));
}

static bool is_usable(struct sw_switch *sw, uint16_t index)
{
	struct sw_pmd *pmd = index < SW_MAX_PMDS ? sw->pmds.slots[index] : NULL;

	return pmd != NULL && pmd->is_known && !pmd->is_leaving;
}

// The usable PMD with the fewest queues, the lowest core first.
static uint16_t least_loaded(struct sw_switch *sw, const uint32_t *n_queues)
{
	uint16_t best = SW_NO_PMD;

	for (uint16_t i = 0; i < SW_MAX_PMDS; i++) {
		if (!is_usable(sw, i))
			continue;
		if (best == SW_NO_PMD || n_queues[i] < n_queues[best] ||
		    (n_queues[i] == n_queues[best] &&
		     sw->pmds.slots[i]->core < sw->pmds.slots[best]->core))
			best = i;
	}
	return best;
}

void sw_assignment_make(struct sw_switch *sw, const struct sw_assignment *current, bool is_fresh,
			struct sw_assignment *out_wanted)
{
	uint32_t n_queues[SW_MAX_PMDS] = {0};
	struct sw_port *port = NULL;

	sw_assignment_clear(out_wanted);
	while (!is_fresh && (port = sw_port_next(sw, port)) != NULL) {
		for (uint16_t q = 0; port->state == SW_PORT_ACTIVE && q < port->n_rxq; q++) {
			uint16_t pmd = current->pmd[port->index][q];

			if (is_usable(sw, pmd)) {
				out_wanted->pmd[port->index][q] = pmd;
				n_queues[pmd]++;
			}
		}
	}
	port = NULL;
	while ((port = sw_port_next(sw, port)) != NULL) {
		for (uint16_t q = 0; port->state == SW_PORT_ACTIVE && q < port->n_rxq; q++) {
			uint16_t *pmd = &out_wanted->pmd[port->index][q];

			if (*pmd != SW_NO_PMD)
				continue;
			*pmd = least_loaded(sw, n_queues);
			if (*pmd != SW_NO_PMD)
				n_queues[*pmd]++;
		}
	}
}

bool sw_assignment_step(const struct sw_assignment *current, const struct sw_assignment *wanted,
			struct sw_assignment *out_step)
{
	bool is_wanted = true;

	*out_step = *wanted;
	for (uint32_t p = 0; p < SW_MAX_PORTS; p++) {
		for (uint32_t q = 0; q < SW_MAX_RXQ; q++) {
			uint16_t from = current->pmd[p][q];
			uint16_t to = wanted->pmd[p][q];

			if (from != SW_NO_PMD && to != SW_NO_PMD && from != to) {
				out_step->pmd[p][q] = SW_NO_PMD;
				is_wanted = false;
			}
		}
	}
	return is_wanted;
}

static void fill_out(struct sw_pmd *pmd, const struct sw_port *port, uint16_t nth_pmd,
		     uint32_t n_pmds, struct sw_plan_out *out)
{
	out->port_id = port->port_id;
	out->queue = nth_pmd % port->n_txq;
	out->claim = n_pmds > port->n_txq ? &port->claims[out->queue] : NULL;
	out->counts = &pmd->port_counts[port->index];
	out->max_len = port->mtu + SW_FRAME_OVERHEAD;
	out->index = port->index;
	out->n_retries = (uint8_t)port->conf.tx_retries;
	out->crumb_tx = PMDP_CRUMB(PMDP_STAGE_TX, port->ofport, out->queue);
}

static void fill_rxq(const struct sw_switch *sw, struct sw_pmd *pmd, const struct sw_port *port,
		     uint16_t queue, struct sw_plan_rxq *rxq)
{
	rxq->port_id = port->port_id;
	rxq->queue = queue;
	rxq->in_port = port->ofport;
	rxq->index = port->index;
	rxq->emc_inv_prob = port->conf.emc_inv_prob != SW_EMC_AS_SET ? port->conf.emc_inv_prob
								     : sw->settings.emc_inv_prob;
	rxq->is_bypass = sw->settings.cache_bypass;
	rxq->counts = &pmd->port_counts[port->index];
	rxq->crumb_rx = PMDP_CRUMB(PMDP_STAGE_RX, port->ofport, queue);
	rxq->crumb_process = PMDP_CRUMB(PMDP_STAGE_PROCESS, port->ofport, queue);
}

static uint32_t count_rxqs(const struct sw_assignment *assignment, uint16_t pmd)
{
	uint32_t n = 0;

	for (uint32_t p = 0; p < SW_MAX_PORTS; p++)
		for (uint32_t q = 0; q < SW_MAX_RXQ; q++)
			n += assignment->pmd[p][q] == pmd;
	return n;
}

static struct sw_plan_pmd *build_plan(struct sw_switch *sw, const struct sw_round *round,
				      struct sw_pmd *pmd, uint16_t nth_pmd, uint32_t n_pmds)
{
	uint32_t n_rxq = count_rxqs(&round->assignment, pmd->index);
	uint64_t hz = sw->tsc_hz != 0 ? sw->tsc_hz : UINT64_C(1000000000);
	struct sw_port *port = NULL;
	struct sw_plan_pmd *plan;

	plan = rte_zmalloc_socket("plan", sizeof(*plan) + n_rxq * sizeof(plan->rxqs[0]), 64,
				  pmd->numa);
	if (plan == NULL)
		return NULL;
	plan->outs = rte_zmalloc_socket("plan outs", (sw->ports.n + 1u) * sizeof(*plan->outs), 64,
					pmd->numa);
	if (n_rxq > 1)
		plan->sampled = rte_zmalloc_socket("samples", (n_rxq + 1) * sizeof(*plan->sampled),
						   64, pmd->numa);
	if (plan->outs == NULL || (n_rxq > 1 && plan->sampled == NULL)) {
		rte_free(plan->sampled);
		rte_free(plan->outs);
		rte_free(plan);
		return NULL;
	}
	plan->generation = round->generation;
	plan->is_exit = pmd->is_leaving;
	plan->impl = sw->impl;
	plan->smc = sw->settings.smc_enable ? sw_pipe_smc(pmd->pipe) : NULL;
	plan->flow_limit = sw->settings.flow_limit;
	plan->max_idle_used =
		(uint32_t)(hz / 1000 * sw->settings.max_idle_ms >> SW_MEGA_USED_SHIFT);
	plan->flush_interval_ticks = hz / 1000000 * sw->settings.tx_flush_interval_us;
	plan->out_of = round->out_of;
	while ((port = sw_port_next(sw, port)) != NULL) {
		if (port->state != SW_PORT_ACTIVE)
			continue;
		fill_out(pmd, port, nth_pmd, n_pmds, &plan->outs[plan->n_outs++]);
		for (uint16_t q = 0; q < port->n_rxq; q++)
			if (round->assignment.pmd[port->index][q] == pmd->index)
				fill_rxq(sw, pmd, port, q, &plan->rxqs[plan->n_rxq++]);
	}
	return plan;
}

struct sw_round *sw_round_build(struct sw_switch *sw, uint64_t generation,
				const struct sw_assignment *assignment)
{
	struct sw_round *round = rte_zmalloc("round", sizeof(*round), 64);
	struct sw_port *port = NULL;
	struct sw_pmd *pmd = NULL;
	uint32_t n_pmds = 0;
	uint16_t n_outs = 0;
	uint16_t nth = 0;

	if (round == NULL)
		return NULL;
	round->generation = generation;
	round->assignment = *assignment;
	memset(round->out_of, 0xff, sizeof(round->out_of));
	while ((port = sw_port_next(sw, port)) != NULL) {
		if (port->state == SW_PORT_ACTIVE) {
			round->has_port[port->index] = true;
			round->out_of[port->ofport] = n_outs++;
		}
	}
	while ((pmd = sw_pmd_next(sw, pmd)) != NULL)
		n_pmds += pmd->is_known;
	while ((pmd = sw_pmd_next(sw, pmd)) != NULL) {
		if (!pmd->is_known)
			continue;
		round->plans[pmd->index] = build_plan(sw, round, pmd, nth++, n_pmds);
		if (round->plans[pmd->index] == NULL) {
			sw_round_free(round);
			return NULL;
		}
	}
	return round;
}

void sw_round_drop(struct sw_round *round, uint16_t pmd)
{
	if (round == NULL || round->plans[pmd] == NULL)
		return;
	rte_free(round->plans[pmd]->sampled);
	rte_free(round->plans[pmd]->outs);
	rte_free(round->plans[pmd]);
	round->plans[pmd] = NULL;
}

void sw_round_free(struct sw_round *round)
{
	for (uint16_t i = 0; i < SW_MAX_PMDS; i++)
		sw_round_drop(round, i);
	rte_free(round);
}
