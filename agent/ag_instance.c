// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_instance.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "ag_agent.h"
#include "ag_log.h"
#include "pmdp_clock.h"

// The agent's sign of life: at least twice a second, with other work where there is some.
#define AG_ALIVE_NS UINT64_C(200000000)
#define AG_ALIVE_SLACK_NS UINT64_C(300000000)
#define AG_SLOW_NS UINT64_C(1000000000)
// Often enough that rings of context switches don't run over on a CPU with thousands a second.
#define AG_DIAG_TICK_NS UINT64_C(90000000)

static void on_event(void *ctx, const struct pmdp_watch_event *event)
{
	struct ag_instance *instance = ctx;

	ag_book_event(&instance->book, event);
}

static const char *const status_texts[] = {
	[PMDP_WATCH_ABSENT] = "no switch yet",    [PMDP_WATCH_UP] = "switch is up",
	[PMDP_WATCH_STOPPED] = "switch stopped",  [PMDP_WATCH_GONE] = "switch is gone",
	[PMDP_WATCH_REFUSED] = "segment refused",
};

static void tell_status(struct ag_instance *instance, uint32_t status)
{
	const struct pmdp_segment_info *info = pmdp_watch_info(instance->watch);
	const char *text = status < sizeof(status_texts) / sizeof(status_texts[0])
				   ? status_texts[status]
				   : "?";

	instance->status = status;
	if (status == PMDP_WATCH_REFUSED)
		ag_log(AG_WARNING, "%s: %s: %s", instance->name, text,
		       pmdp_watch_reason(instance->watch));
	else if (status == PMDP_WATCH_UP && info)
		ag_log(AG_NOTICE, "%s: %s, pid %u, generation %llu", instance->name, text,
		       info->writer_pid, (unsigned long long)info->generation);
	else
		ag_log(AG_NOTICE, "%s: %s", instance->name, text);
	ag_agent_changed(instance->agent);
}

static void forget_lanes(struct ag_instance *instance)
{
	ag_diag_forget_all(instance->diag);
	free(instance->lanes);
	instance->lanes = NULL;
	instance->n_lanes = 0;
	ag_agent_lanes_changed(instance->agent);
}

// Tell the diagnosis which thread a lane is now. Returns true when the lane's CPU or thread
// changed.
static bool sync_lane(struct ag_instance *instance, uint32_t index, bool is_claimed,
		      uint64_t incarnation)
{
	struct ag_lane *lane = &instance->lanes[index];
	const struct pmdp_lane_body *body = is_claimed ? pmdp_watch_lane(instance->watch, index)
						       : NULL;

	if (!body) {
		if (!lane->is_watched)
			return false;
		ag_diag_forget(instance->diag, index);
		*lane = (struct ag_lane){0};
		return true;
	}
	if (lane->is_watched && lane->incarnation == incarnation && lane->tid == body->tid &&
	    lane->core == body->core)
		return false;
	struct ag_thread thread = {
		.pid = (pid_t)pmdp_watch_info(instance->watch)->writer_pid,
		.tid = (pid_t)body->tid,
		.core = body->core,
		.name = body->name,
	};
	*lane = (struct ag_lane){
		.incarnation = incarnation,
		.tid = body->tid,
		.core = body->core,
		.is_watched = true,
		.is_pmd = body->kind == PMDP_LANE_PMD,
	};
	ag_diag_watch(instance->diag, index, &thread);
	return true;
}

AG_HOT static void sync_lanes(struct ag_instance *instance, uint64_t now_ns)
{
	const struct pmdp_segment_info *info = pmdp_watch_info(instance->watch);
	const struct pmdp_look *look = pmdp_watch_look(instance->watch);
	uint64_t generation = info && look ? info->generation : 0;
	bool is_changed = false;

	if (generation != instance->generation) {
		forget_lanes(instance);
		instance->generation = generation;
		if (generation)
			instance->lanes = calloc(look->n_lanes, sizeof(instance->lanes[0]));
		instance->n_lanes = instance->lanes ? look->n_lanes : 0;
	}
	// Thread ids of another pid namespace, or before a reboot, are other threads here.
	if (!generation || !info->is_same_pidns || !info->is_same_boot)
		return;
	bool is_slow = now_ns >= instance->slow_ns;
	if (is_slow)
		instance->slow_ns = now_ns + AG_SLOW_NS;
	for (uint32_t i = 0; i < instance->n_lanes; i++) {
		const struct pmdp_lane_look *seen = &look->lanes[i];
		const struct ag_lane *lane = &instance->lanes[i];

		// The same thread as before; whether it was moved is asked once a second.
		if (!is_slow && seen->is_claimed == lane->is_watched &&
		    (!seen->is_claimed || seen->incarnation == lane->incarnation))
			continue;
		is_changed |= sync_lane(instance, i, seen->is_claimed, seen->incarnation);
	}
	if (is_changed)
		ag_agent_lanes_changed(instance->agent);
}

// Two looks: one that sees the last beat does not ask for the process, the next one does.
static void on_writer_exit(void *ctx, uint32_t events)
{
	(void)events;
	ag_instance_look(ctx);
	ag_instance_look(ctx);
}

// Wake when the writer's process ends. Once: a pidfd stays readable afterwards.
AG_HOT static void sync_exit(struct ag_instance *instance, uint64_t old_generation)
{
	int fd = pmdp_watch_fd(instance->watch);

	if (fd == instance->exit_source.fd && instance->generation == old_generation)
		return;
	// The watch has closed the old one, which took it out of the loop.
	instance->exit_source.fd = fd;
	if (fd >= 0 &&
	    ag_loop_add(&instance->agent->loop, &instance->exit_source, EPOLLIN | EPOLLONESHOT))
		instance->exit_source.fd = -1; // seen at the next look instead
}

void ag_instance_look(struct ag_instance *instance)
{
	uint64_t old_generation = instance->generation;

	instance->look_timer.due_ns = pmdp_watch_step(instance->watch, on_event, instance);
	instance->learn_timer.due_ns = ag_book_settle(&instance->book);
	uint32_t status = pmdp_watch_status(instance->watch);
	if (status != instance->status)
		tell_status(instance, status);
	uint64_t now_ns = pmdp_mono_now_ns();
	sync_lanes(instance, now_ns);
	sync_exit(instance, old_generation);
	if (instance->generation && now_ns >= instance->tick_ns) {
		instance->tick_ns = now_ns + AG_DIAG_TICK_NS;
		ag_diag_tick(instance->diag, now_ns);
	}
}

AG_HOT static void on_look(void *ctx, uint64_t now_ns)
{
	(void)now_ns;
	ag_instance_look(ctx);
}

static void on_learn(void *ctx, uint64_t now_ns)
{
	struct ag_instance *instance = ctx;

	(void)now_ns;
	instance->learn_timer.due_ns = ag_book_settle(&instance->book);
}

AG_HOT static void on_alive(void *ctx, uint64_t now_ns)
{
	struct ag_instance *instance = ctx;

	pmdp_incident_log_alive(instance->log);
	instance->alive_timer.due_ns = now_ns + AG_ALIVE_NS;
}

static int open_log(struct ag_instance *instance)
{
	struct ag_agent *agent = instance->agent;
	struct pmdp_incident_log_opts opts = {
		.rundir = agent->rundir,
		.group = agent->config.group[0] ? agent->config.group : NULL,
		.mode = agent->config.mode,
		.publisher_uid = agent->config.publisher_uid,
		.has_publisher_uid = agent->config.has_publisher_uid,
	};
	bool was_bad = false;

	int rc = pmdp_incident_log_open(instance->name, &opts, &instance->log, &was_bad);
	if (was_bad)
		ag_log(AG_WARNING,
		       "%s: %s/%s.incidents could not be carried over; kept as %s.incidents.bad, "
		       "begun anew",
		       instance->name, agent->rundir, instance->name, instance->name);
	if (!rc)
		return 0;
	const char *remedy =
		rc == -EEXIST    ? "another agent follows it: stop that one first"
		: rc == -ENOTSUP ? "not on a tmpfs: choose one, e.g. --rundir=/dev/shm/pmdpulse"
		: rc == -ENOSPC  ? "free space on that tmpfs"
		: rc == -EPERM
			? "the run directory is a stranger's, a symbolic link, or anybody may "
			  "rename in it: give it to root or this user with mode 0750, or "
			  "name its owner with --publisher-user"
		: rc == -EACCES ? "run as a user who may write there, or choose another --rundir"
				: "see that the run directory exists and may be written";
	ag_log(AG_ERROR, "%s: %s/%s.incidents: %s; %s", instance->name, agent->rundir,
	       instance->name, strerror(-rc), remedy);
	return rc;
}

static int open_watch(struct ag_instance *instance)
{
	const struct ag_config *config = &instance->agent->config;
	struct pmdp_watch_opts opts = {
		.rundir = instance->agent->rundir,
		.publisher_uid = config->publisher_uid,
		.has_publisher_uid = config->has_publisher_uid,
		.limits =
			{
				.interval_ns = config->interval_ns,
				.notify_missing = config->notify_missing,
				.hold_ns = config->hold_ns,
				.starve_pct = config->starve_pct,
			},
	};

	int rc = pmdp_watch_new(instance->name, &opts, &instance->watch);
	if (rc)
		ag_log(AG_ERROR, "%s: can't be followed: %s", instance->name, strerror(-rc));
	return rc;
}

static void start_timers(struct ag_instance *instance)
{
	struct ag_loop *loop = &instance->agent->loop;
	uint64_t now_ns = pmdp_mono_now_ns();

	instance->look_timer = (struct ag_timer){.due_ns = now_ns, .fn = on_look, .ctx = instance};
	instance->learn_timer = (struct ag_timer){.fn = on_learn, .ctx = instance};
	instance->alive_timer = (struct ag_timer){
		.due_ns = now_ns, .slack_ns = AG_ALIVE_SLACK_NS, .fn = on_alive, .ctx = instance};
	ag_loop_add_timer(loop, &instance->look_timer);
	ag_loop_add_timer(loop, &instance->learn_timer);
	ag_loop_add_timer(loop, &instance->alive_timer);
}

int ag_instance_new(struct ag_agent *agent, const char *name, struct ag_instance **out_instance)
{
	struct ag_instance *instance = calloc(1, sizeof(*instance));

	if (!instance)
		return -ENOMEM;
	instance->agent = agent;
	instance->ctl.listen_source.fd = -1;
	instance->exit_source = (struct ag_source){.fd = -1, .fn = on_writer_exit, .ctx = instance};
	snprintf(instance->name, sizeof(instance->name), "%s", name);
	int rc = open_log(instance);
	if (!rc)
		rc = open_watch(instance);
	if (!rc)
		rc = ag_diag_new(&instance->diag);
	if (!rc)
		rc = ag_book_open(&instance->book, instance->log, instance->diag, &agent->sinks,
				  instance->watch);
	if (!rc)
		rc = ag_ctl_open(&instance->ctl, instance);
	if (rc) {
		ag_instance_free(instance);
		return rc;
	}
	start_timers(instance);
	*out_instance = instance;
	return 0;
}

void ag_instance_free(struct ag_instance *instance)
{
	if (!instance)
		return;
	struct ag_loop *loop = &instance->agent->loop;

	ag_ctl_close(&instance->ctl);
	ag_loop_remove_timer(loop, &instance->look_timer);
	ag_loop_remove_timer(loop, &instance->learn_timer);
	ag_loop_remove_timer(loop, &instance->alive_timer);
	if (instance->exit_source.fd >= 0)
		ag_loop_remove(loop, &instance->exit_source);
	ag_book_close(&instance->book);
	ag_diag_free(instance->diag);
	pmdp_watch_free(instance->watch);
	pmdp_incident_log_close(instance->log);
	free(instance->lanes);
	free(instance);
}

char *ag_instance_summary(const struct ag_instance *instance, char *out, size_t size)
{
	static const char *const words[] = {
		[PMDP_WATCH_ABSENT] = "absent",   [PMDP_WATCH_UP] = "up",
		[PMDP_WATCH_STOPPED] = "stopped", [PMDP_WATCH_GONE] = "gone",
		[PMDP_WATCH_REFUSED] = "refused",
	};
	uint32_t n_alive = 0;

	for (uint32_t i = 0; i < instance->n_lanes; i++)
		if (instance->lanes[i].is_pmd) {
			uint32_t state = pmdp_watch_lane_state(instance->watch, i);

			n_alive += state == PMDP_STATE_ALIVE || state == PMDP_STATE_DOZING ||
				   state == PMDP_STATE_SLEEP;
		}
	if (instance->status == PMDP_WATCH_UP)
		snprintf(out, size, "up, %u PMDs alive, %u open incidents", n_alive,
			 instance->book.n_opens);
	else
		snprintf(out, size, "%s, %u open incidents",
			 instance->status < 5 ? words[instance->status] : "?",
			 instance->book.n_opens);
	return out;
}
