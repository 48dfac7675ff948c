// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ag_hook.h"
#include "ag_log.h"
#include "ag_loop.h"
#include "pmdp_clock.h"

#define AG_HOOK_TELL_NS UINT64_C(60000000000)

extern char **environ;

struct job {
	char *json;
	size_t len;
};

struct run {
	pid_t pid;
	int pidfd; // -1: free
	uint64_t deadline_ns;
	bool is_killed;
};

struct server {
	int fd; // -1: the agent has ended
	const char *path;
	uint64_t timeout_ns;
	uint64_t end_ns; // after the agent's end: nothing runs longer than this
	uint64_t told_ns;
	struct ag_hook_counts *counts;
	struct job waiting[AG_HOOK_WAITING];
	uint32_t head, n_waiting, n_running;
	struct run runs[AG_HOOK_PARALLEL];
};

static void count(_Atomic uint64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

// One line a minute at most: a hook that always fails must not flood the log.
static bool may_tell(struct server *server)
{
	uint64_t now_ns = pmdp_mono_now_ns();

	if (server->told_ns && now_ns - server->told_ns < AG_HOOK_TELL_NS)
		return false;
	server->told_ns = now_ns;
	return true;
}

static void take(struct server *server)
{
	char *json = malloc(AG_HOOK_BYTES);
	ssize_t len;

	do {
		len = recv(server->fd, json, json ? AG_HOOK_BYTES : 0, 0);
	} while (len < 0 && errno == EINTR);
	if (len <= 0) {
		free(json);
		close(server->fd);
		server->fd = -1;
		server->end_ns = pmdp_mono_now_ns() + server->timeout_ns;
		return;
	}
	if (!json || server->n_waiting == AG_HOOK_WAITING) {
		free(json);
		count(&server->counts->n_lost);
		if (may_tell(server))
			ag_log(AG_WARNING,
			       "hook %s: %d are waiting already, an event was not passed on; "
			       "make the hook faster",
			       server->path, AG_HOOK_WAITING);
		return;
	}
	server->waiting[(server->head + server->n_waiting++) % AG_HOOK_WAITING] =
		(struct job){.json = json, .len = (size_t)len};
}

// The JSON fits into a pipe (64 KiB), so that writing it before anybody reads does not wait.
static int pipe_with(const struct job *job)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	if (write(ends[1], job->json, job->len) != (ssize_t)job->len ||
	    write(ends[1], "\n", 1) != 1) {
		close(ends[0]);
		close(ends[1]);
		return -EIO;
	}
	close(ends[1]);
	return ends[0];
}

static int spawn(struct server *server, int input, pid_t *out_pid)
{
	char *argv[] = {(char *)server->path, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
	// stdout may be the stream of incidents: what a hook says belongs to the log.
	posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						      POSIX_SPAWN_SETPGROUP);
	int rc = -posix_spawn(out_pid, server->path, &actions, &attributes, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return rc;
}

static void start(struct server *server, struct run *run)
{
	struct job *job = &server->waiting[server->head];
	pid_t pid = 0;

	int input = pipe_with(job);
	int rc = input < 0 ? input : spawn(server, input, &pid);
	if (input >= 0)
		close(input);
	free(job->json);
	server->head = (server->head + 1) % AG_HOOK_WAITING;
	server->n_waiting--;
	if (!rc) {
		run->pidfd = pidfd_open(pid, 0);
		if (run->pidfd < 0) {
			rc = -errno;
			kill(-pid, SIGKILL);
			waitpid(pid, NULL, 0);
		}
	}
	if (rc) {
		count(&server->counts->n_failed);
		if (may_tell(server))
			ag_log(AG_WARNING,
			       "hook %s: can't be started: %s; see that the program exists, may be "
			       "executed and names its interpreter",
			       server->path, strerror(-rc));
		return;
	}
	run->pid = pid;
	run->deadline_ns = pmdp_mono_now_ns() + server->timeout_ns;
	run->is_killed = false;
	server->n_running++;
}

static void finish(struct server *server, struct run *run)
{
	int status = 0;

	waitpid(run->pid, &status, 0);
	close(run->pidfd);
	run->pidfd = -1;
	server->n_running--;
	if (run->is_killed) {
		count(&server->counts->n_late);
		if (may_tell(server))
			ag_log(AG_WARNING,
			       "hook %s: pid %d ran longer than %llu ms and was killed; make it "
			       "faster or raise hook-timeout",
			       server->path, run->pid,
			       (unsigned long long)(server->timeout_ns / 1000000));
	} else if (status) {
		count(&server->counts->n_failed);
		if (may_tell(server))
			ag_log(AG_WARNING,
			       "hook %s: pid %d ended with %s %d; further failures are counted",
			       server->path, run->pid, WIFSIGNALED(status) ? "signal" : "exit code",
			       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	} else {
		count(&server->counts->n_done);
	}
}

static void enforce_deadlines(struct server *server, uint64_t now_ns)
{
	bool is_over = server->fd < 0 && now_ns >= server->end_ns;

	for (uint32_t i = 0; i < AG_HOOK_PARALLEL; i++) {
		struct run *run = &server->runs[i];

		if (run->pidfd < 0 || run->is_killed || (now_ns < run->deadline_ns && !is_over))
			continue;
		kill(-run->pid, SIGKILL); // its whole group
		run->is_killed = true;
	}
	while (is_over && server->n_waiting) {
		free(server->waiting[server->head].json);
		server->head = (server->head + 1) % AG_HOOK_WAITING;
		server->n_waiting--;
		count(&server->counts->n_lost);
	}
}

static int time_left_ms(const struct server *server, uint64_t now_ns)
{
	uint64_t due_ns = UINT64_MAX;

	for (uint32_t i = 0; i < AG_HOOK_PARALLEL; i++)
		if (server->runs[i].pidfd >= 0 && !server->runs[i].is_killed &&
		    server->runs[i].deadline_ns < due_ns)
			due_ns = server->runs[i].deadline_ns;
	if (server->fd < 0 && server->end_ns < due_ns)
		due_ns = server->end_ns;
	if (due_ns == UINT64_MAX)
		return -1;
	return due_ns <= now_ns ? 0 : (int)((due_ns - now_ns) / 1000000 + 1);
}

static void wait_and_take(struct server *server)
{
	struct pollfd fds[AG_HOOK_PARALLEL + 1];

	// Negative descriptors are left out by poll.
	for (uint32_t i = 0; i < AG_HOOK_PARALLEL; i++)
		fds[i] = (struct pollfd){.fd = server->runs[i].pidfd, .events = POLLIN};
	fds[AG_HOOK_PARALLEL] = (struct pollfd){.fd = server->fd, .events = POLLIN};
	if (poll(fds, AG_HOOK_PARALLEL + 1, time_left_ms(server, pmdp_mono_now_ns())) < 0)
		return; // EINTR
	for (uint32_t i = 0; i < AG_HOOK_PARALLEL; i++)
		if (fds[i].revents)
			finish(server, &server->runs[i]);
	if (fds[AG_HOOK_PARALLEL].revents)
		take(server);
}

void ag_hook_serve(int fd, const char *path, uint64_t timeout_ms, struct ag_hook_counts *counts)
{
	struct server server = {
		.fd = fd, .path = path, .timeout_ns = timeout_ms * 1000000, .counts = counts};

	for (uint32_t i = 0; i < AG_HOOK_PARALLEL; i++)
		server.runs[i].pidfd = -1;
	while (server.fd >= 0 || server.n_waiting || server.n_running) {
		enforce_deadlines(&server, pmdp_mono_now_ns());
		for (uint32_t i = 0; i < AG_HOOK_PARALLEL && server.n_waiting; i++)
			if (server.runs[i].pidfd < 0)
				start(&server, &server.runs[i]);
		atomic_store_explicit(&counts->n_pending, server.n_waiting + server.n_running,
				      memory_order_relaxed);
		if (server.fd >= 0 || server.n_running)
			wait_and_take(&server);
	}
}
