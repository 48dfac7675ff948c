// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The three calls of a single-threaded program.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "pmdp_publisher.h"

#define HOUSEKEEP_NS UINT64_C(50000000)

struct pmdp {
	struct pmdp_publisher *pub;
	struct pmdp_lane *lane;
	uint64_t housekeep_ticks; // period
	uint64_t due_ticks;       // of the next
};

// The CPU that the thread is bound to, -1: more than one.
static int bound_core(void)
{
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof cpus, &cpus) < 0 || CPU_COUNT(&cpus) != 1)
		return -1;
	for (size_t core = 0; core < CPU_SETSIZE; core++) {
		if (CPU_ISSET(core, &cpus))
			return (int)core;
	}
	return -1;
}

static int claim(struct pmdp *p)
{
	char name[PMDP_LANE_NAME_BYTES] = "";

	if (pthread_getname_np(pthread_self(), name, sizeof name) != 0 || !*name)
		name[0] = '?';
	return pmdp_lane_claim(p->pub, name, PMDP_LANE_PMD, bound_core(), -1, 0, &p->lane);
}

int pmdp_open(const char *instance, const struct pmdp_publisher_opts *opts, struct pmdp **out_p)
{
	struct pmdp *p = calloc(1, sizeof *p);
	int rc;

	if (!p)
		return -ENOMEM;
	rc = pmdp_publisher_open(instance, opts, &p->pub);
	if (rc < 0)
		goto fail;
	rc = claim(p);
	if (rc < 0)
		goto fail;
	p->housekeep_ticks = pmdp_ns_to_ticks(HOUSEKEEP_NS, p->pub->ticks_hz);
	p->due_ticks = pmdp_lane_clock(p->lane) + p->housekeep_ticks;
	*out_p = p;
	return 0;

fail:
	pmdp_publisher_close(p->pub);
	free(p);
	return rc;
}

static void housekeep(struct pmdp *p, uint64_t now_ticks)
{
	p->due_ticks = now_ticks + p->housekeep_ticks;
	p->lane->counters[PMDP_C_ITERATIONS] = p->lane->beats;
	p->lane->counters[PMDP_C_KEEPALIVE] = 1;
	pmdp_lane_publish(p->lane, now_ticks);
	pmdp_publisher_housekeep(p->pub);
}

void pmdp_beat(struct pmdp *p)
{
	uint64_t now_ticks = pmdp_lane_clock(p->lane);

	// The first beat, and the first after an announced pause, end the pause.
	if (__builtin_expect(p->lane->announce != PMDP_ANNOUNCE_POLLING, 0))
		pmdp_lane_polling(p->lane);
	else
		pmdp_lane_beat(p->lane, now_ticks);
	if (__builtin_expect(now_ticks - p->due_ticks < INT64_MAX, 0))
		housekeep(p, now_ticks);
}

void pmdp_close(struct pmdp *p)
{
	if (!p)
		return;
	pmdp_lane_release(p->lane);
	pmdp_publisher_close(p->pub);
	free(p);
}

struct pmdp_lane *pmdp_lane_of(struct pmdp *p)
{
	return p->lane;
}

struct pmdp_publisher *pmdp_publisher_of(struct pmdp *p)
{
	return p->pub;
}
