// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "pmdp_process.h"

#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pmdp_segment.h"
#include "pmdp_stat.h"

bool pmdp_process_is_hidden(uint32_t pid)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/%u", pid);
	return pid && pid <= INT32_MAX && access(path, F_OK) < 0 &&
	       (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

int pmdp_process_alive(uint32_t pid, uint64_t start_ticks)
{
	struct pmdp_stat stat;
	int rc = pmdp_stat_read(pid, 0, &stat);

	if (rc == -ESRCH)
		return pmdp_process_is_hidden(pid) ? -EACCES : 0;
	if (rc < 0)
		return rc;
	if (stat.start_ticks != start_ticks)
		return 0;
	// A zombie whose other threads live on has only lost its first thread.
	if ((stat.state == 'Z' || stat.state == 'X') && stat.n_threads <= 1)
		return 0;
	return 1;
}

bool pmdp_process_is_service(uid_t uid, const char *suffix)
{
	bool is_incidents = suffix && strcmp(suffix, "incidents") == 0;
	struct passwd user, *found = NULL;
	char buf[4096];

	(void)getpwnam_r(is_incidents ? "pmdpulse-agent" : "pmdpulse", &user, buf, sizeof buf,
			 &found);
	return found && found->pw_uid == uid;
}

uint64_t pmdp_process_pidns(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

int pmdp_process_boot_id(uint8_t out_id[16])
{
	char text[64];
	unsigned int byte;
	size_t n = 0;
	ssize_t len = pmdp_read_small("/proc/sys/kernel/random/boot_id", text, sizeof text);

	memset(out_id, 0, 16);
	if (len < 0)
		return (int)len;
	for (const char *p = text; *p && n < 16;) {
		if (*p == '-') {
			p++;
			continue;
		}
		if (sscanf(p, "%2x", &byte) != 1)
			break;
		out_id[n++] = (uint8_t)byte;
		p += 2;
	}
	if (n == 16)
		return 0;
	memset(out_id, 0, 16);
	return -EBADMSG;
}

int pmdp_process_writer_alive(const struct pmdp_header_shm *header, int fd)
{
	uint64_t pidns = pmdp_process_pidns();
	uint8_t boot_id[16];
	int rc;

	if (pmdp_process_boot_id(boot_id) == 0 &&
	    memcmp(boot_id, header->boot_id, sizeof boot_id) != 0)
		return 0;
	if (pidns && pidns == header->pidns_inode) {
		rc = pmdp_process_alive(header->writer_pid, header->writer_start_ticks);
		if (rc >= 0)
			return rc;
	}
	// Its number means nothing here: ask who holds the writer's lock.
	rc = fd < 0 ? -EXDEV : pmdp_segment_is_locked(fd);
	return rc < 0 ? -EXDEV : rc;
}

bool pmdp_process_is_journal(int fd)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, inode;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &dev, &inode) == 2 && !fstat(fd, &st) &&
	       st.st_dev == dev && st.st_ino == inode;
}
