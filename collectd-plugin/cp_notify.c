// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "cp_notify.h"

#include <pthread.h>

#include <collectd/core/daemon/collectd.h>
#include <collectd/core/daemon/plugin.h>
#include <collectd/core/utils/common/common.h>

#include "cp_label.h"
#include "cp_log.h"
#include "cp_queue.h"
#include "cp_types.h"
#include "pmdp_incident.h"
#include "pmdp_ves.h"

#define QUEUE_ITEMS 512
#define DRAIN_NS UINT64_C(500000000)
#define JOIN_TOLD_NS 900000000 // then the log says what is being waited for

static struct cp_queue *queue;
static pthread_t thread;
static bool is_running;

static void add_text(notification_t *n, const char *name, const char *value)
{
	if (value != NULL && value[0] != 0)
		plugin_notification_meta_add_string(n, name, value);
}

static void add_time(notification_t *n, const char *name, uint64_t realtime_us)
{
	char text[40];

	if (realtime_us != 0)
		add_text(n, name, pmdp_rfc3339(realtime_us, text, sizeof(text)));
}

static void add_thread(notification_t *n, const struct pmdp_incident *incident)
{
	if (incident->thread_name[0] == 0)
		return;
	add_text(n, "thread", incident->thread_name);
	plugin_notification_meta_add_unsigned_int(n, "tid", incident->thread_tid);
	if (incident->thread_core >= 0)
		plugin_notification_meta_add_signed_int(n, "core", incident->thread_core);
	add_text(n, "state", pmdp_state_name(incident->state));
}

static void add_culprit(notification_t *n, const struct pmdp_incident *incident)
{
	if (incident->culprit_pid == 0)
		return;
	add_text(n, "culprit_comm", incident->culprit_comm);
	plugin_notification_meta_add_unsigned_int(n, "culprit_pid", incident->culprit_pid);
	plugin_notification_meta_add_unsigned_int(n, "culprit_tid", incident->culprit_tid);
	add_text(n, "culprit_class", incident->culprit_class);
	plugin_notification_meta_add_double(n, "culprit_took_s",
					    (double)incident->culprit_took_ns / 1e9);
}

static void add_ves(notification_t *n, const struct pmdp_incident *incident)
{
	const struct pmdp_ves_source source = {.host = n->host, .reporter = "collectd-pmdpulse"};
	char *text = pmdp_ves_fault(incident, &source);

	add_text(n, "ves", text);
	free(text);
}

static void add_meta(notification_t *n, const struct pmdp_incident *incident)
{
	add_text(n, "id", incident->id);
	plugin_notification_meta_add_unsigned_int(n, "seq", incident->seq);
	add_text(n, "kind", pmdp_kind_name(incident->kind));
	add_text(n, "phase", pmdp_phase_name(incident->phase));
	add_text(n, "instance", incident->instance);
	add_thread(n, incident);
	add_text(n, "object", incident->object);
	add_text(n, "cause", pmdp_cause_name(incident->cause));
	add_culprit(n, incident);
	add_time(n, "started_at", incident->started_realtime_us);
	add_time(n, "detected_at", incident->detected_realtime_us);
	add_time(n, "emitted_at", incident->emitted_realtime_us);
	plugin_notification_meta_add_double(n, "duration_s", (double)incident->duration_ns / 1e9);
	add_ves(n, incident);
}

static void dispatch(const struct cp_item *item)
{
	const struct pmdp_incident *incident = &item->incident;
	notification_t n = {.severity = (int)incident->severity};

	n.time = incident->emitted_realtime_us != 0 ? US_TO_CDTIME_T(incident->emitted_realtime_us)
						    : cdtime();
	sstrncpy(n.host, hostname_g, sizeof(n.host));
	sstrncpy(n.plugin, "pmdpulse", sizeof(n.plugin));
	cp_label(item->instance->name,
		 incident->thread_name[0] != 0 ? incident->thread_name : incident->object,
		 n.plugin_instance);
	sstrncpy(n.type, cp_types[CP_T_INCIDENTS].name, sizeof(n.type));
	sstrncpy(n.type_instance, pmdp_kind_name(incident->kind), sizeof(n.type_instance));
	sstrncpy(n.message, incident->message, sizeof(n.message));
	add_meta(&n, incident);
	plugin_dispatch_notification(&n);
	plugin_notification_meta_free(n.meta);
	atomic_fetch_add_explicit(&item->instance->numbers.n_sent, 1, memory_order_relaxed);
}

static void *dispatch_main(void *arg)
{
	struct cp_item item;

	(void)arg;
	while (cp_queue_pop(queue, &item))
		dispatch(&item);
	return NULL;
}

int cp_notify_start(void)
{
	int rc;

	queue = cp_queue_new(QUEUE_ITEMS);
	if (queue == NULL)
		return -ENOMEM;
	rc = plugin_thread_create(&thread, dispatch_main, NULL, "pmdpulse notify");
	if (rc != 0) {
		cp_queue_free(queue);
		queue = NULL;
		return -rc;
	}
	is_running = true;
	return 0;
}

static void join(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += JOIN_TOLD_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	if (pthread_timedjoin_np(thread, NULL, &until) == 0)
		return;
	cp_log(LOG_NOTICE, "waiting for a notification receiver of another plugin to return");
	pthread_join(thread, NULL);
}

void cp_notify_stop(void)
{
	if (!is_running)
		return;
	cp_queue_close(queue, DRAIN_NS);
	join();
	is_running = false;
	cp_queue_free(queue);
	queue = NULL;
}

void cp_notify_submit(struct cp_instance *instance, const struct pmdp_incident *incident)
{
	struct cp_item item;

	if (!is_running)
		return;
	item.instance = instance;
	item.incident = *incident;
	cp_queue_push(queue, &item);
}
