// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pmdp_process.h"
#include "pmdp_stat.h"
#include "pmdp_watch_internal.h"

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

static bool is_ending(const struct pmdp_stat *stat)
{
	const uint32_t flags = PMDP_STAT_EXITING | PMDP_STAT_POSTCOREDUMP | PMDP_STAT_DUMPCORE;

	return stat->state == 'Z' || stat->state == 'X' || (stat->flags & flags);
}

// False when that can't be known.
static bool is_on_its_way_out(uint32_t pid)
{
	struct pmdp_stat stat;
	int rc = pmdp_stat_read(pid, 0, &stat);

	if (rc == -ESRCH)
		return !pmdp_process_is_hidden(pid);
	return rc == 0 && is_ending(&stat);
}

bool pmdp_watch_process_is_back(const struct pmdp_watch *watch)
{
	const struct pmdp_segment_info *info = pmdp_reader_info(watch->dead);
	struct pmdp_look look;
	int rc = pmdp_reader_writer_alive(watch->dead);

	if (rc >= 0)
		return rc && !is_on_its_way_out(info->writer_pid);
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
	return is_on_its_way_out(pmdp_reader_info(watch->reader)->writer_pid);
}

int pmdp_watch_thread_alive(const struct pmdp_reader *reader, const struct pmdp_lane_body *body)
{
	uint32_t pid = pmdp_reader_info(reader)->writer_pid;
	struct pmdp_stat stat;
	int rc;

	if (!can_know(reader) || !body->tid)
		return -EXDEV;
	rc = pmdp_stat_read(pid, body->tid, &stat);
	if (rc == -ESRCH)
		return pmdp_process_is_hidden(pid) ? -EACCES : 0;
	if (rc)
		return rc;
	return (!body->thread_start_ticks || stat.start_ticks == body->thread_start_ticks) &&
	       !is_ending(&stat);
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

	if (!can_know(watch->reader) || !body->tid)
		return -EXDEV;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32 "/status", pid, body->tid);
	len = pmdp_read_small(path, text, sizeof(text));
	if (len <= 0)
		return len < 0 ? (int)len : -EIO;
	line = strstr(text, "\nvoluntary_ctxt_switches:");
	if (!line)
		return -EBADMSG;
	*out_n = strtoull(strchr(line, ':') + 1, NULL, 10);
	return 0;
}
