// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Diagnosis: why a thread did not run, and who took its time.
 *
 * Evidence is collected all the time at next to no cost (context-switch records of the PMDs' CPUs
 * in perf rings that nobody reads until there is a question; counters of /proc sampled at steps)
 * and looked at when the detector says that a thread stalled. Rights that are missing are found out
 * once, at new, and named (ag_diag_rights); each way of knowing has a fallback, and what was not
 * seen but concluded is marked by evidence "inferred".
 *
 * Call order: new; watch for every lane that appears (again with the same lane when its tid or core
 * changes), forget when it goes; tick now and then (each look of the agent, cheap: keeps baselines
 * fresh and notes who is on a watched CPU when something was switched there); explain when a stall
 * is raised, while it lasts, and when it ended; free. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "pmdp_incident.h"

struct ag_diag;

struct ag_thread {
	pid_t pid;
	pid_t tid;
	int core; // where it is bound, -1 unknown
	const char *name;
};

struct ag_explain {
	uint32_t lane;
	uint64_t begin_ns; // CLOCK_MONOTONIC of the last beat
	uint64_t end_ns;   // 0 while the stall lasts
	uint64_t now_ns;
	uint64_t crumb;
	bool is_starved; // many short gaps between begin and end rather than one
};

int ag_diag_new(struct ag_diag **out_diag); // -ENOMEM; never fails for a missing right
void ag_diag_free(struct ag_diag *diag);

int ag_diag_watch(struct ag_diag *diag, uint32_t lane, const struct ag_thread *thread);
void ag_diag_forget(struct ag_diag *diag, uint32_t lane);
void ag_diag_forget_all(struct ag_diag *diag);

void ag_diag_tick(struct ag_diag *diag, uint64_t now_ns);

/*
 * Fill in cause, culprit and evidence of the incident, recompute nothing else. May be called again:
 * later calls know more (a running stall's sampled function, a tick of steal) and may replace an
 * earlier cause. Returns true while a further call some milliseconds later is likely to know more
 * (*out_retry_ns says when). Bounded: no waiting, at most some hundred microseconds of work.
 */
bool ag_diag_explain(struct ag_diag *diag, const struct ag_explain *what,
		     struct pmdp_incident *incident, uint64_t *out_retry_ns);

// Names of the rights and sources in use ("perf", "ptrace", "schedstat", ...) or missing ("-perf:
// reason").
uint32_t ag_diag_rights(const struct ag_diag *diag, const char **out_names, uint32_t n);
