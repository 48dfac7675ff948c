// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ag_proc.h"

static const char *field(const char *text, const char *name)
{
	const char *p = strstr(text, name);

	return p ? p + strlen(name) : NULL;
}

int ag_proc_parse_status(const char *text, struct ag_proc_status *out_status)
{
	const char *state = field(text, "\nState:\t");
	const char *tracer = field(text, "\nTracerPid:\t");

	if (!state || !*state)
		return -EBADMSG;
	out_status->state = *state;
	out_status->tracer_pid = tracer ? (pid_t)strtol(tracer, NULL, 10) : 0;
	return 0;
}

int ag_proc_parse_runtime(const char *text, struct ag_proc_runtime *out_runtime)
{
	struct ag_proc_runtime r;

	if (sscanf(text, "%" SCNu64 " %" SCNu64, &r.ran_ns, &r.delay_ns) != 2)
		return -EBADMSG;
	*out_runtime = r;
	return 0;
}
