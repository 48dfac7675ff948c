// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "vs_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pmdp_process.h"

// One log for the process, as there is one stderr.
static struct {
	bool is_journal;
	bool is_debug;
} state;

void vs_log_init(bool is_debug)
{
	state.is_debug = is_debug;
	state.is_journal = pmdp_process_is_journal(STDERR_FILENO);
}

void vs_log(int priority, const char *format, ...)
{
	char prefix[32] = "pmdpulse-ves: ", text[1400];
	va_list args;

	if (priority == VS_DEBUG && !state.is_debug)
		return;
	if (state.is_journal)
		snprintf(prefix, sizeof(prefix), "<%d>", priority);
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "%s%s%s\n", prefix,
		state.is_journal         ? ""
		: priority <= VS_ERROR   ? "error: "
		: priority == VS_WARNING ? "warning: "
					 : "",
		text);
}
