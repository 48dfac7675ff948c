// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Event loop of the agent: one thread, epoll, timers by CLOCK_MONOTONIC.
 *
 * Sources and timers are embedded in their owners and must outlive their registration. One event is
 * taken per wait, so that a callback may close and free any source, its own too. Timers are looked
 * at after every event: what is due is done, whatever woke the loop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ag_source {
	int fd;
	void (*fn)(void *ctx, uint32_t events); // EPOLL*
	void *ctx;
};

struct ag_timer {
	uint64_t due_ns;   // CLOCK_MONOTONIC, 0 = off; set freely, also in its own callback
	uint64_t slack_ns; // does not wake the loop before due + slack, but is done at any wake
			   // from due on
	void (*fn)(void *ctx, uint64_t now_ns);
	void *ctx;
	uint64_t turn;
	struct ag_timer *next;
};

struct ag_loop {
	int epoll_fd;
	uint64_t turn;
	uint64_t n_wakes;
	bool is_stopping;
	struct ag_timer *timers;
};

// On the path of every wake. The compiler puts these side by side, so that a wake, whose caches are
// cold, touches few pages of code.
#define AG_HOT __attribute__((hot))

int ag_loop_init(struct ag_loop *loop); // -errno
void ag_loop_fini(struct ag_loop *loop);

// -errno of epoll_ctl; -EPERM for a regular file, which is always ready.
int ag_loop_add(struct ag_loop *loop, struct ag_source *source, uint32_t events);
int ag_loop_modify(struct ag_loop *loop, struct ag_source *source, uint32_t events);
void ag_loop_remove(struct ag_loop *loop, struct ag_source *source);

void ag_loop_add_timer(struct ag_loop *loop, struct ag_timer *timer);
void ag_loop_remove_timer(struct ag_loop *loop, struct ag_timer *timer);

// Until is_stopping. Returns 0, or -errno when waiting itself failed.
AG_HOT int ag_loop_run(struct ag_loop *loop);
