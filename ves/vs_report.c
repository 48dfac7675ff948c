// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// What systemd and the collector hear about the poster itself.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <systemd/sd-daemon.h>

#include "build_info.h"
#include "pmdp_ves.h"
#include "vs_poster.h"

#define FIXED_FIELDS 6
#define FIELD_BYTES 96
#define TOLD_INSTANCES 16 // in a heartbeat

static const char *const agent_words[] = {
	[VS_AGENT_ABSENT] = "absent", [VS_AGENT_UP] = "up", [VS_AGENT_GONE] = "gone"};

struct fields {
	struct pmdp_ves_field fields[FIXED_FIELDS + 2 * TOLD_INSTANCES];
	char keys[FIXED_FIELDS + 2 * TOLD_INSTANCES][FIELD_BYTES];
	char values[FIXED_FIELDS + 2 * TOLD_INSTANCES][24];
	uint32_t n;
};

static void add_number(struct fields *fields, const char *key, const char *instance, uint64_t value)
{
	uint32_t at = fields->n++;

	snprintf(fields->keys[at], FIELD_BYTES, "%s%s%s", key, instance[0] ? "." : "", instance);
	snprintf(fields->values[at], sizeof(fields->values[at]), "%" PRIu64, value);
	fields->fields[at] = (struct pmdp_ves_field){fields->keys[at], fields->values[at]};
}

static void add_instance(struct fields *fields, struct vs_follower *follower)
{
	uint32_t at = fields->n++;

	snprintf(fields->keys[at], FIELD_BYTES, "agent.%s", follower->name);
	fields->fields[at] =
		(struct pmdp_ves_field){fields->keys[at], agent_words[follower->agent]};
	add_number(fields, "open", follower->name, vs_follower_n_open(follower));
}

char *vs_report_heartbeat(struct vs_poster *poster)
{
	const struct pmdp_ves_source source = {.host = poster->config.source_name,
					       .reporter = "pmdpulse-ves"};
	struct fields fields = {.n = 1, .fields = {{"version", PMDP_VERSION}}};
	struct pmdp_ves_heartbeat heartbeat = {
		.seq = poster->n_beats + 1,
		.interval_s = poster->config.heartbeat_s,
		.fields = fields.fields,
	};
	struct timespec now;
	char id[80];

	clock_gettime(CLOCK_REALTIME, &now);
	heartbeat.realtime_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
	snprintf(id, sizeof(id), "heartbeat-%" PRIu64 "-%" PRIu64, poster->started_us / 1000,
		 heartbeat.seq);
	heartbeat.id = id;
	add_number(&fields, "sent", "", poster->n_sent);
	add_number(&fields, "queued", "", poster->queue.n);
	add_number(&fields, "lost", "", poster->queue.n_lost);
	add_number(&fields, "refused", "", poster->n_refused);
	add_number(&fields, "failed_tries", "", poster->n_failed);
	for (uint32_t i = 0; i < poster->n_followers && i < TOLD_INSTANCES; i++)
		add_instance(&fields, &poster->followers[i]);
	heartbeat.n_fields = fields.n;
	return pmdp_ves_heartbeat(&heartbeat, &source);
}

void vs_report_systemd(struct vs_poster *poster, const char *prefix)
{
	char text[sizeof(poster->status)];
	size_t used;

	used = (size_t)snprintf(text, sizeof(text),
				"%" PRIu64 " sent, %u waiting, %" PRIu64 " lost (%" PRIu64
				" refused)",
				poster->n_sent, poster->queue.n, poster->queue.n_lost,
				poster->n_refused);
	for (uint32_t i = 0; i < poster->n_followers && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "; %s: agent %s",
					 poster->followers[i].name,
					 agent_words[poster->followers[i].agent]);
	if (poster->last_error[0] && used < sizeof(text))
		snprintf(text + used, sizeof(text) - used, "; collector: %.200s",
			 poster->last_error);
	if (!prefix[0] && !strcmp(text, poster->status))
		return;
	memcpy(poster->status, text, sizeof(text));
	sd_notifyf(0, "%sSTATUS=%s", prefix, text);
}
