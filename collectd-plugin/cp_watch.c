// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "cp_watch.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <time.h>

#include <collectd/core/daemon/collectd.h>
#include <collectd/core/daemon/plugin.h>
#include <collectd/core/utils/common/common.h>

#include "cp_config.h"
#include "cp_instance.h"
#include "cp_log.h"
#include "cp_relay.h"
#include "pmdp_clock.h"
#include "pmdpulse.h"

#define DISCOVER_NS UINT64_C(500000000)
#define NICE (-20)
#define TOUCH_EVENTS (IN_ATTRIB | IN_CREATE | IN_MOVED_TO | IN_ONLYDIR)

struct watch {
	pthread_t thread;
	bool is_running;
	int stop_fd;
	int touch_fd;     // inotify, -1: none
	int touch_wd;     // watch on the run directory, -1: not there yet
	char rundir[512]; // as resolved at start
	uint64_t discover_due_ns;
};

static struct watch watch = {.stop_fd = -1, .touch_fd = -1, .touch_wd = -1};

static void discover(uint64_t now_ns)
{
	watch.discover_due_ns = now_ns + DISCOVER_NS;
	if (watch.touch_fd >= 0 && watch.touch_wd < 0)
		watch.touch_wd = inotify_add_watch(watch.touch_fd, watch.rundir, TOUCH_EVENTS);
	if (cp_config.n_instances == 0)
		cp_instances_discover(cp_config.rundir);
}

// INSTANCE.incidents was touched.
static void poke(const char *file_name)
{
	for (size_t i = 0; i < cp_instances_count(); i++) {
		struct cp_instance *instance = cp_instances_at(i);
		size_t len = strlen(instance->name);

		if (instance->relay != NULL && strncmp(file_name, instance->name, len) == 0 &&
		    strcmp(file_name + len, ".incidents") == 0)
			cp_relay_poke(instance->relay);
	}
}

static void read_touches(void)
{
	alignas(struct inotify_event) char buffer[4096];
	ssize_t n;

	while ((n = read(watch.touch_fd, buffer, sizeof(buffer))) > 0) {
		const struct inotify_event *event;

		for (char *at = buffer; at < buffer + n; at += sizeof(*event) + event->len) {
			event = (const struct inotify_event *)at;
			if (event->mask & IN_IGNORED) // the folder was removed; look for a new one
				watch.touch_wd = -1;
			else if (event->mask & IN_Q_OVERFLOW)
				continue; // the safety poll finds what this missed
			else if (event->len > 0)
				poke(event->name);
		}
	}
}

static uint64_t step_all(uint64_t now_ns)
{
	uint64_t due = watch.discover_due_ns;

	for (size_t i = 0; i < cp_instances_count(); i++) {
		struct cp_instance *instance = cp_instances_at(i);
		uint64_t next;

		if (instance->relay == NULL)
			instance->relay = cp_relay_new(instance, now_ns);
		if (instance->relay == NULL)
			continue;
		// The folder may come after collectd, and go again.
		cp_relay_set_touch_told(instance->relay, watch.touch_wd >= 0);
		next = cp_relay_step(instance->relay, now_ns);
		due = next < due ? next : due;
	}
	return due;
}

static void *look_main(void *arg)
{
	struct pollfd fds[2] = {
		{.fd = watch.stop_fd, .events = POLLIN},
		{.fd = watch.touch_fd, .events = POLLIN}, // -1 is ignored by poll
	};

	(void)arg;
	// Of this thread alone; without the right to, it only wakes a little later on a busy
	// machine.
	setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
	for (;;) {
		struct timespec pause = {0};
		uint64_t now_ns = pmdp_mono_now_ns(), due_ns;

		if (now_ns >= watch.discover_due_ns)
			discover(now_ns);
		due_ns = step_all(now_ns);
		now_ns = pmdp_mono_now_ns();
		if (due_ns > now_ns) {
			pause.tv_sec = (time_t)((due_ns - now_ns) / 1000000000u);
			pause.tv_nsec = (long)((due_ns - now_ns) % 1000000000u);
		}
		if (ppoll(fds, 2, &pause, NULL) <= 0)
			continue;
		if (fds[0].revents != 0)
			return NULL;
		if (fds[1].revents != 0)
			read_touches();
	}
}

int cp_watch_start(void)
{
	int rc;

	rc = pmdp_rundir(cp_config.rundir, watch.rundir, sizeof(watch.rundir));
	if (rc < 0)
		return rc;
	watch.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (watch.stop_fd < 0)
		return -errno;
	watch.touch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (watch.touch_fd < 0)
		cp_log(LOG_INFO, "no inotify (%s): the agent's events are polled for",
		       strerror(errno));
	watch.touch_wd = -1;
	watch.discover_due_ns = 0;
	rc = plugin_thread_create(&watch.thread, look_main, NULL, "pmdpulse look");
	watch.is_running = rc == 0;
	if (rc != 0)
		cp_watch_stop();
	return -rc;
}

void cp_watch_stop(void)
{
	if (watch.is_running) {
		eventfd_write(watch.stop_fd, 1);
		pthread_join(watch.thread, NULL);
	}
	watch.is_running = false;
	if (watch.stop_fd >= 0)
		close(watch.stop_fd);
	if (watch.touch_fd >= 0)
		close(watch.touch_fd);
	watch.stop_fd = watch.touch_fd = -1;
}
