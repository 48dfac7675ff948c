// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cp_sample.h"

static double boot_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void cp_process_read(uint32_t pid, uint64_t start_ticks, struct cp_process *out)
{
	double hz = (double)sysconf(_SC_CLK_TCK), page = (double)sysconf(_SC_PAGESIZE);
	uint64_t user, system, start, vsize;
	char path[64], text[1024];
	const char *after;
	int64_t rss;
	ssize_t n;
	int fd;

	memset(out, 0, sizeof(*out));
	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return;
	text[n] = 0;
	after = strrchr(text, ')'); // the name may hold anything
	if (after == NULL ||
	    sscanf(after + 1,
		   " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64 " %" SCNu64
		   " %*s %*s %*s %*s %*s %*s %" SCNu64 " %" SCNu64 " %" SCNd64,
		   &user, &system, &start, &vsize, &rss) != 5 ||
	    start != start_ticks)
		return;
	out->is_known = true;
	out->user_s = (double)user / hz;
	out->system_s = (double)system / hz;
	out->uptime_s = boot_s() - (double)start / hz;
	out->vsz_bytes = (double)vsize;
	out->rss_bytes = (double)rss * page;
}
