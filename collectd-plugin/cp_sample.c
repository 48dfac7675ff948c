// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "cp_sample.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cp_config.h"
#include "cp_log.h"
#include "pmdp_clock.h"

// In another pid namespace the alive stamp is all there is: older than this means gone.
#define STAMP_GONE_NS UINT64_C(5000000000)

struct cp_sampler {
	char instance[PMDP_INSTANCE_BYTES];
	struct pmdp_reader *reader;
	uint64_t generation; // of the newest segment seen, 0 none
	int open_error;
	size_t n_threads_max, n_ports_max;
	struct cp_sample sample;
};

struct cp_sampler *cp_sampler_new(const char *instance)
{
	struct cp_sampler *sampler = calloc(1, sizeof(*sampler));

	if (sampler != NULL)
		strncpy(sampler->instance, instance, sizeof(sampler->instance) - 1);
	return sampler;
}

void cp_sampler_free(struct cp_sampler *sampler)
{
	if (sampler == NULL)
		return;
	pmdp_reader_close(sampler->reader);
	free(sampler->sample.threads);
	free(sampler->sample.ports);
	free(sampler);
}

static void forget(struct cp_sampler *sampler)
{
	sampler->sample.n_threads = sampler->sample.n_ports = 0;
}

// Room for all slots of the segment, once per segment.
static int make_room(struct cp_sampler *sampler, const struct pmdp_segment_info *info)
{
	struct cp_sample *sample = &sampler->sample;
	void *grown;

	if (info->n_lanes > sampler->n_threads_max) {
		grown = realloc(sample->threads, info->n_lanes * sizeof(*sample->threads));
		if (grown == NULL)
			return -ENOMEM;
		sample->threads = grown;
		sampler->n_threads_max = info->n_lanes;
	}
	if (info->n_ports > sampler->n_ports_max) {
		grown = realloc(sample->ports, info->n_ports * sizeof(*sample->ports));
		if (grown == NULL)
			return -ENOMEM;
		sample->ports = grown;
		sampler->n_ports_max = info->n_ports;
	}
	return 0;
}

static void attach(struct cp_sampler *sampler)
{
	const struct pmdp_reader_opts opts = {
		.rundir = cp_config.rundir,
		.publisher_uid = cp_config.publisher_uid,
		.has_publisher_uid = cp_config.has_publisher_uid,
	};
	const struct pmdp_segment_info *info;
	char reason[256] = "";
	int rc;

	rc = pmdp_reader_open_why(sampler->instance, &opts, &sampler->reader, reason,
				  sizeof(reason));
	if (rc == 0)
		rc = make_room(sampler, pmdp_reader_info(sampler->reader));
	if (rc < 0) {
		pmdp_reader_close(sampler->reader);
		sampler->reader = NULL;
		if (rc != -ENOENT) {
			sampler->sample.status = PMDP_WATCH_REFUSED;
			if (rc != sampler->open_error)
				cp_log(LOG_WARNING,
				       "instance %s: its segment can't be read: %s (%s)",
				       sampler->instance, reason, strerror(-rc));
		} else if (sampler->sample.status == PMDP_WATCH_REFUSED) {
			sampler->sample.status = PMDP_WATCH_ABSENT;
		}
		sampler->open_error = rc;
		return;
	}
	sampler->open_error = 0;
	info = pmdp_reader_info(sampler->reader);
	if (info->generation != sampler->generation) {
		if (sampler->generation != 0)
			sampler->sample.n_restarts++;
		sampler->generation = info->generation;
		forget(sampler);
	}
}

static uint32_t status_of(const struct cp_sampler *sampler, const struct pmdp_look *look)
{
	int alive;

	if (look->stopped_ns != 0)
		return PMDP_WATCH_STOPPED;
	if (!pmdp_reader_info(sampler->reader)->is_same_boot)
		return PMDP_WATCH_GONE;
	alive = pmdp_reader_writer_alive(sampler->reader);
	if (alive < 0)
		alive = look->now_ns - look->alive_ns < STAMP_GONE_NS;
	return alive ? PMDP_WATCH_UP : PMDP_WATCH_GONE;
}

static uint32_t thread_state(const struct cp_sampler *sampler, const struct cp_thread *thread,
			     const struct pmdp_look *look)
{
	uint32_t state = pmdp_lane_state(&thread->look, look, cp_config.keepalive_interval_ns);

	// A thread that left without a word looks DEAD until the kernel is asked.
	if ((state == PMDP_STATE_DEAD || state == PMDP_STATE_MISSING) &&
	    pmdp_watch_thread_alive(sampler->reader, &thread->body) == 0)
		return PMDP_STATE_GONE;
	return state;
}

// A body that is being written keeps its last copy, if it is of the same thread. False: the lane's
// new thread has not said who it is.
static bool copy_body(struct cp_sampler *sampler, uint32_t lane, struct cp_thread *thread,
		      const struct cp_thread *old)
{
	int rc = pmdp_reader_lane(sampler->reader, lane, &thread->body);

	if (rc == 0 || rc == -ENOENT)
		return rc == 0;
	if (old != NULL && old->look.incarnation == thread->look.incarnation) {
		thread->body = old->body;
		return true;
	}
	memset(&thread->body, 0, sizeof(thread->body));
	thread->body.core = thread->body.numa = -1;
	snprintf(thread->body.name, sizeof(thread->body.name), "lane-%u", lane);
	return true;
}

static uint64_t counter_ns(const struct cp_sampler *sampler, const struct cp_thread *thread,
			   uint32_t index)
{
	return pmdp_reader_length_ns(sampler->reader, thread->body.counters[index]);
}

static void copy_threads(struct cp_sampler *sampler, const struct pmdp_look *look)
{
	struct cp_sample *sample = &sampler->sample;
	size_t n_old = sample->n_threads, i_old = 0, n = 0;
	struct cp_thread *old = n_old > 0 ? malloc(n_old * sizeof(*old)) : NULL;

	if (old != NULL)
		memcpy(old, sample->threads, n_old * sizeof(*old));
	else
		n_old = 0;
	for (uint32_t lane = 0; lane < look->n_lanes && n < sampler->n_threads_max; lane++) {
		struct cp_thread *thread = &sample->threads[n];

		while (i_old < n_old && old[i_old].slot < lane)
			i_old++;
		if (!look->lanes[lane].is_claimed)
			continue;
		thread->slot = lane;
		thread->look = look->lanes[lane];
		if (!copy_body(sampler, lane, thread,
			       i_old < n_old && old[i_old].slot == lane ? &old[i_old] : NULL))
			continue;
		thread->body.name[sizeof(thread->body.name) - 1] = 0;
		thread->busy_ns = counter_ns(sampler, thread, PMDP_C_BUSY_TICKS);
		thread->idle_ns = counter_ns(sampler, thread, PMDP_C_IDLE_TICKS);
		thread->sleep_ns = counter_ns(sampler, thread, PMDP_C_SLEEP_TICKS);
		thread->upcall_ns = counter_ns(sampler, thread, PMDP_C_UPCALL_TICKS);
		thread->state = thread_state(sampler, thread, look);
		n++;
	}
	sample->n_threads = n;
	free(old);
}

static void copy_ports(struct cp_sampler *sampler)
{
	struct cp_sample *sample = &sampler->sample;
	uint32_t n_slots = pmdp_reader_info(sampler->reader)->n_ports;
	struct pmdp_port_body body;
	size_t n = 0;

	for (uint32_t slot = 0; slot < n_slots && n < sampler->n_ports_max; slot++) {
		int rc = pmdp_reader_port(sampler->reader, slot, &body, NULL);
		bool is_kept = n < sample->n_ports && sample->ports[n].slot == slot;

		if (rc == 0)
			sample->ports[n].body = body;
		else if (rc != -EAGAIN || !is_kept)
			continue;
		sample->ports[n].slot = slot;
		sample->ports[n].body.name[PMDP_NAME_BYTES - 1] = 0;
		n++;
	}
	sample->n_ports = n;
}

// The switch no longer runs: what it left behind changes its meaning.
static void settle(struct cp_sample *sample)
{
	uint32_t state = sample->status == PMDP_WATCH_GONE ? PMDP_STATE_GONE : PMDP_STATE_UNUSED;

	for (size_t i = 0; i < sample->n_threads; i++)
		if (sample->threads[i].look.announce != PMDP_ANNOUNCE_EXITED)
			sample->threads[i].state = state;
		else
			sample->threads[i].state = PMDP_STATE_UNUSED;
	for (size_t i = 0; i < sample->n_ports; i++)
		sample->ports[i].body.link_state = sample->ports[i].body.admin_state =
			PMDP_LINK_UNKNOWN;
	sample->is_keepalive = false;
	memset(&sample->process, 0, sizeof(sample->process));
}

static void look(struct cp_sampler *sampler)
{
	struct cp_sample *sample = &sampler->sample;
	const struct pmdp_segment_info *info = pmdp_reader_info(sampler->reader);
	struct pmdp_look now;

	if (pmdp_reader_look(sampler->reader, &now) < 0) {
		pmdp_reader_close(sampler->reader);
		sampler->reader = NULL;
		sample->status = PMDP_WATCH_REFUSED;
		return;
	}
	sample->now_ns = now.now_ns;
	sample->alive_ns = now.alive_ns;
	sample->is_keepalive = now.is_keepalive;
	sample->interval_ns = cp_config.keepalive_interval_ns != 0 ? cp_config.keepalive_interval_ns
								   : now.keepalive_interval_ns;
	sample->stall_ns = 2 * now.keepalive_interval_ns;
	sample->status = status_of(sampler, &now);
	// After a clean stop the lanes are free: what was seen while it ran stays.
	if (sample->status == PMDP_WATCH_STOPPED)
		return;
	copy_threads(sampler, &now);
	copy_ports(sampler);
	if (sample->status == PMDP_WATCH_UP && info->is_same_pidns)
		cp_process_read(info->writer_pid, info->writer_start_ticks, &sample->process);
}

const struct cp_sample *cp_sampler_step(struct cp_sampler *sampler)
{
	struct cp_sample *sample = &sampler->sample;
	int rc;

	sample->now_ns = pmdp_mono_now_ns();
	memset(&sample->process, 0, sizeof(sample->process));
	if (sampler->reader != NULL) {
		rc = pmdp_reader_check(sampler->reader);
		if (rc < 0) {
			// One last look at the file that lost its name: was it a clean stop?
			look(sampler);
			if (sample->status == PMDP_WATCH_UP)
				sample->status = PMDP_WATCH_GONE;
			pmdp_reader_close(sampler->reader);
			sampler->reader = NULL;
		}
	}
	if (sampler->reader == NULL)
		attach(sampler);
	if (sampler->reader != NULL)
		look(sampler);
	if (sample->status != PMDP_WATCH_UP)
		settle(sample);
	return sample;
}
