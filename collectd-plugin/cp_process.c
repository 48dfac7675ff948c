// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cp_sample.h"
#include "pmdp_stat.h"

static double boot_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void cp_process_read(uint32_t pid, uint64_t start_ticks, struct cp_process *out)
{
	double hz = (double)sysconf(_SC_CLK_TCK), page = (double)sysconf(_SC_PAGESIZE);
	struct pmdp_stat stat;

	memset(out, 0, sizeof(*out));
	if (pmdp_stat_read(pid, 0, &stat) || stat.start_ticks != start_ticks)
		return;
	out->is_known = true;
	out->user_s = (double)stat.user_ticks / hz;
	out->system_s = (double)stat.system_ticks / hz;
	out->uptime_s = boot_s() - (double)stat.start_ticks / hz;
	out->vsz_bytes = (double)stat.vsize_bytes;
	out->rss_bytes = (double)stat.rss_pages * page;
}
