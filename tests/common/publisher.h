// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * A publisher in a process of its own, for tests that kill, stop and restart it: one thread that
 * beats (with short sleeps: it is no load) and a control thread that obeys commands.
 *
 * Commands, one a line, each answered when it is done:
 *	stall MS                 the thread does not beat for so long (answered at once)
 *	doze MAX_MS MS           it announces a pause of MAX_MS and takes MS (answered at once)
 *	sleep | wake             announced sleep without end, and back
 *	rest US                  how long it rests between two beats (0: it spins)
 *	nice N CORE              its priority and CPU
 *	exit                     it leaves without a word
 *	release | claim          it gives its lane up and ends; a new one takes a lane
 *	port NAME up|down|unknown | unport NAME
 *	stuck | unstuck          no housekeeping
 *	keepalive on|off
 *	stop                     clean stop and exit
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct test_publisher {
	bool is_foreign; // set before the start: in a pid namespace of its own (root only)
	pid_t pid;
	int fd;
	pid_t tid; // of the beating thread
};

// Returns when the segment is published. Aborts the test program on failure.
void test_publisher_start(struct test_publisher *pub, const char *rundir, const char *instance,
			  uint64_t interval_ns);
void test_publisher_tell(struct test_publisher *pub, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
// SIGKILL and wait; also after a stop.
void test_publisher_kill(struct test_publisher *pub);
