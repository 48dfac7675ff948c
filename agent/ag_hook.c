// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_hook.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ag_log.h"
#include "ag_loop.h"
#include "ag_prio.h"
#include "ag_sink.h"
#include "pmdp_clock.h"

#define AG_HOOK_RESTART_NS UINT64_C(10000000000)

struct ag_hook {
	struct ag_sink sink;
	struct ag_loop *loop;
	struct ag_source source; // fd -1: no helper
	pid_t helper;
	uint64_t started_ns;
	uint64_t timeout_ms;
	struct ag_hook_counts *counts;
	uint64_t n_lost; // not even handed over
	uint64_t lost_told;
	char path[];
};

static void run_helper(struct ag_hook *hook, int fd)
{
	// A group of its own: Ctrl-C is meant for the agent; the helper ends when its socket does.
	setpgid(0, 0);
	prctl(PR_SET_NAME, "pmdpulse-hook");
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0UL, 0UL,
	      0UL); // hooks get none of the agent's
	ag_prio_reset();
	ag_log_plain();
	ag_hook_serve(fd, hook->path, hook->timeout_ms, hook->counts);
	_exit(0);
}

static int start_helper(struct ag_hook *hook)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	pid_t pid = fork();
	if (pid < 0) {
		int rc = -errno;

		close(ends[0]);
		close(ends[1]);
		return rc;
	}
	if (pid == 0) {
		close(ends[0]);
		// Nothing of the agent's may be held open by hooks or keep its sockets alive, and
		// the helper's own socket stays its own: a hook that held it would read events.
		int fd = ends[1] == 3 ? 3 : dup3(ends[1], 3, O_CLOEXEC);
		if (fd < 0)
			_exit(1); // the agent says that its helper ended
		close_range((unsigned int)fd + 1, ~0U, 0);
		run_helper(hook, fd);
	}
	close(ends[1]);
	hook->helper = pid;
	hook->source.fd = ends[0];
	hook->started_ns = pmdp_mono_now_ns();
	return ag_loop_add(hook->loop, &hook->source, EPOLLIN);
}

// The helper never writes: readable means that it is gone.
static void on_helper_gone(void *ctx, uint32_t events)
{
	struct ag_hook *hook = ctx;
	int status = 0;

	(void)events;
	ag_loop_remove(hook->loop, &hook->source);
	close(hook->source.fd);
	hook->source.fd = -1;
	if (waitpid(hook->helper, &status, WNOHANG) == 0) {
		kill(hook->helper, SIGKILL); // closed its socket and lives: of no use any more
		waitpid(hook->helper, &status, 0);
	}
	atomic_store_explicit(&hook->counts->n_pending, 0, memory_order_relaxed);
	ag_log(AG_WARNING,
	       "hook %s: its helper (pid %d) ended with status %#x; started again at the next "
	       "event",
	       hook->path, hook->helper, (unsigned int)status);
	hook->helper = 0;
}

static void hook_event(struct ag_sink *sink, const struct pmdp_incident *incident, const char *json,
		       size_t json_len)
{
	struct ag_hook *hook = (struct ag_hook *)sink;

	(void)incident;
	if (hook->source.fd < 0 && pmdp_mono_now_ns() - hook->started_ns >= AG_HOOK_RESTART_NS)
		start_helper(hook);
	if (hook->source.fd >= 0 && json_len <= AG_HOOK_BYTES &&
	    send(hook->source.fd, json, json_len, MSG_DONTWAIT | MSG_NOSIGNAL) ==
		    (ssize_t)json_len) {
		hook->lost_told = hook->n_lost;
		return;
	}
	if (hook->n_lost++ == hook->lost_told)
		ag_log(AG_WARNING,
		       "hook %s: an event could not be handed over; further ones are only counted",
		       hook->path);
}

static void hook_stats(const struct ag_sink *sink, struct ag_sink_stats *out_stats)
{
	const struct ag_hook *hook = (const struct ag_hook *)sink;
	const struct ag_hook_counts *counts = hook->counts;
	uint64_t n_failed = atomic_load_explicit(&counts->n_failed, memory_order_relaxed);
	uint64_t n_late = atomic_load_explicit(&counts->n_late, memory_order_relaxed);
	uint64_t n_lost = atomic_load_explicit(&counts->n_lost, memory_order_relaxed);

	*out_stats = (struct ag_sink_stats){
		.n_written = atomic_load_explicit(&counts->n_done, memory_order_relaxed),
		.n_lost = hook->n_lost + n_failed + n_late + n_lost,
		.n_waiting =
			(uint32_t)atomic_load_explicit(&counts->n_pending, memory_order_relaxed),
		.error = hook->source.fd < 0 ? "its helper is gone"
			 : n_late            ? "some ran too long"
			 : n_failed          ? "some failed"
			 : n_lost            ? "too many at once"
					     : NULL,
	};
}

static void hook_close(struct ag_sink *sink)
{
	struct ag_hook *hook = (struct ag_hook *)sink;

	// The helper goes on alone until the last hook is done: the agent's stop is not delayed by
	// it.
	if (hook->source.fd >= 0) {
		ag_loop_remove(hook->loop, &hook->source);
		close(hook->source.fd);
	}
	munmap(hook->counts, sizeof(*hook->counts));
	free(hook);
}

int ag_hook_open(struct ag_loop *loop, const char *path, uint64_t timeout_ms,
		 struct ag_sink **out_sink)
{
	struct ag_hook *hook = calloc(1, sizeof(*hook) + strlen(path) + 1);

	if (!hook)
		return -ENOMEM;
	hook->counts = mmap(NULL, sizeof(*hook->counts), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (hook->counts == MAP_FAILED) {
		free(hook);
		return -ENOMEM;
	}
	strcpy(hook->path, path);
	snprintf(hook->sink.name, sizeof(hook->sink.name), "hook:%.58s", path);
	hook->sink.event = hook_event;
	hook->sink.stats = hook_stats;
	hook->sink.close = hook_close;
	hook->loop = loop;
	hook->timeout_ms = timeout_ms;
	hook->source = (struct ag_source){.fd = -1, .fn = on_helper_gone, .ctx = hook};
	int rc = start_helper(hook);
	if (rc) {
		ag_log(AG_ERROR, "hook %s: no helper process: %s; raise the limit of processes",
		       path, strerror(-rc));
		hook_close(&hook->sink);
		return rc;
	}
	*out_sink = &hook->sink;
	return 0;
}
