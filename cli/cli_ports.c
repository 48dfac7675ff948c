// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// show and dump-ports.
#include <inttypes.h>
#include <string.h>

#include "cli.h"

// The reply's ports, or NULL after printing JSON or a complaint; *out_rc is the exit status then.
static yajl_val ask_ports(struct cli *cli, const char *command, yajl_val *out_reply, int *out_rc)
{
	yajl_val ports;

	*out_rc = cli_call(cli, "ctl", command, 0, NULL, out_reply);
	if (*out_rc != CLI_OK)
		return NULL;
	ports = cli_get(cli_get(*out_reply, "data"), "ports");
	if (!cli->is_json && YAJL_IS_ARRAY(ports))
		return ports;
	cli_json_print(cli_get(*out_reply, "data"));
	yajl_tree_free(*out_reply);
	return NULL;
}

int cmd_show(struct cli *cli, int argc, char **argv)
{
	static const char *const headers[] = {"PORT", "OFPORT", "STATE", "LINK",
					      "RXQ",  "TXQ",    "MTU",   "DEVARGS"};
	struct cli_table *table;
	yajl_val reply, ports;
	int rc;

	(void)argc;
	ports = ask_ports(cli, argv[0], &reply, &rc);
	if (ports == NULL)
		return rc;
	table = cli_table_new(headers, 8);
	for (size_t i = 0; i < YAJL_GET_ARRAY(ports)->len; i++) {
		yajl_val p = YAJL_GET_ARRAY(ports)->values[i];
		char ofport[16], rxq[16], txq[16], mtu[16];
		const char *cells[] = {cli_get_text(p, "name", "?"),
				       ofport,
				       cli_get_text(p, "state", "?"),
				       cli_get_text(p, "link", "?"),
				       rxq,
				       txq,
				       mtu,
				       cli_get_text(p, "devargs", "?")};

		snprintf(ofport, sizeof(ofport), "%.0f", cli_get_number(p, "ofport"));
		snprintf(rxq, sizeof(rxq), "%.0f", cli_get_number(p, "n_rxq"));
		snprintf(txq, sizeof(txq), "%.0f", cli_get_number(p, "n_txq"));
		snprintf(mtu, sizeof(mtu), "%.0f", cli_get_number(p, "mtu"));
		cli_table_row(table, cells);
	}
	cli_table_print(table, stdout);
	yajl_tree_free(reply);
	return CLI_OK;
}

static void print_drops(yajl_val drops)
{
	const char *before = "drops:";

	if (!YAJL_IS_OBJECT(drops))
		return;
	for (size_t i = 0; i < YAJL_GET_OBJECT(drops)->len; i++) {
		const char *reason = YAJL_GET_OBJECT(drops)->keys[i];
		uint64_t n = cli_get_u64(drops, reason);

		if (n > 0)
			printf("%s %s=%" PRIu64, before, reason, n);
		before = n > 0 ? "," : before;
	}
	printf("%s", strcmp(before, "drops:") == 0 ? "drops: none\n" : "\n");
}

int cmd_dump_ports(struct cli *cli, int argc, char **argv)
{
	yajl_val reply, ports;
	int rc;

	(void)argc;
	ports = ask_ports(cli, argv[0], &reply, &rc);
	if (ports == NULL)
		return rc;
	printf("%zu ports\n", YAJL_GET_ARRAY(ports)->len);
	for (size_t i = 0; i < YAJL_GET_ARRAY(ports)->len; i++) {
		yajl_val p = YAJL_GET_ARRAY(ports)->values[i];

		printf("  port %.0f (%s): rx pkts=%" PRIu64 ", bytes=%" PRIu64 ", errs=%" PRIu64
		       "\n",
		       cli_get_number(p, "ofport"), cli_get_text(p, "name", "?"),
		       cli_get_u64(p, "rx_packets"), cli_get_u64(p, "rx_bytes"),
		       cli_get_u64(p, "rx_errors"));
		printf("           tx pkts=%" PRIu64 ", bytes=%" PRIu64 ", retries=%" PRIu64
		       "\n           ",
		       cli_get_u64(p, "tx_packets"), cli_get_u64(p, "tx_bytes"),
		       cli_get_u64(p, "tx_retries"));
		print_drops(cli_get(p, "drops"));
	}
	yajl_tree_free(reply);
	return CLI_OK;
}
