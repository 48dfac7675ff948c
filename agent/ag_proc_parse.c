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

// Fields of stat after comm, counted from 3 (state) as in proc(5).
enum {
	F_STATE = 3,
	F_FLAGS = 9,
	F_MAJ_FAULTS = 12,
	F_THREADS = 20,
	F_PROCESSOR = 39,
	F_POLICY = 41,
	F_END = 42,
};

int ag_proc_parse_stat(const char *text, struct ag_proc_stat *out_stat)
{
	const char *open = strchr(text, '('), *p = strrchr(text, ')');
	uint64_t values[F_END] = {0};
	size_t n;
	char *end;
	int i;

	if (!open || !p || p < open || p[1] != ' ' || !p[2])
		return -EBADMSG;
	memset(out_stat, 0, sizeof(*out_stat));
	n = (size_t)(p - open - 1);
	if (n >= sizeof(out_stat->comm))
		n = sizeof(out_stat->comm) - 1;
	memcpy(out_stat->comm, open + 1, n);
	out_stat->state = p[2];
	p += 3;
	for (i = F_STATE + 1; i < F_END; i++, p = end) {
		values[i] = strtoull(p, &end, 10);
		if (end == p)
			return -EBADMSG;
	}
	out_stat->flags = (uint32_t)values[F_FLAGS];
	out_stat->n_maj_faults = values[F_MAJ_FAULTS];
	out_stat->n_threads = (uint32_t)values[F_THREADS];
	out_stat->processor = (int)values[F_PROCESSOR];
	out_stat->policy = (uint32_t)values[F_POLICY];
	return 0;
}
