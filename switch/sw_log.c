// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "pmdp_process.h"

void sw_log(int level, const char *format, ...)
{
	static const char *const words[] = {
		[SW_LOG_ERR] = "error: ", [SW_LOG_WARNING] = "warning: ", [SW_LOG_INFO] = ""};
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	// One write per line, so that lines of several programs on one terminal don't mix.
	if (pmdp_process_is_journal(STDERR_FILENO))
		fprintf(stderr, "<%d>%s\n", level, text);
	else
		fprintf(stderr, "pmdpulse-switch: %s%s\n", words[level], text);
}
