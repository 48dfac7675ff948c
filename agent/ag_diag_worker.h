// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The helper thread of the diagnosis: does what may take milliseconds (sampling, symbols, scans of
 * /proc), so that the agent's loop never waits. It is asked and answers later; an answer carries
 * the time of the question, so that it is never taken for an answer about another stall.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ag_proc_scan.h"
#include "ag_sample.h"

struct ag_worker;

#define AG_JOB_SAMPLE 1
#define AG_JOB_SCAN 2

struct ag_job {
	int kind; // AG_JOB_*
	uint32_t lane;
	pid_t pid, tid;
	int core;
	uint64_t asked_ns;
	int rc; // of an answer: 0 or negative errno
	union {
		struct ag_sample_set samples;
		struct ag_scan scan;
	};
};

int ag_worker_new(struct ag_worker **out_worker); // -ENOMEM, -EAGAIN
void ag_worker_free(struct ag_worker *worker);    // waits for the job at hand, 50 ms or so

// false: the same question is still open, or too many are.
bool ag_worker_ask(struct ag_worker *worker, const struct ag_job *job);
// Is this question of this lane still open?
bool ag_worker_is_busy(struct ag_worker *worker, uint32_t lane, int kind);
// The newest answer for this lane. false: there is none.
bool ag_worker_answer(struct ag_worker *worker, uint32_t lane, int kind, struct ag_job *out_job);
