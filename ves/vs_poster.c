// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "vs_poster.h"

#include <errno.h>
#include <signal.h>
#include <stdalign.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

#include "pmdp_clock.h"
#include "vs_log.h"

#define NS_PER_MS UINT64_C(1000000)
#define DISCOVER_NS PMDP_NS_PER_S
#define SAVE_NS PMDP_NS_PER_S
#define NOTIFY_NS PMDP_NS_PER_S
#define DRAIN_NS (2 * PMDP_NS_PER_S)
#define TOUCH_EVENTS (IN_ATTRIB | IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_ONLYDIR)

static struct vs_follower *find_follower(struct vs_poster *poster, const char *name)
{
	for (uint32_t i = 0; i < poster->n_followers; i++)
		if (!strcmp(poster->followers[i].name, name))
			return &poster->followers[i];
	return NULL;
}

static void follow(struct vs_poster *poster, const char *name)
{
	uint32_t index = poster->n_followers;
	const struct vs_place *place = NULL;

	if (find_follower(poster, name))
		return;
	if (index == VS_MAX_INSTANCES) {
		if (!poster->is_full_told)
			vs_log(VS_WARNING,
			       "instance %s: more than %d; name those that matter with "
			       "instance=",
			       name, VS_MAX_INSTANCES);
		poster->is_full_told = true;
		return;
	}
	for (uint32_t i = 0; i < poster->state.n_places; i++)
		if (!strcmp(poster->state.places[i].instance, name))
			place = &poster->state.places[i];
	if (vs_follower_init(&poster->followers[index], name, index, &poster->config,
			     poster->rundir, &poster->queue, place))
		return; // no memory: tried again with the next look round
	poster->n_followers++;
}

static void discover(struct vs_poster *poster, uint64_t now_ns)
{
	static char names[VS_MAX_INSTANCES + 1][PMDP_INSTANCE_BYTES];
	int n;

	poster->discover_due_ns = now_ns + DISCOVER_NS;
	if (poster->touch_fd >= 0 && poster->touch_wd < 0)
		poster->touch_wd =
			inotify_add_watch(poster->touch_fd, poster->rundir, TOUCH_EVENTS);
	for (uint32_t i = 0; i < poster->config.n_instances; i++)
		follow(poster, poster->config.instances[i]);
	if (poster->config.n_instances)
		return;
	n = pmdp_instances(poster->rundir, "incidents", names, VS_MAX_INSTANCES + 1);
	for (int i = 0; i < n && i <= VS_MAX_INSTANCES; i++)
		follow(poster, names[i]);
}

// INSTANCE.incidents was touched, made or removed.
static void poke(struct vs_poster *poster, const char *file_name)
{
	for (uint32_t i = 0; i < poster->n_followers; i++) {
		size_t len = strlen(poster->followers[i].name);

		if (!strncmp(file_name, poster->followers[i].name, len) &&
		    !strcmp(file_name + len, ".incidents")) {
			vs_follower_poke(&poster->followers[i]);
			return;
		}
	}
	if (strstr(file_name, ".incidents"))
		poster->discover_due_ns = 0;
}

static void read_touches(struct vs_poster *poster)
{
	alignas(struct inotify_event) char buffer[4096];
	ssize_t n;

	while ((n = read(poster->touch_fd, buffer, sizeof(buffer))) > 0) {
		const struct inotify_event *event;

		for (char *at = buffer; at < buffer + n; at += sizeof(*event) + event->len) {
			event = (const struct inotify_event *)at;
			if (event->mask & IN_IGNORED) // the folder was removed; look for a new one
				poster->touch_wd = -1;
			else if (event->len > 0)
				poke(poster, event->name);
		}
	}
}

static void read_signals(struct vs_poster *poster)
{
	struct signalfd_siginfo info;

	while (read(poster->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		vs_log(VS_NOTICE, "%s: stopping", info.ssi_signo == SIGINT ? "SIGINT" : "SIGTERM");
		poster->is_stopping = true;
		poster->stop_by_ns = pmdp_mono_now_ns() + DRAIN_NS;
	}
}

static void save(struct vs_poster *poster, uint64_t now_ns)
{
	static struct vs_state state; // large, and of one thread

	poster->save_due_ns = now_ns + SAVE_NS;
	if (!poster->config.state_dir[0])
		return;
	// Instances that are not there now keep their places.
	state = poster->state;
	state.n_untold = vs_queue_untold_before(&poster->queue);
	for (uint32_t i = 0; i < poster->n_followers; i++) {
		struct vs_place *place = vs_state_place(&state, poster->followers[i].name);

		if (place)
			vs_follower_place(&poster->followers[i], place);
	}
	if (!memcmp(&state, &poster->state, sizeof(state)))
		return;
	int rc = vs_state_save(poster->config.state_dir, &state);
	if (!rc)
		poster->state = state;
	const char *why = rc ? strerror(-rc) : "";
	if (rc && strcmp(poster->save_error, why))
		vs_log(VS_WARNING,
		       "%s/state: %s; after a restart events may be sent twice or be missing",
		       poster->config.state_dir, why);
	snprintf(poster->save_error, sizeof(poster->save_error), "%s", why);
}

static int load(struct vs_poster *poster)
{
	if (!poster->config.state_dir[0])
		return 0;
	int rc = vs_state_load(poster->config.state_dir, &poster->state);
	if (rc == -EBADMSG) {
		vs_log(VS_WARNING, "%s/state: damaged; beginning with what is open now",
		       poster->config.state_dir);
		return 0;
	}
	if (rc)
		vs_log(VS_ERROR, "%s/state: %s; it must be a file of mine",
		       poster->config.state_dir, strerror(-rc));
	poster->queue.n_untold = poster->state.n_untold;
	return rc;
}

static int open_signals(struct vs_poster *poster)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	poster->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return poster->signal_fd < 0 ? -errno : 0;
}

static int start(struct vs_poster *poster, char *error, size_t size)
{
	int rc = pmdp_rundir(poster->config.rundir, poster->rundir, sizeof(poster->rundir));

	if (rc) {
		snprintf(error, size, "rundir: too long; give a shorter one");
		return rc;
	}
	rc = vs_queue_init(&poster->queue, (uint32_t)poster->config.queue);
	if (rc) {
		snprintf(error, size, "no memory for %llu events; make queue smaller",
			 (unsigned long long)poster->config.queue);
		return rc;
	}
	rc = vs_post_init(&poster->post, &poster->config, error, size);
	if (rc)
		return rc;
	rc = open_signals(poster);
	if (rc)
		snprintf(error, size, "signals: %s; raise the limit of open files", strerror(-rc));
	return rc;
}

int vs_poster_start(struct vs_poster *poster)
{
	char error[PMDP_SETTINGS_ERROR_BYTES] = "";
	struct timespec now;
	uint64_t usec = 0;

	poster->signal_fd = poster->touch_fd = poster->touch_wd = -1;
	poster->pace.min_ns = poster->config.retry_min_ms * NS_PER_MS;
	poster->pace.max_ns = poster->config.retry_max_ms * NS_PER_MS;
	clock_gettime(CLOCK_REALTIME, &now);
	poster->started_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
	int rc = start(poster, error, sizeof(error));
	if (rc)
		vs_log(VS_ERROR, "%s", error);
	rc = rc ? rc : load(poster);
	if (rc) {
		vs_poster_stop(poster);
		return rc;
	}
	poster->touch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (poster->touch_fd < 0)
		vs_log(VS_INFO, "no inotify (%s): events are polled for", strerror(errno));
	if (sd_watchdog_enabled(0, &usec) > 0)
		poster->watchdog_ns = usec * 1000;
	if (!vs_config_sends(&poster->config, VS_HEARTBEAT) || !poster->config.heartbeat_s)
		poster->beat_due_ns = UINT64_MAX;
	if (poster->config.credentials[0] && !strncmp(poster->config.url, "http:", 5))
		vs_log(VS_WARNING, "url: credentials go to %s in clear text; use https",
		       poster->config.url);
	vs_report_systemd(poster, "READY=1\n");
	return 0;
}

// What is due by the clock. Returns when the next is.
static uint64_t work(struct vs_poster *poster, uint64_t now_ns)
{
	uint64_t due_ns;

	if (now_ns >= poster->discover_due_ns)
		discover(poster, now_ns);
	due_ns = poster->discover_due_ns;
	for (uint32_t i = 0; i < poster->n_followers; i++) {
		uint64_t next_ns = vs_follower_step(&poster->followers[i], now_ns);

		due_ns = next_ns < due_ns ? next_ns : due_ns;
	}
	vs_send_next(poster, now_ns);
	if (now_ns >= poster->notify_due_ns) {
		vs_report_systemd(poster, poster->watchdog_ns ? "WATCHDOG=1\n" : "");
		poster->notify_due_ns =
			now_ns + (poster->watchdog_ns / 3 < NOTIFY_NS && poster->watchdog_ns
					  ? poster->watchdog_ns / 3
					  : NOTIFY_NS);
	}
	if (now_ns >= poster->save_due_ns)
		save(poster, now_ns);
	due_ns = poster->notify_due_ns < due_ns ? poster->notify_due_ns : due_ns;
	due_ns = poster->save_due_ns < due_ns ? poster->save_due_ns : due_ns;
	uint64_t send_ns = vs_send_due_ns(poster);
	return send_ns < due_ns ? send_ns : due_ns;
}

// Stopping: is there still something that may go out in time?
static bool is_drained(const struct vs_poster *poster, uint64_t now_ns)
{
	if (now_ns >= poster->stop_by_ns)
		return true;
	return !vs_post_is_busy(&poster->post) && (!poster->queue.n || poster->failing_since_ns);
}

void vs_poster_run(struct vs_poster *poster)
{
	struct curl_waitfd fds[2] = {
		{.fd = poster->signal_fd, .events = CURL_WAIT_POLLIN},
		{.fd = poster->touch_fd, .events = CURL_WAIT_POLLIN},
	};
	struct vs_result result;

	for (;;) {
		uint64_t now_ns = pmdp_mono_now_ns();
		uint64_t due_ns = work(poster, now_ns);

		if (vs_post_go(&poster->post, &result)) {
			vs_send_result(poster, &result, pmdp_mono_now_ns());
			continue;
		}
		now_ns = pmdp_mono_now_ns();
		if (poster->is_stopping && is_drained(poster, now_ns))
			return;
		int wait_ms = due_ns > now_ns ? (int)((due_ns - now_ns) / NS_PER_MS) + 1 : 0;
		vs_post_wait(&poster->post, fds, poster->touch_fd >= 0 ? 2 : 1, wait_ms);
		read_signals(poster);
		if (poster->touch_fd >= 0)
			read_touches(poster);
	}
}

void vs_poster_stop(struct vs_poster *poster)
{
	sd_notify(0, "STOPPING=1");
	if (poster->n_followers)
		save(poster, pmdp_mono_now_ns());
	if (poster->queue.n)
		vs_log(VS_NOTICE, "%u events wait%s", poster->queue.n,
		       poster->config.state_dir[0] ? " for the next start"
						   : " and are given up; set state-dir");
	while (poster->n_followers)
		vs_follower_fini(&poster->followers[--poster->n_followers]);
	vs_post_fini(&poster->post);
	vs_queue_fini(&poster->queue);
	if (poster->signal_fd >= 0)
		close(poster->signal_fd);
	if (poster->touch_fd >= 0)
		close(poster->touch_fd);
}
