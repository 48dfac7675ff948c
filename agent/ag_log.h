// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The agent's own log: lines on stderr, with <N> priorities where stderr is the journal. Never
 * waits for a slow stderr: lines wait in a bounded queue, losses are counted and told when it moves
 * again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Numbers of syslog.
#define AG_ERROR 3
#define AG_WARNING 4
#define AG_NOTICE 5
#define AG_INFO 6
#define AG_DEBUG 7

void ag_log_init(bool is_debug);
void ag_log(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));
// For a forked child: write to stderr itself, waiting if need be.
void ag_log_plain(void);
// Try to write what waits; now and then, from housekeeping.
void ag_log_flush(void);
// Last flush, waiting at most timeout_ms for a slow reader.
void ag_log_fini(int timeout_ms);
uint64_t ag_log_lost(void);
