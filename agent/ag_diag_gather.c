// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "ag_diag_private.h"

static bool is_irq_task(const struct ag_name *name)
{
	return name->is_kernel &&
	       (strncmp(name->comm, "ksoftirqd/", 10) == 0 || strncmp(name->comm, "irq/", 4) == 0);
}

static void gather_tasks(struct ag_diag *diag, const struct ag_explain *what,
			 const struct ag_sum *sum, struct ag_evidence *e)
{
	struct ag_name name;
	uint32_t i;

	e->n_tasks = sum->n_tasks;
	for (i = 0; i < AG_N_TASKS && i < sum->n_tasks; i++) {
		const struct ag_sum_task *from = &sum->tasks[i];
		struct ag_task *task = &e->tasks[i];

		ag_names_get(diag->names, from->pid, from->tid,
			     !what->end_ns && sum->now.tid == from->tid, what->now_ns, &name);
		memcpy(task->comm, name.comm, sizeof(task->comm));
		memcpy(task->sched_class, name.sched_class, sizeof(task->sched_class));
		task->pid = from->pid > 0 ? from->pid : name.pid;
		task->tid = from->tid;
		task->took_ns = from->took_ns;
		task->is_irq = is_irq_task(&name);
	}
}

/*
 * A thread that sleeps between its beats leaves the CPU of its own will; when it is woken while a
 * hog is there, it waits, and no record of switches says since when. The kernel books that wait
 * when it ends: the look at the raise and the one after the end enclose it. While it lasts, the
 * thread can wait for no longer than the task that has the CPU has had it.
 */
static uint64_t find_woken_ns(const struct ag_watched *lane, const struct ag_explain *what,
			      const struct ag_sum *sum)
{
	struct ag_growth g;
	uint64_t delay_ns;

	if (sum->blocked_ns == 0 || what->is_starved)
		return 0;
	if (!what->end_ns) {
		if (lane->at->seen.state_now == 'R' && sum->is_out && !sum->is_out_runnable &&
		    sum->now.tid > 0)
			return sum->now.took_ns;
		return 0;
	}
	g = ag_look_growth_around_end(lane, AG_COUNT_RUNTIME, what->end_ns);
	if (!g.from)
		return 0;
	delay_ns = g.to->runtime.delay_ns - g.from->runtime.delay_ns;
	return delay_ns > sum->waited_ns + sum->idle_ns ? delay_ns - sum->waited_ns - sum->idle_ns
							: 0;
}

static void gather_switches(struct ag_diag *diag, struct ag_watched *lane,
			    const struct ag_explain *what, uint64_t end_ns, struct ag_evidence *e)
{
	const struct ag_runs *runs;
	struct ag_sum sum;
	uint64_t woken_ns;

	if (!lane->cpu || !lane->cpu->perf)
		return;
	ag_perf_drain(lane->cpu->perf, what->now_ns);
	runs = ag_perf_runs(lane->cpu->perf);
	ag_perf_sum(runs, lane->tid, what->begin_ns, end_ns, 0, &sum);
	// Never seen on this CPU: it may run on another one, and these records are not about it.
	if (sum.covered_ns == 0 || sum.unsure_ns == sum.covered_ns)
		return;
	woken_ns = find_woken_ns(lane, what, &sum);
	if (woken_ns > 0)
		ag_perf_sum(runs, lane->tid, what->begin_ns, end_ns, woken_ns, &sum);
	e->has_switches = true;
	e->is_on_cpu = sum.now.tid == lane->tid;
	e->covered_ns = sum.covered_ns;
	e->n_lost = sum.covered_ns < e->window_ns / 100 * 99 ? runs->n_lost : 0;
	e->ran_ns = sum.ran_ns;
	e->waited_ns = sum.waited_ns;
	e->idle_ns = sum.idle_ns;
	e->blocked_ns = sum.blocked_ns;
	if (lane->at->seen.state == 0 || lane->at->seen.state == 'R')
		e->waited_ns += sum.unsure_ns;
	else
		e->blocked_ns += sum.unsure_ns;
	e->n_switches = sum.n_switches;
	gather_tasks(diag, what, &sum, e);
}

static void gather_runtime(struct ag_watched *lane, const struct ag_explain *what, uint64_t end_ns,
			   struct ag_evidence *e)
{
	struct ag_growth g = ag_look_growth(lane, AG_COUNT_RUNTIME, what->begin_ns, end_ns);
	struct ag_sum sum;

	if (!g.from || (lane->cpu && lane->cpu->is_tickless))
		return;
	// A thread that is bound to no core need not poll: before its stall it may have slept.
	if (lane->core < 0 && !g.is_inside && !what->end_ns)
		return;
	e->is_polling = lane->core >= 0 || g.is_inside;
	e->has_runtime = true;
	e->span_ns = g.to->time_ns - g.from->time_ns;
	e->span_ran_ns = g.to->runtime.ran_ns - g.from->runtime.ran_ns;
	e->span_delay_ns = g.to->runtime.delay_ns - g.from->runtime.delay_ns;
	e->fuzz_ns = 2 * AG_KERNEL_TICK_NS;
	if (!lane->cpu || !lane->cpu->perf)
		return;
	ag_perf_sum(ag_perf_runs(lane->cpu->perf), lane->tid, g.from->time_ns, g.to->time_ns, 0,
		    &sum);
	e->span_away_ns = e->span_ns - sum.ran_ns;
}

static void gather_counters(struct ag_diag *diag, struct ag_watched *lane, uint64_t begin_ns,
			    uint64_t end_ns, struct ag_evidence *e)
{
	struct ag_growth g = ag_look_growth(lane, AG_COUNT_QUOTA, begin_ns, end_ns);
	uint64_t span_ns;

	e->is_virtual = diag->is_virtual;
	e->has_quota = lane->at->seen.has_quota;
	e->was_throttled = lane->at->seen.was_throttled;
	// A cgroup that the thread was moved into begins with counters of its own.
	if (g.from && g.from->cgroup_hash == g.to->cgroup_hash) {
		e->n_throttled = g.to->quota.n_throttled - g.from->quota.n_throttled;
		e->throttled_ns = g.to->quota.throttled_ns - g.from->quota.throttled_ns;
	}
	g = ag_look_growth(lane, AG_COUNT_CPU, begin_ns, end_ns);
	if (g.from) {
		e->has_cpu_stat = true;
		e->steal_ns = g.to->cpu.steal_ns - g.from->cpu.steal_ns;
		e->irq_ns = g.to->cpu.irq_ns - g.from->cpu.irq_ns;
		span_ns = g.to->time_ns - g.from->time_ns;
		if (g.is_inside && span_ns > 0 && span_ns < e->window_ns) {
			double factor = (double)e->window_ns / (double)span_ns;

			e->steal_ns = (uint64_t)((double)e->steal_ns * factor);
			e->irq_ns = (uint64_t)((double)e->irq_ns * factor);
		}
	}
	g = ag_look_growth(lane, AG_COUNT_FAULTS, begin_ns, end_ns);
	if (g.from) {
		e->has_faults = true;
		e->n_maj_faults = g.to->n_maj_faults - g.from->n_maj_faults;
	}
}

static void gather_samples(struct ag_diag *diag, const struct ag_explain *what, uint64_t end_ns,
			   struct ag_evidence *e)
{
	const struct ag_sample_function *function;
	struct ag_job job;

	if (!diag->worker || !ag_worker_answer(diag->worker, what->lane, AG_JOB_SAMPLE, &job) ||
	    job.rc)
		return;
	e->n_function_samples =
		ag_sample_top(&job.samples, what->begin_ns, end_ns, &function, &e->n_samples);
	if (!function)
		return;
	memcpy(e->function, function->function, sizeof(e->function));
	memcpy(e->file, function->file, sizeof(e->file));
}

// Without switch records: the tasks that grew on the CPU while the thread waited share its wait.
static void gather_scan(struct ag_diag *diag, const struct ag_explain *what, uint64_t end_ns,
			struct ag_evidence *e)
{
	uint64_t waited_ns;
	struct ag_name name;
	struct ag_job job;
	uint32_t i;

	if (e->has_switches || !diag->worker ||
	    !ag_worker_answer(diag->worker, what->lane, AG_JOB_SCAN, &job) ||
	    job.asked_ns < what->begin_ns || job.asked_ns > end_ns)
		return;
	waited_ns = ag_cause_away_ns(e);
	e->n_tasks = job.scan.n_tasks;
	for (i = 0; i < AG_N_TASKS && i < job.scan.n_tasks; i++) {
		const struct ag_scan_task *from = &job.scan.tasks[i];
		struct ag_task *task = &e->tasks[i];

		ag_names_get(diag->names, from->pid, from->tid, !what->end_ns, what->now_ns, &name);
		memcpy(task->comm, from->comm, sizeof(task->comm));
		memcpy(task->sched_class, name.sched_class, sizeof(task->sched_class));
		task->pid = from->pid;
		task->tid = from->tid;
		task->took_ns = waited_ns / 1000000 * from->part_ppm;
		task->is_irq = is_irq_task(&name);
	}
}

void ag_gather(struct ag_diag *diag, struct ag_watched *lane, const struct ag_explain *what,
	       struct ag_evidence *out_evidence)
{
	uint64_t end_ns = what->end_ns ? what->end_ns : what->now_ns;
	const struct ag_seen *seen = &lane->at->seen;
	struct ag_evidence *e = out_evidence;
	int policy;

	memset(e, 0, sizeof(*e));
	e->window_ns = end_ns > what->begin_ns ? end_ns - what->begin_ns : 0;
	e->is_live = what->end_ns == 0;
	e->is_starved = what->is_starved;
	policy = lane->tid > 0 ? sched_getscheduler(lane->tid) & ~SCHED_RESET_ON_FORK : SCHED_OTHER;
	e->is_fair = policy != SCHED_FIFO && policy != SCHED_RR && policy != SCHED_DEADLINE;
	e->is_thread_gone = e->is_live && seen->is_thread_gone;
	e->is_process_gone = e->is_live && seen->is_process_gone;
	e->state = seen->state;
	e->tracer_pid = seen->tracer_pid;
	memcpy(e->tracer_comm, seen->tracer_comm, sizeof(e->tracer_comm));
	memcpy(e->tracer_class, seen->tracer_class, sizeof(e->tracer_class));
	memcpy(e->wchan, seen->wchan, sizeof(e->wchan));
	e->is_frozen = seen->is_frozen;
	if (e->is_thread_gone || end_ns <= what->begin_ns)
		return;
	gather_switches(diag, lane, what, end_ns, e);
	gather_runtime(lane, what, end_ns, e);
	gather_counters(diag, lane, what->begin_ns, end_ns, e);
	if (!lane->at->has_asked)
		return;
	gather_samples(diag, what, end_ns, e);
	gather_scan(diag, what, end_ns, e);
}
