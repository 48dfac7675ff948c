// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Commands that the switch answers by itself: flows, settings, and all that pass through.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "build_info.h"
#include "cli.h"
#include "pmdp_json.h"

// Without -j: text as it is, a list one entry a line, any other document as JSON.
static void print_data(struct cli *cli, yajl_val data)
{
	if (cli->is_json) {
		cli_json_print(data);
	} else if (YAJL_IS_STRING(data)) {
		const char *text = YAJL_GET_STRING(data);
		size_t len = strlen(text);

		fputs(text, stdout);
		if (len > 0 && text[len - 1] != '\n')
			putchar('\n');
	} else if (YAJL_IS_ARRAY(data)) {
		for (size_t i = 0; i < cli_len(data); i++)
			print_data(cli, cli_item(data, i));
	} else if (data != NULL && !YAJL_IS_NULL(data) &&
		   !(YAJL_IS_OBJECT(data) && YAJL_GET_OBJECT(data)->len == 0)) {
		cli_json_print(data);
	}
}

int cmd_plain(struct cli *cli, int argc, char **argv)
{
	yajl_val reply;

	if (cli_call(cli, "ctl", argv[0], argc - 1, argv + 1, &reply) != CLI_OK)
		return CLI_FAILED;
	print_data(cli, cli_get(reply, "data"));
	yajl_tree_free(reply);
	return CLI_OK;
}

int cmd_ask(struct cli *cli, int argc, char **argv)
{
	yajl_val reply, data;
	int rc = CLI_OK;

	if (cli_call(cli, "ctl", argv[0], argc - 1, argv + 1, &reply) != CLI_OK)
		return CLI_FAILED;
	data = cli_get(reply, "data");
	if (data == NULL)
		rc = cli_fail("%s: the reply has no data", argv[0]);
	else if (cli->is_json)
		cli_json_print(data);
	else
		cli_command_find(argv[0])->print(data);
	yajl_tree_free(reply);
	return rc;
}

struct lines {
	char **at;
	size_t n, room;
};

static void add_line(struct lines *lines, const char *text)
{
	if (lines->n == lines->room) {
		char **larger;

		lines->room = lines->room ? lines->room * 2 : 256;
		larger = realloc(lines->at, lines->room * sizeof(*lines->at));
		if (larger == NULL)
			abort();
		lines->at = larger;
	}
	lines->at[lines->n] = strdup(text);
	if (lines->at[lines->n++] == NULL)
		abort();
}

// Blank lines too, so that the switch's complaints carry the right line number.
static int read_lines(const char *path, struct lines *lines)
{
	bool is_stdin = strcmp(path, "-") == 0;
	FILE *file = is_stdin ? stdin : fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	ssize_t len;
	int rc = CLI_OK;

	if (file == NULL)
		return cli_fail("%s: %s", path, strerror(errno));
	while ((len = getline(&line, &size, file)) >= 0) {
		if (len > 0 && line[len - 1] == '\n')
			line[len - 1] = 0;
		add_line(lines, line);
	}
	if (ferror(file))
		rc = cli_fail("%s: %s", path, strerror(errno));
	if (!is_stdin)
		fclose(file);
	free(line);
	return rc;
}

// The file is read here, because the switch may not see it: one argument a line.
int cmd_flows_file(struct cli *cli, int argc, char **argv)
{
	struct lines lines = {0};
	yajl_val reply;
	int rc = read_lines(argv[1], &lines);

	(void)argc;
	if (rc == CLI_OK)
		rc = cli_call(cli, "ctl", argv[0], (int)lines.n, lines.at, &reply);
	if (rc == CLI_OK) {
		print_data(cli, cli_get(reply, "data"));
		yajl_tree_free(reply);
	}
	for (size_t i = 0; i < lines.n; i++)
		free(lines.at[i]);
	free(lines.at);
	return rc;
}

int cmd_get(struct cli *cli, int argc, char **argv)
{
	static const char *const headers[] = {"KEY", "VALUE", "DEFAULT", "MEANING"};
	struct cli_table *table;
	yajl_val reply, settings;

	if (cli_call(cli, "ctl", argv[0], argc - 1, argv + 1, &reply) != CLI_OK)
		return CLI_FAILED;
	settings = cli_get(cli_get(reply, "data"), "settings");
	if (cli->is_json || !YAJL_IS_ARRAY(settings)) {
		print_data(cli, cli_get(reply, "data"));
	} else if (argc == 2 && cli_len(settings) == 1) {
		puts(cli_get_text(cli_item(settings, 0), "value", ""));
	} else {
		table = cli_table_new(headers, 4);
		for (size_t i = 0; i < cli_len(settings); i++) {
			yajl_val s = cli_item(settings, i);
			const char *cells[] = {cli_get_text(s, "key", "?"),
					       cli_get_text(s, "value", "?"),
					       cli_get_text(s, "default", "?"),
					       cli_get_text(s, "help", "")};

			cli_table_row(table, cells);
		}
		cli_table_print(table, stdout);
	}
	yajl_tree_free(reply);
	return CLI_OK;
}

int cmd_version(struct cli *cli, int argc, char **argv)
{
	yajl_val reply = NULL;
	bool is_up = cli_ask(cli, "ctl", "version", &reply);
	yajl_val data = is_up ? cli_get(reply, "data") : NULL;

	(void)argc;
	(void)argv;
	if (cli->is_json) {
		yajl_gen gen = cli_json_begin();

		yajl_gen_map_open(gen);
		pmdp_json_kv_text(gen, "version", PMDP_VERSION);
		pmdp_json_kv_text(gen, "build", PMDP_BUILD_CC " " PMDP_BUILD_FLAGS);
		pmdp_json_key(gen, "switch");
		cli_json_value(gen, data);
		yajl_gen_map_close(gen);
		cli_json_end(gen);
	} else {
		printf("pmdpulse %s\n", PMDP_VERSION);
		if (is_up)
			printf("pmdpulse-switch %s (%s)\n", cli_get_text(data, "version", "?"),
			       cli_get_text(data, "dpdk", "DPDK of unknown version"));
		else
			printf("pmdpulse-switch: instance \"%s\" does not answer\n", cli->instance);
	}
	yajl_tree_free(reply);
	return CLI_OK;
}
