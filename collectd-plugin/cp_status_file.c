// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "cp_status_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cp_config.h"
#include "cp_log.h"
#include "pmdpulse.h"

#define PATH_BYTES 512

static int paths(const char *instance, char *out_path, char *out_temp)
{
	char dir[PATH_BYTES];
	int rc = pmdp_rundir(cp_config.rundir, dir, sizeof(dir));

	if (rc == 0)
		rc = pmdp_path(dir, instance, "relay", out_path, PATH_BYTES);
	if (rc < 0)
		return rc;
	rc = snprintf(out_temp, PATH_BYTES, "%s/.%s.relay.%d", dir, instance, (int)getpid());
	return rc < PATH_BYTES ? 0 : -ENAMETOOLONG;
}

static int write_new(const char *temp, bool is_relaying)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "{\"pid\":%d,\"relaying\":%s}\n", (int)getpid(),
			 is_relaying ? "true" : "false");
	int fd;
	ssize_t written;

	unlink(temp);
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (fd < 0)
		return -errno;
	fchmod(fd, 0640); // whatever the umask
	written = write(fd, line, (size_t)n);
	close(fd);
	return written == n ? 0 : -EIO;
}

void cp_status_file_write(const char *instance, bool is_relaying)
{
	static bool is_told;
	char path[PATH_BYTES], temp[PATH_BYTES];
	int rc = paths(instance, path, temp);

	if (rc == 0)
		rc = write_new(temp, is_relaying);
	if (rc == 0 && rename(temp, path) < 0)
		rc = -errno;
	if (rc == 0 || rc == -ENOENT || is_told)
		return;
	is_told = true;
	cp_log(LOG_INFO,
	       "instance %s: %s can't be written (%s): `pmdpulse status' will not know of "
	       "collectd",
	       instance, path, strerror(-rc));
}

void cp_status_file_remove(const char *instance)
{
	char path[PATH_BYTES], temp[PATH_BYTES];

	if (paths(instance, path, temp) == 0)
		unlink(path);
}
