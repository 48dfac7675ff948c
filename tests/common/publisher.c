// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "publisher.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pmdpulse.h"

#define MAX_TEST_PORTS 8
#define LIFE_S 120 // of the child at most, whatever becomes of the test

struct child {
	struct pmdp_publisher *pub;
	pthread_t thread;
	atomic_int tid;
	atomic_bool is_running;
	atomic_uint stall_ms, doze_ms, doze_max_ms, rest_us;
	atomic_bool is_asleep, is_leaving, is_releasing;
	bool is_stuck;
	struct {
		char name[64];
		int slot;
	} ports[MAX_TEST_PORTS];
};

static void die(const char *what)
{
	fprintf(stderr, "publisher: %s: %s\n", what, strerror(errno));
	abort();
}

static void sleep_us(unsigned int us)
{
	struct timespec ts = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L};

	nanosleep(&ts, NULL);
}

static void pause_once(struct child *child, struct pmdp_lane *lane)
{
	unsigned int stall_ms = atomic_exchange(&child->stall_ms, 0);
	unsigned int doze_ms = atomic_exchange(&child->doze_ms, 0);

	if (stall_ms)
		sleep_us(stall_ms * 1000);
	if (doze_ms) {
		pmdp_lane_dozing(lane, PMDP_REASON_RECONFIGURATION,
				 (uint64_t)atomic_load(&child->doze_max_ms) * 1000000);
		sleep_us(doze_ms * 1000);
		pmdp_lane_polling(lane);
	}
	if (!atomic_load(&child->is_asleep))
		return;
	pmdp_lane_sleep(lane, PMDP_REASON_NO_QUEUE);
	while (atomic_load(&child->is_asleep))
		sleep_us(1000);
	pmdp_lane_polling(lane);
}

static void *beat(void *arg)
{
	struct child *child = arg;
	struct pmdp_lane *lane;

	if (pmdp_lane_claim(child->pub, "pmd-c01/id:1", PMDP_LANE_PMD, 1, 0, 0, &lane))
		die("claim");
	pmdp_lane_polling(lane);
	atomic_store(&child->tid, gettid());
	while (!atomic_load(&child->is_leaving)) {
		pause_once(child, lane);
		pmdp_lane_crumb(lane, PMDP_CRUMB(PMDP_STAGE_RX, 7, 3));
		pmdp_lane_beat(lane, pmdp_lane_clock(lane));
		pmdp_lane_publish(lane, pmdp_lane_clock(lane));
		if (atomic_load(&child->rest_us))
			sleep_us(atomic_load(&child->rest_us));
	}
	if (atomic_load(&child->is_releasing))
		pmdp_lane_release(lane);
	return NULL;
}

static void claim(struct child *child)
{
	atomic_store(&child->tid, 0);
	atomic_store(&child->is_leaving, false);
	atomic_store(&child->is_releasing, false);
	if (pthread_create(&child->thread, NULL, beat, child))
		die("pthread_create");
	atomic_store(&child->is_running, true);
	while (!atomic_load(&child->tid))
		sleep_us(100);
}

static void leave(struct child *child, bool is_releasing)
{
	if (!atomic_exchange(&child->is_running, false))
		return;
	atomic_store(&child->is_asleep, false);
	atomic_store(&child->is_releasing, is_releasing);
	atomic_store(&child->is_leaving, true);
	pthread_join(child->thread, NULL);
}

static int find_port(struct child *child, const char *name)
{
	int i = 0;

	while (i < MAX_TEST_PORTS - 1 && child->ports[i].name[0] &&
	       strcmp(child->ports[i].name, name))
		i++;
	return i;
}

static void set_port(struct child *child, const char *name, const char *link)
{
	struct pmdp_port_body body = {.ofport = 1};
	int i = find_port(child, name);

	snprintf(body.name, sizeof(body.name), "%s", name);
	body.link_state = !strcmp(link, "up")     ? PMDP_LINK_UP
			  : !strcmp(link, "down") ? PMDP_LINK_DOWN
						  : PMDP_LINK_UNKNOWN;
	if (child->ports[i].name[0]) {
		pmdp_port_publish(child->pub, child->ports[i].slot, &body);
		return;
	}
	snprintf(child->ports[i].name, sizeof(child->ports[i].name), "%s", name);
	child->ports[i].slot = pmdp_port_claim(child->pub, &body);
}

static void set_nice(const struct child *child, int nice, unsigned int core)
{
	pid_t tid = atomic_load(&child->tid);
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(core, &cpus);
	if (sched_setaffinity(tid, sizeof(cpus), &cpus) ||
	    setpriority(PRIO_PROCESS, (id_t)tid, nice))
		die("nice");
}

static void obey(struct child *child, const char *line)
{
	char word[16] = "", a[64] = "", b[16] = "";

	sscanf(line, "%15s %63s %15s", word, a, b);
	if (!strcmp(word, "stall")) {
		atomic_store(&child->stall_ms, (unsigned int)atoi(a));
	} else if (!strcmp(word, "doze")) {
		atomic_store(&child->doze_max_ms, (unsigned int)atoi(a));
		atomic_store(&child->doze_ms, (unsigned int)atoi(b));
	} else if (!strcmp(word, "sleep") || !strcmp(word, "wake")) {
		atomic_store(&child->is_asleep, word[0] == 's');
	} else if (!strcmp(word, "rest")) {
		atomic_store(&child->rest_us, (unsigned int)atoi(a));
	} else if (!strcmp(word, "nice")) {
		set_nice(child, atoi(a), (unsigned int)atoi(b));
	} else if (!strcmp(word, "exit")) {
		leave(child, false);
	} else if (!strcmp(word, "release")) {
		leave(child, true);
	} else if (!strcmp(word, "claim")) {
		claim(child);
	} else if (!strcmp(word, "port")) {
		set_port(child, a, b);
	} else if (!strcmp(word, "unport")) {
		pmdp_port_release(child->pub, child->ports[find_port(child, a)].slot);
		child->ports[find_port(child, a)].name[0] = 0;
	} else if (!strcmp(word, "stuck") || !strcmp(word, "unstuck")) {
		child->is_stuck = word[0] == 's';
	} else if (!strcmp(word, "keepalive")) {
		pmdp_publisher_set_keepalive(child->pub, !strcmp(a, "on"));
	} else if (!strcmp(word, "stop")) {
		leave(child, true);
		pmdp_publisher_close(child->pub);
		_exit(0);
	} else {
		die(line);
	}
}

static void run_child(int fd, const char *rundir, const char *instance, uint64_t interval_ns)
{
	const struct pmdp_publisher_opts opts = {
		.rundir = rundir,
		.n_lanes = 4,
		.n_ports = 8,
		.records_per_lane = 64,
		.keepalive_interval_ns = interval_ns,
		.gap_limit_ns = 20000000, // its sleeps are no gaps
	};
	struct child child = {.rest_us = 500};
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	char line[128];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LIFE_S);
	if (pmdp_publisher_open(instance, &opts, &child.pub))
		die("pmdp_publisher_open");
	claim(&child);
	for (;;) {
		int tid = atomic_load(&child.tid);

		// Told before the first command, and after each.
		if (write(fd, &tid, sizeof(tid)) != sizeof(tid))
			_exit(1);
		while (poll(&poll_fd, 1, 20) == 0) {
			if (!child.is_stuck)
				pmdp_publisher_housekeep(child.pub);
		}
		ssize_t len = read(fd, line, sizeof(line) - 1);

		if (len <= 0)
			_exit(1);
		line[len] = 0;
		obey(&child, line);
	}
}

static void await_answer(struct test_publisher *pub)
{
	struct pollfd poll_fd = {.fd = pub->fd, .events = POLLIN};
	int tid = 0;

	if (poll(&poll_fd, 1, 20000) != 1)
		die("no answer");
	if (read(pub->fd, &tid, sizeof(tid)) == sizeof(tid))
		pub->tid = tid;
}

void test_publisher_start(struct test_publisher *pub, const char *rundir, const char *instance,
			  uint64_t interval_ns)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		die("socketpair");
	fflush(NULL);
	if (pub->is_foreign)
		pub->pid =
			(pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
	else
		pub->pid = fork();
	if (pub->pid < 0)
		die("fork");
	if (pub->pid == 0) {
		close(fds[0]);
		run_child(fds[1], rundir, instance, interval_ns);
	}
	close(fds[1]);
	pub->fd = fds[0];
	await_answer(pub);
}

void test_publisher_tell(struct test_publisher *pub, const char *format, ...)
{
	char line[128];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (send(pub->fd, line, strlen(line), MSG_NOSIGNAL) < 0)
		die(line);
	await_answer(pub);
}

void test_publisher_kill(struct test_publisher *pub)
{
	if (pub->pid <= 0)
		return;
	kill(pub->pid, SIGKILL);
	waitpid(pub->pid, NULL, 0);
	close(pub->fd);
	pub->pid = 0;
}
