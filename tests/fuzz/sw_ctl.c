// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Any line to the control socket gets a reply, one line of JSON. Likewise any line of a start-up
// file.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_tree.h>

#include "sw_ctl_request.h"
#include "sw_flow.h"
#include "sw_startup.h"
#include "sw_switch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Commands that reach for devices or threads are out of place here.
static int is_wild(const char *line)
{
	return strstr(line, "port") || strstr(line, "set") || strstr(line, "\\u") ||
	       strstr(line, "pmd");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sw_switch *sw;
	char *line = malloc(size + 1), *reply;
	const char *words[8];
	struct sw_error err;
	yajl_val parsed;
	size_t len;

	if (!sw) {
		sw = calloc(1, sizeof(*sw));
		sw_settings_init(&sw->settings);
		sw->flows = sw_flow_table_create(NULL);
	}
	memcpy(line, data, size);
	line[size] = 0;
	if (!is_wild(line)) {
		reply = sw_ctl_answer(sw, line, size, &len);
		if (!reply || len < 2 || strchr(reply, '\n') != reply + len - 1)
			abort();
		parsed = yajl_tree_parse(reply, NULL, 0);
		if (!parsed)
			abort();
		yajl_tree_free(parsed);
		free(reply);
	}
	sw_startup_split(line, words, 8, &err);
	free(line);
	return 0;
}
