// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ag_config.h"
#include "ag_log.h"
#include "pmdp_incident.h"
#include "pmdp_json.h"

int ag_sinks_open(struct ag_sinks *sinks, const struct ag_config *config, struct ag_loop *loop)
{
	int rc = 0;

	sinks->n = 0;
	// The hook first: its helper is forked while the process is still small and of normal
	// priority.
	if (config->hook[0]) {
		rc = ag_hook_open(loop, config->hook, config->hook_timeout_ms,
				  &sinks->sinks[sinks->n]);
		sinks->n += !rc;
	}
	if (!rc && config->journal != AG_JOURNAL_OFF) {
		bool is_required = config->journal == AG_JOURNAL_ON;

		rc = ag_journal_open(loop, AG_JOURNAL_SOCKET, is_required, &sinks->sinks[sinks->n]);
		sinks->n += !rc;
		if (!is_required && rc != -ENOMEM)
			rc = 0;
	}
	for (uint32_t i = 0; !rc && i < config->n_json; i++) {
		rc = ag_json_open(loop, config->json[i], &sinks->sinks[sinks->n]);
		sinks->n += !rc;
	}
	if (rc)
		ag_sinks_close(sinks);
	return rc;
}

void ag_sinks_close(struct ag_sinks *sinks)
{
	while (sinks->n) {
		struct ag_sink *sink = sinks->sinks[--sinks->n];

		sink->close(sink);
	}
}

void ag_sinks_event(struct ag_sinks *sinks, const struct pmdp_incident *incident)
{
	if (!sinks->n)
		return;
	char *json = pmdp_json_incident_line(incident);
	if (!json) {
		ag_log(AG_ERROR,
		       "%s: no memory for its JSON; it stands in the incident segment only",
		       incident->id);
		return;
	}
	for (uint32_t i = 0; i < sinks->n; i++)
		sinks->sinks[i]->event(sinks->sinks[i], incident, json, strlen(json));
	free(json);
}

void ag_sinks_reopen(struct ag_sinks *sinks)
{
	for (uint32_t i = 0; i < sinks->n; i++)
		if (sinks->sinks[i]->reopen)
			sinks->sinks[i]->reopen(sinks->sinks[i]);
}
