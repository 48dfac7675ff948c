// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * JSON lines to a file, a FIFO or stdout. A file is opened again on SIGHUP (log rotation), a FIFO
 * as soon as somebody reads it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ag_log.h"
#include "ag_pump.h"
#include "ag_sink.h"

#define AG_JSON_LINES 256

struct ag_json {
	struct ag_sink sink;
	struct ag_pump pump;
	bool is_stdout;
	bool was_opened;
	char name[80];
	char path[];
};

static int json_open(void *ctx, struct ag_pump *pump)
{
	struct ag_json *json = ctx;

	if (json->is_stdout) {
		int own = json->was_opened ? -1 : fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

		if (own < 0)
			return -EPIPE; // stdout was closed by its reader, for good
		json->was_opened = true;
		if (ag_outq_adopt(&pump->q, own) != own)
			close(own);
		return 0;
	}
	// O_NONBLOCK: a FIFO without a reader is refused (ENXIO) rather than waited for.
	int fd = open(json->path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC | O_NOCTTY,
		      0640);
	if (fd < 0)
		return -errno;
	pump->q.fd = fd;
	return 0;
}

static void json_event(struct ag_sink *sink, const struct pmdp_incident *incident, const char *text,
		       size_t len)
{
	struct ag_json *json = (struct ag_json *)sink;
	char *line = malloc(len + 1);

	(void)incident;
	if (!line) {
		json->pump.q.n_lost++;
		return;
	}
	memcpy(line, text, len);
	line[len] = '\n';
	ag_pump_put(&json->pump, line, len + 1);
	free(line);
}

static void json_reopen(struct ag_sink *sink)
{
	struct ag_json *json = (struct ag_json *)sink;

	if (json->is_stdout)
		return;
	ag_pump_run(&json->pump); // what waits belongs to the old file
	ag_pump_close(&json->pump);
	int rc = json_open(json, &json->pump);
	if (rc && rc != -ENXIO)
		ag_log(AG_WARNING, "%s: %s; %s", json->pump.name, strerror(-rc), json->pump.remedy);
}

static void json_stats(const struct ag_sink *sink, struct ag_sink_stats *out_stats)
{
	const struct ag_pump *pump = &((const struct ag_json *)sink)->pump;

	*out_stats = (struct ag_sink_stats){
		.n_written = pump->q.n_written,
		.n_lost = pump->q.n_lost,
		.n_waiting = pump->q.n,
		.error = pump->last_error ? strerror(pump->last_error) : NULL,
	};
}

static void json_close(struct ag_sink *sink)
{
	struct ag_json *json = (struct ag_json *)sink;

	ag_pump_fini(&json->pump);
	free(json);
}

int ag_json_open(struct ag_loop *loop, const char *path, struct ag_sink **out_sink)
{
	struct ag_json *json = calloc(1, sizeof(*json) + strlen(path) + 1);

	if (!json)
		return -ENOMEM;
	strcpy(json->path, path);
	json->is_stdout = !strcmp(path, "-");
	snprintf(json->name, sizeof(json->name), "json %.64s", json->is_stdout ? "stdout" : path);
	snprintf(json->sink.name, sizeof(json->sink.name), "json:%.58s", path);
	json->sink.event = json_event;
	json->sink.reopen = json_reopen;
	json->sink.stats = json_stats;
	json->sink.close = json_close;
	json->pump.name = json->name;
	json->pump.remedy = "free space, make the file writable, or read the FIFO";
	json->pump.open = json_open;
	json->pump.ctx = json;
	int rc = ag_pump_init(&json->pump, loop, AG_JSON_LINES);
	if (!rc) {
		rc = json_open(json, &json->pump);
		if (rc == -ENXIO)
			rc = 0; // a FIFO that nobody reads yet
		if (rc)
			ag_log(AG_ERROR, "%s: %s; give a path that may be written", json->name,
			       strerror(-rc));
	}
	if (rc) {
		ag_pump_fini(&json->pump);
		free(json);
		return rc;
	}
	*out_sink = &json->sink;
	return 0;
}
