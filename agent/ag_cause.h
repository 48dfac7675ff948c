// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The decision: evidence about one stall -> cause, culprit and how the time was spent.
 *
 * A pure function over struct ag_evidence: no clock, no I/O. What fills the struct
 * (ag_diag_gather.c) leaves a part empty when a right is missing or nobody looked yet, and says so
 * by its has_ field. The largest share of the stall wins; all shares go into the evidence of the
 * incident.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "pmdp_incident.h"

#define AG_N_TASKS 3
#define AG_WCHAN_BYTES 48
#define AG_SYMBOL_BYTES 48

struct ag_task {
	char comm[PMDP_COMM_BYTES];
	char sched_class[PMDP_CLASS_BYTES];
	pid_t pid;
	pid_t tid;
	uint64_t took_ns;
	bool is_irq; // ksoftirqd/N or a threaded interrupt handler
};

struct ag_evidence {
	uint64_t window_ns; // the stall so far
	bool is_live;
	bool is_on_cpu;  // at the end of the window
	bool is_starved; // many short gaps: the thread's own time is no stall
	bool is_fair;    // the thread's own class; false: SCHED_FIFO, SCHED_RR, SCHED_DEADLINE

	bool is_process_gone;
	bool is_thread_gone;

	// From context-switch records of the thread's CPU; all inside the window.
	bool has_switches;
	uint64_t covered_ns; // how much of the window the records cover
	uint64_t ran_ns;     // the thread was on the CPU (or the hypervisor had the CPU meanwhile)
	uint64_t waited_ns;  // able to run, another task had the CPU
	uint64_t idle_ns;    // able to run, nobody had the CPU
	uint64_t blocked_ns; // not able to run
	uint32_t n_switches;
	uint32_t n_tasks;                 // tasks that had the CPU while the thread was able to run
	uint64_t n_lost;                  // records that were overwritten before they were read
	struct ag_task tasks[AG_N_TASKS]; // by time, longest first

	// What the kernel says about the thread; state 0: nobody looked inside the window.
	char state; // of /proc: R S D T t Z X; the most telling one of the looks inside the window
	pid_t tracer_pid;
	char tracer_comm[PMDP_COMM_BYTES];
	char tracer_class[PMDP_CLASS_BYTES];
	char wchan[AG_WCHAN_BYTES];
	bool is_frozen;

	// Growth of the thread's run time and run-queue wait between two looks that enclose the
	// window or lie in it; fuzz_ns is what the kernel may not have booked yet.
	bool has_runtime;
	uint64_t span_ns;
	uint64_t span_ran_ns;
	uint64_t span_delay_ns;
	uint64_t span_away_ns; // of the span: off the CPU by the switch records
	uint64_t fuzz_ns;
	bool is_polling; // ran all the time outside its stall, or nothing lies outside the span

	bool has_quota;     // a limit is set on the thread's cgroup or above
	bool was_throttled; // and has held it back before
	uint64_t n_throttled;
	uint64_t throttled_ns;

	bool is_virtual; // there is a hypervisor, so there can be steal
	bool has_cpu_stat;
	uint64_t steal_ns;
	uint64_t irq_ns; // hard and soft interrupts

	bool has_faults;
	uint64_t n_maj_faults;

	// Sampled instruction pointers inside the window.
	uint32_t n_samples;
	uint32_t n_function_samples;    // in the function named below
	char function[AG_SYMBOL_BYTES]; // empty: no symbol
	char file[AG_SYMBOL_BYTES];     // NAME+0xOFFSET when there is no symbol
};

struct ag_verdict {
	uint32_t cause;   // PMDP_CAUSE_*
	bool is_inferred; // concluded rather than seen
	bool has_culprit;
	struct ag_task culprit;
	uint64_t share_ns[PMDP_N_CAUSES];
};

// Off the CPU by run time alone, without switch records.
uint64_t ag_cause_away_ns(const struct ag_evidence *evidence);

void ag_cause_decide(const struct ag_evidence *evidence, struct ag_verdict *out_verdict);

#define AG_KEY_MISSING "missing" // a right without which the cause could not be found

// Write verdict and evidence into the incident; keys of an earlier call are taken out first.
void ag_cause_render(const struct ag_evidence *evidence, const struct ag_verdict *verdict,
		     struct pmdp_incident *incident);
