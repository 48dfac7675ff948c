// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Lines for the operator on stderr, which is the journal under systemd (then with its priority
 * prefix). Control thread only; a PMD never logs.
 */
#pragma once

#define SW_LOG_ERR 3
#define SW_LOG_WARNING 4
#define SW_LOG_INFO 6

__attribute__((format(printf, 2, 3))) void sw_log(int level, const char *format, ...);
