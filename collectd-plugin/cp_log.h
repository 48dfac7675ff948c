// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Log lines of the plugin, for files that do not include collectd's headers.
 */
#pragma once

#include <syslog.h>

// level is one of syslog's LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO. May block on collectd's log
// plugins: never called with a lock of ours held.
__attribute__((format(printf, 2, 3))) void cp_log(int level, const char *format, ...);
