// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Output queue: lines (or datagrams) to a descriptor that may be slow, full, broken or never read.
 *
 * Nothing here waits. What can't be written stays in a bounded queue; when that is full the oldest
 * whole line goes and is counted. Used by the log, the JSON sink, the journal and the control
 * socket.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ag_outq_line {
	size_t len;
	size_t done; // bytes that are out already
	char text[];
};

struct ag_outq {
	int fd;           // -1: closed, lines wait; the owner opens and closes
	bool is_socket;   // written with MSG_DONTWAIT
	bool is_datagram; // a line is out whole or not at all
	uint32_t n_max;
	uint32_t head, n;
	struct ag_outq_line **lines; // ring of n_max
	uint64_t n_written;
	uint64_t n_lost;
	int error; // of the last write: 0, or a positive errno; EAGAIN means slow
};

int ag_outq_init(struct ag_outq *q, uint32_t n_max); // -ENOMEM
void ag_outq_fini(struct ag_outq *q);                // does not close fd

/*
 * Find out how fd can be written without waiting and use it: a pipe, FIFO or terminal is opened
 * anew (another description, so that those who share ours keep their flags), a socket gets
 * MSG_DONTWAIT. Returns the descriptor that q writes to (fd itself or a new one, which the caller
 * closes).
 */
int ag_outq_adopt(struct ag_outq *q, int fd);

// Queue a copy; allocates. false: lost (and counted).
bool ag_outq_put(struct ag_outq *q, const char *text, size_t len);

// Write what goes without waiting. Returns true when the queue is empty afterwards.
bool ag_outq_flush(struct ag_outq *q);

// Drop what waits, without counting (after the peer has gone).
void ag_outq_clear(struct ag_outq *q);
