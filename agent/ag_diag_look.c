// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ag_diag_private.h"

static bool read_cpu(struct ag_diag *diag, int core, uint64_t now_ns, struct ag_cpu_stat *out_stat)
{
	if (core < 0)
		return false;
	if (diag->stat_ns != now_ns) {
		if (ag_proc_read_fd(diag->stat_fd, diag->stat_text, sizeof(diag->stat_text)) <= 0)
			return false;
		diag->stat_ns = now_ns;
	}
	return ag_cpu_parse(diag->stat_text, core, out_stat) == 0;
}

void ag_look_take(struct ag_diag *diag, struct ag_watched *lane, uint64_t now_ns, int how,
		  struct ag_look *out_look)
{
	struct pmdp_stat stat;
	int rc;

	memset(out_look, 0, sizeof(*out_look));
	out_look->time_ns = now_ns;
	if (!lane->is_open)
		return;
	out_look->has_runtime = ag_proc_read_runtime(&lane->proc, &out_look->runtime) == 0;
	rc = ag_cgroup_read(&lane->cgroup, &out_look->quota);
	if (how == AG_LOOK_FULL && diag->has_mounts) {
		// Removed, and perhaps made again by the same name.
		if (rc == -ENODEV)
			ag_cgroup_close(&lane->cgroup);
		if (ag_cgroup_follow(&lane->cgroup, &diag->mounts, lane->pid, lane->tid))
			rc = ag_cgroup_read(&lane->cgroup, &out_look->quota);
	}
	out_look->has_quota = rc == 0;
	out_look->cgroup_hash = lane->cgroup.hash;
	if (how != AG_LOOK_FULL)
		return;
	out_look->has_cpu = read_cpu(diag, lane->core, now_ns, &out_look->cpu);
	if (ag_proc_read_stat(&lane->proc, &stat) == 0) {
		out_look->has_faults = true;
		out_look->n_maj_faults = stat.n_maj_faults;
	}
}

void ag_look_base(struct ag_watched *lane, const struct ag_look *look)
{
	lane->bases[lane->n_bases++ % AG_N_BASES] = *look;
}

// A stall that is looked at very often keeps its first looks and its newest.
void ag_look_live(struct ag_watched *lane, const struct ag_look *look)
{
	if (lane->at->n_live == AG_N_LIVE)
		lane->at->n_live--;
	lane->at->live[lane->at->n_live++] = *look;
}

// How much a state tells: a thread that was seen stopped was stopped, though it runs again now.
static int weight(char state)
{
	switch (state) {
	case 't':
		return 5;
	case 'T':
		return 4;
	case 'D':
		return 3;
	case 'S':
	case 'I':
		return 2;
	case 'R':
		return 1;
	default:
		return 0;
	}
}

static void note_tracer(struct ag_diag *diag, struct ag_seen *seen, pid_t tracer_pid,
			uint64_t now_ns)
{
	struct ag_name name;

	if (tracer_pid <= 0 || seen->tracer_pid == tracer_pid)
		return;
	ag_names_get(diag->names, tracer_pid, tracer_pid, false, now_ns, &name);
	seen->tracer_pid = tracer_pid;
	snprintf(seen->tracer_comm, sizeof(seen->tracer_comm), "%s", name.comm);
	snprintf(seen->tracer_class, sizeof(seen->tracer_class), "%s", name.sched_class);
}

void ag_look_state(struct ag_diag *diag, struct ag_watched *lane, uint64_t now_ns, bool is_first)
{
	struct ag_seen *seen = &lane->at->seen;
	struct ag_proc_status status;
	char wchan[AG_WCHAN_BYTES];
	int rc = lane->is_open ? ag_proc_read_status(&lane->proc, &status) : -ESRCH;

	if (rc == -ESRCH || (rc == 0 && (status.state == 'Z' || status.state == 'X'))) {
		seen->is_thread_gone = true;
		seen->is_process_gone = !lane->is_open || ag_proc_is_process_gone(&lane->proc);
		return;
	}
	if (rc)
		return;
	note_tracer(diag, seen, status.tracer_pid, now_ns);
	if (!is_first && ag_cgroup_is_frozen(&lane->cgroup))
		seen->is_frozen = true;
	seen->state_now = status.state;
	if (weight(status.state) < weight(seen->state))
		return;
	seen->state = status.state;
	if (status.state == 'R')
		return;
	ag_proc_read_wchan(&lane->proc, wchan, sizeof(wchan));
	if (wchan[0])
		memcpy(seen->wchan, wchan, sizeof(wchan));
}

static bool has(const struct ag_look *look, enum ag_counter counter)
{
	switch (counter) {
	case AG_COUNT_RUNTIME:
		return look->has_runtime;
	case AG_COUNT_QUOTA:
		return look->has_quota;
	case AG_COUNT_CPU:
		return look->has_cpu;
	default:
		return look->has_faults;
	}
}

static const struct ag_look *base_before(const struct ag_watched *lane, enum ag_counter counter,
					 uint64_t time_ns)
{
	const struct ag_look *best = NULL, *look;
	uint32_t i;

	for (i = 0; i < AG_N_BASES; i++) {
		look = &lane->bases[i];
		if (look->time_ns > 0 && look->time_ns <= time_ns && has(look, counter) &&
		    (!best || look->time_ns > best->time_ns))
			best = look;
	}
	return best;
}

// How long after the end of a stall a counter may be read and still tell about it alone: what is
// booked at ticks, and at the end of a period of a quota, comes later.
static uint64_t slack_ns(enum ag_counter counter)
{
	switch (counter) {
	case AG_COUNT_RUNTIME:
		return AG_KERNEL_TICK_NS;
	case AG_COUNT_CPU:
		return 4 * AG_KERNEL_TICK_NS;
	default:
		return UINT64_C(1000000000);
	}
}

/*
 * Two looks inside the window tell about the window alone; a look before it brings in what happened
 * between it and the stall. So the pair inside is taken when it is long enough to mean something.
 */
struct ag_growth ag_look_growth(const struct ag_watched *lane, enum ag_counter counter,
				uint64_t begin_ns, uint64_t end_ns)
{
	const struct ag_look *first = NULL, *inside = NULL, *last = NULL, *base;
	struct ag_growth growth = {NULL, NULL, false};
	uint64_t enough_ns = (end_ns - begin_ns) / 3;
	uint32_t i;

	for (i = 0; i < lane->at->n_live; i++) {
		if (!has(&lane->at->live[i], counter))
			continue;
		last = &lane->at->live[i];
		if (!first)
			first = last;
		if (last->time_ns <= end_ns + slack_ns(counter))
			inside = last;
	}
	if (!last)
		return growth;
	if (enough_ns < 5 * AG_KERNEL_TICK_NS)
		enough_ns = 5 * AG_KERNEL_TICK_NS;
	if (inside && first->time_ns < end_ns && inside->time_ns - first->time_ns >= enough_ns) {
		growth = (struct ag_growth){first, inside, true};
		return growth;
	}
	base = base_before(lane, counter, begin_ns);
	growth.from = base ? base : first != last ? first : NULL;
	growth.to = last;
	growth.is_inside = !base;
	return growth;
}

struct ag_growth ag_look_growth_around_end(const struct ag_watched *lane, enum ag_counter counter,
					   uint64_t end_ns)
{
	struct ag_growth growth = {NULL, NULL, false};
	uint32_t i;

	for (i = 0; i < lane->at->n_live; i++) {
		if (!has(&lane->at->live[i], counter))
			continue;
		if (!growth.from && lane->at->live[i].time_ns < end_ns)
			growth.from = &lane->at->live[i];
		growth.to = &lane->at->live[i];
	}
	if (!growth.from || growth.from == growth.to)
		return (struct ag_growth){NULL, NULL, false};
	return growth;
}
