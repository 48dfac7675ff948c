// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Lines on stderr, with <N> priorities where stderr is the journal.
#pragma once

#include <stdbool.h>

// Numbers of syslog.
#define VS_ERROR 3
#define VS_WARNING 4
#define VS_NOTICE 5
#define VS_INFO 6
#define VS_DEBUG 7

void vs_log_init(bool is_debug);
void vs_log(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));
