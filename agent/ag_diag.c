// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_diag.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ag_diag_private.h"
#include "pmdp_clock.h"

#define AG_MIN_FILES 16384

// A descriptor for each CPU and some for each thread: more than the usual 1024 on a large machine.
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= AG_MIN_FILES)
		return;
	limit.rlim_cur = limit.rlim_max < AG_MIN_FILES ? limit.rlim_max : AG_MIN_FILES;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int ag_diag_new(struct ag_diag **out_diag)
{
	struct ag_diag *diag = calloc(1, sizeof(*diag));

	if (!diag)
		return -ENOMEM;
	raise_file_limit();
	if (ag_names_new(&diag->names)) {
		free(diag);
		return -ENOMEM;
	}
	if (ag_worker_new(&diag->worker))
		diag->worker = NULL;
	diag->has_mounts = ag_cgroup_find_mounts(&diag->mounts) == 0;
	diag->is_virtual = ag_cpu_is_virtual();
	diag->stat_fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	ag_rights_find(diag);
	*out_diag = diag;
	return 0;
}

void ag_diag_free(struct ag_diag *diag)
{
	if (!diag)
		return;
	ag_diag_forget_all(diag);
	ag_worker_free(diag->worker);
	ag_names_free(diag->names);
	if (diag->stat_fd >= 0)
		close(diag->stat_fd);
	free(diag->lanes);
	free(diag);
}

static struct ag_core *use_core(struct ag_diag *diag, int core)
{
	struct ag_core *c;
	int rc;

	for (c = diag->cores; c; c = c->next)
		if (c->core == core)
			break;
	if (!c) {
		c = calloc(1, sizeof(*c));
		if (!c)
			return NULL;
		rc = ag_perf_open(core, &c->perf);
		if (rc) {
			c->perf = NULL;
			// Without the right to any, that has been told already.
			if (diag->can_perf)
				ag_rights_add(diag, "-perf: core %d: %s", core, strerror(-rc));
		}
		c->core = core;
		c->is_tickless = ag_cpu_is_tickless(core);
		c->next = diag->cores;
		diag->cores = c;
	}
	c->n_users++;
	return c;
}

static void leave_core(struct ag_diag *diag, struct ag_core *core)
{
	struct ag_core **link;

	if (!core || --core->n_users > 0)
		return;
	for (link = &diag->cores; *link != core; link = &(*link)->next)
		;
	*link = core->next;
	ag_perf_close(core->perf);
	free(core);
}

static int grow(struct ag_diag *diag, uint32_t n_lanes)
{
	struct ag_watched *lanes;

	if (n_lanes <= diag->n_lanes)
		return 0;
	lanes = realloc(diag->lanes, n_lanes * sizeof(*lanes));
	if (!lanes)
		return -ENOMEM;
	memset(lanes + diag->n_lanes, 0, (n_lanes - diag->n_lanes) * sizeof(*lanes));
	diag->lanes = lanes;
	diag->n_lanes = n_lanes;
	return 0;
}

int ag_diag_watch(struct ag_diag *diag, uint32_t lane_index, const struct ag_thread *thread)
{
	struct ag_watched *lane;
	struct ag_look look;
	uint64_t now_ns;

	if (lane_index >= PMDP_MAX_LANES)
		return -EINVAL;
	if (grow(diag, lane_index + 1))
		return -ENOMEM;
	lane = &diag->lanes[lane_index];
	if (lane->is_used && lane->pid == thread->pid && lane->tid == thread->tid &&
	    lane->core == thread->core)
		return 0;
	ag_diag_forget(diag, lane_index);
	lane->is_used = true;
	lane->pid = thread->pid;
	lane->tid = thread->tid;
	lane->core = thread->core;
	ag_cgroup_init(&lane->cgroup);
	lane->is_open = ag_proc_open(thread->pid, thread->tid, &lane->proc) == 0;
	if (thread->core >= 0)
		lane->cpu = use_core(diag, thread->core);
	now_ns = pmdp_mono_now_ns();
	ag_look_take(diag, lane, now_ns, AG_LOOK_FULL, &look);
	ag_look_base(lane, &look);
	lane->base_ns = lane->base_slow_ns = now_ns;
	return 0;
}

void ag_diag_forget(struct ag_diag *diag, uint32_t lane_index)
{
	struct ag_watched *lane;

	if (lane_index >= diag->n_lanes || !diag->lanes[lane_index].is_used)
		return;
	lane = &diag->lanes[lane_index];
	if (lane->is_open)
		ag_proc_close(&lane->proc);
	ag_cgroup_close(&lane->cgroup);
	leave_core(diag, lane->cpu);
	memset(lane, 0, sizeof(*lane));
}

void ag_diag_forget_all(struct ag_diag *diag)
{
	uint32_t i;

	for (i = 0; i < diag->n_lanes; i++)
		ag_diag_forget(diag, i);
}

/*
 * Something ran on a watched CPU: note its name and class while it is there. By the time that
 * somebody asks it may have ended, or have given its class back.
 */
static void look_at_core(struct ag_diag *diag, struct ag_core *core, uint64_t now_ns)
{
	const struct ag_runs *runs = ag_perf_runs(core->perf);
	const struct ag_run *now;
	struct ag_name name;
	uint32_t i;

	ag_perf_drain(core->perf, now_ns);
	if (runs->n == 0)
		return;
	now = &runs->ring[(runs->n - 1) % AG_PERF_N_RUNS];
	if (now->tid <= 0)
		return;
	for (i = 0; i < diag->n_lanes; i++)
		if (diag->lanes[i].is_used && diag->lanes[i].tid == now->tid)
			return;
	ag_names_get(diag->names, now->pid, now->tid, true, now_ns, &name);
}

void ag_diag_tick(struct ag_diag *diag, uint64_t now_ns)
{
	struct ag_core *core;
	struct ag_watched *lane;
	struct ag_look look;
	bool is_slow;
	uint32_t i;

	for (core = diag->cores; core; core = core->next)
		if (core->perf && ag_perf_pending(core->perf) > 0)
			look_at_core(diag, core, now_ns);
	for (i = 0; i < diag->n_lanes; i++) {
		lane = &diag->lanes[i];
		if (!lane->is_used || !lane->is_open || now_ns - lane->base_ns < AG_BASE_NS)
			continue;
		is_slow = now_ns - lane->base_slow_ns >= AG_BASE_SLOW_NS;
		ag_look_take(diag, lane, now_ns, is_slow ? AG_LOOK_FULL : AG_LOOK_QUICK, &look);
		ag_look_base(lane, &look);
		lane->base_ns = now_ns;
		if (is_slow)
			lane->base_slow_ns = now_ns;
	}
}

uint32_t ag_diag_rights(const struct ag_diag *diag, const char **out_names, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < diag->n_rights && i < n; i++)
		out_names[i] = diag->rights[i];
	return i;
}
