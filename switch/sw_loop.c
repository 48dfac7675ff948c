// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_loop.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "sw_ctl.h"
#include "sw_log.h"
#include "sw_switch.h"

static void loop_signals(sigset_t *out_set)
{
	sigemptyset(out_set);
	sigaddset(out_set, SIGTERM);
	sigaddset(out_set, SIGINT);
	sigaddset(out_set, SIGHUP); // the terminal has gone
}

void sw_loop_block_signals(void)
{
	sigset_t set;

	loop_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN); // a client that has gone is an error of write
}

static int watch(struct sw_switch *sw, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(sw->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

int sw_loop_open(struct sw_switch *sw, struct sw_error *err)
{
	const struct timespec period = {.tv_nsec = SW_HOUSEKEEP_MS * 1000000L};
	const struct itimerspec timer = {period, period};
	sigset_t set;
	int rc = 0;

	loop_signals(&set);
	sw->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	sw->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	sw->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (sw->epoll_fd < 0 || sw->timer_fd < 0 || sw->signal_fd < 0 ||
	    timerfd_settime(sw->timer_fd, 0, &timer, NULL) != 0)
		rc = -errno;
	if (rc == 0)
		rc = watch(sw, sw->timer_fd);
	if (rc == 0)
		rc = watch(sw, sw->signal_fd);
	if (rc == 0)
		rc = watch(sw, sw_ctl_fd(sw->ctl));
	if (rc != 0)
		return sw_fail(err, rc, "the control loop can't be set up: %s", strerror(-rc));
	return 0;
}

static void take_signal(struct sw_switch *sw)
{
	struct signalfd_siginfo info;

	while (read(sw->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (!sw->is_stopping)
			sw_log(SW_LOG_INFO, "stopping on signal %u", info.ssi_signo);
		sw->is_stopping = true;
	}
}

static void take_timer(struct sw_switch *sw)
{
	uint64_t n;

	if (read(sw->timer_fd, &n, sizeof(n)) > 0)
		sw_switch_housekeep(sw);
}

void sw_loop_run(struct sw_switch *sw)
{
	struct epoll_event events[4];

	while (!sw->is_stopping) {
		int n = epoll_wait(sw->epoll_fd, events, 4, -1);

		// Signs of life first: commands may take their time.
		for (int i = 0; i < n; i++) {
			if (events[i].data.fd == sw->timer_fd)
				take_timer(sw);
			else if (events[i].data.fd == sw->signal_fd)
				take_signal(sw);
		}
		for (int i = 0; i < n && !sw->is_stopping; i++)
			if (events[i].data.fd == sw_ctl_fd(sw->ctl))
				sw_ctl_serve(sw->ctl);
	}
}

void sw_loop_close(struct sw_switch *sw)
{
	const int fds[] = {sw->epoll_fd, sw->timer_fd, sw->signal_fd};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}
