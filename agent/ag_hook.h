// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The hook's two halves. The agent hands an event to a helper process over a socket and goes on;
 * the helper starts the hook with the JSON on stdin, at most AG_HOOK_PARALLEL at a time, ends those
 * that run too long, and keeps count. Starting a program may wait for a disk, so the agent never
 * does it itself; the helper also spares the hooks the agent's priority, locked memory and CPU
 * affinity.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define AG_HOOK_PARALLEL 4
#define AG_HOOK_WAITING 64
#define AG_HOOK_BYTES 16384 // the longest JSON

// Shared by agent and helper. W: helper, relaxed; statistics, no order needed.
struct ag_hook_counts {
	_Atomic uint64_t n_done;    // ran, exit code 0
	_Atomic uint64_t n_failed;  // could not start, other exit code, or ended by a signal
	_Atomic uint64_t n_late;    // ended for running too long
	_Atomic uint64_t n_lost;    // dropped, since too many were waiting
	_Atomic uint64_t n_pending; // waiting or running now
};

/*
 * The helper's life: until fd (a SOCK_SEQPACKET) ends and the last hook is done or timeout_ms has
 * passed. Blocks. Logs by ag_log.
 */
void ag_hook_serve(int fd, const char *path, uint64_t timeout_ms, struct ag_hook_counts *counts);
