// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ag_proc.h"

int ag_cpu_parse(const char *text, int core, struct ag_cpu_stat *out_stat)
{
	uint64_t user, nice, system, idle, iowait, irq, softirq, steal;
	uint64_t tick_ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
	char name[24];
	const char *line;

	snprintf(name, sizeof(name), "\ncpu%d ", core);
	line = strstr(text, name);
	if (!line)
		return -ENOENT;
	if (sscanf(line + strlen(name),
		   "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64 " %" SCNu64,
		   &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal) != 8)
		return -EBADMSG;
	out_stat->busy_ns = (user + nice + system) * tick_ns;
	out_stat->idle_ns = (idle + iowait) * tick_ns;
	out_stat->irq_ns = (irq + softirq) * tick_ns;
	out_stat->steal_ns = steal * tick_ns;
	return 0;
}

bool ag_cpu_is_virtual(void)
{
	char text[4096];

	// The flags of the first processor stand in the first kilobytes; not on every architecture.
	if (pmdp_read_small("/proc/cpuinfo", text, sizeof(text)) <= 0)
		return true;
	if (strstr(text, "\nflags") == NULL)
		return true;
	return strstr(text, " hypervisor") != NULL;
}

bool ag_cpu_is_tickless(int core)
{
	char text[512];
	const char *p = text;
	char *end;
	long first, last;

	if (pmdp_read_small("/sys/devices/system/cpu/nohz_full", text, sizeof(text)) <= 0)
		return false;
	for (;; p = end + 1) {
		first = last = strtol(p, &end, 10);
		if (end == p)
			return false;
		if (*end == '-')
			last = strtol(end + 1, &end, 10);
		if (core >= first && core <= last)
			return true;
		if (*end != ',')
			return false;
	}
}
