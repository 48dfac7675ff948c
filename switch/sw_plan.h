// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Plans: who polls what, and the handshake by which a PMD takes over a new one.
 *
 * Control (sw_plan.c) holds what is wanted (ports, pmd-cpu-mask) and moves towards it in rounds. A
 * round gives every PMD a new plan:
 *
 *   control   builds a plan for each PMD, stores it in pmd->next (P1, release), wakes sleepers
 *   PMD       sees at its housekeeping that next is not its plan (P2, acquire); announces DOZING,
 *             reason reconfiguration, with a deadline; sends what it still holds; takes the plan;
 *             stores its generation in pmd->taken (P3, release); announces POLLING, or SLEEP when
 *             the plan has no queue
 *   control   sees the generation in pmd->taken (P4, acquire): nothing of the old plan is in use by
 *             this PMD; frees the old plan
 *
 * P1/P2: the plan's contents are seen whole. P3/P4: all that the PMD did with the old plan (bursts
 * received and sent) happened before control goes on, so a queue that leaves one PMD is given to
 * another only in a later round: the order of its packets is kept, and no two threads poll it at
 * once. A port that goes is closed only after a round without it.
 *
 * A PMD that does not answer (stalled) holds the round up, never control: sw_plan_settle() gives up
 * waiting after a timeout and the control loop (sw_plan_poll) carries the rest out later.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sw_error.h"

struct sw_plan_pmd;
struct sw_pmd;
struct sw_switch;

// How long a PMD may take over a plan before it counts as dead.
#define SW_PLAN_DOZE_NS UINT64_C(200000000)

// -ENOMEM. Destroy: no PMD is left.
int sw_plan_create(struct sw_switch *sw);
void sw_plan_destroy(struct sw_switch *sw);

// Something wanted has changed: ports or settings.
void sw_plan_changed(struct sw_switch *sw);
// The set of PMDs has changed: queues are dealt out anew.
void sw_plan_changed_pmds(struct sw_switch *sw);

// One step towards what is wanted. Does not wait. true: settled, nothing is left to do.
bool sw_plan_poll(struct sw_switch *sw);

/*
 * Wait until settled, at most the setting reconfigure-timeout; control's housekeeping goes on
 * meanwhile. -ETIMEDOUT: err names the PMD that does not answer; what is left is done later.
 */
int sw_plan_settle(struct sw_switch *sw, struct sw_error *err);

// All PMDs leave: used at exit. Waits as above. -ETIMEDOUT: a PMD could not be ended.
int sw_plan_shutdown(struct sw_switch *sw, struct sw_error *err);

// The newest plan of a PMD, as long as nothing else of this header is called; NULL: none.
const struct sw_plan_pmd *sw_plan_of(const struct sw_pmd *pmd);
