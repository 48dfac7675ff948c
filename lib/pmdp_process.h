// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Who is a process: facts that tell it from a later one with the same number. Internal to lib/.
 *
 * All functions read /proc and may block on it as long as a file-system call does.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "pmdp_abi.h"

#pragma GCC visibility push(hidden)

// Does /proc hide this process (hidepid=, ProtectProc=)? Then what is not there tells nothing.
bool pmdp_process_is_hidden(uint32_t pid);

// 1: runs, and is the one that started then. 0: gone, a zombie, or another process. -errno:
// unknown.
int pmdp_process_alive(uint32_t pid, uint64_t start_ticks);

/*
 * The users of the installed services are believed without being configured, each for what it
 * writes: the switch for rings (suffix NULL or "ring"), the agent for incidents. Only root makes
 * users.
 */
bool pmdp_process_is_service(uid_t uid, const char *suffix);

// Inode of this process's pid namespace, 0 when unknown.
uint64_t pmdp_process_pidns(void);

// The 16 bytes of the boot id. 0 or -errno; on failure the bytes are 0.
int pmdp_process_boot_id(uint8_t out_id[16]);

/*
 * Is the writer named in a header alive? header is a private copy or one's own; fd, where not -1,
 * is open on the segment file. 1 yes; 0 no; -EXDEV: another pid namespace, and nothing else tells.
 */
int pmdp_process_writer_alive(const struct pmdp_header_shm *header, int fd);

// Does the descriptor lead to the journal? systemd says in JOURNAL_STREAM which one does; one that
// was redirected leads elsewhere.
bool pmdp_process_is_journal(int fd);

#pragma GCC visibility pop
