// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Rules, megaflows, traces, learned addresses and implementations, as the switch tells of them.
#include <inttypes.h>

#include "cli.h"

static yajl_val ask(struct cli *cli, int argc, char **argv, yajl_val *out_reply)
{
	if (cli_call(cli, "ctl", argv[0], argc - 1, argv + 1, out_reply) != CLI_OK)
		return NULL;
	return cli_get(*out_reply, "data");
}

// The "text" of each item of the list, each behind indent.
static void print_texts(yajl_val list, const char *indent)
{
	for (size_t i = 0; YAJL_IS_ARRAY(list) && i < YAJL_GET_ARRAY(list)->len; i++)
		printf("%s%s\n", indent,
		       cli_get_text(YAJL_GET_ARRAY(list)->values[i], "text", "?"));
}

int cmd_dump_flows(struct cli *cli, int argc, char **argv)
{
	yajl_val reply, data = ask(cli, argc, argv, &reply);

	if (data == NULL)
		return CLI_FAILED;
	if (cli->is_json) {
		cli_json_print(data);
	} else {
		print_texts(cli_get(data, "flows"), " ");
		print_texts(cli_get(data, "megaflows"), "");
	}
	yajl_tree_free(reply);
	return CLI_OK;
}

int cmd_dump_tables(struct cli *cli, int argc, char **argv)
{
	yajl_val reply, data = ask(cli, argc, argv, &reply);

	if (data == NULL)
		return CLI_FAILED;
	if (cli->is_json)
		cli_json_print(data);
	else
		print_texts(cli_get(data, "tables"), "");
	yajl_tree_free(reply);
	return CLI_OK;
}

int cmd_trace(struct cli *cli, int argc, char **argv)
{
	yajl_val reply, data = ask(cli, argc, argv, &reply);

	if (data == NULL)
		return CLI_FAILED;
	if (cli->is_json)
		cli_json_print(data);
	else
		fputs(cli_get_text(data, "text", ""), stdout);
	yajl_tree_free(reply);
	return CLI_OK;
}

int cmd_fdb_show(struct cli *cli, int argc, char **argv)
{
	yajl_val reply, data = ask(cli, argc, argv, &reply), list;

	if (data == NULL)
		return CLI_FAILED;
	list = cli_get(data, "addresses");
	if (cli->is_json) {
		cli_json_print(data);
	} else {
		printf("%-16s %5s  %-17s %6s\n", "port", "VLAN", "MAC", "age");
		for (size_t i = 0; YAJL_IS_ARRAY(list) && i < YAJL_GET_ARRAY(list)->len; i++) {
			yajl_val a = YAJL_GET_ARRAY(list)->values[i];
			char ofport[24];

			snprintf(ofport, sizeof(ofport), "%" PRIu64, cli_get_u64(a, "ofport"));
			printf("%-16s %5" PRIu64 "  %-17s %6" PRIu64 "\n",
			       cli_get_text(a, "port", ofport), cli_get_u64(a, "vlan"),
			       cli_get_text(a, "mac", "?"), cli_get_u64(a, "age_s"));
		}
	}
	yajl_tree_free(reply);
	return CLI_OK;
}

int cmd_impl(struct cli *cli, int argc, char **argv)
{
	yajl_val reply, data = ask(cli, argc, argv, &reply), list;

	if (data == NULL)
		return CLI_FAILED;
	list = cli_get(data, "implementations");
	if (cli->is_json) {
		cli_json_print(data);
	} else {
		for (size_t i = 0; YAJL_IS_ARRAY(list) && i < YAJL_GET_ARRAY(list)->len; i++) {
			yajl_val impl = YAJL_GET_ARRAY(list)->values[i];

			printf("%s%s%s\n", cli_get_text(impl, "name", "?"),
			       YAJL_IS_TRUE(cli_get(impl, "active")) ? " (active)" : "",
			       YAJL_IS_TRUE(cli_get(impl, "usable")) ? "" : " (not on this CPU)");
		}
		printf("differences found by the autovalidator: %" PRIu64 "\n",
		       cli_get_u64(data, "differences"));
	}
	yajl_tree_free(reply);
	return CLI_OK;
}
