// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// events: the history in the incidents segment, and what follows. Works with everything dead.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "pmdp_incident.h"
#include "pmdp_json.h"

#define EVENT_BATCH 64
// A follower looks this often; the writer pays for every look, a person does not notice less.
#define FOLLOW_NS 50000000
#define REALTIME_S_PER_DAY 86400

struct follow {
	struct cli *cli;
	struct pmdp_incident *events; // EVENT_BATCH
	uint64_t since_us;
	uint64_t next_seq; // the sequence number expected next, across agents' restarts; 0: none
			   // seen
	uint64_t lost;
};

static bool parse_since(const char *text, uint64_t *out_us)
{
	struct timespec now;
	struct tm tm = {.tm_isdst = -1};
	char *end;
	double n = strtod(text, &end);

	clock_gettime(CLOCK_REALTIME, &now);
	if (end != text && end[0] != 0 && end[1] == 0 && strchr("smhd", end[0]) != NULL && n >= 0) {
		double unit = *end == 's'   ? 1
			      : *end == 'm' ? 60
			      : *end == 'h' ? 3600
					    : REALTIME_S_PER_DAY;
		double us = (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3 - n * unit * 1e6;

		*out_us = us < 0 ? 0 : (uint64_t)us;
		return true;
	}
	if (end != text && *end == 0 && n >= 0) {
		*out_us = (uint64_t)(n * 1e6);
		return true;
	}
	// RFC 3339: date, time, fraction, offset; without offset local time, as journalctl has it.
	end = strptime(text, "%Y-%m-%d", &tm);
	if (end != NULL && (*end == 'T' || *end == ' '))
		end = strptime(end + 1, "%H:%M:%S", &tm);
	if (end == NULL)
		return false;
	double fraction = *end == '.' ? strtod(end, &end) : 0;
	long offset_s;

	if (*end == 'Z' && end[1] == 0) {
		*out_us = (uint64_t)timegm(&tm) * 1000000 + (uint64_t)(fraction * 1e6);
		return true;
	}
	if (*end == 0) {
		*out_us = (uint64_t)mktime(&tm) * 1000000 + (uint64_t)(fraction * 1e6);
		return true;
	}
	if ((*end != '+' && *end != '-') || strlen(end) != 6 || end[3] != ':')
		return false;
	offset_s = (atoi(end + 1) * 60 + atoi(end + 4)) * 60;
	*out_us = (uint64_t)(timegm(&tm) - (*end == '-' ? -offset_s : offset_s)) * 1000000 +
		  (uint64_t)(fraction * 1e6);
	return true;
}

static void print_event(const struct follow *follow, const struct pmdp_incident *event)
{
	char line[PMDP_MESSAGE_BYTES + 256], *json;

	if (!follow->cli->is_json) {
		puts(pmdp_incident_line(event, line, sizeof(line)));
		return;
	}
	json = pmdp_json_incident_line(event);
	if (json != NULL)
		puts(json);
	free(json);
}

// Everything that the segment has and was not printed yet. 0, or -errno of the reader.
static int drain(struct follow *follow, struct pmdp_reader *reader, uint64_t *cursor)
{
	uint64_t lost = 0;
	int n;

	while ((n = pmdp_reader_events(reader, cursor, follow->events, EVENT_BATCH, &lost)) > 0) {
		for (int i = 0; i < n; i++) {
			struct pmdp_incident *event = &follow->events[i];

			pmdp_incident_sanitize(event);
			// A new agent carries its predecessor's events over: these were printed.
			if (follow->next_seq != 0 && event->seq < follow->next_seq)
				continue;
			if (follow->next_seq != 0)
				follow->lost += event->seq - follow->next_seq;
			follow->next_seq = event->seq + 1;
			if (event->emitted_realtime_us >= follow->since_us)
				print_event(follow, event);
		}
	}
	fflush(stdout);
	if (follow->lost > 0)
		fprintf(stderr,
			"pmdpulse: %llu events were overwritten before they could be read\n",
			(unsigned long long)follow->lost);
	follow->lost = 0;
	return n;
}

/*
 * A log that ends before what was printed is another one: the agent found its old one damaged, or
 * somebody removed it. Its numbers begin anew, and nothing of it was printed. Event number n has
 * seq n + 1, so the position behind the newest is its seq.
 */
static void notice_new_log(struct follow *follow, struct pmdp_reader *reader)
{
	uint64_t cursor = UINT64_MAX;
	int n;

	if (follow->next_seq == 0)
		return;
	do {
		n = pmdp_reader_events(reader, &cursor, follow->events, EVENT_BATCH, NULL);
	} while (n > 0);
	if (n < 0 || (cursor != UINT64_MAX && cursor >= follow->next_seq - 1))
		return;
	fflush(stdout);
	fprintf(stderr, "pmdpulse: the agent's log began anew: numbers of events start again\n");
	follow->next_seq = 0;
}

static void sleep_a_look(void)
{
	const struct timespec ts = {.tv_nsec = FOLLOW_NS};

	nanosleep(&ts, NULL);
}

static int follow_events(struct follow *follow, bool is_following)
{
	const struct pmdp_reader_opts opts = cli_reader_opts(follow->cli, "incidents");
	struct pmdp_reader *reader = NULL;
	uint64_t cursor = UINT64_MAX;
	bool was_told = false;
	char reason[128];
	int rc;

	for (;;) {
		if (reader == NULL) {
			cursor = UINT64_MAX;
			rc = pmdp_reader_open_why(follow->cli->instance, &opts, &reader, reason,
						  sizeof(reason));
			if (rc < 0 && (!is_following || (rc != -ENOENT && rc != -EBADMSG)))
				return rc == -ENOENT
					       ? cli_fail("instance \"%s\": no events in %s "
							  "(pmdpulse-agent writes them; is it "
							  "running?)",
							  follow->cli->instance,
							  follow->cli->rundir)
					       : cli_fail("%s/%s.incidents: %s",
							  follow->cli->rundir,
							  follow->cli->instance, reason);
			if (rc < 0 && !was_told)
				fprintf(stderr,
					"pmdpulse: waiting for an agent of instance \"%s\" in %s\n",
					follow->cli->instance, follow->cli->rundir);
			was_told = true;
			if (reader != NULL)
				notice_new_log(follow, reader);
		}
		if (reader != NULL) {
			rc = drain(follow, reader, &cursor);
			if (rc < 0 && !is_following) {
				pmdp_reader_close(reader);
				return cli_fail("%s/%s.incidents: %s", follow->cli->rundir,
						follow->cli->instance, strerror(-rc));
			}
			if (!is_following)
				break;
			if (rc < 0 || pmdp_reader_check(reader) < 0) {
				pmdp_reader_close(reader);
				reader = NULL;
			}
		}
		if (ferror(stdout))
			break;
		sleep_a_look();
	}
	pmdp_reader_close(reader);
	return CLI_OK;
}

int cmd_events(struct cli *cli, int argc, char **argv)
{
	struct follow follow = {.cli = cli};
	bool is_following = false;
	int rc;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--follow") == 0 || strcmp(argv[i], "-f") == 0) {
			is_following = true;
		} else if (strcmp(argv[i], "--since") == 0 && i + 1 < argc) {
			if (!parse_since(argv[++i], &follow.since_us))
				return cli_usage(
					"--since \"%s\": give RFC 3339, seconds since 1970, or "
					"90s, 10m, 2h, 1d",
					argv[i]);
		} else {
			return cli_usage("usage: pmdpulse events [-f|--follow] [--since TIME]");
		}
	}
	follow.events = malloc(EVENT_BATCH * sizeof(*follow.events));
	if (follow.events == NULL)
		return cli_fail("out of memory");
	rc = follow_events(&follow, is_following);
	free(follow.events);
	return rc;
}
