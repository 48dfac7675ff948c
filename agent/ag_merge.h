// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * How the events of one incident add up.
 */
#pragma once

#include <stdbool.h>

struct pmdp_incident;

/*
 * A later event (from the watch, which knows times, state and duration) takes over from the earlier
 * ones what stays: identity, the times of the raise, cause, culprit, and evidence that it doesn't
 * renew itself.
 */
void ag_merge(struct pmdp_incident *event, const struct pmdp_incident *earlier);

// Is there something to tell: another cause, another culprit, or another function that spins?
bool ag_merge_differs(const struct pmdp_incident *a, const struct pmdp_incident *b);
