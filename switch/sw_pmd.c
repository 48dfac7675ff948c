// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_pmd.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <rte_malloc.h>

#include "sw_flow.h"
#include "sw_log.h"
#include "sw_mega_fast.h"
#include "sw_offload.h"
#include "sw_pipe.h"
#include "sw_plan.h"
#include "sw_pmd_run.h"
#include "sw_sched.h"
#include "sw_switch.h"

#define SW_PMD_STACK_BYTES (1024 * 1024)
#define SW_PMD_START_TIMEOUT_S 1

struct sw_pmd *sw_pmd_next(struct sw_switch *sw, const struct sw_pmd *pmd)
{
	for (uint32_t i = pmd == NULL ? 0 : pmd->index + 1u; i < SW_MAX_PMDS; i++)
		if (sw->pmds.slots[i] != NULL)
			return sw->pmds.slots[i];
	return NULL;
}

struct sw_pmd *sw_pmd_by_core(struct sw_switch *sw, int core)
{
	struct sw_pmd *pmd = NULL;

	while ((pmd = sw_pmd_next(sw, pmd)) != NULL && (pmd->core != core || pmd->is_leaving))
		;
	return pmd;
}

struct sw_pmd *sw_pmd_by_name(struct sw_switch *sw, const char *name)
{
	struct sw_pmd *pmd = NULL;

	while ((pmd = sw_pmd_next(sw, pmd)) != NULL && strcmp(pmd->name, name) != 0)
		;
	return pmd;
}

bool sw_pmd_is_gone(const struct sw_pmd *pmd)
{
	return atomic_load_explicit(&pmd->life, memory_order_acquire) == SW_PMD_RUNNING &&
	       tgkill(getpid(), (pid_t)pmd->tid, 0) != 0 && errno == ESRCH;
}

void sw_pmd_wake(struct sw_pmd *pmd)
{
	uint64_t one = 1;

	// Can't fail but by a full counter, and then the PMD is woken anyway.
	if (write(pmd->wake_fd, &one, sizeof(one)) < 0)
		return;
}

static void pmd_free(struct sw_switch *sw, struct sw_pmd *pmd)
{
	if (pmd->wake_fd >= 0)
		close(pmd->wake_fd);
	sw_flow_stats_detach(sw->flows, pmd->flow_stats);
	sw_pipe_destroy(pmd->pipe);
	sw_perf_detach(pmd);
	rte_free(pmd->port_counts);
	sem_destroy(&pmd->started);
	free(pmd);
}

static struct sw_pmd *pmd_alloc(struct sw_switch *sw, int core)
{
	struct sw_pmd *pmd = aligned_alloc(128, RTE_ALIGN_CEIL(sizeof(*pmd), 128));

	if (pmd == NULL)
		return NULL;
	memset(pmd, 0, sizeof(*pmd));
	pmd->sw = sw;
	pmd->core = core;
	pmd->numa = -1;
	sem_init(&pmd->started, 0, 0);
	pmd->wake_fd = eventfd(0, EFD_CLOEXEC);
	pmd->port_counts = rte_zmalloc("port counts", sizeof(*pmd->port_counts) * SW_MAX_PORTS, 64);
	pmd->flow_stats = sw_flow_stats_attach(sw->flows);
	pmd->pipe = sw_pipe_create(SW_MEGA_MAX_FLOWS);
	if (pmd->wake_fd < 0 || pmd->port_counts == NULL || pmd->flow_stats == NULL ||
	    pmd->pipe == NULL) {
		pmd_free(sw, pmd);
		return NULL;
	}
	return pmd;
}

static int thread_create(struct sw_pmd *pmd)
{
	pthread_attr_t attr;
	cpu_set_t cpus;
	int rc;

	CPU_ZERO(&cpus);
	CPU_SET(pmd->core, &cpus);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, SW_PMD_STACK_BYTES);
	pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	rc = pthread_create(&pmd->thread, &attr, sw_pmd_main, pmd);
	pthread_attr_destroy(&attr);
	return -rc;
}

static int wait_started(struct sw_pmd *pmd)
{
	struct timespec deadline;

	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += SW_PMD_START_TIMEOUT_S;
	while (sem_clockwait(&pmd->started, CLOCK_MONOTONIC, &deadline) != 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

int sw_pmd_create(struct sw_switch *sw, int core, struct sw_error *err)
{
	struct sw_pmd *pmd;
	uint16_t index = 0;
	int rc;

	while (index < SW_MAX_PMDS && sw->pmds.slots[index] != NULL)
		index++;
	if (index == SW_MAX_PMDS)
		return sw_fail(err, -ENOSPC, "pmd-cpu-mask: more than %d PMD threads", SW_MAX_PMDS);
	pmd = pmd_alloc(sw, core);
	if (pmd == NULL)
		return sw_fail(err, -ENOMEM, "no memory for a PMD thread on core %d", core);
	pmd->index = index;
	snprintf(pmd->name, sizeof(pmd->name), "pmd-c%02d/id:%u", core, ++sw->pmds.next_id);
	atomic_store_explicit(&pmd->want_keepalive, sw->settings.enable_keepalive,
			      memory_order_relaxed);
	rc = thread_create(pmd);
	if (rc != 0) {
		pmd_free(sw, pmd);
		return sw_fail(err, rc, "can't start a thread on core %d: %s", core, strerror(-rc));
	}
	sw->pmds.slots[index] = pmd;
	sw->pmds.n++;
	if (wait_started(pmd) != 0)
		return sw_fail(err, -ETIMEDOUT,
			       "%s gets no time on core %d: look for a real-time task there",
			       pmd->name, core);
	if (atomic_load_explicit(&pmd->life, memory_order_acquire) == SW_PMD_FAILED) {
		if (err != NULL)
			*err = pmd->error;
		sw_pmd_destroy(sw, pmd);
		return -EIO;
	}
	return 0;
}

// The thread's counters go on to count for the ports.
static void keep_port_counts(struct sw_switch *sw, const struct sw_pmd *pmd)
{
	struct sw_port *port = NULL;

	while ((port = sw_port_next(sw, port)) != NULL)
		for (uint32_t i = 0; i < PMDP_P_N_COUNTERS; i++)
			port->retired[i] += atomic_load_explicit(
				&pmd->port_counts[port->index].n[i], memory_order_relaxed);
}

void sw_pmd_destroy(struct sw_switch *sw, struct sw_pmd *pmd)
{
	pthread_join(pmd->thread, NULL);
	sw_offload_forget_pmd(sw, pmd->index);
	keep_port_counts(sw, pmd);
	sw->pmds.slots[pmd->index] = NULL;
	sw->pmds.n--;
	pmd_free(sw, pmd);
}
