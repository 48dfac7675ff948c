// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ag_outq.h"
#include "pmdp_process.h"

#define AG_LOG_LINES 256
#define AG_LOG_PROGRAM "pmdpulse-agent"

// One log for the process, as there is one stderr.
static struct {
	struct ag_outq q;
	bool is_ready;
	bool is_journal;
	bool is_debug;
	uint64_t lost_told;
} ag_log_state;

void ag_log_init(bool is_debug)
{
	ag_log_state.is_debug = is_debug;
	if (ag_log_state.is_ready)
		return;
	ag_log_state.is_journal = pmdp_process_is_journal(STDERR_FILENO);
	if (ag_outq_init(&ag_log_state.q, AG_LOG_LINES))
		return;
	ag_outq_adopt(&ag_log_state.q, STDERR_FILENO);
	ag_log_state.is_ready = true;
}

static int format_line(char *line, size_t size, int priority, const char *text)
{
	int len;

	if (ag_log_state.is_journal)
		len = snprintf(line, size, "<%d>%s\n", priority, text);
	else
		len = snprintf(line, size, AG_LOG_PROGRAM ": %s%s\n",
			       priority == AG_WARNING ? "warning: "
			       : priority <= AG_ERROR ? "error: "
						      : "",
			       text);
	if (len >= (int)size) {
		len = (int)size - 1;
		line[len - 1] = '\n';
	}
	return len;
}

void ag_log(int priority, const char *format, ...)
{
	char text[1400];
	char line[1500];
	va_list args;

	if (priority == AG_DEBUG && !ag_log_state.is_debug)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	int len = format_line(line, sizeof(line), priority, text);
	if (!ag_log_state.is_ready) {
		if (write(STDERR_FILENO, line, (size_t)len) < 0)
			return; // nowhere left to say it
		return;
	}
	ag_outq_put(&ag_log_state.q, line, (size_t)len);
	ag_log_flush();
}

void ag_log_plain(void)
{
	ag_log_state.is_ready = false;
}

void ag_log_flush(void)
{
	struct ag_outq *q = &ag_log_state.q;

	if (!ag_log_state.is_ready || !ag_outq_flush(q) || q->n_lost == ag_log_state.lost_told)
		return;
	char text[100];
	char line[160];
	snprintf(text, sizeof(text), "stderr was not read: %llu log lines lost",
		 (unsigned long long)(q->n_lost - ag_log_state.lost_told));
	ag_log_state.lost_told = q->n_lost;
	ag_outq_put(q, line, (size_t)format_line(line, sizeof(line), AG_WARNING, text));
	ag_outq_flush(q);
}

void ag_log_fini(int timeout_ms)
{
	struct ag_outq *q = &ag_log_state.q;

	if (!ag_log_state.is_ready)
		return;
	if (!ag_outq_flush(q) && q->error == EAGAIN) {
		struct pollfd pfd = {.fd = q->fd, .events = POLLOUT};

		poll(&pfd, 1, timeout_ms);
		ag_outq_flush(q);
	}
	if (q->fd != STDERR_FILENO)
		close(q->fd);
	ag_outq_fini(q);
	ag_log_state.is_ready = false;
}

uint64_t ag_log_lost(void)
{
	return ag_log_state.q.n_lost;
}
