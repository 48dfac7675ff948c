// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_pmd_run.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_rcu_qsbr.h>

#include "pmdp_clock.h"
#include "pmdpulse.h"
#include "sw_flow.h"
#include "sw_pipe_fast.h"
#include "sw_plan.h"
#include "sw_pmd.h"
#include "sw_pmd_fast.h"
#include "sw_sched.h"
#include "sw_switch.h"

#define SW_PREFAULT_BYTES (128 * 1024)
#define SW_POLLS_PER_SAMPLE 8 // 250 samples a second, of some million iterations

// Touch the stack that the loop will use, so that it never faults there.
static __attribute__((noinline)) void prefault_stack(void)
{
	char stack[SW_PREFAULT_BYTES];

	memset(stack, 0, sizeof(stack));
	__asm__ __volatile__("" : : "r"(stack) : "memory");
}

// Beats are due from here on: the time before is no gap, neither the lane's nor the poll loop's.
static void begin_polling(struct sw_pmd_run *run)
{
	pmdp_lane_polling(run->lane);
	run->counters[PMDP_C_IDLE_TICKS] += run->lane->last_ticks - run->now_ticks;
	run->now_ticks = run->lane->last_ticks;
}

// P2 to P3 of the handshake (sw_plan.h).
static void take_plan(struct sw_pmd *pmd, struct sw_pmd_run *run, struct sw_plan_pmd *plan)
{
	pmdp_lane_crumb(run->lane, PMDP_CRUMB(PMDP_STAGE_RELOAD, 0, 0));
	pmdp_lane_dozing(run->lane, PMDP_REASON_RECONFIGURATION, SW_PLAN_DOZE_NS);
	if (run->plan != NULL)
		sw_tx_flush_all(run, true);
	run->plan = plan;
	run->n_touched = 0;
	run->counters[PMDP_C_N_RXQ] = plan->n_rxq;
	// P3: all that was done with the old plan is done; control may free it.
	atomic_store_explicit(&pmd->taken, plan->generation, memory_order_release);
	if (plan->n_rxq > 0)
		begin_polling(run);
}

static void take_keepalive(struct sw_pmd *pmd, struct sw_pmd_run *run)
{
	bool is_wanted = atomic_load_explicit(&pmd->want_keepalive, memory_order_relaxed) != 0;

	if (run->is_keepalive != is_wanted) {
		sw_pmd_set_keepalive(run, is_wanted);
		run->counters[PMDP_C_KEEPALIVE] = is_wanted;
		// The time without beats is no gap.
		if (is_wanted && run->plan != NULL && run->plan->n_rxq > 0)
			begin_polling(run);
	}
	atomic_store_explicit(&pmd->has_keepalive, is_wanted, memory_order_release);
}

static void take_perf(struct sw_pmd *pmd, struct sw_pmd_run *run)
{
	// D2 pairs with D1.
	struct sw_perf *wanted = atomic_load_explicit(&pmd->want_perf, memory_order_acquire);

	if (wanted != NULL && run->perf == NULL)
		sw_perf_begin(wanted, run->counters);
	else if (wanted == NULL && run->perf != NULL)
		sw_perf_publish(run->perf);
	run->perf = wanted;
}

static void publish(struct sw_pmd_run *run)
{
	uint64_t n_malformed = 0;
	uint64_t n_waiting = 0;

	for (uint32_t i = SW_BAD_NONE + 1; i < SW_N_BAD; i++)
		n_malformed += atomic_load_explicit(&run->flow_stats->bad[i], memory_order_relaxed);
	for (uint16_t i = 0; i < run->n_touched; i++)
		n_waiting += run->plan->outs[run->touched[i]].n;
	run->counters[PMDP_C_MALFORMED] = n_malformed;
	run->counters[PMDP_C_IN_FLIGHT] = n_waiting;
	pmdp_lane_publish(run->lane, run->now_ticks);
	if (run->perf != NULL)
		sw_perf_publish(run->perf);
}

// Without a queue: announce it and block until control has something new.
static void sleep_until_woken(struct sw_pmd *pmd, struct sw_pmd_run *run)
{
	uint64_t n;
	uint64_t now;

	// The tables may change much meanwhile, and control waits for nobody who sleeps.
	sw_pipe_flush(run);
	publish(run);
	pmdp_lane_sleep(run->lane, PMDP_REASON_NO_QUEUE);
	rte_rcu_qsbr_thread_offline(pmd->sw->qsbr, pmd->index);
	while (read(pmd->wake_fd, &n, sizeof(n)) < 0 && errno == EINTR)
		;
	rte_rcu_qsbr_thread_online(pmd->sw->qsbr, pmd->index);
	sw_pipe_begin(run);
	now = pmdp_lane_clock(run->lane);
	run->counters[PMDP_C_SLEEP_TICKS] += now - run->now_ticks;
	run->now_ticks = now;
}

static void run_loop(struct sw_pmd *pmd, struct sw_pmd_run *run)
{
	uint64_t hz = run->is_tsc ? pmd->sw->tsc_hz : UINT64_C(1000000000);
	uint64_t housekeep_ticks = hz / (UINT64_C(1000000000) / SW_PMD_HOUSEKEEP_NS);
	uint64_t crumb = PMDP_CRUMB(PMDP_STAGE_HOUSEKEEP, 0, 0);
	uint32_t n_polls = 0;

	run->now_ticks = pmdp_lane_clock(run->lane);
	run->now_s = (uint32_t)(pmdp_mono_now_ns() / UINT64_C(1000000000));
	sw_pipe_begin(run);
	for (;;) {
		// P2: a new plan's contents are seen whole.
		struct sw_plan_pmd *plan = atomic_load_explicit(&pmd->next, memory_order_acquire);

		take_keepalive(pmd, run);
		take_perf(pmd, run);
		if (plan != run->plan)
			take_plan(pmd, run, plan);
		if (plan != NULL && plan->is_exit)
			break;
		if (plan == NULL || plan->n_rxq == 0) {
			sleep_until_woken(pmd, run);
			continue;
		}
		sw_pmd_poll(run, run->now_ticks + housekeep_ticks);
		if (plan->sampled != NULL && ++n_polls % SW_POLLS_PER_SAMPLE == 0)
			sw_pmd_sample(run);
		pmdp_lane_crumb(run->lane, crumb);
		run->now_s = (uint32_t)(pmdp_mono_now_ns() / UINT64_C(1000000000));
		sw_sweep(run);
		publish(run);
		rte_rcu_qsbr_quiescent(pmd->sw->qsbr, pmd->index);
#ifdef PMDP_TEST_HOOKS
		sw_test_act(pmd);
#endif
	}
	sw_pipe_flush(run);
	publish(run);
}

static int start(struct sw_pmd *pmd)
{
	int rc;

	pthread_setname_np(pthread_self(), pmd->name);
	pmd->tid = (uint32_t)gettid();
	prefault_stack();
	// So that mempool caches know this thread.
	if (rte_thread_register() != 0)
		return sw_fail(&pmd->error, -rte_errno,
			       "%s: EAL has no room for another thread: %s", pmd->name,
			       rte_strerror(rte_errno));
	pmd->numa = rte_socket_id() == (unsigned int)SOCKET_ID_ANY ? -1 : (int)rte_socket_id();
	rc = pmdp_lane_claim(pmd->sw->pub, pmd->name, PMDP_LANE_PMD, pmd->core, pmd->numa, 0,
			     &pmd->lane);
	if (rc != 0) {
		rte_thread_unregister();
		return sw_fail(&pmd->error, rc, "%s: no lane in the segment: %s", pmd->name,
			       strerror(-rc));
	}
	pmd->hot = pmd->lane->hot;
	pmd->shm = pmd->lane->shm;
	rte_rcu_qsbr_thread_register(pmd->sw->qsbr, pmd->index);
	rte_rcu_qsbr_thread_online(pmd->sw->qsbr, pmd->index);
	return 0;
}

void *sw_pmd_main(void *arg)
{
	struct sw_pmd *pmd = arg;
	struct sw_pmd_run run = {0};
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	if (start(pmd) != 0) {
		atomic_store_explicit(&pmd->life, SW_PMD_FAILED, memory_order_release); // L1
		sem_post(&pmd->started);
		return NULL;
	}
	run.lane = pmd->lane;
	sw_pmd_set_keepalive(&run, false);
	run.counters = pmd->lane->counters;
	run.flows = sw_flow_table_ref(pmd->sw->flows);
	run.flow_stats = pmd->flow_stats;
	run.pipe = pmd->pipe;
	run.macs = pmd->sw->macs;
	run.is_tsc = pmd->sw->tsc_hz != 0;
	// L1: tid, lane and the rest are seen by who sees RUNNING.
	atomic_store_explicit(&pmd->life, SW_PMD_RUNNING, memory_order_release);
	sem_post(&pmd->started);

	run_loop(pmd, &run);

	rte_rcu_qsbr_thread_offline(pmd->sw->qsbr, pmd->index);
	rte_rcu_qsbr_thread_unregister(pmd->sw->qsbr, pmd->index);
	pmdp_lane_release(pmd->lane);
	rte_thread_unregister();
	atomic_store_explicit(&pmd->life, SW_PMD_EXITED, memory_order_release);
	return NULL;
}
