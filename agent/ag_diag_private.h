// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Shared by the files of the diagnosis only.
#pragma once

#include "ag_cause.h"
#include "ag_diag.h"
#include "ag_diag_worker.h"
#include "ag_perf.h"
#include "ag_proc.h"

#define AG_KERNEL_TICK_NS UINT64_C(4000000) // the kernel books run times at ticks, 250 a second
// Readings between stalls; the looks inside a stall tell more, so these may be rare and cheap.
#define AG_BASE_NS UINT64_C(2000000000)       // run time and quota
#define AG_BASE_SLOW_NS UINT64_C(10000000000) // and faults, steal, moves between cgroups

#define AG_STAT_BYTES 32768 // lines of CPUs come first; the long ones of interrupts are cut off
#define AG_N_BASES 6
#define AG_N_LIVE 12
#define AG_N_RIGHTS 16
#define AG_RIGHT_BYTES 96

// One reading of the counters of a lane. Each part has its own flag: reading all is not cheap.
struct ag_look {
	uint64_t time_ns; // 0: empty
	bool has_runtime, has_quota, has_cpu, has_faults;
	struct ag_proc_runtime runtime;
	struct ag_cgroup_stat quota;
	uint64_t cgroup_hash;
	struct ag_cpu_stat cpu;
	uint64_t n_maj_faults;
};

// The most telling state that was seen in the stall that begins at begin_ns.
struct ag_seen {
	uint64_t begin_ns;
	char state;
	char state_now; // at the last look, telling or not
	pid_t tracer_pid;
	char tracer_comm[PMDP_COMM_BYTES];
	char tracer_class[PMDP_CLASS_BYTES];
	char wchan[AG_WCHAN_BYTES];
	bool has_quota, was_throttled; // of the cgroup it was in
	bool is_frozen, is_thread_gone, is_process_gone;
	uint32_t n_calls, n_ended_calls;
};

// What was found out about one fault of a lane, over several calls.
struct ag_case {
	struct ag_look live[AG_N_LIVE]; // looks since it was raised
	uint32_t n_live;
	struct ag_seen seen;
	bool has_asked; // the helper thread, about this fault
};

// A CPU with context-switch records, shared by the lanes on it.
struct ag_core {
	struct ag_core *next;
	struct ag_perf *perf;
	int core;
	uint32_t n_users;
	bool is_tickless;
};

struct ag_watched {
	bool is_used;
	pid_t pid, tid;
	int core;
	struct ag_proc_thread proc;
	bool is_open; // proc is
	struct ag_cgroup cgroup;
	struct ag_core *cpu; // NULL: no records
	uint64_t base_ns, base_slow_ns;
	struct ag_look bases[AG_N_BASES]; // between stalls, a ring
	uint32_t n_bases;
	struct ag_case cases[2], *at; // stalls and starvation; at: the one that is being explained
};

struct ag_diag {
	struct ag_watched *lanes;
	uint32_t n_lanes;
	struct ag_core *cores;
	struct ag_names *names;
	struct ag_worker *worker; // NULL: no thread to be had
	struct ag_cgroup_mounts mounts;
	bool has_mounts, is_virtual, can_perf, can_sample;
	int stat_fd; // of /proc/stat, read once for all lanes that are looked at together
	uint64_t stat_ns;
	char stat_text[AG_STAT_BYTES];
	uint32_t n_rights;
	char rights[AG_N_RIGHTS][AG_RIGHT_BYTES];
};

// ag_diag_look.c
#define AG_LOOK_QUICK 0 // run time and quota: two reads
#define AG_LOOK_FULL 1  // and everything else
void ag_look_take(struct ag_diag *diag, struct ag_watched *lane, uint64_t now_ns, int how,
		  struct ag_look *out_look);
void ag_look_base(struct ag_watched *lane, const struct ag_look *look);
void ag_look_live(struct ag_watched *lane, const struct ag_look *look);
// State, tracer and place of waiting, noted in lane->at->seen.
void ag_look_state(struct ag_diag *diag, struct ag_watched *lane, uint64_t now_ns, bool is_first);

// Growth of a counter around or inside a window.
struct ag_growth {
	const struct ag_look *from, *to; // NULL: not known
	bool is_inside;
};

enum ag_counter {
	AG_COUNT_RUNTIME,
	AG_COUNT_QUOTA,
	AG_COUNT_CPU,
	AG_COUNT_FAULTS
};

struct ag_growth ag_look_growth(const struct ag_watched *lane, enum ag_counter counter,
				uint64_t begin_ns, uint64_t end_ns);

// From the first look inside the stall to the last one, be it long after its end: for what the
// kernel books in one go when the stall ends.
struct ag_growth ag_look_growth_around_end(const struct ag_watched *lane, enum ag_counter counter,
					   uint64_t end_ns);

// ag_diag_gather.c
void ag_gather(struct ag_diag *diag, struct ag_watched *lane, const struct ag_explain *what,
	       struct ag_evidence *out_evidence);

// ag_diag_rights.c
void ag_rights_find(struct ag_diag *diag);
__attribute__((format(printf, 2, 3))) void ag_rights_add(struct ag_diag *diag, const char *format,
							 ...);
