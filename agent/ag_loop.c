// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_loop.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)

uint64_t ag_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

int ag_loop_init(struct ag_loop *loop)
{
	// The timer is never read: arming it again takes its expiry back.
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};

	memset(loop, 0, sizeof(*loop));
	loop->timer_fd = -1;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0)
		return -errno;
	loop->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (loop->timer_fd < 0 ||
	    epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->timer_fd, &event)) {
		int rc = -errno;

		ag_loop_fini(loop);
		return rc;
	}
	return 0;
}

void ag_loop_fini(struct ag_loop *loop)
{
	if (loop->timer_fd >= 0)
		close(loop->timer_fd);
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	loop->timer_fd = loop->epoll_fd = -1;
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
	uint64_t now_ns = ag_now_ns();
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

AG_HOT static void arm(struct ag_loop *loop)
{
	uint64_t due_ns = UINT64_MAX;
	struct itimerspec when = {.it_interval = {0, 0}};

	for (struct ag_timer *timer = loop->timers; timer; timer = timer->next)
		if (timer->due_ns && timer->due_ns + timer->slack_ns < due_ns)
			due_ns = timer->due_ns + timer->slack_ns;
	if (due_ns == loop->armed_ns)
		return;
	if (due_ns != UINT64_MAX) {
		when.it_value.tv_sec = (time_t)(due_ns / NS_PER_S);
		when.it_value.tv_nsec = (long)(due_ns % NS_PER_S);
	}
	timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
	loop->armed_ns = due_ns;
}

int ag_loop_run(struct ag_loop *loop)
{
	while (!loop->is_stopping) {
		struct epoll_event event;

		run_timers(loop);
		if (loop->is_stopping)
			break;
		arm(loop);
		int n = epoll_wait(loop->epoll_fd, &event, 1, -1);
		if (n < 0 && errno != EINTR)
			return -errno;
		loop->n_wakes++;
		if (n <= 0)
			continue;
		struct ag_source *source = event.data.ptr;
		if (source)
			source->fn(source->ctx, event.events);
		else
			loop->armed_ns = 0; // expired: must be armed again, even for the same time
	}
	return 0;
}
