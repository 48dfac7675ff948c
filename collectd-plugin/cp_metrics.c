// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "cp_metrics.h"

#include <math.h>

#include <collectd/core/daemon/collectd.h>
#include <collectd/core/daemon/plugin.h>
#include <collectd/core/utils/common/common.h>

#include "cp_config.h"
#include "cp_emit.h"
#include "cp_instance.h"
#include "cp_label.h"
#include "cp_metrics_parts.h"
#include "cp_sample.h"
#include "pmdp_clock.h"

static struct cp_instance placeholder = {.name = "default"};

double cp_mono_s(void)
{
	return (double)pmdp_mono_now_ns() / 1e9;
}

static double seconds(uint64_t from_ns, uint64_t to_ns)
{
	return from_ns == 0 || to_ns < from_ns ? NAN : (double)(to_ns - from_ns) / 1e9;
}

static void emit_switch(const struct cp_object *object, const struct cp_sample *sample)
{
	const struct cp_process *process = &sample->process;
	// x + NAN is NAN: no fact of a process that is gone.
	double fact = process->is_known ? 0 : NAN;
	uint64_t n_in_state[PMDP_N_STATES] = {0};

	cp_gauge(object, CP_T_SWITCH_UP, NULL, sample->status == PMDP_WATCH_UP);
	cp_gauge(object, CP_T_SWITCH_STATUS, NULL, sample->status);
	cp_gauge(object, CP_T_SWITCH_UPTIME, NULL, process->uptime_s + fact);
	cp_gauge(object, CP_T_SWITCH_CPU, "user", process->user_s + fact);
	cp_gauge(object, CP_T_SWITCH_CPU, "system", process->system_s + fact);
	cp_gauge(object, CP_T_SWITCH_RSS, NULL, process->rss_bytes + fact);
	cp_gauge(object, CP_T_SWITCH_VSZ, NULL, process->vsz_bytes + fact);
	cp_count(object, CP_T_SWITCH_RESTARTS, NULL, sample->n_restarts);
	cp_gauge(object, CP_T_SWITCH_ALIVE_AGE, NULL, seconds(sample->alive_ns, sample->now_ns));
	cp_gauge(object, CP_T_SWITCH_KEEPALIVE, NULL, sample->is_keepalive);
	cp_gauge(object, CP_T_SWITCH_INTERVAL, NULL,
		 sample->interval_ns != 0 ? (double)sample->interval_ns / 1e9 : NAN);
	for (size_t i = 0; i < sample->n_threads; i++)
		n_in_state[sample->threads[i].state % PMDP_N_STATES]++;
	for (uint32_t state = 0; state < PMDP_N_STATES; state++) {
		char name[16];

		sstrncpy(name, pmdp_state_name(state), sizeof(name));
		for (char *c = name; *c != 0; c++)
			*c = (char)tolower((unsigned char)*c);
		cp_gauge(object, CP_T_SWITCH_THREADS, name, (double)n_in_state[state]);
	}
}

static void emit_threads(const struct cp_object *of, const struct cp_sample *sample,
			 struct cp_tally *tally)
{
	size_t n = 0, n_max = sample->n_threads;
	const char **names = calloc(n_max + 1, sizeof(*names)),
		   **labels = calloc(n_max + 1, sizeof(*labels));
	const struct cp_thread **threads = calloc(n_max + 1, sizeof(*threads));
	uint32_t *slots = calloc(n_max + 1, sizeof(*slots));
	struct cp_label_set *set = cp_label_set_new(n_max);

	for (size_t i = 0; i < n_max && names && labels && threads && slots && set; i++) {
		const struct cp_thread *thread = &sample->threads[i];

		if (!cp_select_match(&cp_config.threads, thread->body.name))
			continue;
		threads[n] = thread;
		names[n] = thread->body.name;
		slots[n++] = thread->slot;
	}
	if (n > 0 && cp_label_set_fill(set, of->label, names, slots, n, labels) == 0)
		for (size_t i = 0; i < n; i++) {
			const struct cp_object object = {labels[i], of->time, of->interval};

			cp_emit_thread(&object, threads[i], sample);
			cp_emit_tally(&object, names[i], tally);
		}
	cp_label_set_free(set);
	free(slots);
	free(threads);
	free(labels);
	free(names);
}

static void emit_ports(const struct cp_object *of, const struct cp_sample *sample)
{
	size_t n = sample->n_ports;
	const char **names = calloc(n + 1, sizeof(*names)),
		   **labels = calloc(n + 1, sizeof(*labels));
	uint32_t *slots = calloc(n + 1, sizeof(*slots));
	struct cp_label_set *set = cp_label_set_new(n);

	if (names != NULL && labels != NULL && slots != NULL && set != NULL) {
		for (size_t i = 0; i < n; i++) {
			names[i] = sample->ports[i].body.name;
			slots[i] = sample->ports[i].slot;
		}
		if (cp_label_set_fill(set, of->label, names, slots, n, labels) == 0)
			for (size_t i = 0; i < n; i++)
				cp_emit_port(&(struct cp_object){labels[i], of->time, of->interval},
					     &sample->ports[i].body);
	}
	cp_label_set_free(set);
	free(slots);
	free(labels);
	free(names);
}

static void do_instance(struct cp_instance *instance, const struct cp_round *round)
{
	const struct cp_object object = {instance->name, round->time, round->interval};
	const struct cp_sample *sample;

	if (instance->sampler == NULL)
		instance->sampler = cp_sampler_new(instance->name);
	if (instance->sampler == NULL)
		return;
	sample = cp_sampler_step(instance->sampler);
	emit_switch(&object, sample);
	emit_threads(&object, sample, &instance->tally);
	emit_ports(&object, sample);
	cp_emit_relay(&object, &instance->numbers, sample->now_ns);
}

static void emit_durations(const struct cp_instance *instance, const struct cp_round *round,
			   double round_s)
{
	const struct cp_object object = {instance->name, round->time, round->interval};

	cp_gauge(&object, CP_T_READ_DURATION, NULL, round->callback_s);
	cp_gauge(&object, CP_T_ROUND_DURATION, NULL, round_s);
}

void cp_metrics_dispatch(const struct cp_round *round)
{
	double begin_s = cp_mono_s(), round_s;
	size_t n;

	if (cp_config.n_instances == 0)
		cp_instances_discover(cp_config.rundir);
	n = cp_instances_count();
	// Before any instance was seen, the default one is reported as not up.
	if (n == 0)
		do_instance(&placeholder, round);
	for (size_t i = 0; i < n; i++)
		do_instance(cp_instances_at(i), round);
	round_s = cp_mono_s() - begin_s;
	if (n == 0)
		emit_durations(&placeholder, round, round_s);
	for (size_t i = 0; i < n; i++)
		emit_durations(cp_instances_at(i), round, round_s);
}

void cp_metrics_clear(void)
{
	cp_sampler_free(placeholder.sampler);
	placeholder.sampler = NULL;
}
