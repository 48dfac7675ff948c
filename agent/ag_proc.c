// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

ssize_t ag_proc_read_fd(int fd, char *out, size_t size)
{
	ssize_t n;

	if (fd < 0)
		return -EBADF;
	do
		n = pread(fd, out, size - 1, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	out[n] = 0;
	return n;
}

static int open_file(pid_t pid, pid_t tid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

int ag_proc_open(pid_t pid, pid_t tid, struct ag_proc_thread *out_thread)
{
	struct ag_proc_thread thread = {.pid = pid, .tid = tid};
	char path[32];

	thread.status_fd = open_file(pid, tid, "status");
	if (thread.status_fd < 0 && (errno == ENOENT || errno == ESRCH))
		return -ESRCH;
	thread.stat_fd = open_file(pid, tid, "stat");
	thread.schedstat_fd = open_file(pid, tid, "schedstat");
	thread.wchan_fd = open_file(pid, tid, "wchan");
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	thread.leader_fd = open(path, O_RDONLY | O_CLOEXEC);
	*out_thread = thread;
	return 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void ag_proc_close(struct ag_proc_thread *thread)
{
	close_fd(&thread->status_fd);
	close_fd(&thread->stat_fd);
	close_fd(&thread->schedstat_fd);
	close_fd(&thread->wchan_fd);
	close_fd(&thread->leader_fd);
}

int ag_proc_read_status(const struct ag_proc_thread *thread, struct ag_proc_status *out_status)
{
	char text[1024]; // State and TracerPid stand in the first lines
	ssize_t n = ag_proc_read_fd(thread->status_fd, text, sizeof(text));

	return n < 0 ? (int)n : ag_proc_parse_status(text, out_status);
}

int ag_proc_read_runtime(const struct ag_proc_thread *thread, struct ag_proc_runtime *out_runtime)
{
	char text[128];
	ssize_t n = ag_proc_read_fd(thread->schedstat_fd, text, sizeof(text));

	return n < 0 ? (int)n : ag_proc_parse_runtime(text, out_runtime);
}

int ag_proc_read_stat(const struct ag_proc_thread *thread, struct pmdp_stat *out_stat)
{
	char text[1024];
	ssize_t n = ag_proc_read_fd(thread->stat_fd, text, sizeof(text));

	return n < 0 ? (int)n : pmdp_stat_parse(text, out_stat);
}

void ag_proc_read_wchan(const struct ag_proc_thread *thread, char *out, size_t size)
{
	ssize_t n = ag_proc_read_fd(thread->wchan_fd, out, size);

	if (n <= 0 || strcmp(out, "0") == 0)
		out[0] = 0;
	out[strcspn(out, "\n")] = 0;
}

bool ag_proc_is_process_gone(const struct ag_proc_thread *thread)
{
	struct pmdp_stat stat;
	char text[1024];
	ssize_t n = ag_proc_read_fd(thread->leader_fd, text, sizeof(text));

	if (n == -ESRCH)
		return true;
	if (n < 0 || pmdp_stat_parse(text, &stat))
		return false;
	// A leader that ended while others of its threads go on is a zombie, too.
	return (stat.state == 'Z' || stat.state == 'X') && stat.n_threads <= 1;
}
