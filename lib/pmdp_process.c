// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "pmdp_process.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pmdp_segment.h"

// The whole of a small file of /proc, NUL terminated. Returns its length or -errno.
static ssize_t read_small(const char *path, char *out, size_t size)
{
	ssize_t len;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	len = read(fd, out, size - 1);
	if (len < 0)
		len = -errno;
	else
		out[len] = 0;
	close(fd);
	return len;
}

static int read_stat(const char *path, char *out_state, uint64_t *out_start_ticks,
		     uint64_t *out_n_threads)
{
	char text[1024], *p;
	uint64_t n_threads = 0;
	ssize_t len = read_small(path, text, sizeof text);

	if (len < 0)
		return len == -ENOENT ? -ESRCH : (int)len;
	// Field 2 is the name in brackets, and may hold blanks and brackets itself: look from the
	// end.
	p = strrchr(text, ')');
	if (!p || p[1] != ' ' || !p[2])
		return -EBADMSG;
	p += 2;
	if (out_state)
		*out_state = *p;
	for (int field = 3; field < 22; field++) { // p stands at the field
		if (field == 20)
			n_threads = strtoull(p, NULL, 10);
		p = strchr(p, ' ');
		if (!p)
			return -EBADMSG;
		p++;
	}
	if (out_start_ticks)
		*out_start_ticks = strtoull(p, NULL, 10);
	if (out_n_threads)
		*out_n_threads = n_threads;
	return 0;
}

int pmdp_process_stat(uint32_t pid, uint32_t tid, char *out_state, uint64_t *out_start_ticks,
		      uint64_t *out_n_threads)
{
	char path[64];

	if (!pid)
		snprintf(path, sizeof path, "/proc/self/stat");
	else if (tid)
		snprintf(path, sizeof path, "/proc/%u/task/%u/stat", pid, tid);
	else
		snprintf(path, sizeof path, "/proc/%u/stat", pid);
	return read_stat(path, out_state, out_start_ticks, out_n_threads);
}

int pmdp_process_thread_start(uint64_t *out_start_ticks)
{
	return read_stat("/proc/thread-self/stat", NULL, out_start_ticks, NULL);
}

bool pmdp_process_is_hidden(uint32_t pid)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/%u", pid);
	return pid && pid <= INT32_MAX && access(path, F_OK) < 0 &&
	       (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

int pmdp_process_alive(uint32_t pid, uint64_t start_ticks)
{
	uint64_t start, n_threads;
	char state;
	int rc = pmdp_process_stat(pid, 0, &state, &start, &n_threads);

	if (rc == -ESRCH)
		return pmdp_process_is_hidden(pid) ? -EACCES : 0;
	if (rc < 0)
		return rc;
	if (start != start_ticks)
		return 0;
	// A zombie whose other threads live on has only lost its first thread.
	if ((state == 'Z' || state == 'X') && n_threads <= 1)
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
	ssize_t len = read_small("/proc/sys/kernel/random/boot_id", text, sizeof text);

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
