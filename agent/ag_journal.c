// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The systemd journal: one entry an event, with a MESSAGE_ID per kind
 *(contrib/systemd/pmdpulse.catalog holds the explanation of each) and structured fields:
 *
 *	PMDP_ID PMDP_SEQ PMDP_KIND PMDP_PHASE PMDP_SEVERITY PMDP_INSTANCE PMDP_STATE PMDP_CAUSE
 *	PMDP_STARTED_AT PMDP_DETECTED_AT PMDP_DURATION_S
 *	PMDP_THREAD PMDP_TID PMDP_CORE                      of an incident of a thread
 *	PMDP_CULPRIT PMDP_CULPRIT_PID PMDP_CULPRIT_TID PMDP_CULPRIT_CLASS PMDP_CULPRIT_TOOK_S
 *	PMDP_OBJECT                                         the port of a link or drops incident
 *	PMDP_EVIDENCE_<KEY>                                 one for each piece of evidence
 *
 * Entries are sent in the journal's native protocol, not by sd_journal_sendv(): that one waits in
 * sendmsg() while journald is stuck or stopped, and a stuck journald must not blind the agent.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ag_log.h"
#include "ag_pump.h"
#include "ag_sink.h"
#include "pmdp_incident.h"

#define AG_JOURNAL_ENTRIES 256

// Never change one: operators search by them, and the catalog is keyed by them.
static const char *const message_ids[PMDP_N_KINDS] = {
	[0] = "e88bc271cfb7436dbb91fee8145209c4", // a kind that this table does not know
	[PMDP_KIND_PMD_STALL] = "0ce2ea8ad79c4391847dcc403b12225f",
	[PMDP_KIND_PMD_STARVED] = "b2282d3e967c4ce5980f50edbc6be6a1",
	[PMDP_KIND_PMD_NO_PROGRESS] = "d357fad397a04a918609b4f2517145ca",
	[PMDP_KIND_THREAD_GONE] = "e1985a3c2cb94009b59d40e0c2dce3bc",
	[PMDP_KIND_SWITCH_GONE] = "286259b76d9641b5bd1f00d0bb1c6638",
	[PMDP_KIND_SWITCH_STOPPED] = "4daabdcbbb3448b590e7a477ee049f48",
	[PMDP_KIND_SWITCH_BACK] = "29908500a46a4238a4bff1510187c174",
	[PMDP_KIND_CONTROL_STUCK] = "8d960324a7444c1c9a223a9086a386ad",
	[PMDP_KIND_LINK] = "df9c00671d744f24b3921be30a1ce2b0",
	[PMDP_KIND_DROPS] = "f8793765fee04c619147cdba66070225",
	[PMDP_KIND_AGENT_LATE] = "f7d711afb5024abc89a0d68ae265c41c",
	[PMDP_KIND_VERSION_MISMATCH] = "4e222b177add41ee80bebabc7ab65fd6",
};

struct ag_journal {
	struct ag_sink sink;
	struct ag_pump pump;
	struct sockaddr_un address;
};

static int journal_open(void *ctx, struct ag_pump *pump)
{
	const struct ag_journal *journal = ctx;

	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&journal->address, sizeof(journal->address))) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	pump->q.fd = fd;
	pump->q.is_socket = true;
	pump->q.is_datagram = true;
	return 0;
}

static void field(FILE *out, const char *key, const char *value)
{
	fprintf(out, "%s=", key);
	// A line break would begin a field of its own.
	for (; *value; value++)
		fputc(*value == '\n' ? ' ' : *value, out);
	fputc('\n', out);
}

static void field_u64(FILE *out, const char *key, uint64_t value)
{
	fprintf(out, "%s=%llu\n", key, (unsigned long long)value);
}

static void field_seconds(FILE *out, const char *key, uint64_t ns)
{
	fprintf(out, "%s=%llu.%09llu\n", key, (unsigned long long)(ns / 1000000000),
		(unsigned long long)(ns % 1000000000));
}

static void field_evidence(FILE *out, const struct pmdp_evidence *evidence)
{
	char key[sizeof("PMDP_EVIDENCE_") + PMDP_EVIDENCE_KEY_BYTES] = "PMDP_EVIDENCE_";
	size_t len = strlen(key);

	// Field names are of A-Z, 0-9 and _.
	for (const char *from = evidence->key; *from && len < sizeof(key) - 1; from++)
		key[len++] = isalnum((unsigned char)*from) ? (char)toupper((unsigned char)*from)
							   : '_';
	key[len] = 0;
	switch (evidence->type) {
	case PMDP_EVIDENCE_INT:
		fprintf(out, "%s=%lld\n", key, (long long)evidence->integer);
		break;
	case PMDP_EVIDENCE_REAL:
		fprintf(out, "%s=%.9g\n", key, evidence->real);
		break;
	case PMDP_EVIDENCE_TEXT:
		field(out, key, evidence->text);
		break;
	default:
		break;
	}
}

static int priority_of(const struct pmdp_incident *incident)
{
	if (incident->severity == PMDP_SEVERITY_FAILURE)
		return AG_ERROR;
	return incident->severity == PMDP_SEVERITY_WARNING ? AG_WARNING : AG_NOTICE;
}

static void write_thread(FILE *out, const struct pmdp_incident *incident)
{
	if (!incident->thread_tid && !incident->thread_name[0])
		return;
	field(out, "PMDP_THREAD", incident->thread_name);
	field_u64(out, "PMDP_TID", incident->thread_tid);
	if (incident->thread_core >= 0)
		field_u64(out, "PMDP_CORE", (uint64_t)incident->thread_core);
	field(out, "PMDP_STATE", pmdp_state_name(incident->state));
}

static void write_culprit(FILE *out, const struct pmdp_incident *incident)
{
	if (!incident->culprit_pid && !incident->culprit_comm[0])
		return;
	field(out, "PMDP_CULPRIT", incident->culprit_comm);
	field_u64(out, "PMDP_CULPRIT_PID", incident->culprit_pid);
	field_u64(out, "PMDP_CULPRIT_TID", incident->culprit_tid);
	field(out, "PMDP_CULPRIT_CLASS", incident->culprit_class);
	field_seconds(out, "PMDP_CULPRIT_TOOK_S", incident->culprit_took_ns);
}

static void write_entry(FILE *out, const struct pmdp_incident *incident)
{
	uint32_t kind = incident->kind < PMDP_N_KINDS ? incident->kind : 0;
	char time_text[64];

	field(out, "MESSAGE", incident->message);
	field(out, "MESSAGE_ID", message_ids[kind] ? message_ids[kind] : message_ids[0]);
	field_u64(out, "PRIORITY", (uint64_t)priority_of(incident));
	field(out, "SYSLOG_IDENTIFIER", "pmdpulse-agent");
	field(out, "PMDP_ID", incident->id);
	field_u64(out, "PMDP_SEQ", incident->seq);
	field(out, "PMDP_KIND", pmdp_kind_name(incident->kind));
	field(out, "PMDP_PHASE", pmdp_phase_name(incident->phase));
	field(out, "PMDP_SEVERITY", pmdp_severity_name(incident->severity));
	field(out, "PMDP_INSTANCE", incident->instance);
	field(out, "PMDP_CAUSE", pmdp_cause_name(incident->cause));
	field(out, "PMDP_STARTED_AT",
	      pmdp_rfc3339(incident->started_realtime_us, time_text, sizeof(time_text)));
	field(out, "PMDP_DETECTED_AT",
	      pmdp_rfc3339(incident->detected_realtime_us, time_text, sizeof(time_text)));
	field_seconds(out, "PMDP_DURATION_S", incident->duration_ns);
	write_thread(out, incident);
	write_culprit(out, incident);
	if (incident->object[0])
		field(out, "PMDP_OBJECT", incident->object);
	for (uint32_t i = 0; i < incident->n_evidence && i < PMDP_N_EVIDENCE; i++)
		field_evidence(out, &incident->evidence[i]);
}

static void journal_event(struct ag_sink *sink, const struct pmdp_incident *incident,
			  const char *json, size_t json_len)
{
	struct ag_journal *journal = (struct ag_journal *)sink;
	char *text = NULL;
	size_t len = 0;

	(void)json;
	(void)json_len;
	FILE *out = open_memstream(&text, &len);
	if (out) {
		write_entry(out, incident);
		if (fclose(out))
			len = 0;
	}
	if (text && len)
		ag_pump_put(&journal->pump, text, len);
	else
		journal->pump.q.n_lost++;
	free(text);
}

static void journal_reopen(struct ag_sink *sink)
{
	struct ag_journal *journal = (struct ag_journal *)sink;

	ag_pump_close(&journal->pump);
	ag_pump_run(&journal->pump);
}

static void journal_stats(const struct ag_sink *sink, struct ag_sink_stats *out_stats)
{
	const struct ag_pump *pump = &((const struct ag_journal *)sink)->pump;

	*out_stats = (struct ag_sink_stats){
		.n_written = pump->q.n_written,
		.n_lost = pump->q.n_lost,
		.n_waiting = pump->q.n,
		.error = pump->last_error ? strerror(pump->last_error) : NULL,
	};
}

static void journal_close(struct ag_sink *sink)
{
	struct ag_journal *journal = (struct ag_journal *)sink;

	ag_pump_fini(&journal->pump);
	free(journal);
}

int ag_journal_open(struct ag_loop *loop, const char *socket_path, bool is_required,
		    struct ag_sink **out_sink)
{
	struct ag_journal *journal = calloc(1, sizeof(*journal));

	if (!journal)
		return -ENOMEM;
	journal->address.sun_family = AF_UNIX;
	snprintf(journal->address.sun_path, sizeof(journal->address.sun_path), "%s", socket_path);
	strcpy(journal->sink.name, "journal");
	journal->sink.event = journal_event;
	journal->sink.reopen = journal_reopen;
	journal->sink.stats = journal_stats;
	journal->sink.close = journal_close;
	journal->pump.name = "journal";
	journal->pump.remedy = "look at systemd-journald, or set journal=off";
	journal->pump.open = journal_open;
	journal->pump.ctx = journal;
	int rc = ag_pump_init(&journal->pump, loop, AG_JOURNAL_ENTRIES);
	if (!rc)
		rc = journal_open(journal, &journal->pump);
	if (rc) {
		ag_log(is_required ? AG_ERROR : AG_NOTICE,
		       "journal %s: %s; incidents are not written to the journal%s", socket_path,
		       strerror(-rc), is_required ? "; set journal=auto to run without it" : "");
		journal_close(&journal->sink);
		return rc;
	}
	*out_sink = &journal->sink;
	return 0;
}
