// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pmdp_clock.h"
#include "pmdpulse.h"
#include "sw_log.h"
#include "sw_plan_build.h"
#include "sw_pmd.h"
#include "sw_port.h"
#include "sw_sched.h"
#include "sw_switch.h"

#define SW_PLAN_LOOK_NS 100000 // how often control looks whether PMDs have answered

struct sw_plan {
	uint64_t generation;
	struct sw_round *round; // the newest one
	struct sw_round *older; // the one before, as long as a PMD may hold it
	struct sw_assignment current;
	bool is_changed; // what is wanted differs from the newest round
	bool is_fresh;   // the set of PMDs has changed
	bool is_shortage_said;
	bool is_keepalive_shown; // the segment says that threads beat
};

int sw_plan_create(struct sw_switch *sw)
{
	sw->plan = calloc(1, sizeof(*sw->plan));
	if (sw->plan == NULL)
		return -ENOMEM;
	sw_assignment_clear(&sw->plan->current);
	sw->plan->is_keepalive_shown = sw->settings.enable_keepalive;
	return 0;
}

void sw_plan_destroy(struct sw_switch *sw)
{
	if (sw->plan == NULL)
		return;
	sw_round_free(sw->plan->older);
	sw_round_free(sw->plan->round);
	free(sw->plan);
	sw->plan = NULL;
}

void sw_plan_changed(struct sw_switch *sw)
{
	sw->plan->is_changed = true;
}

void sw_plan_changed_pmds(struct sw_switch *sw)
{
	sw->plan->is_changed = true;
	sw->plan->is_fresh = true;
}

// The first PMD of the newest round that has not answered, or NULL.
static struct sw_pmd *missing_answer(struct sw_switch *sw)
{
	const struct sw_round *round = sw->plan->round;
	struct sw_pmd *pmd = NULL;

	while (round != NULL && (pmd = sw_pmd_next(sw, pmd)) != NULL) {
		// P4: what the PMD did with its old plan happened before.
		if (round->plans[pmd->index] != NULL &&
		    atomic_load_explicit(&pmd->taken, memory_order_acquire) < round->generation)
			return pmd;
	}
	return NULL;
}

// PMDs come into play when they run and are freed when they have left.
static void look_at_pmds(struct sw_switch *sw)
{
	struct sw_pmd *pmd = NULL;
	struct sw_pmd *next;

	for (pmd = sw_pmd_next(sw, NULL); pmd != NULL; pmd = next) {
		uint32_t life = atomic_load_explicit(&pmd->life, memory_order_acquire); // L1

		next = sw_pmd_next(sw, pmd);
		if (life == SW_PMD_RUNNING && !pmd->is_known) {
			pmd->is_known = true;
			sw_sched_pmd(sw, pmd);
			sw_sched_move_control(sw);
			sw_plan_changed_pmds(sw);
		} else if (life == SW_PMD_EXITED || life == SW_PMD_FAILED) {
			if (life == SW_PMD_FAILED)
				sw_log(SW_LOG_ERR, "%s", pmd->error.text);
			// Its slot may get another PMD, which must not be taken for this one.
			sw_round_drop(sw->plan->older, pmd->index);
			sw_round_drop(sw->plan->round, pmd->index);
			sw_pmd_destroy(sw, pmd);
		}
	}
}

// The segment says that threads beat only while they do: they begin before it is said, and it is
// taken back before they stop. Returns false while a PMD has yet to begin.
static bool step_keepalive(struct sw_switch *sw)
{
	bool is_wanted = sw->settings.enable_keepalive;
	struct sw_pmd *pmd = NULL;

	if (!is_wanted && sw->plan->is_keepalive_shown) {
		pmdp_publisher_set_keepalive(sw->pub, false);
		sw->plan->is_keepalive_shown = false;
	}
	while ((pmd = sw_pmd_next(sw, pmd)) != NULL)
		atomic_store_explicit(&pmd->want_keepalive, is_wanted, memory_order_relaxed);
	if (!is_wanted || sw->plan->is_keepalive_shown)
		return true;
	while ((pmd = sw_pmd_next(sw, pmd)) != NULL)
		if (pmd->is_known && sw_pmd_rxqs(sw, pmd, NULL, 0) > 0 &&
		    atomic_load_explicit(&pmd->has_keepalive, memory_order_acquire) == 0)
			return false;
	pmdp_publisher_set_keepalive(sw->pub, true);
	sw->plan->is_keepalive_shown = true;
	return true;
}

// The newest round is everybody's: what only older ones used can go.
static void finish_round(struct sw_switch *sw)
{
	struct sw_plan *plan = sw->plan;
	struct sw_port *port = NULL;
	struct sw_port *next;

	sw_round_free(plan->older);
	plan->older = NULL;
	for (port = sw_port_next(sw, NULL); port != NULL; port = next) {
		next = sw_port_next(sw, port);
		if (port->state == SW_PORT_REMOVING &&
		    (plan->round == NULL || !plan->round->has_port[port->index]))
			sw_port_destroy(sw, port);
	}
}

// P1: give every PMD its plan of the next round.
static void open_round(struct sw_switch *sw)
{
	struct sw_plan *plan = sw->plan;
	struct sw_assignment wanted;
	struct sw_assignment step;
	struct sw_round *round;
	struct sw_pmd *pmd = NULL;
	bool is_last;

	sw_assignment_make(sw, &plan->current, plan->is_fresh, &wanted);
	is_last = sw_assignment_step(&plan->current, &wanted, &step);
	round = sw_round_build(sw, plan->generation + 1, &step);
	if (round == NULL) {
		if (!plan->is_shortage_said)
			sw_log(SW_LOG_ERR, "no memory for a new plan; trying again");
		plan->is_shortage_said = true;
		return;
	}
	plan->is_shortage_said = false;
	plan->generation++;
	plan->older = plan->round;
	plan->round = round;
	plan->current = step;
	plan->is_changed = !is_last;
	plan->is_fresh = plan->is_fresh && !is_last;
	while ((pmd = sw_pmd_next(sw, pmd)) != NULL) {
		if (round->plans[pmd->index] == NULL)
			continue;
		atomic_store_explicit(&pmd->next, round->plans[pmd->index], memory_order_release);
		sw_pmd_wake(pmd);
	}
}

static bool is_any_leaving(struct sw_switch *sw)
{
	struct sw_pmd *pmd = NULL;

	while ((pmd = sw_pmd_next(sw, pmd)) != NULL)
		if (pmd->is_leaving || !pmd->is_known)
			return true;
	return false;
}

bool sw_plan_poll(struct sw_switch *sw)
{
	if (sw->is_starting)
		return true;
	look_at_pmds(sw);
	if (missing_answer(sw) != NULL)
		return false;
	finish_round(sw);
	if (sw->plan->is_changed) {
		open_round(sw);
		return false;
	}
	return step_keepalive(sw) && !is_any_leaving(sw);
}

static void name_the_missing(struct sw_switch *sw, struct sw_error *err)
{
	struct sw_pmd *missing = missing_answer(sw);
	struct sw_pmd *pmd = NULL;

	while (missing == NULL && (pmd = sw_pmd_next(sw, pmd)) != NULL)
		if (pmd->is_leaving || !pmd->is_known)
			missing = pmd;
	if (missing != NULL && sw_pmd_is_gone(missing)) {
		sw_fail(err, -ETIMEDOUT,
			"thread %s has ended without a word: restart the switch, its queues are "
			"not polled any more",
			missing->name);
		return;
	}
	sw_fail(err, -ETIMEDOUT,
		"%s does not answer within %u ms (stalled: see pmd-health-show); what was asked "
		"for is done when it does",
		missing != NULL ? missing->name : "a PMD", sw->settings.reconfigure_timeout_ms);
}

int sw_plan_settle(struct sw_switch *sw, struct sw_error *err)
{
	const struct timespec look = {.tv_nsec = SW_PLAN_LOOK_NS};
	uint64_t now = pmdp_mono_now_ns();
	uint64_t deadline_ns = now + sw->settings.reconfigure_timeout_ms * UINT64_C(1000000);
	uint64_t housekeep_ns = now + SW_HOUSEKEEP_MS * UINT64_C(1000000);

	while (!sw_plan_poll(sw)) {
		now = pmdp_mono_now_ns();
		if (now >= deadline_ns) {
			name_the_missing(sw, err);
			return -ETIMEDOUT;
		}
		if (now >= housekeep_ns) {
			sw_switch_housekeep(sw);
			housekeep_ns = now + SW_HOUSEKEEP_MS * UINT64_C(1000000);
		}
		nanosleep(&look, NULL);
	}
	return 0;
}

int sw_plan_shutdown(struct sw_switch *sw, struct sw_error *err)
{
	struct sw_pmd *pmd = NULL;
	struct sw_port *port = NULL;

	while ((pmd = sw_pmd_next(sw, pmd)) != NULL)
		pmd->is_leaving = true;
	while ((port = sw_port_next(sw, port)) != NULL)
		port->state = SW_PORT_REMOVING;
	sw->is_starting = false;
	sw_plan_changed(sw);
	return sw_plan_settle(sw, err);
}

uint32_t sw_pmd_rxqs(struct sw_switch *sw, const struct sw_pmd *pmd, struct sw_pmd_rxq *out_rxqs,
		     uint32_t n)
{
	struct sw_port *port = NULL;
	uint32_t n_found = 0;

	while ((port = sw_port_next(sw, port)) != NULL) {
		for (uint16_t q = 0; q < port->n_rxq; q++) {
			if (sw->plan->current.pmd[port->index][q] != pmd->index)
				continue;
			if (n_found < n)
				out_rxqs[n_found] = (struct sw_pmd_rxq){port, q};
			n_found++;
		}
	}
	return n_found;
}

const struct sw_plan_pmd *sw_plan_of(const struct sw_pmd *pmd)
{
	const struct sw_round *round = pmd->sw->plan->round;

	return round == NULL ? NULL : round->plans[pmd->index];
}
