// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Which instances to follow: those that are set, or else "default" and all that have a segment in
 * the run directory. inotify tells of a new, replaced or removed segment at once; a slow rescan
 * catches what it missed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "ag_agent.h"
#include "ag_instance.h"
#include "ag_log.h"
#include "pmdp_clock.h"

#define AG_RESCAN_NS UINT64_C(10000000000)
#define AG_REFUSED_NS UINT64_C(60000000000)
#define AG_RESCAN_BLIND_NS UINT64_C(250000000) // without inotify

static struct ag_instance *find_instance(const struct ag_agent *agent, const char *name)
{
	for (uint32_t i = 0; i < agent->n_instances; i++)
		if (!strcmp(agent->instances[i]->name, name))
			return agent->instances[i];
	return NULL;
}

static int follow(struct ag_agent *agent, const char *name)
{
	if (find_instance(agent, name))
		return 0;
	if (agent->n_instances == AG_MAX_INSTANCES) {
		if (!agent->is_full_told)
			ag_log(AG_WARNING,
			       "%s is not followed: %d instances are followed already; "
			       "run another agent with --instance",
			       name, AG_MAX_INSTANCES);
		agent->is_full_told = true;
		return -ENOSPC;
	}
	int rc = ag_instance_new(agent, name, &agent->instances[agent->n_instances]);
	if (!rc)
		ag_log(AG_INFO, "%s: following it in %s", name, agent->rundir);
	agent->n_instances += !rc;
	return rc;
}

// An instance that was found rather than set: refusals are logged once a minute at most.
static void follow_found(struct ag_agent *agent, const char *name)
{
	uint64_t now_ns = pmdp_mono_now_ns();
	struct ag_refused *refused = NULL;

	if (find_instance(agent, name))
		return;
	for (uint32_t i = 0; i < AG_MAX_REFUSED; i++)
		if (!strcmp(agent->refused[i].name, name))
			refused = &agent->refused[i];
	if (refused && now_ns < refused->retry_ns)
		return;
	if (!follow(agent, name))
		return;
	if (!refused)
		refused = &agent->refused[agent->n_refused++ % AG_MAX_REFUSED];
	snprintf(refused->name, sizeof(refused->name), "%s", name);
	refused->retry_ns = now_ns + AG_REFUSED_NS;
}

static void scan(struct ag_agent *agent, const char *suffix)
{
	char names[AG_MAX_INSTANCES][PMDP_INSTANCE_BYTES];

	int n = pmdp_instances(agent->rundir, suffix, names, AG_MAX_INSTANCES);
	for (int i = 0; i < n && i < AG_MAX_INSTANCES; i++)
		follow_found(agent, names[i]);
}

static void on_rescan(void *ctx, uint64_t now_ns)
{
	struct ag_agent *agent = ctx;

	scan(agent, "ring");
	agent->rescan_timer.due_ns =
		now_ns + (agent->rundir_source.fd >= 0 ? AG_RESCAN_NS : AG_RESCAN_BLIND_NS);
}

// The part of a file name before its suffix, when that is an instance name.
static bool instance_of(const char *file, const char *suffix, char *out_name)
{
	const char *dot = strrchr(file, '.');
	size_t len = dot ? (size_t)(dot - file) : 0;

	if (!len || len >= PMDP_INSTANCE_BYTES || strcmp(dot, suffix))
		return false;
	memcpy(out_name, file, len);
	out_name[len] = 0;
	return !pmdp_instance_check(out_name);
}

// Without its segment nobody could read what the agent publishes, nor would the next agent adopt
// it.
static void end_without_segment(struct ag_agent *agent, const char *name)
{
	ag_log(AG_ERROR, "%s/%s.incidents was removed: stopping; start the agent again",
	       agent->rundir, name);
	agent->is_failed = true;
	agent->loop.is_stopping = true;
}

static void on_name(struct ag_agent *agent, const struct inotify_event *event)
{
	char name[PMDP_INSTANCE_BYTES];

	if (instance_of(event->name, ".incidents", name)) {
		if ((event->mask & IN_DELETE) && find_instance(agent, name))
			end_without_segment(agent, name);
		return;
	}
	if (!instance_of(event->name, ".ring", name))
		return;
	if (!agent->config.n_instances && !(event->mask & IN_DELETE))
		follow_found(agent, name);
	struct ag_instance *instance = find_instance(agent, name);
	if (instance)
		ag_instance_look(instance);
}

static void on_rundir(void *ctx, uint32_t events)
{
	struct ag_agent *agent = ctx;
	char buffer[4096] __attribute__((aligned(__alignof__(struct inotify_event))));

	(void)events;
	ssize_t n = read(agent->rundir_source.fd, buffer, sizeof(buffer));
	for (ssize_t at = 0; at < n && !agent->loop.is_stopping;) {
		const struct inotify_event *event = (const void *)(buffer + at);

		at += (ssize_t)(sizeof(*event) + event->len);
		if (event->mask & IN_Q_OVERFLOW)
			agent->rescan_timer.due_ns = 1;
		else if (event->len)
			on_name(agent, event);
	}
}

static void watch_rundir(struct ag_agent *agent)
{
	uint32_t mask = IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_ONLYDIR;
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	agent->rundir_source = (struct ag_source){.fd = fd, .fn = on_rundir, .ctx = agent};
	if (fd >= 0 && inotify_add_watch(fd, agent->rundir, mask) >= 0 &&
	    !ag_loop_add(&agent->loop, &agent->rundir_source, EPOLLIN))
		return;
	ag_log(AG_NOTICE,
	       "%s is looked through every 250 ms, since inotify is refused: %s; raise "
	       "fs.inotify.max_user_instances",
	       agent->rundir, strerror(errno));
	if (fd >= 0)
		close(fd);
	agent->rundir_source.fd = -1;
}

int ag_follow_start(struct ag_agent *agent)
{
	const struct ag_config *config = &agent->config;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < config->n_instances; i++)
		rc = follow(agent, config->instances[i]);
	if (!config->n_instances)
		rc = follow(agent, "default");
	if (rc)
		return rc;
	watch_rundir(agent);
	if (config->n_instances)
		return 0;
	// Incidents of an instance that is gone by now may still be open.
	scan(agent, "incidents");
	agent->rescan_timer = (struct ag_timer){
		.due_ns = pmdp_mono_now_ns(),
		.slack_ns = agent->rundir_source.fd >= 0 ? AG_RESCAN_NS : 0,
		.fn = on_rescan,
		.ctx = agent,
	};
	scan(agent, "ring");
	ag_loop_add_timer(&agent->loop, &agent->rescan_timer);
	return 0;
}

void ag_follow_stop(struct ag_agent *agent)
{
	ag_loop_remove_timer(&agent->loop, &agent->rescan_timer);
	if (agent->rundir_source.fd < 0)
		return;
	ag_loop_remove(&agent->loop, &agent->rundir_source);
	close(agent->rundir_source.fd);
	agent->rundir_source.fd = -1;
}
