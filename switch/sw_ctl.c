// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_ctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "pmdp_clock.h"
#include "pmdpulse.h"
#include "sw_ctl_client.h"
#include "sw_switch.h"

#define MAX_EVENTS 16
#define REQUESTS_PER_TURN 4
#define SOCKET_MODE 0660

// epoll_event.data.u32 beside the index of a client.
#define TAG_LISTEN 1000
#define TAG_AGAIN 1001

struct sw_ctl {
	struct sw_switch *sw;
	int epoll_fd;
	int listen_fd;
	int again_fd; // eventfd, readable while a client has a whole request left in its buffer
	dev_t dev;    // of the socket's file, to unlink only our own
	ino_t ino;
	struct sockaddr_un address;
	struct sw_ctl_client clients[SW_CTL_MAX_CLIENTS];
};

static bool is_answering(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool is_alive = fd >= 0 &&
			(connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
			 errno == EAGAIN); // its queue is full: alive, too

	if (fd >= 0)
		close(fd);
	return is_alive;
}

// Group of the directory. An ordinary user may not be in it; then the group stays the user's own.
static int own(const struct sw_ctl *ctl, const char *path)
{
	struct stat folder, file;

	if (stat(ctl->sw->options.rundir, &folder) < 0 || stat(path, &file) < 0 ||
	    chmod(path, SOCKET_MODE) < 0)
		return -errno;
	if (file.st_gid != folder.st_gid && chown(path, (uid_t)-1, folder.st_gid) < 0 &&
	    errno != EPERM)
		return -errno;
	return 0;
}

// Bound under a temporary name, so that the socket appears with its mode and group, and with a
// listener, in place of a dead predecessor's.
static int bind_and_listen(struct sw_ctl *ctl, struct sw_error *err)
{
	struct sockaddr_un temporary = {.sun_family = AF_UNIX};
	const char *path = ctl->address.sun_path;
	struct stat file;
	int rc;

	if ((size_t)snprintf(temporary.sun_path, sizeof(temporary.sun_path), "%s.%d", path,
			     getpid()) >= sizeof(temporary.sun_path))
		return sw_fail(err, -ENAMETOOLONG,
			       "%s: too long for a socket (choose a shorter --rundir)", path);
	ctl->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (ctl->listen_fd < 0)
		return sw_fail(err, -errno, "control socket: %s", strerror(errno));
	unlink(temporary.sun_path);
	if (bind(ctl->listen_fd, (struct sockaddr *)&temporary, sizeof(temporary)) < 0) {
		rc = -errno;
		return sw_fail(err, rc, "%s: %s (does the folder exist, may it be written?)",
			       temporary.sun_path, strerror(-rc));
	}
	rc = own(ctl, temporary.sun_path);
	if (rc == 0 && (listen(ctl->listen_fd, SOMAXCONN) < 0 ||
			rename(temporary.sun_path, path) < 0 || stat(path, &file) < 0))
		rc = -errno;
	if (rc < 0) {
		unlink(temporary.sun_path);
		return sw_fail(err, rc, "%s: %s", path, strerror(-rc));
	}
	ctl->dev = file.st_dev;
	ctl->ino = file.st_ino;
	return 0;
}

static int watch(const struct sw_ctl *ctl, int op, int fd, uint32_t events, uint32_t tag)
{
	struct epoll_event event = {.events = events, .data.u32 = tag};

	return epoll_ctl(ctl->epoll_fd, op, fd, &event) < 0 ? -errno : 0;
}

static int make_epoll(struct sw_ctl *ctl, struct sw_error *err)
{
	int rc = 0;

	ctl->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	ctl->again_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ctl->epoll_fd < 0 || ctl->again_fd < 0)
		rc = -errno;
	if (rc == 0)
		rc = watch(ctl, EPOLL_CTL_ADD, ctl->listen_fd, EPOLLIN, TAG_LISTEN);
	if (rc == 0)
		rc = watch(ctl, EPOLL_CTL_ADD, ctl->again_fd, EPOLLIN, TAG_AGAIN);
	return rc < 0 ? sw_fail(err, rc, "control socket: %s", strerror(-rc)) : 0;
}

int sw_ctl_create(struct sw_switch *sw, struct sw_ctl **out_ctl, struct sw_error *err)
{
	struct sw_ctl *ctl = calloc(1, sizeof(*ctl));
	int rc;

	if (!ctl)
		return sw_fail(err, -ENOMEM, "control socket: no memory");
	ctl->sw = sw;
	ctl->epoll_fd = ctl->listen_fd = ctl->again_fd = -1;
	ctl->address.sun_family = AF_UNIX;
	for (int i = 0; i < SW_CTL_MAX_CLIENTS; i++)
		ctl->clients[i].fd = -1;
	rc = pmdp_path(sw->options.rundir, sw->options.instance, "ctl", ctl->address.sun_path,
		       sizeof(ctl->address.sun_path));
	if (rc < 0)
		rc = sw_fail(err, rc, "%s/%s.ctl: %s (choose a shorter --rundir or --instance)",
			     sw->options.rundir, sw->options.instance, strerror(-rc));
	else if (is_answering(&ctl->address))
		rc = sw_fail(
			err, -EADDRINUSE,
			"%s: another switch answers there (stop it, or choose another --instance)",
			ctl->address.sun_path);
	else
		rc = bind_and_listen(ctl, err);
	if (rc == 0)
		rc = make_epoll(ctl, err);
	if (rc < 0) {
		sw_ctl_destroy(ctl);
		return rc;
	}
	*out_ctl = ctl;
	return 0;
}

int sw_ctl_fd(const struct sw_ctl *ctl)
{
	return ctl->epoll_fd;
}

// The one of two clients that was silent for longer; either may be NULL.
static const struct sw_ctl_client *older(const struct sw_ctl_client *a,
					 const struct sw_ctl_client *b)
{
	return a == NULL || (b != NULL && b->active_ns < a->active_ns) ? b : a;
}

// A free place, or that of the client that has been silent longest: one that does not read, or
// idles; else of one that asks without end. -1: all have yet to get their first answer.
static int place(const struct sw_ctl *ctl)
{
	const struct sw_ctl_client *silent = NULL, *answered = NULL;

	for (int i = 0; i < SW_CTL_MAX_CLIENTS; i++) {
		const struct sw_ctl_client *client = &ctl->clients[i];

		if (client->fd < 0)
			return i;
		if (sw_ctl_client_is_silent(client))
			silent = older(silent, client);
		else if (client->is_answered)
			answered = older(answered, client);
	}
	if (silent == NULL)
		silent = answered;
	return silent != NULL ? (int)(silent - ctl->clients) : -1;
}

static void accept_all(struct sw_ctl *ctl)
{
	for (int n = 0; n < SW_CTL_MAX_CLIENTS; n++) {
		int i = place(ctl);
		int fd = i < 0 ? -1
			       : accept4(ctl->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		sw_ctl_client_close(&ctl->clients[i]);
		sw_ctl_client_open(&ctl->clients[i], fd, pmdp_mono_now_ns());
		if (watch(ctl, EPOLL_CTL_ADD, fd, EPOLLIN, (uint32_t)i) < 0)
			sw_ctl_client_close(&ctl->clients[i]);
	}
}

static void serve(struct sw_ctl *ctl, uint32_t i)
{
	struct sw_ctl_client *client = &ctl->clients[i];
	uint32_t events;

	if (client->fd < 0)
		return;
	if (!sw_ctl_client_serve(client, ctl->sw, REQUESTS_PER_TURN, pmdp_mono_now_ns())) {
		sw_ctl_client_close(client);
		return;
	}
	events = sw_ctl_client_events(client);
	if (events == 0)
		eventfd_write(ctl->again_fd, 1);
	if (watch(ctl, EPOLL_CTL_MOD, client->fd, events, i) < 0)
		sw_ctl_client_close(client);
}

void sw_ctl_serve(struct sw_ctl *ctl)
{
	struct epoll_event events[MAX_EVENTS];
	int n = epoll_wait(ctl->epoll_fd, events, MAX_EVENTS, 0);
	eventfd_t ignored;

	for (int i = 0; i < n; i++) {
		uint32_t tag = events[i].data.u32;

		if (tag == TAG_LISTEN) {
			accept_all(ctl);
		} else if (tag == TAG_AGAIN) {
			eventfd_read(ctl->again_fd, &ignored);
			for (uint32_t c = 0; c < SW_CTL_MAX_CLIENTS; c++) {
				if (ctl->clients[c].fd >= 0 &&
				    sw_ctl_client_events(&ctl->clients[c]) == 0)
					serve(ctl, c);
			}
		} else {
			serve(ctl, tag);
		}
	}
}

void sw_ctl_destroy(struct sw_ctl *ctl)
{
	const char *path;
	struct stat file;

	if (!ctl)
		return;
	path = ctl->address.sun_path;
	if (ctl->ino != 0 && stat(path, &file) == 0 && file.st_dev == ctl->dev &&
	    file.st_ino == ctl->ino)
		unlink(path);
	for (int i = 0; i < SW_CTL_MAX_CLIENTS; i++)
		sw_ctl_client_close(&ctl->clients[i]);
	if (ctl->listen_fd >= 0)
		close(ctl->listen_fd);
	if (ctl->epoll_fd >= 0)
		close(ctl->epoll_fd);
	if (ctl->again_fd >= 0)
		close(ctl->again_fd);
	free(ctl);
}
