// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Who may have the name: locks, the predecessor, and the step that gives a segment its name. The
 * rules stand at the top of pmdp_segment.h. Internal to pmdp_segment.c.
 */
#pragma once

#include "pmdp_segment.h"

#pragma GCC visibility push(hidden)

// Bytes of the file that carry the locks.
#define PMDP_LOCK_WRITER 0
#define PMDP_LOCK_NAME 1

// Take a lock, waiting for at most some 100 ms. -EEXIST: someone else keeps it. -errno of fcntl.
int pmdp_takeover_lock(int fd, int byte);

// Does a living process write a segment of this name? 0 no, -EEXIST yes. Only a first look.
int pmdp_takeover_check(int dir_fd, const char *name);

// pmdp_segment_publish().
int pmdp_takeover_name(struct pmdp_segment *seg);

// Remove the name if it still leads to this file.
void pmdp_takeover_unlink(struct pmdp_segment *seg);

#pragma GCC visibility pop
