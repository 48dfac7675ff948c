// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * One connection to the control socket: its buffers and what is done at each readiness.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sw_switch;

struct sw_ctl_client {
	int fd;           // -1 = free
	bool is_ended;    // no more input; closed when the output has left
	bool is_answered; // at least one request
	char *in;
	size_t in_len, in_size;
	size_t in_seen; // bytes that have been searched for a newline
	char *out;
	size_t out_len, out_sent;
	uint64_t active_ns; // when something last went in or out
};

void sw_ctl_client_open(struct sw_ctl_client *client, int fd, uint64_t now_ns);
void sw_ctl_client_close(struct sw_ctl_client *client);

/*
 * Read, answer and write as far as that goes without waiting: one request at a time, the next only
 * when the reply has left. At most max_requests. False: the connection is over, close it.
 */
bool sw_ctl_client_serve(struct sw_ctl_client *client, struct sw_switch *sw,
			 unsigned int max_requests, uint64_t now_ns);

// The server waits for it, and nothing of it waits for the server.
bool sw_ctl_client_is_silent(const struct sw_ctl_client *client);

// What to wait for (EPOLLIN, EPOLLOUT); 0: nothing, a whole request waits in the buffer.
uint32_t sw_ctl_client_events(const struct sw_ctl_client *client);
