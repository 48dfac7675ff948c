// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The switch's commands and settings, from its own tables and without a switch, one a line:
// `command USAGE`, `setting KEY`. Tests compare them with the manual pages.
#include <stdio.h>
#include <string.h>

#include <yajl/yajl_gen.h>
#include <yajl/yajl_tree.h>

#include "sw_cmd.h"
#include "sw_error.h"
#include "sw_settings.h"

int main(void)
{
	const unsigned char *text;
	struct sw_error err;
	yajl_val list;
	size_t len;
	yajl_gen gen = yajl_gen_alloc(NULL);

	if (sw_cmd_run(NULL, "list-commands", 0, NULL, gen, &err) < 0) {
		fprintf(stderr, "sw_names: %s\n", err.text);
		return 1;
	}
	yajl_gen_get_buf(gen, &text, &len);
	list = yajl_tree_parse((const char *)text, NULL, 0);
	if (!YAJL_IS_ARRAY(list)) {
		fprintf(stderr, "sw_names: list-commands gave no list\n");
		return 1;
	}
	for (size_t i = 0; i < YAJL_GET_ARRAY(list)->len; i++)
		printf("command %s\n", YAJL_GET_STRING(YAJL_GET_ARRAY(list)->values[i]));
	for (size_t i = 0; sw_settings_key(i) != NULL; i++)
		printf("setting %s\n", sw_settings_key(i));
	yajl_tree_free(list);
	yajl_gen_free(gen);
	return 0;
}
