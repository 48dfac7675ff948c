// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Where a thread spins: its instruction pointer, sampled for some milliseconds by a perf event on
 * that thread alone and named by the symbol tables of its process.
 *
 * Blocks (opens files of any size, waits for samples): only the helper thread of the diagnosis
 * (ag_diag_worker.c) calls this. A perf event on a thread is set up by an interrupt on its CPU that
 * the caller waits for; on a CPU that the hypervisor holds back this lasts until it is given back,
 * so nobody samples a CPU that shows no sign of life.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define AG_SAMPLE_MAX 64
#define AG_SAMPLE_NAME_BYTES 48
#define AG_SAMPLE_FUNCTIONS 8

struct ag_sample {
	uint64_t time_ns; // CLOCK_MONOTONIC
	uint64_t ip;
	bool is_kernel;
	uint8_t function; // index into functions; AG_SAMPLE_FUNCTIONS: more functions than that
};

struct ag_sample_function {
	char function[AG_SAMPLE_NAME_BYTES]; // empty: no symbol
	char file[AG_SAMPLE_NAME_BYTES];     // the object it is in, with +0xOFFSET when there is no
					     // symbol
};

struct ag_sample_set {
	uint32_t n_samples;
	struct ag_sample samples[AG_SAMPLE_MAX];
	uint32_t n_functions;
	struct ag_sample_function functions[AG_SAMPLE_FUNCTIONS];
};

// 0, also without a sample; -EACCES, -EPERM not allowed; -ESRCH gone; others of perf_event_open.
int ag_sample_take(pid_t tid, struct ag_sample_set *out_set);

// Fill in functions; without the right to read the maps, only offsets or nothing is known.
void ag_sample_name(pid_t pid, struct ag_sample_set *set);

// The most frequent function among the samples of a window. Returns its number of samples; *out_n
// is the number of samples in the window.
uint32_t ag_sample_top(const struct ag_sample_set *set, uint64_t begin_ns, uint64_t end_ns,
		       const struct ag_sample_function **out_function, uint32_t *out_n);

// Is sampling allowed at all? 0 or negative errno.
int ag_sample_probe(void);
