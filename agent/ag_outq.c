// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_outq.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int ag_outq_init(struct ag_outq *q, uint32_t n_max)
{
	memset(q, 0, sizeof(*q));
	q->fd = -1;
	q->n_max = n_max;
	q->lines = calloc(n_max, sizeof(q->lines[0]));
	return q->lines ? 0 : -ENOMEM;
}

void ag_outq_fini(struct ag_outq *q)
{
	if (!q->lines)
		return;
	ag_outq_clear(q);
	free(q->lines);
	q->lines = NULL;
}

int ag_outq_adopt(struct ag_outq *q, int fd)
{
	char path[32];
	struct stat st;

	q->fd = fd;
	q->is_socket = false;
	if (fstat(fd, &st))
		return fd;
	if (S_ISSOCK(st.st_mode)) {
		q->is_socket = true;
	} else if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		int own = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
		if (own >= 0)
			q->fd = own;
		else // not ours to open again: better flags that others see than a wait
			fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	}
	return q->fd;
}

static void drop(struct ag_outq *q, uint32_t offset)
{
	// Close the hole from the front: only the head can be partly written, so it stays the head.
	free(q->lines[(q->head + offset) % q->n_max]);
	for (; offset > 0; offset--)
		q->lines[(q->head + offset) % q->n_max] =
			q->lines[(q->head + offset - 1) % q->n_max];
	q->head = (q->head + 1) % q->n_max;
	q->n--;
}

bool ag_outq_put(struct ag_outq *q, const char *text, size_t len)
{
	struct ag_outq_line *line = malloc(sizeof(*line) + len);

	if (!line) {
		q->n_lost++;
		return false;
	}
	line->len = len;
	line->done = 0;
	memcpy(line->text, text, len);
	if (q->n == q->n_max) {
		drop(q, q->lines[q->head]->done ? 1 : 0);
		q->n_lost++;
	}
	q->lines[(q->head + q->n++) % q->n_max] = line;
	return true;
}

static ssize_t write_some(struct ag_outq *q, const struct ag_outq_line *line)
{
	const char *from = line->text + line->done;
	size_t len = line->len - line->done;
	ssize_t n;

	do {
		n = q->is_socket ? send(q->fd, from, len, MSG_DONTWAIT | MSG_NOSIGNAL)
				 : write(q->fd, from, len);
	} while (n < 0 && errno == EINTR);
	return n;
}

bool ag_outq_flush(struct ag_outq *q)
{
	q->error = 0;
	while (q->n && q->fd >= 0) {
		struct ag_outq_line *line = q->lines[q->head];
		ssize_t n = write_some(q, line);

		if (n < 0) {
			q->error = errno == EWOULDBLOCK ? EAGAIN : errno;
			return false;
		}
		line->done += (size_t)n;
		if (line->done < line->len && !q->is_datagram)
			continue;
		q->n_written++;
		drop(q, 0);
	}
	return q->n == 0;
}

void ag_outq_clear(struct ag_outq *q)
{
	while (q->n)
		drop(q, 0);
}
