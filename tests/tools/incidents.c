// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Writes an incidents segment as the agent does, without an agent, driven by lines on stdin: for
 * tests of what follows it.
 *
 *	incidents --instance NAME --rundir DIR [--events N]
 *
 *	raise NAME [KIND [N]]  NAME is the thread's, or the port's of a link or drops incident; with
 *	                       N texts of evidence
 *	update NAME
 *	clear NAME
 *	burst N              N stalls, raised and cleared
 *	hold / resume        the sign of life
 *	quit                 clean stop
 *
 * Each line is answered by "ok WORD SEQ" (of the newest event), or "error ...".
 */
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pmdp_incident.h"
#include "pmdp_names.h"

#define SIGN_MS 100

static struct pmdp_incident_log *agent;
static const char *instance = "default";

static const char *name_of(const struct pmdp_incident *incident)
{
	return incident->object[0] ? incident->object : incident->thread_name;
}

static uint64_t realtime_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static const struct pmdp_incident *find_open(const char *name)
{
	for (uint32_t slot = 0; slot < pmdp_incident_log_slots(agent); slot++) {
		const struct pmdp_incident *open = pmdp_incident_log_open_at(agent, slot);

		if (open && !strcmp(name_of(open), name))
			return open;
	}
	return NULL;
}

static uint64_t publish(struct pmdp_incident *incident, uint32_t phase)
{
	incident->phase = phase;
	incident->severity = pmdp_incident_severity(incident->kind, phase, incident->state);
	pmdp_incident_compose(incident);
	pmdp_incident_log_publish(agent, incident);
	return incident->seq;
}

static uint64_t raise_one(const char *name, int kind, int n_evidence, struct pmdp_incident *out)
{
	char key[PMDP_EVIDENCE_KEY_BYTES];

	pmdp_incident_init(out, instance, (uint32_t)kind, PMDP_PHASE_RAISE);
	if (kind == PMDP_KIND_LINK || kind == PMDP_KIND_DROPS)
		snprintf(out->object, sizeof(out->object), "%s", name);
	else
		pmdp_incident_thread(out, name, 4242, 1);
	out->state = PMDP_STATE_DEAD;
	out->cause = PMDP_CAUSE_PREEMPTED;
	for (int i = 0; i < n_evidence; i++) {
		snprintf(key, sizeof(key), "evidence_%d", i);
		pmdp_evidence_text(out, key, "a text of evidence that takes all of its room..");
	}
	pmdp_incident_culprit(out, "hog", 77, 78, "SCHED_FIFO", 300000000);
	out->started_realtime_us = out->detected_realtime_us = realtime_us();
	return publish(out, PMDP_PHASE_RAISE);
}

static uint64_t burst(unsigned long n)
{
	struct pmdp_incident incident;
	uint64_t seq = 0;
	char name[PMDP_LANE_NAME_BYTES];

	for (unsigned long i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "burst-%lu", i);
		raise_one(name, PMDP_KIND_PMD_STALL, 0, &incident);
		seq = publish(&incident, PMDP_PHASE_CLEAR);
	}
	return seq;
}

// 0: no such command, or nothing open under that name.
static uint64_t obey(const char *word, const char *name, const char *kind, int n_evidence,
		     bool *is_held)
{
	const struct pmdp_incident *open = find_open(name);
	struct pmdp_incident incident;

	if (!strcmp(word, "raise")) {
		int number = kind[0] ? pmdp_kind_parse(kind) : PMDP_KIND_PMD_STALL;

		return number < 0 ? 0 : raise_one(name, number, n_evidence, &incident);
	}
	if (!strcmp(word, "burst"))
		return burst(strtoul(name, NULL, 10));
	if (!strcmp(word, "hold") || !strcmp(word, "resume")) {
		*is_held = !strcmp(word, "hold");
		return 1;
	}
	if (!open || (strcmp(word, "update") && strcmp(word, "clear")))
		return 0;
	incident = *open;
	return publish(&incident, word[0] == 'u' ? PMDP_PHASE_UPDATE : PMDP_PHASE_CLEAR);
}

static void serve(void)
{
	char line[256];
	bool is_held = false;

	setvbuf(stdin, NULL, _IONBF, 0); // poll must see what fgets has not taken
	for (;;) {
		struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
		char word[32] = "", name[64] = "", kind[32] = "";
		int n_evidence = 0;

		if (!is_held)
			pmdp_incident_log_alive(agent);
		if (poll(&input, 1, SIGN_MS) <= 0)
			continue;
		if (!fgets(line, sizeof(line), stdin))
			return; // the test has gone
		sscanf(line, "%31s %63s %31s %d", word, name, kind, &n_evidence);
		if (!strcmp(word, "quit"))
			return;
		uint64_t seq = obey(word, name, kind, n_evidence, &is_held);
		if (seq)
			printf("ok %s %" PRIu64 "\n", word, seq);
		else
			printf("error %s %s: no such command, kind or open incident\n", word, name);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"instance", required_argument, NULL, 'i'},
		{"rundir", required_argument, NULL, 'r'},
		{"events", required_argument, NULL, 'e'},
		{0},
	};
	struct pmdp_incident_log_opts opts = {0};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'i')
			instance = optarg;
		else if (option == 'r')
			opts.rundir = optarg;
		else if (option == 'e')
			opts.n_events = (uint32_t)strtoul(optarg, NULL, 10);
		else
			return 2;
	}
	int rc = pmdp_incident_log_open(instance, &opts, &agent, NULL);
	if (rc) {
		fprintf(stderr, "incidents: %s: %s\n", instance, strerror(-rc));
		return 1;
	}
	printf("ok open 0\n");
	fflush(stdout);
	serve();
	pmdp_incident_log_close(agent);
	return 0;
}
