// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Where segments live and what they are called.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmdpulse.h"

static const char *non_empty(const char *s)
{
	return s && *s ? s : NULL;
}

int pmdp_rundir(const char *dir, char *out_path, size_t size)
{
	char path[4096];
	const char *base = non_empty(dir);
	int len;

	if (!base)
		base = non_empty(getenv("PMDPULSE_RUNDIR"));
	if (base)
		len = snprintf(path, sizeof path, "%s", base);
	else if (geteuid() == 0)
		len = snprintf(path, sizeof path, "/run/pmdpulse");
	else if ((base = non_empty(getenv("XDG_RUNTIME_DIR"))) != NULL)
		len = snprintf(path, sizeof path, "%s/pmdpulse", base);
	else
		len = snprintf(path, sizeof path, "/dev/shm/pmdpulse-%u", (unsigned int)geteuid());
	if (len < 0 || (size_t)len >= sizeof path)
		return -ENAMETOOLONG;
	while (len > 1 && path[len - 1] == '/')
		path[--len] = 0;
	if ((size_t)len >= size)
		return -ENAMETOOLONG;
	memcpy(out_path, path, (size_t)len + 1);
	return 0;
}

static bool is_instance_char(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '.' || c == '-';
}

// INSTANCE.agent.ctl is the agent's socket: an instance of that name would take it for its own.
static bool is_agents(const char *instance, size_t len)
{
	static const char end[] = ".agent";

	return len >= sizeof end && strcmp(instance + len - (sizeof end - 1), end) == 0;
}

int pmdp_instance_check(const char *instance)
{
	size_t len = 0;

	if (!instance || *instance == '.' || *instance == '-')
		return -EINVAL;
	for (; instance[len]; len++) {
		if (len == PMDP_INSTANCE_BYTES - 1 || !is_instance_char(instance[len]))
			return -EINVAL;
	}
	return len && !is_agents(instance, len) ? 0 : -EINVAL;
}

int pmdp_path(const char *rundir, const char *instance, const char *suffix, char *out_path,
	      size_t size)
{
	char path[4096];
	int rc, len;
	size_t used;

	if (pmdp_instance_check(instance) < 0)
		return -EINVAL;
	rc = pmdp_rundir(rundir, path, sizeof path);
	if (rc < 0)
		return rc;
	used = strlen(path);
	len = snprintf(path + used, sizeof path - used, "%s%s.%s", strcmp(path, "/") ? "/" : "",
		       instance, suffix);
	if (len < 0 || (size_t)len >= sizeof path - used || used + (size_t)len >= size)
		return -ENAMETOOLONG;
	memcpy(out_path, path, used + (size_t)len + 1);
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

// Is file "INSTANCE.suffix"? Then the instance stands in out.
static bool instance_of(const char *file, const char *suffix, char out[PMDP_INSTANCE_BYTES])
{
	size_t len = strlen(file), suffix_len = strlen(suffix);

	if (len < suffix_len + 2 || file[len - suffix_len - 1] != '.' ||
	    strcmp(file + len - suffix_len, suffix) != 0)
		return false;
	len -= suffix_len + 1;
	if (len >= PMDP_INSTANCE_BYTES)
		return false;
	memset(out, 0, PMDP_INSTANCE_BYTES);
	memcpy(out, file, len);
	return pmdp_instance_check(out) == 0;
}

int pmdp_instances(const char *rundir, const char *suffix, char (*out_names)[PMDP_INSTANCE_BYTES],
		   size_t n)
{
	char path[4096], (*names)[PMDP_INSTANCE_BYTES] = NULL, (*more)[PMDP_INSTANCE_BYTES];
	size_t n_found = 0, n_room = 0;
	struct dirent *entry;
	DIR *dir;
	int rc = pmdp_rundir(rundir, path, sizeof path);

	if (rc < 0)
		return rc;
	dir = opendir(path);
	if (!dir)
		return -errno;
	// All are collected before the first n are handed out, so that these are the first in
	// order.
	while ((entry = readdir(dir)) != NULL) {
		if (n_found == n_room) {
			more = realloc(names, (n_room + 32) * sizeof *names);
			if (!more) {
				rc = -ENOMEM;
				goto out;
			}
			names = more;
			n_room += 32;
		}
		if (instance_of(entry->d_name, suffix, names[n_found]))
			n_found++;
	}
	if (n_found)
		qsort(names, n_found, sizeof *names, compare_names);
	if (n_found && n)
		memcpy(out_names, names, (n_found < n ? n_found : n) * sizeof *names);
	rc = (int)n_found;
out:
	free(names);
	closedir(dir);
	return rc;
}
