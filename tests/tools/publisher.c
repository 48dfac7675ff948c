// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * A small publisher on libpmdpulse, driven by lines on stdin, for tests of its readers: threads
 * that beat every two milliseconds (busy: all the time, as a PMD does), and stall, spin, doze,
 * sleep, end or die on command.
 *
 *	publisher --instance NAME --rundir DIR [--interval MS] [--gap-limit US]
 *
 *	lane NAME [CORE] [pmd|control]    start a thread that beats
 *	stall NAME MS                     sleep without beats
 *	spin NAME MS                      compute without beats
 *	starve NAME PCT MS                short gaps
 *	doze NAME MS MAX_MS               announced pause
 *	sleep NAME / wake NAME            announced wait
 *	exit NAME                         release the lane, end
 *	die NAME                          end without a word
 *	port NAME up|down|unknown|del
 *	miss NAME N                       the port's device lost packets
 *	interval MS
 *	keepalive on|off
 *	hold / resume                     housekeeping
 *	quit                              clean stop
 *
 * Each line is answered by "ok ..." or "error ..."; a stall, spin or doze that is over by
 * "done NAME BEGIN_NS END_NS CPU_NS" (CLOCK_MONOTONIC of the beats around it, and the thread's own
 * CPU time in between).
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pmdp_clock.h"
#include "pmdpulse.h"

#define NS_PER_MS UINT64_C(1000000)
#define BEAT_NS (2 * NS_PER_MS)
#define MAX_LANES 32
#define MAX_PORTS 8

enum order {
	ORDER_NONE,
	ORDER_STALL,
	ORDER_SPIN,
	ORDER_STARVE,
	ORDER_DOZE,
	ORDER_SLEEP,
	ORDER_EXIT,
	ORDER_DIE
};

struct worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char name[PMDP_LANE_NAME_BYTES];
	int core;
	uint32_t kind;
	enum order order; // under lock; ORDER_NONE: beat
	uint64_t arg_ms, arg2;
	int claim_rc; // 1: not yet
	bool is_busy, is_used, is_joined;
};

struct port {
	char name[PMDP_NAME_BYTES];
	int slot;
	struct pmdp_port_body body;
};

static struct pmdp_publisher *publisher;
static struct worker workers[MAX_LANES];
static struct port ports[MAX_PORTS];

static uint64_t read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void nap(uint64_t ns)
{
	struct timespec time = {.tv_sec = (time_t)(ns / 1000000000),
				.tv_nsec = (long)(ns % 1000000000)};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	flockfile(stdout);
	vprintf(format, args);
	putchar('\n');
	fflush(stdout);
	funlockfile(stdout);
	va_end(args);
}

static void beat(struct pmdp_lane *lane)
{
	pmdp_lane_beat(lane, pmdp_lane_clock(lane));
	pmdp_lane_publish(lane, pmdp_lane_clock(lane));
}

static void poll_for(struct pmdp_lane *lane, uint64_t ns)
{
	uint64_t end_ns = pmdp_mono_now_ns() + ns;

	while (pmdp_mono_now_ns() < end_ns)
		pmdp_lane_beat(lane, pmdp_lane_clock(lane));
}

static void spin(uint64_t ns)
{
	uint64_t end_ns = pmdp_mono_now_ns() + ns;

	while (pmdp_mono_now_ns() < end_ns)
		;
}

// Gaps of 20 ms (kept below the stall limit by the test's interval) that fill pct of the time.
static void starve(struct pmdp_lane *lane, uint64_t pct, uint64_t ms)
{
	uint64_t end_ns = pmdp_mono_now_ns() + ms * NS_PER_MS;

	while (pmdp_mono_now_ns() < end_ns) {
		nap(20 * NS_PER_MS);
		beat(lane);
		for (uint64_t left_ms = 20 * (100 - pct) / pct; left_ms > 0; left_ms--) {
			nap(NS_PER_MS);
			beat(lane);
		}
	}
}

static void obey(struct worker *worker, struct pmdp_lane *lane, enum order order)
{
	uint64_t cpu_ns = read_clock(CLOCK_THREAD_CPUTIME_ID);
	uint64_t begin_ns = pmdp_mono_now_ns();

	switch (order) {
	case ORDER_STALL:
		nap(worker->arg_ms * NS_PER_MS);
		break;
	case ORDER_SPIN:
		spin(worker->arg_ms * NS_PER_MS);
		break;
	case ORDER_STARVE:
		starve(lane, worker->arg2, worker->arg_ms);
		break;
	case ORDER_DOZE:
		pmdp_lane_dozing(lane, PMDP_REASON_RECONFIGURATION, worker->arg2 * NS_PER_MS);
		nap(worker->arg_ms * NS_PER_MS);
		pmdp_lane_polling(lane);
		break;
	default:
		return;
	}
	beat(lane);
	say("done %s %llu %llu %llu", worker->name, (unsigned long long)begin_ns,
	    (unsigned long long)pmdp_mono_now_ns(),
	    (unsigned long long)(read_clock(CLOCK_THREAD_CPUTIME_ID) - cpu_ns));
}

static void wait_asleep(struct worker *worker, struct pmdp_lane *lane)
{
	pmdp_lane_sleep(lane, PMDP_REASON_NO_QUEUE);
	pthread_mutex_lock(&worker->lock);
	while (worker->order == ORDER_SLEEP)
		pthread_cond_wait(&worker->changed, &worker->lock);
	pthread_mutex_unlock(&worker->lock);
	pmdp_lane_polling(lane);
}

static void pin(const struct worker *worker)
{
	cpu_set_t set;

	pthread_setname_np(pthread_self(), worker->name); // refused above 15 characters: no matter
	if (worker->core < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)worker->core, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	struct pmdp_lane *lane = NULL;
	enum order order;

	pin(worker);
	int rc = pmdp_lane_claim(publisher, worker->name, worker->kind, worker->core, -1, 0, &lane);
	pthread_mutex_lock(&worker->lock);
	worker->claim_rc = rc;
	pthread_cond_broadcast(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
	if (rc)
		return NULL;
	lane->counters[PMDP_C_KEEPALIVE] = 1;
	pmdp_lane_polling(lane);
	do {
		if (worker->is_busy)
			poll_for(lane, BEAT_NS);
		else
			nap(BEAT_NS);
		beat(lane);
		pthread_mutex_lock(&worker->lock);
		order = worker->order;
		if (order != ORDER_SLEEP && order != ORDER_EXIT && order != ORDER_DIE)
			worker->order = ORDER_NONE;
		pthread_mutex_unlock(&worker->lock);
		if (order == ORDER_SLEEP)
			wait_asleep(worker, lane);
		else
			obey(worker, lane, order);
	} while (order != ORDER_EXIT && order != ORDER_DIE);
	if (order == ORDER_EXIT)
		pmdp_lane_release(lane);
	return NULL;
}

static struct worker *find_worker(const char *name)
{
	for (int i = 0; i < MAX_LANES; i++)
		if (workers[i].is_used && !workers[i].is_joined && !strcmp(workers[i].name, name))
			return &workers[i];
	return NULL;
}

static const char *add_worker(const char *name, int core, const char *kind)
{
	struct worker *worker = workers;

	while (worker < workers + MAX_LANES && worker->is_used)
		worker++;
	if (worker == workers + MAX_LANES || strlen(name) >= sizeof(worker->name))
		return "no room, or a name too long";
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->changed, NULL);
	strcpy(worker->name, name);
	worker->core = core;
	worker->kind = strcmp(kind, "control") ? PMDP_LANE_PMD : PMDP_LANE_CONTROL;
	worker->is_busy = !strcmp(kind, "busy");
	worker->claim_rc = 1;
	if (pthread_create(&worker->thread, NULL, work, worker))
		return "no thread";
	worker->is_used = true;
	pthread_mutex_lock(&worker->lock);
	while (worker->claim_rc == 1)
		pthread_cond_wait(&worker->changed, &worker->lock);
	pthread_mutex_unlock(&worker->lock);
	return worker->claim_rc ? strerror(-worker->claim_rc) : NULL;
}

static const char *order_worker(const char *name, enum order order, uint64_t arg_ms, uint64_t arg2)
{
	struct worker *worker = find_worker(name);

	if (!worker)
		return "no such lane";
	pthread_mutex_lock(&worker->lock);
	worker->arg_ms = arg_ms;
	worker->arg2 = arg2;
	worker->order = order;
	pthread_cond_broadcast(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
	if (order == ORDER_EXIT || order == ORDER_DIE) {
		pthread_join(worker->thread, NULL);
		worker->is_joined = true;
	}
	return NULL;
}

static const char *set_port(const char *name, const char *state)
{
	struct port *port = ports;

	while (port < ports + MAX_PORTS && port->name[0] && strcmp(port->name, name))
		port++;
	if (port == ports + MAX_PORTS)
		return "too many ports";
	bool is_new = !port->name[0];
	snprintf(port->name, sizeof(port->name), "%s", name);
	snprintf(port->body.name, sizeof(port->body.name), "%s", name);
	port->body.ofport = (uint32_t)(port - ports) + 1;
	port->body.admin_state = PMDP_LINK_UP;
	port->body.snapshot_ns = pmdp_mono_now_ns();
	if (!strcmp(state, "del")) {
		pmdp_port_release(publisher, port->slot);
		port->name[0] = 0;
		return NULL;
	}
	uint32_t old_state = port->body.link_state;

	port->body.link_state = !strcmp(state, "up")     ? PMDP_LINK_UP
				: !strcmp(state, "down") ? PMDP_LINK_DOWN
							 : PMDP_LINK_UNKNOWN;
	port->body.counters[PMDP_P_LINK_CHANGES] += !is_new && port->body.link_state != old_state;
	if (!is_new) {
		pmdp_port_publish(publisher, port->slot, &port->body);
		return NULL;
	}
	port->slot = pmdp_port_claim(publisher, &port->body);
	return port->slot < 0 ? strerror(-port->slot) : NULL;
}

static const char *miss_packets(const char *name, uint64_t n)
{
	for (struct port *port = ports; port < ports + MAX_PORTS; port++) {
		if (strcmp(port->name, name))
			continue;
		port->body.counters[PMDP_P_RX_MISSED] += n;
		pmdp_port_publish(publisher, port->slot, &port->body);
		return NULL;
	}
	return "no such port";
}

static const struct {
	const char *word;
	enum order order;
} orders[] = {
	{"stall", ORDER_STALL}, {"spin", ORDER_SPIN}, {"doze", ORDER_DOZE}, {"sleep", ORDER_SLEEP},
	{"wake", ORDER_NONE},   {"exit", ORDER_EXIT}, {"die", ORDER_DIE},
};

static const char *obey_line(const char *word, char *args[3], bool *is_held, bool *is_done)
{
	uint64_t n1 = strtoull(args[1], NULL, 10), n2 = strtoull(args[2], NULL, 10);

	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
		if (!strcmp(word, orders[i].word))
			return order_worker(args[0], orders[i].order, n1, n2);
	if (!strcmp(word, "starve"))
		return order_worker(args[0], ORDER_STARVE, n2, n1);
	if (!strcmp(word, "lane"))
		return add_worker(args[0], *args[1] ? atoi(args[1]) : -1, args[2]);
	if (!strcmp(word, "port"))
		return set_port(args[0], args[1]);
	if (!strcmp(word, "miss"))
		return miss_packets(args[0], n1);
	if (!strcmp(word, "interval")) {
		int rc = pmdp_publisher_set_interval(publisher,
						     strtoull(args[0], NULL, 10) * NS_PER_MS);

		return rc ? strerror(-rc) : NULL;
	}
	if (!strcmp(word, "keepalive"))
		pmdp_publisher_set_keepalive(publisher, !strcmp(args[0], "on"));
	else if (!strcmp(word, "hold") || !strcmp(word, "resume"))
		*is_held = !strcmp(word, "hold");
	else if (!strcmp(word, "quit"))
		*is_done = true;
	else
		return "no such command";
	return NULL;
}

static void serve(void)
{
	bool is_held = false, is_done = false;
	char line[256];

	setvbuf(stdin, NULL, _IONBF, 0); // poll must see what fgets has not taken
	while (!is_done) {
		struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

		if (!is_held)
			pmdp_publisher_housekeep(publisher);
		if (poll(&input, 1, 20) <= 0)
			continue;
		if (!fgets(line, sizeof(line), stdin))
			break; // the test has gone
		char word[32] = "", a[64] = "", b[64] = "", c[64] = "";
		char *args[] = {a, b, c};
		sscanf(line, "%31s %63s %63s %63s", word, a, b, c);
		const char *error = obey_line(word, args, &is_held, &is_done);
		if (error)
			say("error %s: %s", word, error);
		else
			say("ok %s %s", word, a);
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"instance", required_argument, NULL, 'i'},
		{"rundir", required_argument, NULL, 'r'},
		{"interval", required_argument, NULL, 'k'},
		{"gap-limit", required_argument, NULL, 'g'},
		{0},
	};
	struct pmdp_publisher_opts opts = {
		.n_lanes = MAX_LANES, .n_ports = MAX_PORTS, .gap_limit_ns = 15 * NS_PER_MS};
	const char *instance = "default";
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'i')
			instance = optarg;
		else if (option == 'r')
			opts.rundir = optarg;
		else if (option == 'k')
			opts.keepalive_interval_ns = strtoull(optarg, NULL, 10) * NS_PER_MS;
		else if (option == 'g')
			opts.gap_limit_ns = strtoull(optarg, NULL, 10) * 1000;
		else
			return 2;
	}
	int rc = pmdp_publisher_open(instance, &opts, &publisher);
	if (rc) {
		fprintf(stderr, "publisher: %s: %s\n", instance, strerror(-rc));
		return 1;
	}
	say("ok open %s", pmdp_publisher_path(publisher));
	serve();
	for (int i = 0; i < MAX_LANES; i++)
		if (workers[i].is_used && !workers[i].is_joined)
			order_worker(workers[i].name, ORDER_EXIT, 0, 0);
	pmdp_publisher_close(publisher);
	return 0;
}
