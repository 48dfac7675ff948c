// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The names of tasks that are gone already, from the kernel's records of starts and renames on all
 * CPUs. The rings overwrite themselves and are read only when a dead task must be named.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ag_starts;

int ag_starts_new(struct ag_starts **out_starts); // as ag_perf_open
void ag_starts_free(struct ag_starts *starts);

// The newest name of tid, or that of the task that started it, if it came up at since_ns or later.
// -ENOENT: not in the records.
int ag_starts_find(struct ag_starts *starts, pid_t tid, uint64_t since_ns, char *out_comm,
		   size_t size);
