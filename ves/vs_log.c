// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "vs_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

// One log for the process, as there is one stderr.
static struct {
	bool is_journal;
	bool is_debug;
} state;

void vs_log_init(bool is_debug)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, inode;
	struct stat st;

	state.is_debug = is_debug;
	// systemd says which descriptor is the journal; a redirected stderr is another one.
	state.is_journal = stream && sscanf(stream, "%llu:%llu", &dev, &inode) == 2 &&
			   !fstat(STDERR_FILENO, &st) && st.st_dev == dev && st.st_ino == inode;
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
