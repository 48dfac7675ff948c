// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pmdp_process.h"
#include "pmdp_watch_internal.h"

// Field 9 of /proc/PID/stat, from the kernel's sched.h: on its way out, or waiting for a core dump.
#define PF_EXITING 0x4u
#define PF_POSTCOREDUMP 0x8u
#define PF_DUMPCORE 0x200u

void pmdp_watch_process_open(struct pmdp_watch *watch)
{
	const struct pmdp_segment_info *info = pmdp_reader_info(watch->reader);

	watch->pidfd = -1;
	watch->process_ns = 0;
	watch->last_pid = info->writer_pid;
	if (!info->is_same_pidns || !info->is_same_boot || !info->writer_pid)
		return;
	watch->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)info->writer_pid, 0);
	// The number may have been given to another process before it was opened.
	if (watch->pidfd >= 0 &&
	    pmdp_process_alive(info->writer_pid, info->writer_start_ticks) == 0) {
		close(watch->pidfd);
		watch->pidfd = -1;
	}
}

void pmdp_watch_process_close(struct pmdp_watch *watch)
{
	if (watch->pidfd >= 0)
		close(watch->pidfd);
	watch->pidfd = -1;
}

bool pmdp_watch_process_ended(struct pmdp_watch *watch, uint64_t now_ns)
{
	struct pollfd poll_fd = {.fd = watch->pidfd, .events = POLLIN};
	int rc;

	if (watch->pidfd >= 0)
		return poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLIN);
	if (now_ns < watch->process_ns)
		return false;
	watch->process_ns = now_ns + PMDP_WATCH_PROCESS_NS;
	rc = pmdp_reader_writer_alive(watch->reader);
	if (rc >= 0)
		return rc == 0;
	// Nobody can tell: only its own sign of life.
	return now_ns - watch->alive_seen_ns >= PMDP_WATCH_STUCK_NS &&
	       now_ns - watch->last_life_ns >= PMDP_WATCH_STUCK_NS;
}

// State letter and flags of a process or one of its threads (tid not 0). 0 or -errno.
static int read_flags(uint32_t pid, uint32_t tid, char *out_state, unsigned int *out_flags)
{
	char path[64], text[512];
	const char *end;
	ssize_t len;
	int fd;

	if (tid)
		snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32 "/stat", pid, tid);
	else
		snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0)
		return -ESRCH;
	text[len] = 0;
	end = strrchr(text, ')'); // the name may hold any character
	if (!end || sscanf(end + 1, " %c %*d %*d %*d %*d %*d %u", out_state, out_flags) != 2)
		return -EBADMSG;
	return 0;
}

// False when that can't be known.
static bool is_on_its_way_out(uint32_t pid, uint32_t tid)
{
	unsigned int flags = 0;
	char state = 0;
	int rc = read_flags(pid, tid, &state, &flags);

	if (rc == -ENOENT || rc == -ESRCH)
		return !pmdp_process_is_hidden(pid);
	if (rc)
		return false;
	return state == 'Z' || state == 'X' ||
	       (flags & (PF_EXITING | PF_POSTCOREDUMP | PF_DUMPCORE));
}

bool pmdp_watch_process_is_back(const struct pmdp_watch *watch)
{
	const struct pmdp_segment_info *info = pmdp_reader_info(watch->dead);
	struct pmdp_look look;
	int rc = pmdp_reader_writer_alive(watch->dead);

	if (rc >= 0)
		return rc && !is_on_its_way_out(info->writer_pid, 0);
	return pmdp_reader_look(watch->dead, &look) == 0 && look.alive_ns != watch->alive_ns;
}

// Do the numbers of its process and threads mean anything here?
static bool can_know(const struct pmdp_reader *reader)
{
	const struct pmdp_segment_info *info = pmdp_reader_info(reader);

	return info->is_same_pidns && info->is_same_boot && info->writer_pid;
}

bool pmdp_watch_process_is_dying(const struct pmdp_watch *watch)
{
	struct pollfd poll_fd = {.fd = watch->pidfd, .events = POLLIN};

	if (!can_know(watch->reader))
		return false;
	if (watch->pidfd >= 0 && poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLIN))
		return true; // also where /proc hides it
	return is_on_its_way_out(pmdp_reader_info(watch->reader)->writer_pid, 0);
}

int pmdp_watch_thread_alive(const struct pmdp_reader *reader, const struct pmdp_lane_body *body)
{
	uint32_t pid = pmdp_reader_info(reader)->writer_pid;
	uint64_t start_ticks = 0;
	int rc;

	if (!can_know(reader) || !body->tid)
		return -EXDEV;
	rc = pmdp_process_stat(pid, body->tid, NULL, &start_ticks, NULL);
	if (rc == -ESRCH || rc == -ENOENT)
		return pmdp_process_is_hidden(pid) ? -EACCES : 0;
	if (rc)
		return rc;
	return (!body->thread_start_ticks || start_ticks == body->thread_start_ticks) &&
	       !is_on_its_way_out(pid, body->tid);
}

bool pmdp_watch_thread_is_gone(const struct pmdp_watch *watch, const struct pmdp_lane_body *body)
{
	return pmdp_watch_thread_alive(watch->reader, body) == 0;
}

int pmdp_watch_thread_pauses(const struct pmdp_watch *watch, const struct pmdp_lane_body *body,
			     uint64_t *out_n)
{
	uint32_t pid = pmdp_reader_info(watch->reader)->writer_pid;
	char path[64], text[4096];
	const char *line;
	ssize_t len;
	int fd;

	if (!can_know(watch->reader) || !body->tid)
		return -EXDEV;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32 "/status", pid, body->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0)
		return -EIO;
	text[len] = 0;
	line = strstr(text, "\nvoluntary_ctxt_switches:");
	if (!line)
		return -EBADMSG;
	*out_n = strtoull(strchr(line, ':') + 1, NULL, 10);
	return 0;
}
