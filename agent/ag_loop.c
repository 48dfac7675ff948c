// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_loop.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "pmdp_clock.h"

#define NS_PER_MS UINT64_C(1000000)

int ag_loop_init(struct ag_loop *loop)
{
	memset(loop, 0, sizeof(*loop));
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return loop->epoll_fd < 0 ? -errno : 0;
}

void ag_loop_fini(struct ag_loop *loop)
{
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	loop->epoll_fd = -1;
}

static int control(struct ag_loop *loop, int op, struct ag_source *source, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};

	return epoll_ctl(loop->epoll_fd, op, source->fd, &event) ? -errno : 0;
}

int ag_loop_add(struct ag_loop *loop, struct ag_source *source, uint32_t events)
{
	return control(loop, EPOLL_CTL_ADD, source, events);
}

int ag_loop_modify(struct ag_loop *loop, struct ag_source *source, uint32_t events)
{
	return control(loop, EPOLL_CTL_MOD, source, events);
}

void ag_loop_remove(struct ag_loop *loop, struct ag_source *source)
{
	control(loop, EPOLL_CTL_DEL, source, 0);
}

void ag_loop_add_timer(struct ag_loop *loop, struct ag_timer *timer)
{
	timer->turn = 0;
	timer->next = loop->timers;
	loop->timers = timer;
}

void ag_loop_remove_timer(struct ag_loop *loop, struct ag_timer *timer)
{
	for (struct ag_timer **at = &loop->timers; *at; at = &(*at)->next)
		if (*at == timer) {
			*at = timer->next;
			return;
		}
}

// Do what is due, each timer at most once: one that is due again at once waits for the next turn,
// so that descriptors are served in between. Callbacks may add and remove timers.
AG_HOT static void run_timers(struct ag_loop *loop)
{
	uint64_t now_ns = pmdp_mono_now_ns();
	struct ag_timer *timer;

	loop->turn++;
	do {
		for (timer = loop->timers; timer; timer = timer->next)
			if (timer->due_ns && timer->due_ns <= now_ns && timer->turn != loop->turn)
				break;
		if (timer) {
			timer->turn = loop->turn;
			timer->due_ns = 0;
			timer->fn(timer->ctx, now_ns);
		}
	} while (timer);
}

AG_HOT static uint64_t next_due_ns(const struct ag_loop *loop)
{
	uint64_t due_ns = UINT64_MAX;

	for (const struct ag_timer *timer = loop->timers; timer; timer = timer->next)
		if (timer->due_ns && timer->due_ns + timer->slack_ns < due_ns)
			due_ns = timer->due_ns + timer->slack_ns;
	return due_ns;
}

// One event, or the time is due. The wait's own timeout, to the nanosecond, saves a wake the arming
// and the event of a timer descriptor. Kernels before 5.11 round up to milliseconds.
AG_HOT static int wait_until(int epoll_fd, uint64_t due_ns, struct epoll_event *out_event)
{
	uint64_t now_ns = pmdp_mono_now_ns();
	uint64_t left_ns = due_ns > now_ns ? due_ns - now_ns : 0;
	struct timespec left = {.tv_sec = (time_t)(left_ns / PMDP_NS_PER_S),
				.tv_nsec = (long)(left_ns % PMDP_NS_PER_S)};
	int n = epoll_pwait2(epoll_fd, out_event, 1, due_ns == UINT64_MAX ? NULL : &left, NULL);

	if (n < 0 && errno == ENOSYS) {
		uint64_t left_ms = (left_ns + NS_PER_MS - 1) / NS_PER_MS;

		n = epoll_wait(epoll_fd, out_event, 1,
			       due_ns == UINT64_MAX ? -1
						    : (int)(left_ms < INT_MAX ? left_ms : INT_MAX));
	}
	return n;
}

int ag_loop_run(struct ag_loop *loop)
{
	while (!loop->is_stopping) {
		struct epoll_event event;

		run_timers(loop);
		if (loop->is_stopping)
			break;
		int n = wait_until(loop->epoll_fd, next_due_ns(loop), &event);
		if (n < 0 && errno != EINTR)
			return -errno;
		loop->n_wakes++;
		if (n <= 0)
			continue;
		struct ag_source *source = event.data.ptr;

		source->fn(source->ctx, event.events);
	}
	return 0;
}
