// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_ctl_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sw_ctl.h"
#include "sw_ctl_request.h"

#define FIRST_BYTES 4096

void sw_ctl_client_open(struct sw_ctl_client *client, int fd, uint64_t now_ns)
{
	*client = (struct sw_ctl_client){.fd = fd, .active_ns = now_ns};
}

void sw_ctl_client_close(struct sw_ctl_client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	free(client->in);
	free(client->out);
	*client = (struct sw_ctl_client){.fd = -1};
}

// Room for more input, one byte more than is used for the closing 0. False: no memory.
static bool make_room(struct sw_ctl_client *client)
{
	size_t size = client->in_size ? client->in_size * 2 : FIRST_BYTES;
	char *larger;

	if (client->in_len + 1 < client->in_size)
		return true;
	larger = realloc(client->in, size);
	if (!larger)
		return false;
	client->in = larger;
	client->in_size = size;
	return true;
}

static char *find_line(struct sw_ctl_client *client)
{
	char *end = NULL;

	if (client->in_len > client->in_seen)
		end = memchr(client->in + client->in_seen, '\n', client->in_len - client->in_seen);
	client->in_seen = end ? (size_t)(end - client->in) : client->in_len;
	return end;
}

// Take in what has come, a buffer full at most. False: the connection is broken.
static bool receive(struct sw_ctl_client *client, uint64_t now_ns)
{
	ssize_t n;

	if (client->is_ended)
		return true;
	if (!make_room(client))
		return false;
	n = recv(client->fd, client->in + client->in_len, client->in_size - client->in_len - 1, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0)
		client->is_ended = true;
	client->in_len += (size_t)n;
	client->active_ns = now_ns;
	return true;
}

// Send what waits. False: the connection is broken.
static bool flush(struct sw_ctl_client *client, uint64_t now_ns)
{
	while (client->out_sent < client->out_len) {
		ssize_t n = send(client->fd, client->out + client->out_sent,
				 client->out_len - client->out_sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		client->out_sent += (size_t)n;
		client->active_ns = now_ns;
	}
	free(client->out);
	client->out = NULL;
	client->out_len = client->out_sent = 0;
	return true;
}

static bool has_output(const struct sw_ctl_client *client)
{
	return client->out != NULL;
}

// Answer the first line of the buffer, if it is whole. False: no memory, or a reply beyond all
// bounds.
static bool answer_line(struct sw_ctl_client *client, struct sw_switch *sw, char *end)
{
	size_t len = (size_t)(end - client->in);

	*end = 0;
	client->out = sw_ctl_answer(sw, client->in, len, &client->out_len);
	client->is_answered = true;
	client->in_len -= len + 1;
	memmove(client->in, end + 1, client->in_len);
	client->in_seen = 0;
	if (client->in_len == 0) { // an idle client holds no memory
		free(client->in);
		client->in = NULL;
		client->in_size = 0;
	}
	return client->out != NULL && client->out_len <= SW_CTL_MAX_REPLY_BYTES;
}

// The line has no end within the bound: say so, and read no further.
static bool refuse_line(struct sw_ctl_client *client)
{
	char text[96];

	snprintf(text, sizeof(text),
		 "a request is one line of at most %u bytes (give a long file in parts)",
		 SW_CTL_MAX_LINE_BYTES);
	client->is_ended = true;
	client->in_len = client->in_seen = 0;
	client->out = sw_ctl_refuse(text, &client->out_len);
	return client->out != NULL;
}

bool sw_ctl_client_serve(struct sw_ctl_client *client, struct sw_switch *sw,
			 unsigned int max_requests, uint64_t now_ns)
{
	for (unsigned int n = 0;; n++) {
		char *end;

		if (has_output(client) && !flush(client, now_ns))
			return false;
		if (has_output(client)) // the client is slow: its next request waits
			return true;
		end = find_line(client);
		if (!end) {
			if (!receive(client, now_ns))
				return false;
			end = find_line(client);
		}
		if (end && n == max_requests)
			return true;
		if (end) {
			if (!answer_line(client, sw, end))
				return false;
		} else if (client->in_len > SW_CTL_MAX_LINE_BYTES) {
			if (!refuse_line(client))
				return false;
		} else {
			return !client->is_ended;
		}
	}
}

bool sw_ctl_client_is_silent(const struct sw_ctl_client *client)
{
	int n_unread = 0;

	if (has_output(client))
		return true;
	return client->in_seen == client->in_len &&
	       (client->is_ended || ioctl(client->fd, FIONREAD, &n_unread) < 0 || n_unread == 0);
}

uint32_t sw_ctl_client_events(const struct sw_ctl_client *client)
{
	if (has_output(client))
		return EPOLLOUT;
	return client->in_seen < client->in_len ? 0 : EPOLLIN;
}
