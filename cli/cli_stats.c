// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// pmd-stats-show and pmd-rxq-show, laid out as operators know them from ovs-appctl dpif-netdev.
#include <inttypes.h>

#include "cli.h"

static void print_hits(const char *label, uint64_t n, uint64_t total)
{
	printf("  %s: %" PRIu64, label, n);
	if (total > 0)
		printf(" (%.1f%%)", 100.0 * (double)n / (double)total);
	putchar('\n');
}

void cli_print_pmd(yajl_val pmd)
{
	yajl_val core = cli_get(pmd, "core"), numa = cli_get(pmd, "numa");

	printf("pmd thread");
	if (numa != NULL && YAJL_IS_NUMBER(numa))
		printf(" numa_id %s", YAJL_GET_NUMBER(numa));
	if (core != NULL && YAJL_IS_NUMBER(core))
		printf(" core_id %s", YAJL_GET_NUMBER(core));
	puts(":");
}

static void print_cache(const char *label, yajl_val pmd, const char *key, const char *size_key)
{
	uint64_t n = cli_get_u64(pmd, key), size = cli_get_u64(pmd, size_key);

	printf("  %s: %" PRIu64, label, n);
	if (size > 0)
		printf(" (%.1f%% full)", 100.0 * (double)n / (double)size);
	putchar('\n');
}

static void print_pmd(yajl_val pmd)
{
	uint64_t rx = cli_get_u64(pmd, "packets_received");
	uint64_t recirculations = cli_get_u64(pmd, "recirculations");
	uint64_t passes = rx + recirculations;
	uint64_t idle = cli_get_u64(pmd, "cycles_idle"), busy = cli_get_u64(pmd, "cycles_busy");
	double all = (double)(idle + busy);

	cli_print_pmd(pmd);
	printf("  packets received: %" PRIu64 "\n", rx);
	printf("  packet recirculations: %" PRIu64 "\n", recirculations);
	printf("  avg. datapath passes per packet: %.2f\n", rx ? (double)passes / (double)rx : 0.0);
	print_hits("phwol hits", cli_get_u64(pmd, "phwol_hits"), passes);
	print_hits("emc hits", cli_get_u64(pmd, "emc_hits"), passes);
	print_hits("smc hits", cli_get_u64(pmd, "smc_hits"), passes);
	print_hits("megaflow hits", cli_get_u64(pmd, "megaflow_hits"), passes);
	printf("  avg. subtable lookups per megaflow hit: %.2f\n",
	       cli_get_number(pmd, "subtable_lookups_per_hit"));
	print_hits("miss with success upcall", cli_get_u64(pmd, "misses"), passes);
	print_hits("miss with failed upcall", cli_get_u64(pmd, "lost"), passes);
	printf("  avg. packets per output batch: %.2f\n", cli_get_number(pmd, "packets_per_batch"));
	print_hits("run hits (among the above)", cli_get_u64(pmd, "run_hits"), passes);
	print_cache("emc entries", pmd, "emc_entries", "emc_size");
	print_cache("smc entries", pmd, "smc_entries", "smc_size");
	print_cache("megaflows", pmd, "megaflows", "flow_limit");
	printf("  megaflow shapes: %" PRIu64 "\n", cli_get_u64(pmd, "megaflow_shapes"));
	printf("  misses without a new megaflow: %" PRIu64 " (flow-limit), %" PRIu64 " (shapes)\n",
	       cli_get_u64(pmd, "flow_limit_hits"), cli_get_u64(pmd, "shape_limit_hits"));
	printf("  idle cycles: %" PRIu64 " (%.2f%%)\n", idle,
	       all > 0 ? 100 * (double)idle / all : 0.0);
	printf("  processing cycles: %" PRIu64 " (%.2f%%)\n", busy,
	       all > 0 ? 100 * (double)busy / all : 0.0);
	printf("  sleep cycles: %" PRIu64 "\n", cli_get_u64(pmd, "cycles_sleep"));
	if (rx > 0) {
		printf("  avg cycles per packet: %.2f (%.0f/%" PRIu64 ")\n", all / (double)rx, all,
		       rx);
		printf("  avg processing cycles per packet: %.2f (%" PRIu64 "/%" PRIu64 ")\n",
		       (double)busy / (double)rx, busy, rx);
	}
}

void cli_print_stats(yajl_val data)
{
	yajl_val pmds = cli_get(data, "pmds");

	for (size_t i = 0; i < cli_len(pmds); i++)
		print_pmd(cli_item(pmds, i));
}

static void print_pct(yajl_val of, const char *key)
{
	yajl_val value = cli_get(of, key);

	if (value != NULL && YAJL_IS_NUMBER(value))
		printf("%2.0f %%\n", cli_get_number(of, key));
	else
		puts("NOT AVAIL");
}

void cli_print_rxqs(yajl_val data)
{
	yajl_val pmds = cli_get(data, "pmds");

	printf("Displaying last %" PRIu64 " seconds pmd usage %%\n", cli_get_u64(data, "usage_s"));
	for (size_t i = 0; i < cli_len(pmds); i++) {
		yajl_val pmd = cli_item(pmds, i), queues = cli_get(pmd, "rxqs");

		cli_print_pmd(pmd);
		printf("  isolated : %s\n",
		       YAJL_IS_TRUE(cli_get(pmd, "isolated")) ? "true" : "false");
		for (size_t q = 0; q < cli_len(queues); q++) {
			yajl_val queue = cli_item(queues, q);
			bool is_enabled = YAJL_IS_TRUE(cli_get(queue, "enabled"));

			printf("  port: %-16s  queue-id: %2.0f %s  pmd usage: ",
			       cli_get_text(queue, "port", "?"), cli_get_number(queue, "queue"),
			       is_enabled ? "(enabled) " : "(disabled)");
			print_pct(queue, "usage_pct");
		}
		if (cli_len(queues) > 0) {
			printf("  overhead: ");
			print_pct(pmd, "overhead_pct");
		}
	}
}
