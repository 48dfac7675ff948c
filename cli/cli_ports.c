// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// show and dump-ports.
#include <inttypes.h>
#include <string.h>

#include "cli.h"

void cli_print_ports(yajl_val data)
{
	static const char *const headers[] = {"PORT", "OFPORT", "STATE", "LINK",
					      "RXQ",  "TXQ",    "MTU",   "DEVARGS"};
	struct cli_table *table = cli_table_new(headers, 8);
	yajl_val ports = cli_get(data, "ports");

	for (size_t i = 0; i < cli_len(ports); i++) {
		yajl_val p = cli_item(ports, i);
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

void cli_print_port_counters(yajl_val data)
{
	yajl_val ports = cli_get(data, "ports");

	printf("%zu ports\n", cli_len(ports));
	for (size_t i = 0; i < cli_len(ports); i++) {
		yajl_val p = cli_item(ports, i);

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
}
