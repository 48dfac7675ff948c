// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "vs_follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pmdp_ves.h"
#include "vs_follow_agent.h"
#include "vs_log.h"

#define BATCH 32
#define READ_NS UINT64_C(100000000) // without inotify
#define READ_POKED_NS UINT64_C(1000000000)
#define CHECK_NS UINT64_C(500000000)

int vs_follower_init(struct vs_follower *follower, const char *name, uint32_t index,
		     const struct vs_config *config, const char *rundir, struct vs_queue *queue,
		     const struct vs_place *place)
{
	memset(follower, 0, sizeof(*follower));
	follower->batch = malloc(BATCH * sizeof(*follower->batch));
	if (!follower->batch)
		return -ENOMEM;
	snprintf(follower->name, sizeof(follower->name), "%s", name);
	follower->index = index;
	follower->config = config;
	follower->rundir = rundir;
	follower->queue = queue;
	if (place) {
		follower->next_seq = place->next_seq;
		snprintf(follower->last_id, sizeof(follower->last_id), "%s", place->last_id);
		vs_follow_agent_restore(follower, place);
	}
	return 0;
}

void vs_follower_fini(struct vs_follower *follower)
{
	pmdp_reader_close(follower->reader);
	follower->reader = NULL;
	free(follower->batch);
	follower->batch = NULL;
}

static void tell(struct vs_follower *follower, const struct pmdp_incident *incident)
{
	struct vs_item item = {.incident = *incident, .source = follower->index};

	if (vs_config_sends(follower->config, VS_FAULT))
		item.domains |= VS_FAULT;
	if (vs_config_sends(follower->config, VS_STATE_CHANGE) &&
	    pmdp_ves_is_state_change(incident))
		item.domains |= VS_STATE_CHANGE;
	if (item.domains)
		vs_queue_push(follower->queue, &item);
}

static void remember(struct vs_follower *follower, const struct pmdp_incident *newest)
{
	follower->next_seq = follower->cursor + 1;
	snprintf(follower->last_id, sizeof(follower->last_id), "%s", newest->id);
}

static void count_lost(struct vs_follower *follower, uint64_t *lost)
{
	if (!*lost)
		return;
	vs_queue_lost(follower->queue, follower->index, *lost);
	vs_log(VS_WARNING, "instance %s: %llu events were overwritten before they could be read",
	       follower->name, (unsigned long long)*lost);
	*lost = 0;
}

// Queue what is new. 0 or a negative errno of the reader.
static int read_events(struct vs_follower *follower)
{
	uint64_t lost = 0;
	int n;

	while ((n = pmdp_reader_events(follower->reader, &follower->cursor, follower->batch, BATCH,
				       &lost)) > 0) {
		// What was lost lies before the first of these, or between them.
		count_lost(follower, &lost);
		for (int i = 0; i < n; i++) {
			pmdp_incident_sanitize(&follower->batch[i]);
			tell(follower, &follower->batch[i]);
		}
		remember(follower, &follower->batch[n - 1]);
	}
	count_lost(follower, &lost);
	return n;
}

// Nothing was sent before: raise what is open now, go on with what comes.
static int begin(struct vs_follower *follower)
{
	struct pmdp_incident *incident = &follower->batch[0];
	uint32_t n_slots = pmdp_reader_info(follower->reader)->n_incidents;
	int n;

	follower->cursor = UINT64_MAX;
	follower->last_id[0] = 0;
	while ((n = pmdp_reader_events(follower->reader, &follower->cursor, follower->batch, BATCH,
				       NULL)) > 0) {
		pmdp_incident_sanitize(&follower->batch[n - 1]);
		remember(follower, &follower->batch[n - 1]);
	}
	if (n < 0)
		return n;
	follower->next_seq = follower->cursor + 1;
	for (uint32_t slot = 0; slot < n_slots; slot++) {
		int rc = pmdp_reader_incident(follower->reader, slot, incident);

		if (rc == -EBADMSG || rc == -EIO)
			return rc;
		if (rc < 0)
			continue;
		pmdp_incident_sanitize(incident);
		// An incident is in the table before it is in the ring: a newer one is still to
		// come.
		if (incident->seq >= follower->next_seq)
			continue;
		incident->phase = PMDP_PHASE_RAISE;
		tell(follower, incident);
	}
	return 0;
}

/*
 * Does the segment go on from where we were? 1 yes, or too far on to tell; 0 no: another history
 * (the agent found its old one damaged, or somebody removed it); or a negative errno.
 */
static int is_continued(struct vs_follower *follower)
{
	uint64_t cursor = follower->next_seq - 1;
	int n = pmdp_reader_events(follower->reader, &cursor, follower->batch, 0, NULL);

	if (n == -ESTALE)
		return 0;
	if (n < 0 || follower->next_seq < 2 || !follower->last_id[0])
		return n < 0 ? n : 1;
	cursor = follower->next_seq - 2;
	n = pmdp_reader_events(follower->reader, &cursor, follower->batch, 1, NULL);
	if (n <= 0)
		return n < 0 ? n : 1;
	pmdp_incident_sanitize(&follower->batch[0]);
	return cursor != follower->next_seq - 1 ||
	       !strcmp(follower->batch[0].id, follower->last_id);
}

static int find_place(struct vs_follower *follower)
{
	if (!follower->next_seq)
		return begin(follower);
	int rc = is_continued(follower);
	if (rc < 0)
		return rc;
	follower->cursor = follower->next_seq - 1;
	if (!rc) {
		vs_log(VS_NOTICE, "instance %s: the agent's history began anew; all of it is sent",
		       follower->name);
		follower->cursor = UINT64_MAX;
		follower->next_seq = 1;
		follower->last_id[0] = 0;
	}
	return 0;
}

static void close_segment(struct vs_follower *follower)
{
	pmdp_reader_close(follower->reader);
	follower->reader = NULL;
}

static void open_segment(struct vs_follower *follower, uint64_t now_ns)
{
	const struct pmdp_reader_opts opts = {
		.rundir = follower->rundir,
		.suffix = "incidents",
		.publisher_uid = follower->config->publisher_uid,
		.has_publisher_uid = follower->config->has_publisher_uid,
	};
	char reason[256] = "";
	int rc = pmdp_reader_open_why(follower->name, &opts, &follower->reader, reason,
				      sizeof(reason));

	if (!rc) {
		vs_follow_agent_attached(follower, now_ns);
		follower->read_due_ns = 0;
		rc = find_place(follower);
		if (rc)
			close_segment(follower);
		else
			vs_log(VS_INFO,
			       "instance %s: %s/%s.incidents is followed from event %llu on",
			       follower->name, follower->rundir, follower->name,
			       (unsigned long long)follower->next_seq);
	}
	if (rc && rc != -ENOENT && rc != follower->open_error)
		vs_log(VS_WARNING, "instance %s: %s/%s.incidents can't be read: %s (%s)",
		       follower->name, follower->rundir, follower->name,
		       reason[0] ? reason : "damaged", strerror(-rc));
	follower->open_error = rc;
}

// The file under the name is another one, gone or damaged? What this one still holds is read first.
static void check_segment(struct vs_follower *follower, uint64_t now_ns)
{
	struct pmdp_look look;
	int rc = pmdp_reader_check(follower->reader);

	if (!rc)
		rc = pmdp_reader_look(follower->reader, &look);
	if (!rc) {
		vs_follow_agent_look(follower, &look, now_ns);
		return;
	}
	read_events(follower);
	close_segment(follower);
	open_segment(follower, now_ns);
}

uint64_t vs_follower_step(struct vs_follower *follower, uint64_t now_ns)
{
	vs_follow_agent_woke(follower, now_ns);
	if (now_ns >= follower->check_due_ns) {
		follower->check_due_ns = now_ns + CHECK_NS;
		if (follower->reader)
			check_segment(follower, now_ns);
		else
			open_segment(follower, now_ns);
	}
	if (follower->reader && now_ns >= follower->read_due_ns) {
		follower->read_due_ns = now_ns + (follower->is_poked ? READ_POKED_NS : READ_NS);
		if (read_events(follower) < 0)
			close_segment(follower);
	}
	vs_follow_agent_judge(follower, now_ns);
	if (!follower->reader || follower->check_due_ns < follower->read_due_ns)
		return follower->check_due_ns;
	return follower->read_due_ns;
}

void vs_follower_poke(struct vs_follower *follower)
{
	follower->is_poked = true;
	follower->read_due_ns = follower->check_due_ns = 0;
}

void vs_follower_place(const struct vs_follower *follower, struct vs_place *place)
{
	uint64_t first = vs_queue_first_seq(follower->queue, follower->index, follower->next_seq);

	place->next_seq = first;
	// The id that is known is that of the newest event read; an older place goes without.
	snprintf(place->last_id, sizeof(place->last_id), "%s",
		 first == follower->next_seq ? follower->last_id : "");
	snprintf(place->gone_id, sizeof(place->gone_id), "%s", follower->gone.id);
	place->gone_started_us = follower->gone.started_realtime_us;
}

uint32_t vs_follower_n_open(struct vs_follower *follower)
{
	uint32_t n_slots, n = 0;

	if (!follower->reader)
		return 0;
	n_slots = pmdp_reader_info(follower->reader)->n_incidents;
	for (uint32_t slot = 0; slot < n_slots; slot++)
		n += !pmdp_reader_incident(follower->reader, slot, &follower->batch[0]);
	return n;
}
