// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ag_diag_private.h"

#define CAP_SYS_PTRACE_BIT 19

void ag_rights_add(struct ag_diag *diag, const char *format, ...)
{
	va_list args;

	if (diag->n_rights == AG_N_RIGHTS)
		return;
	va_start(args, format);
	vsnprintf(diag->rights[diag->n_rights++], AG_RIGHT_BYTES, format, args);
	va_end(args);
}

static bool has_capability(int bit)
{
	char text[4096];
	const char *line;

	if (pmdp_read_small("/proc/self/status", text, sizeof(text)) <= 0)
		return false;
	line = strstr(text, "\nCapEff:\t");
	return line && (strtoull(line + 9, NULL, 16) >> bit & 1);
}

static const char *why(int rc)
{
	return rc == -EACCES || rc == -EPERM ? "needs CAP_PERFMON" : strerror(-rc);
}

static void find_perf(struct ag_diag *diag)
{
	struct ag_perf *perf;
	int cpu = sched_getcpu();
	int rc = ag_perf_open(cpu < 0 ? 0 : cpu, &perf);

	if (rc == 0)
		ag_perf_close(perf);
	diag->can_perf = rc == 0;
	if (rc)
		ag_rights_add(diag, "-perf: %s; culprits are inferred from /proc", why(rc));
	else
		ag_rights_add(diag, "perf");
	rc = ag_sample_probe();
	diag->can_sample = rc == 0 && diag->worker;
	if (rc)
		ag_rights_add(diag, "-sample: %s; no function for own code", why(rc));
	else if (!diag->worker)
		ag_rights_add(diag, "-sample: no helper thread to be had");
	else
		ag_rights_add(diag, "sample");
}

void ag_rights_find(struct ag_diag *diag)
{
	find_perf(diag);
	if (has_capability(CAP_SYS_PTRACE_BIT))
		ag_rights_add(diag, "ptrace");
	else
		ag_rights_add(diag,
			      "-ptrace: needs CAP_SYS_PTRACE; no wchan or symbols of other users");
	if (access("/proc/self/schedstat", R_OK) == 0)
		ag_rights_add(diag, "schedstat");
	else
		ag_rights_add(diag, "-schedstat: kernel without CONFIG_SCHED_INFO");
	if (diag->has_mounts)
		ag_rights_add(diag, "cgroup-%s", diag->mounts.cpu_v1[0] ? "v1" : "v2");
	else
		ag_rights_add(diag, "-cgroup: no cpu controller is mounted; quotas are not seen");
	if (diag->stat_fd < 0)
		ag_rights_add(diag, "-steal: can't read /proc/stat");
	else if (diag->is_virtual)
		ag_rights_add(diag, "steal");
	else
		ag_rights_add(diag, "-steal: no hypervisor");
}
