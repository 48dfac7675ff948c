// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ag_proc.h"

#define MOUNTINFO_BYTES 65536

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);
	const char *p = list;

	for (; p; p = strchr(p, ',')) {
		p += *p == ',';
		if (strncmp(p, word, n) == 0 && (p[n] == ',' || p[n] == 0))
			return true;
	}
	return false;
}

// "36 25 0:31 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu"
static void parse_mount(char *line, struct ag_cgroup_mounts *mounts)
{
	char root[128], point[128], type[32], options[256];
	char *tail = strstr(line, " - ");

	if (!tail || sscanf(line, "%*s %*s %*s %127s %127s", root, point) != 2 ||
	    sscanf(tail + 3, "%31s %*s %255s", type, options) != 2)
		return;
	if (strcmp(type, "cgroup2") == 0 && !mounts->v2[0])
		snprintf(mounts->v2, sizeof(mounts->v2), "%s", point);
	if (strcmp(type, "cgroup") != 0)
		return;
	if (has_word(options, "cpu") && !mounts->cpu_v1[0])
		snprintf(mounts->cpu_v1, sizeof(mounts->cpu_v1), "%s", point);
	if (has_word(options, "freezer") && !mounts->freezer_v1[0])
		snprintf(mounts->freezer_v1, sizeof(mounts->freezer_v1), "%s", point);
}

void ag_cgroup_parse_mounts(char *mountinfo, struct ag_cgroup_mounts *out_mounts)
{
	char *line, *rest = NULL;

	memset(out_mounts, 0, sizeof(*out_mounts));
	for (line = strtok_r(mountinfo, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		parse_mount(line, out_mounts);
}

int ag_cgroup_find_mounts(struct ag_cgroup_mounts *out_mounts)
{
	char *text = malloc(MOUNTINFO_BYTES);
	int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got = 0;

	memset(out_mounts, 0, sizeof(*out_mounts));
	while (text && fd >= 0 && n < MOUNTINFO_BYTES - 1) {
		got = read(fd, text + n, MOUNTINFO_BYTES - 1 - n);
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	if (text) {
		text[n] = 0;
		ag_cgroup_parse_mounts(text, out_mounts);
	}
	if (fd >= 0)
		close(fd);
	free(text);
	return out_mounts->cpu_v1[0] || out_mounts->v2[0] ? 0 : -ENOENT;
}

int ag_cgroup_parse_path(const char *text, const char *controller, char *out, size_t size)
{
	char list[128], path[512];
	const char *line = text;
	int used;

	while (line && *line) {
		list[0] = 0;
		used = 0;
		if (sscanf(line, "%*d:%127[^:\n]:%511[^\n]%n", list, path, &used) == 2 &&
		    used > 0) {
			if (controller && has_word(list, controller))
				return snprintf(out, size, "%s", path) < (int)size ? 0 : -ERANGE;
		} else if (!controller && sscanf(line, "0::%511[^\n]", path) == 1) {
			return snprintf(out, size, "%s", path) < (int)size ? 0 : -ERANGE;
		}
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return -ENOENT;
}

void ag_cgroup_init(struct ag_cgroup *cgroup)
{
	memset(cgroup, 0, sizeof(*cgroup));
	cgroup->freezer_fd = -1;
}

void ag_cgroup_close(struct ag_cgroup *cgroup)
{
	uint32_t i;

	for (i = 0; i < cgroup->n_levels; i++) {
		close(cgroup->stat_fds[i]);
		if (cgroup->limit_fds[i] >= 0)
			close(cgroup->limit_fds[i]);
	}
	if (cgroup->freezer_fd >= 0)
		close(cgroup->freezer_fd);
	ag_cgroup_init(cgroup);
}

// A quota can stand on any level between the thread's cgroup and the root.
static void open_levels(struct ag_cgroup *cgroup, const char *mount, const char *path,
			const char *limit_name)
{
	char dir[384], file[sizeof(dir) + 32];
	char *slash;
	int fd;

	snprintf(dir, sizeof(dir), "%s%s", mount, strcmp(path, "/") == 0 ? "" : path);
	while (strlen(dir) > strlen(mount) && cgroup->n_levels < AG_CGROUP_LEVELS) {
		snprintf(file, sizeof(file), "%s/cpu.stat", dir);
		fd = open(file, O_RDONLY | O_CLOEXEC);
		if (fd >= 0) {
			snprintf(file, sizeof(file), "%s/%s", dir, limit_name);
			cgroup->limit_fds[cgroup->n_levels] = open(file, O_RDONLY | O_CLOEXEC);
			cgroup->stat_fds[cgroup->n_levels++] = fd;
		}
		slash = strrchr(dir, '/');
		*slash = 0;
	}
}

static void open_freezer(struct ag_cgroup *cgroup, const struct ag_cgroup_mounts *mounts,
			 const char *text)
{
	char path[256], file[512];

	cgroup->is_v2_freezer = false;
	if (mounts->freezer_v1[0] &&
	    ag_cgroup_parse_path(text, "freezer", path, sizeof(path)) == 0) {
		snprintf(file, sizeof(file), "%s%s/freezer.state", mounts->freezer_v1, path);
		cgroup->freezer_fd = open(file, O_RDONLY | O_CLOEXEC); // the root has none
	}
	if (cgroup->freezer_fd >= 0 || !mounts->v2[0] ||
	    ag_cgroup_parse_path(text, NULL, path, sizeof(path)))
		return;
	snprintf(file, sizeof(file), "%s%s/cgroup.events", mounts->v2, path);
	cgroup->freezer_fd = open(file, O_RDONLY | O_CLOEXEC);
	cgroup->is_v2_freezer = true;
}

static uint64_t hash_text(const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	return hash;
}

bool ag_cgroup_follow(struct ag_cgroup *cgroup, const struct ag_cgroup_mounts *mounts, pid_t pid,
		      pid_t tid)
{
	char name[64], text[4096], path[256];
	const char *mount = mounts->cpu_v1, *limit_name = "cpu.cfs_quota_us";
	uint64_t hash;

	snprintf(name, sizeof(name), "/proc/%d/task/%d/cgroup", pid, tid);
	if (pmdp_read_small(name, text, sizeof(text)) <= 0)
		return false;
	hash = hash_text(text);
	if (cgroup->hash == hash)
		return false;
	ag_cgroup_close(cgroup);
	cgroup->hash = hash;
	open_freezer(cgroup, mounts, text);
	if (!mount[0] || ag_cgroup_parse_path(text, "cpu", path, sizeof(path))) {
		mount = mounts->v2;
		limit_name = "cpu.max";
		if (!mount[0] || ag_cgroup_parse_path(text, NULL, path, sizeof(path)))
			return true;
	}
	open_levels(cgroup, mount, path, limit_name);
	return true;
}

int ag_cgroup_parse_stat(const char *text, struct ag_cgroup_stat *out_stat)
{
	const char *n = strstr(text, "nr_throttled ");
	const char *v1 = strstr(text, "throttled_time "), *v2 = strstr(text, "throttled_usec ");

	if (!n)
		return -ENOENT;
	out_stat->n_throttled = strtoull(n + strlen("nr_throttled "), NULL, 10);
	if (v2)
		out_stat->throttled_ns = strtoull(v2 + strlen("throttled_usec "), NULL, 10) * 1000;
	else
		out_stat->throttled_ns = v1 ? strtoull(v1 + strlen("throttled_time "), NULL, 10)
					    : 0;
	return 0;
}

int ag_cgroup_read(const struct ag_cgroup *cgroup, struct ag_cgroup_stat *out_stat)
{
	struct ag_cgroup_stat sum = {0}, one;
	char text[1024];
	bool is_any = false;
	ssize_t n;
	uint32_t i;

	for (i = 0; i < cgroup->n_levels; i++) {
		n = ag_proc_read_fd(cgroup->stat_fds[i], text, sizeof(text));
		if (n == -ENODEV)
			return -ENODEV;
		if (n <= 0 || ag_cgroup_parse_stat(text, &one))
			continue;
		sum.n_throttled += one.n_throttled;
		sum.throttled_ns += one.throttled_ns;
		is_any = true;
	}
	if (!is_any)
		return -ENOENT;
	*out_stat = sum;
	return 0;
}

bool ag_cgroup_has_limit(const struct ag_cgroup *cgroup)
{
	char text[64];
	uint32_t i;

	for (i = 0; i < cgroup->n_levels; i++)
		// "max 100000" or -1: none.
		if (ag_proc_read_fd(cgroup->limit_fds[i], text, sizeof(text)) > 0 &&
		    isdigit((unsigned char)text[0]))
			return true;
	return false;
}

bool ag_cgroup_is_frozen(const struct ag_cgroup *cgroup)
{
	char text[256];

	if (ag_proc_read_fd(cgroup->freezer_fd, text, sizeof(text)) <= 0)
		return false;
	if (cgroup->is_v2_freezer)
		return strstr(text, "frozen 1") != NULL;
	return strncmp(text, "FROZEN", 6) == 0 || strncmp(text, "FREEZING", 8) == 0;
}
