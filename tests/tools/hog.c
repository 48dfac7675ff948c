// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * hog: take a CPU away from whoever runs there, for a bounded time, and tell the truth about it.
 *
 *	hog --core N [--ms MS] [--class fifo|rr|other|batch|idle] [--prio P] [--nice N]
 *	    [--name COMM] [--tasks N] [--burst-us US --pause-us US] [--at NS] [--threads]
 *
 * Spins on core N for MS milliseconds (at most 1000) of its own clock. A real-time class is taken
 * before core N is entered and kept to the end: among busy neighbours an ordinary task may wait
 * there for minutes. The others go back to all cores for the same reason.
 * --tasks N: as N processes; --threads: as N threads of one process. With --burst-us it spins and
 * sleeps in turn. Without --name, a random one. Prints one JSON line a task:
 * {"pid","tid","comm","class","begin_ns","end_ns","spun_ns"}; spun_ns leaves out what it lost
 * to others, as far as its clock shows it (gaps from 50 us up).
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pmdp_clock.h"

#define MAX_MS 1000
#define MAX_TASKS 64
#define GAP_NS 50000

static struct {
	int core, policy, prio, nice;
	uint64_t ms, burst_us, pause_us, at_ns;
	unsigned long n_tasks;
	bool is_threads;
	char name[16];
} opt = {.core = -1, .policy = SCHED_OTHER, .prio = 50, .ms = 300, .n_tasks = 1};

static const struct {
	const char *name;
	int policy;
} classes[] = {
	{"fifo", SCHED_FIFO},   {"rr", SCHED_RR},     {"other", SCHED_OTHER},
	{"batch", SCHED_BATCH}, {"idle", SCHED_IDLE},
};

static void die(const char *what)
{
	fprintf(stderr, "hog: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void usage(void)
{
	fputs("usage: hog --core N [--ms MS<=1000] [--class fifo|rr|other|batch|idle] [--prio P]\n"
	      "           [--nice N] [--name COMM] [--tasks N] [--burst-us US --pause-us US]\n"
	      "           [--at NS] [--threads]\n",
	      stderr);
	exit(2);
}

static void random_name(void)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	unsigned char bytes[6];
	size_t i;

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		die("getrandom");
	memcpy(opt.name, "hog-", 4);
	for (i = 0; i < sizeof(bytes); i++)
		opt.name[4 + i] = letters[bytes[i] % (sizeof(letters) - 1)];
	opt.name[4 + i] = 0;
}

static void set_class(int policy, int prio)
{
	struct sched_param param = {.sched_priority = prio};

	if (sched_setscheduler(0, policy, &param))
		die("sched_setscheduler (a real-time class needs root or CAP_SYS_NICE)");
}

static void sleep_until(uint64_t at_ns)
{
	struct timespec ts = {.tv_sec = (time_t)(at_ns / 1000000000u),
			      .tv_nsec = (long)(at_ns % 1000000000u)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

// Time that this task had the CPU, by its own clock: the gaps in it are somebody else's.
static uint64_t spin_until(uint64_t until_ns)
{
	uint64_t last_ns = pmdp_mono_now_ns(), now, spun_ns = 0;

	while (last_ns < until_ns) {
		now = pmdp_mono_now_ns();
		if (now - last_ns < GAP_NS)
			spun_ns += now - last_ns;
		last_ns = now;
	}
	return spun_ns;
}

static void move_to(const cpu_set_t *cpus)
{
	if (sched_setaffinity(0, sizeof(*cpus), cpus))
		die("sched_setaffinity");
}

static void *be_hog(void *arg)
{
	uint64_t begin_ns, until_ns, now, burst_ns = opt.burst_us * 1000, spun_ns = 0, end_ns;
	bool is_rt = opt.policy == SCHED_FIFO || opt.policy == SCHED_RR;
	const char *class = "?";
	cpu_set_t core, before;
	size_t i;

	(void)arg;
	CPU_ZERO(&core);
	CPU_SET(opt.core, &core);
	if (sched_getaffinity(0, sizeof(before), &before))
		die("sched_getaffinity");
	prctl(PR_SET_NAME, opt.name);
	if (!is_rt && (opt.policy != SCHED_OTHER))
		set_class(opt.policy, 0);
	if (opt.nice && setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), opt.nice))
		die("setpriority");
	// A hog that is due at a time must not wait for a CPU that others hold by then.
	if (is_rt)
		set_class(opt.policy, opt.prio);
	move_to(&core);
	if (opt.at_ns)
		sleep_until(opt.at_ns);
	begin_ns = pmdp_mono_now_ns();
	until_ns = begin_ns + opt.ms * 1000000;
	if (!burst_ns)
		spun_ns = spin_until(until_ns);
	while (burst_ns && (now = pmdp_mono_now_ns()) < until_ns) {
		spun_ns += spin_until(now + burst_ns < until_ns ? now + burst_ns : until_ns);
		if (pmdp_mono_now_ns() < until_ns)
			sleep_until(pmdp_mono_now_ns() + opt.pause_us * 1000);
	}
	end_ns = pmdp_mono_now_ns();
	if (!is_rt)
		move_to(&before);
	for (i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (classes[i].policy == opt.policy)
			class = classes[i].name;
	printf("{\"pid\": %d, \"tid\": %ld, \"comm\": \"%s\", \"class\": \"%s\", \"begin_ns\": "
	       "%" PRIu64 ", \"end_ns\": %" PRIu64 ", \"spun_ns\": %" PRIu64 "}\n",
	       getpid(), syscall(SYS_gettid), opt.name, class, begin_ns, end_ns, spun_ns);
	fflush(stdout);
	return NULL;
}

static void run_threads(void)
{
	pthread_t threads[MAX_TASKS];
	unsigned long i;

	for (i = 0; i < opt.n_tasks; i++)
		if (pthread_create(&threads[i], NULL, be_hog, NULL))
			die("pthread_create");
	for (i = 0; i < opt.n_tasks; i++)
		pthread_join(threads[i], NULL);
}

static void run_processes(void)
{
	unsigned long i;

	for (i = 0; i < opt.n_tasks; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (pid == 0) {
			be_hog(NULL);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
}

static void parse(int argc, char **argv)
{
	static const struct option longs[] = {
		{"core", 1, NULL, 'c'},    {"ms", 1, NULL, 'm'},       {"class", 1, NULL, 'k'},
		{"prio", 1, NULL, 'p'},    {"nice", 1, NULL, 'n'},     {"name", 1, NULL, 'a'},
		{"tasks", 1, NULL, 't'},   {"burst-us", 1, NULL, 'b'}, {"pause-us", 1, NULL, 'u'},
		{"threads", 0, NULL, 'T'}, {"at", 1, NULL, '@'},       {NULL, 0, NULL, 0},
	};
	size_t i;
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 'c':
			opt.core = atoi(optarg);
			break;
		case 'm':
			opt.ms = strtoull(optarg, NULL, 10);
			break;
		case 'p':
			opt.prio = atoi(optarg);
			break;
		case 'n':
			opt.nice = atoi(optarg);
			break;
		case 'a':
			snprintf(opt.name, sizeof(opt.name), "%.15s", optarg);
			break;
		case 't':
			opt.n_tasks = strtoul(optarg, NULL, 10);
			break;
		case 'b':
			opt.burst_us = strtoull(optarg, NULL, 10);
			break;
		case 'u':
			opt.pause_us = strtoull(optarg, NULL, 10);
			break;
		case 'T':
			opt.is_threads = true;
			break;
		case '@':
			opt.at_ns = strtoull(optarg, NULL, 10);
			break;
		case 'k':
			for (i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
				if (strcmp(classes[i].name, optarg) == 0)
					break;
			if (i == sizeof(classes) / sizeof(classes[0]))
				usage();
			opt.policy = classes[i].policy;
			break;
		default:
			usage();
		}
	}
	if (optind < argc || opt.core < 0 || opt.ms < 1 || opt.ms > MAX_MS || opt.n_tasks < 1 ||
	    opt.n_tasks > MAX_TASKS)
		usage();
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	if (!opt.name[0])
		random_name();
	// A page fault in the middle of a real-time spin would be a lie in its own clock.
	mlockall(MCL_CURRENT);
	if (opt.is_threads)
		run_threads();
	else if (opt.n_tasks > 1)
		run_processes();
	else
		be_hog(NULL);
	return 0;
}
