// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_agent.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

#include "ag_instance.h"
#include "ag_log.h"
#include "ag_prio.h"
#include "pmdp_clock.h"

#define AG_HOUSE_NS UINT64_C(1000000000)

static void on_signal(void *ctx, uint32_t events)
{
	struct ag_agent *agent = ctx;
	struct signalfd_siginfo info;

	(void)events;
	if (read(agent->signal_source.fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP) {
		ag_log(AG_NOTICE, "SIGHUP: opening the outputs again");
		ag_sinks_reopen(&agent->sinks);
		return;
	}
	ag_log(AG_NOTICE, "%s: stopping", info.ssi_signo == SIGINT ? "SIGINT" : "SIGTERM");
	agent->loop.is_stopping = true;
}

static int open_signals(struct ag_agent *agent)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	agent->signal_source = (struct ag_source){.fd = fd, .fn = on_signal, .ctx = agent};
	return ag_loop_add(&agent->loop, &agent->signal_source, EPOLLIN);
}

static void tell_systemd(struct ag_agent *agent, const char *prefix)
{
	char text[sizeof(agent->status)] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < agent->n_instances && used < sizeof(text); i++) {
		char summary[128];

		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s: %s",
					 i ? "; " : "", agent->instances[i]->name,
					 ag_instance_summary(agent->instances[i], summary,
							     sizeof(summary)));
	}
	if (!prefix[0] && !strcmp(text, agent->status))
		return;
	memcpy(agent->status, text, sizeof(text));
	sd_notifyf(0, "%sSTATUS=%s", prefix, text);
}

static void on_house(void *ctx, uint64_t now_ns)
{
	struct ag_agent *agent = ctx;

	ag_log_flush();
	tell_systemd(agent, "");
	// The ping comes from the loop that looks at the PMDs: if that hangs, so does the ping.
	if (agent->watchdog_ns && now_ns >= agent->watchdog_due_ns) {
		sd_notify(0, "WATCHDOG=1");
		agent->watchdog_due_ns = now_ns + agent->watchdog_ns / 3;
	}
	agent->house_timer.due_ns = now_ns + AG_HOUSE_NS;
	if (agent->watchdog_ns && agent->house_timer.due_ns > agent->watchdog_due_ns)
		agent->house_timer.due_ns = agent->watchdog_due_ns;
}

static void start_house(struct ag_agent *agent)
{
	uint64_t usec = 0;

	if (sd_watchdog_enabled(0, &usec) > 0)
		agent->watchdog_ns = usec * 1000;
	uint64_t slack_ns = agent->watchdog_ns ? agent->watchdog_ns / 6 : AG_HOUSE_NS;
	agent->house_timer = (struct ag_timer){
		.due_ns = pmdp_mono_now_ns(),
		.slack_ns = slack_ns < AG_HOUSE_NS ? slack_ns : AG_HOUSE_NS,
		.fn = on_house,
		.ctx = agent,
	};
	ag_loop_add_timer(&agent->loop, &agent->house_timer);
}

int ag_agent_start(struct ag_agent *agent)
{
	agent->started_ns = pmdp_mono_now_ns();
	agent->signal_source.fd = agent->rundir_source.fd = -1;
	int rc = pmdp_rundir(agent->config.rundir, agent->rundir, sizeof(agent->rundir));
	if (rc) {
		ag_log(AG_ERROR, "run directory: %s; give a shorter --rundir", strerror(-rc));
		return rc;
	}
	rc = ag_loop_init(&agent->loop);
	if (rc) {
		ag_log(AG_ERROR, "event loop: %s; raise the limit of open files", strerror(-rc));
		return rc;
	}
	rc = ag_sinks_open(&agent->sinks, &agent->config, &agent->loop);
	if (!rc)
		rc = open_signals(agent);
	if (!rc)
		rc = ag_follow_start(agent);
	if (rc) {
		ag_agent_stop(agent);
		return rc;
	}
	ag_prio_raise(agent->config.fifo_prio, agent->config.is_fifo_required);
	ag_agent_lanes_changed(agent);
	start_house(agent);
	for (uint32_t i = 0; i < agent->n_instances; i++)
		ag_instance_look(agent->instances[i]);
	tell_systemd(agent, "READY=1\n");
	return 0;
}

void ag_agent_stop(struct ag_agent *agent)
{
	sd_notify(0, "STOPPING=1");
	ag_follow_stop(agent);
	while (agent->n_instances)
		ag_instance_free(agent->instances[--agent->n_instances]);
	ag_sinks_close(&agent->sinks);
	ag_loop_remove_timer(&agent->loop, &agent->house_timer);
	if (agent->signal_source.fd >= 0) {
		ag_loop_remove(&agent->loop, &agent->signal_source);
		close(agent->signal_source.fd);
	}
	ag_loop_fini(&agent->loop);
}

void ag_agent_changed(struct ag_agent *agent)
{
	agent->house_timer.due_ns = 1; // at this wake still: the operator looks at the status now
}

void ag_agent_lanes_changed(struct ag_agent *agent)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	for (uint32_t i = 0; i < agent->n_instances; i++)
		for (uint32_t lane = 0; lane < agent->instances[i]->n_lanes; lane++) {
			const struct ag_lane *l = &agent->instances[i]->lanes[lane];

			if (l->is_pmd && l->core >= 0 && l->core < CPU_SETSIZE)
				CPU_SET((size_t)l->core, &cpus);
		}
	ag_prio_avoid(&cpus);
}
