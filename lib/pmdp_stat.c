// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "pmdp_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Fields as proc(5) counts them.
enum {
	F_STATE = 3,
	F_FLAGS = 9,
	F_MAJ_FAULTS = 12,
	F_USER_TICKS = 14,
	F_SYSTEM_TICKS = 15,
	F_THREADS = 20,
	F_START_TICKS = 22,
	F_VSIZE_BYTES = 23,
	F_RSS_PAGES = 24,
	F_PROCESSOR = 39,
	F_POLICY = 41,
	F_END = 42,
};

ssize_t pmdp_read_small(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return -errno;
	do
		len = read(fd, out, size - 1);
	while (len < 0 && errno == EINTR);
	if (len < 0)
		len = -errno;
	else
		out[len] = 0;
	close(fd);
	return len;
}

int pmdp_stat_parse(const char *text, struct pmdp_stat *out_stat)
{
	// The name may hold blanks and brackets itself: it ends at the last one.
	const char *name = strchr(text, '('), *p = strrchr(text, ')');
	uint64_t values[F_END] = {0};
	struct pmdp_stat stat = {0};
	size_t len;

	if (!name || !p || p < name || p[1] != ' ' || !p[2])
		return -EBADMSG;
	name++;
	len = (size_t)(p - name);
	memcpy(stat.comm, name, len < sizeof(stat.comm) ? len : sizeof(stat.comm) - 1);
	stat.state = p[2];
	p += 3;
	for (int field = F_STATE + 1; field < F_END; field++) {
		char *end;

		values[field] = strtoull(p, &end, 10); // -1 becomes the largest
		if (end == p)
			return -EBADMSG;
		p = end;
	}
	stat.processor = (int)values[F_PROCESSOR];
	stat.flags = (uint32_t)values[F_FLAGS];
	stat.policy = (uint32_t)values[F_POLICY];
	stat.n_threads = (uint32_t)values[F_THREADS];
	stat.n_maj_faults = values[F_MAJ_FAULTS];
	stat.user_ticks = values[F_USER_TICKS];
	stat.system_ticks = values[F_SYSTEM_TICKS];
	stat.start_ticks = values[F_START_TICKS];
	stat.vsize_bytes = values[F_VSIZE_BYTES];
	stat.rss_pages = values[F_RSS_PAGES];
	*out_stat = stat;
	return 0;
}

int pmdp_stat_read_path(const char *path, struct pmdp_stat *out_stat)
{
	char text[1024];
	ssize_t len = pmdp_read_small(path, text, sizeof(text));

	if (len < 0)
		return len == -ENOENT ? -ESRCH : (int)len;
	return pmdp_stat_parse(text, out_stat);
}

int pmdp_stat_read(uint32_t pid, uint32_t tid, struct pmdp_stat *out_stat)
{
	char path[64];

	if (!pid)
		return pmdp_stat_read_path("/proc/self/stat", out_stat);
	if (tid)
		snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", pid, tid);
	else
		snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	return pmdp_stat_read_path(path, out_stat);
}
