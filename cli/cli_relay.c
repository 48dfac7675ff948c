// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// What the collectd plugin says of itself: INSTANCE.relay, one JSON line, replaced at every change.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli_health.h"

bool cli_relay_read(struct cli *cli, struct cli_relay *out_relay)
{
	char path[512], text[512];
	yajl_val tree;
	FILE *file;
	size_t n;

	if (pmdp_path(cli->rundir, cli->instance, "relay", path, sizeof(path)) < 0)
		return false;
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = 0;
	tree = yajl_tree_parse(text, NULL, 0);
	out_relay->pid = (uint32_t)cli_get_u64(tree, "pid");
	out_relay->is_relaying = YAJL_IS_TRUE(cli_get(tree, "relaying"));
	yajl_tree_free(tree);
	// A collectd that died leaves its file: believe only a living process.
	return out_relay->pid > 1 && (kill((pid_t)out_relay->pid, 0) == 0 || errno == EPERM);
}
