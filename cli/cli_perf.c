// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// pmd-perf-show and pmd-perf-log, laid out as operators know them from ovs-appctl dpif-netdev.
#include <inttypes.h>

#include "cli.h"

#define N_HISTS 7

static double ratio(double n, double of)
{
	return of > 0 ? n / of : 0.0;
}

static void print_share(const char *label, uint64_t n, uint64_t of)
{
	printf("  - %-20s %15" PRIu64 "  (%5.1f %%", label, n, 100 * ratio((double)n, (double)of));
}

static void print_cycles(yajl_val pmd, yajl_val perf, double seconds)
{
	double hz = cli_get_number(pmd, "tsc_hz");
	// Recorded ones where there are any, else those of the statistics.
	bool is_recorded = perf != NULL && YAJL_IS_OBJECT(perf) &&
			   cli_get_u64(perf, "iterations") > 0;
	uint64_t n = cli_get_u64(is_recorded ? perf : pmd, "iterations");
	uint64_t idle = cli_get_u64(pmd, "cycles_idle"), busy = cli_get_u64(pmd, "cycles_busy");
	uint64_t used = idle + busy;

	if (is_recorded) {
		idle = cli_get_u64(perf, "cycles_idle");
		used = cli_get_u64(perf, "cycles");
		busy = used - idle;
	}
	printf("  %-22s %15" PRIu64 "  (%.2f us/it)\n", "Iterations:", n,
	       1e6 * ratio(ratio((double)used, (double)n), hz));
	print_share("Used TSC cycles:", used, (uint64_t)(hz * seconds));
	puts(" of total cycles)");
	if (is_recorded) {
		uint64_t n_idle = cli_get_u64(perf, "iterations_idle");

		print_share("idle iterations:", n_idle, n);
		printf(", %.1f %% of used cycles)\n", 100 * ratio((double)idle, (double)used));
		print_share("busy iterations:", n - n_idle, n);
		printf(", %.1f %% of used cycles)\n", 100 * ratio((double)busy, (double)used));
	}
}

static void print_packets(yajl_val pmd, double seconds)
{
	double hz = cli_get_number(pmd, "tsc_hz");
	uint64_t rx = cli_get_u64(pmd, "packets_received"), tx = cli_get_u64(pmd, "packets_sent");
	uint64_t passes = rx + cli_get_u64(pmd, "recirculations");
	uint64_t upcalls = cli_get_u64(pmd, "misses");
	double upcall_us =
		1e6 * ratio(ratio(cli_get_number(pmd, "cycles_upcalls"), (double)upcalls), hz);

	printf("  %-22s %15" PRIu64 "  (%.0f Kpps, %.0f cycles/pkt)\n", "Rx packets:", rx,
	       ratio((double)rx, seconds) / 1000, cli_get_number(pmd, "cycles_per_packet"));
	printf("  %-22s %15" PRIu64 "  (%.2f passes/pkt)\n", "Datapath passes:", passes,
	       ratio((double)passes, (double)rx));
	print_share("PHWOL hits:", cli_get_u64(pmd, "phwol_hits"), passes);
	puts(")");
	print_share("EMC hits:", cli_get_u64(pmd, "emc_hits"), passes);
	puts(")");
	print_share("SMC hits:", cli_get_u64(pmd, "smc_hits"), passes);
	puts(")");
	print_share("Megaflow hits:", cli_get_u64(pmd, "megaflow_hits"), passes);
	printf(", %.2f subtbl lookups/hit)\n", cli_get_number(pmd, "subtable_lookups_per_hit"));
	print_share("Upcalls:", upcalls, passes);
	printf(", %.1f us/upcall)\n", upcall_us);
	print_share("Lost upcalls:", cli_get_u64(pmd, "lost"), passes);
	puts(")");
	print_share("Run hits (above):", cli_get_u64(pmd, "run_hits"), passes);
	puts(")");
	printf("  %-22s %15" PRIu64 "  (%.0f Kpps)\n", "Tx packets:", tx,
	       ratio((double)tx, seconds) / 1000);
	printf("  %-22s %15" PRIu64 "  (%.2f pkts/batch)\n",
	       "Tx batches:", cli_get_u64(pmd, "tx_batches"),
	       cli_get_number(pmd, "packets_per_batch"));
}

// One column a histogram, one line a bin that it has something in.
static void print_histograms(yajl_val perf)
{
	static const struct {
		const char *key;
		const char *head;
	} columns[N_HISTS] = {
		{"cycles_per_iteration", "cycles/it"},  {"packets_per_iteration", "packets/it"},
		{"cycles_per_packet", "cycles/pkt"},    {"batches_per_iteration", "batches/it"},
		{"packets_per_batch", "pkts/batch"},    {"upcalls_per_iteration", "upcalls/it"},
		{"cycles_per_upcall", "cycles/upcall"},
	};
	yajl_val all = cli_get(perf, "histograms"), lists[N_HISTS];
	size_t n_lines = 0;

	if (all == NULL)
		return;
	puts("\nHistograms (lowest value of the bin, count)");
	for (size_t c = 0; c < N_HISTS; c++) {
		lists[c] = cli_get(all, columns[c].key);
		n_lines = cli_len(lists[c]) > n_lines ? cli_len(lists[c]) : n_lines;
		printf("  %-24s", columns[c].head);
	}
	putchar('\n');
	for (size_t i = 0; i < n_lines; i++) {
		for (size_t c = 0; c < N_HISTS; c++) {
			yajl_val bin = i < cli_len(lists[c]) ? cli_item(lists[c], i) : NULL;

			if (bin != NULL)
				printf("  %-10" PRIu64 "%-14" PRIu64, cli_get_u64(bin, "from"),
				       cli_get_u64(bin, "n"));
			else
				printf("  %-24s", "");
		}
		putchar('\n');
	}
}

static void print_iteration(yajl_val it, const char *mark)
{
	double cycles = cli_get_number(it, "cycles"), packets = cli_get_number(it, "packets");
	double upcalls = cli_get_number(it, "upcalls");

	printf("  %-20" PRIu64 " %-12.0f %-8.0f %-10.0f %-10.1f %-8.0f %-13.0f %-11.0f%s\n",
	       cli_get_u64(it, "begin_cycles"), cycles, packets, ratio(cycles, packets),
	       ratio(packets, cli_get_number(it, "batches")), upcalls,
	       ratio(cli_get_number(it, "cycles_upcalls"), upcalls),
	       cli_get_number(it, "idle_before"), mark);
}

static void print_iterations_head(void)
{
	printf("  %-20s %-12s %-8s %-10s %-10s %-8s %-13s %s\n", "begin (TSC)", "cycles", "packets",
	       "cycles/pkt", "pkts/batch", "upcalls", "cycles/upcall", "idle before");
}

static void print_histories(yajl_val perf, double hz)
{
	yajl_val its = cli_get(perf, "recent_iterations"), list = cli_get(perf, "recent_ms");

	if (its != NULL) {
		printf("\nLast %zu iterations with packets\n", cli_len(its));
		print_iterations_head();
		for (size_t i = 0; i < cli_len(its); i++)
			print_iteration(cli_item(its, i), "");
	}
	if (list == NULL)
		return;
	printf("\nLast %zu milliseconds\n", cli_len(list));
	printf("  %-20s %-10s %-10s %-10s %-10s %-10s %-8s %s\n", "begin (TSC)", "iter",
	       "cycles/it", "Kpps", "cycles/pkt", "pkts/batch", "upcalls", "cycles/upcall");
	for (size_t i = 0; i < cli_len(list); i++) {
		yajl_val ms = cli_item(list, i);
		double cycles = cli_get_number(ms, "cycles"), n = cli_get_number(ms, "iterations");
		double packets = cli_get_number(ms, "packets"),
		       upcalls = cli_get_number(ms, "upcalls");

		printf("  %-20" PRIu64 " %-10.0f %-10.0f %-10.0f %-10.0f %-10.1f %-8.0f %.0f\n",
		       cli_get_u64(ms, "begin_cycles"), n, ratio(cycles, n),
		       ratio(packets, ratio(cycles, hz)) / 1000, ratio(cycles, packets),
		       ratio(packets, cli_get_number(ms, "batches")), upcalls,
		       ratio(cli_get_number(ms, "cycles_upcalls"), upcalls));
	}
}

static void print_pmd(yajl_val pmd)
{
	yajl_val perf = cli_get(pmd, "perf");
	double seconds = cli_get_number(pmd, "measured_s");

	putchar('\n');
	cli_print_pmd(pmd);
	printf("\n  Measurement duration: %.3f s\n", seconds);
	print_cycles(pmd, perf, seconds);
	print_packets(pmd, seconds);
	if (perf == NULL || !YAJL_IS_OBJECT(perf))
		return;
	if (cli_get_u64(perf, "suspicious") > 0)
		printf("  %-22s %15" PRIu64 "  (%" PRIu64 " of them not kept; pmd-perf-log)\n",
		       "Suspicious iterations:", cli_get_u64(perf, "suspicious"),
		       cli_get_u64(perf, "suspicious_not_logged"));
	print_histograms(perf);
	print_histories(perf, cli_get_number(pmd, "tsc_hz"));
}

static void print_whether_recorded(yajl_val data)
{
	if (!YAJL_IS_TRUE(cli_get(data, "pmd_perf_metrics")))
		puts("Iterations are not recorded (set pmd-perf-metrics=true)");
}

void cli_print_perf(yajl_val data)
{
	yajl_val pmds = cli_get(data, "pmds");

	print_whether_recorded(data);
	for (size_t i = 0; i < cli_len(pmds); i++)
		print_pmd(cli_item(pmds, i));
}

static void print_logs(yajl_val pmd)
{
	yajl_val logs = cli_get(pmd, "logs");

	putchar('\n');
	cli_print_pmd(pmd);
	for (size_t i = 0; i < cli_len(logs); i++) {
		yajl_val log = cli_item(logs, i), its = cli_get(log, "iterations");
		size_t at = (size_t)cli_get_u64(log, "at");
		double cycles = at < cli_len(its) ? cli_get_number(cli_item(its, at), "cycles") : 0;

		printf("\n  Suspicious iteration of %.1f us (%" PRIu64 " suspicious among these)\n",
		       1e6 * ratio(cycles, cli_get_number(pmd, "tsc_hz")),
		       cli_get_u64(log, "suspicious"));
		print_iterations_head();
		for (size_t k = 0; k < cli_len(its); k++)
			print_iteration(cli_item(its, k), k == at ? " <" : "");
	}
}

void cli_print_perf_log(yajl_val data)
{
	yajl_val pmds = cli_get(data, "pmds");

	printf("Logging is %s: iterations above %" PRIu64 " us, %" PRIu64 " before and %" PRIu64
	       " after, %s\n",
	       YAJL_IS_TRUE(cli_get(data, "on")) ? "on" : "off (pmd-perf-log-set on)",
	       cli_get_u64(data, "limit_us"), cli_get_u64(data, "before"),
	       cli_get_u64(data, "after"),
	       YAJL_IS_TRUE(cli_get(data, "extend")) ? "extended by further ones" : "not extended");
	print_whether_recorded(data);
	for (size_t i = 0; i < cli_len(pmds); i++)
		print_logs(cli_item(pmds, i));
}
