// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Rules, megaflows, traces, learned addresses and implementations, as the switch tells of them.
#include <inttypes.h>

#include "cli.h"

// The "text" of each item of the list, each behind indent.
static void print_texts(yajl_val list, const char *indent)
{
	for (size_t i = 0; i < cli_len(list); i++)
		printf("%s%s\n", indent, cli_get_text(cli_item(list, i), "text", "?"));
}

void cli_print_flows(yajl_val data)
{
	print_texts(cli_get(data, "flows"), " ");
	print_texts(cli_get(data, "megaflows"), "");
}

void cli_print_tables(yajl_val data)
{
	print_texts(cli_get(data, "tables"), "");
}

void cli_print_trace(yajl_val data)
{
	fputs(cli_get_text(data, "text", ""), stdout);
}

void cli_print_addresses(yajl_val data)
{
	yajl_val list = cli_get(data, "addresses");

	printf("%-16s %5s  %-17s %6s\n", "port", "VLAN", "MAC", "age");
	for (size_t i = 0; i < cli_len(list); i++) {
		yajl_val a = cli_item(list, i);
		char ofport[24];

		snprintf(ofport, sizeof(ofport), "%" PRIu64, cli_get_u64(a, "ofport"));
		printf("%-16s %5" PRIu64 "  %-17s %6" PRIu64 "\n", cli_get_text(a, "port", ofport),
		       cli_get_u64(a, "vlan"), cli_get_text(a, "mac", "?"),
		       cli_get_u64(a, "age_s"));
	}
}

void cli_print_impls(yajl_val data)
{
	yajl_val list = cli_get(data, "implementations");

	for (size_t i = 0; i < cli_len(list); i++) {
		yajl_val impl = cli_item(list, i);

		printf("%s%s%s\n", cli_get_text(impl, "name", "?"),
		       YAJL_IS_TRUE(cli_get(impl, "active")) ? " (active)" : "",
		       YAJL_IS_TRUE(cli_get(impl, "usable")) ? "" : " (not on this CPU)");
	}
	printf("differences found by the autovalidator: %" PRIu64 "\n",
	       cli_get_u64(data, "differences"));
}
