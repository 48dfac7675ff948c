// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// top: all threads, repainted, with rates between two looks.
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli_health.h"
#include "pmdp_clock.h"
#include "pmdp_json.h"
#include "pmdp_names.h"

struct rates {
	double rx_pps, tx_pps, drops_pps, busy_pct, beats_ps;
};

static uint64_t drops_of(const struct cli_thread *thread)
{
	uint64_t n = 0;

	for (int i = 0; i < PMDP_N_DROPS; i++)
		n += thread->body.counters[PMDP_C_DROP0 + i];
	return n;
}

static const struct cli_thread *same_thread(const struct cli_health *health,
					    const struct cli_thread *thread)
{
	for (uint32_t i = 0; i < health->n_threads; i++) {
		const struct cli_thread *t = &health->threads[i];

		if (t->body.tid == thread->body.tid &&
		    t->look.incarnation == thread->look.incarnation)
			return t;
	}
	return NULL;
}

static struct rates rates_of(const struct cli_thread *now, const struct cli_thread *before,
			     double s)
{
	const uint64_t *a, *b = now->body.counters;
	struct rates r = {0};
	double busy, idle;

	if (before == NULL || s <= 0)
		return r;
	a = before->body.counters;
	r.rx_pps = (double)(b[PMDP_C_RX_PACKETS] - a[PMDP_C_RX_PACKETS]) / s;
	r.tx_pps = (double)(b[PMDP_C_TX_PACKETS] - a[PMDP_C_TX_PACKETS]) / s;
	r.drops_pps = (double)(drops_of(now) - drops_of(before)) / s;
	r.beats_ps = (double)(now->look.beats - before->look.beats) / s;
	busy = (double)(b[PMDP_C_BUSY_TICKS] - a[PMDP_C_BUSY_TICKS]);
	idle = (double)(b[PMDP_C_IDLE_TICKS] - a[PMDP_C_IDLE_TICKS]);
	r.busy_pct = busy + idle > 0 ? 100 * busy / (busy + idle) : 0;
	return r;
}

static void print_rates(const struct cli_health *now, const struct cli_health *before, double s)
{
	static const char *const headers[] = {"NAME",   "BEATS/S", "RX PPS",
					      "TX PPS", "DROPS/S", "BUSY"};
	struct cli_table *table = cli_table_new(headers, 6);

	for (uint32_t i = 0; i < now->n_threads; i++) {
		const struct cli_thread *t = &now->threads[i];
		struct rates r = rates_of(t, same_thread(before, t), s);
		char beats[24], rx[24], tx[24], drops[24], busy[16];
		const char *cells[] = {t->body.name,
				       cli_count(r.beats_ps, beats, sizeof(beats)),
				       cli_count(r.rx_pps, rx, sizeof(rx)),
				       cli_count(r.tx_pps, tx, sizeof(tx)),
				       cli_count(r.drops_pps, drops, sizeof(drops)),
				       busy};

		snprintf(busy, sizeof(busy), "%.0f %%", r.busy_pct);
		cli_table_row(table, cells);
	}
	cli_table_print(table, stdout);
}

static void print_json(struct cli *cli, const struct cli_health *now,
		       const struct cli_health *before, double s)
{
	yajl_gen gen = cli_health_json_begin(cli, now);

	cli_health_json_threads(gen, now);
	pmdp_json_key(gen, "rates");
	yajl_gen_array_open(gen);
	for (uint32_t i = 0; i < now->n_threads; i++) {
		const struct cli_thread *t = &now->threads[i];
		struct rates r = rates_of(t, same_thread(before, t), s);

		yajl_gen_map_open(gen);
		pmdp_json_kv_text(gen, "name", t->body.name);
		pmdp_json_kv_real(gen, "beats_per_s", r.beats_ps);
		pmdp_json_kv_real(gen, "rx_pps", r.rx_pps);
		pmdp_json_kv_real(gen, "tx_pps", r.tx_pps);
		pmdp_json_kv_real(gen, "drops_per_s", r.drops_pps);
		pmdp_json_kv_real(gen, "busy_pct", r.busy_pct);
		yajl_gen_map_close(gen);
	}
	yajl_gen_array_close(gen);
	yajl_gen_map_close(gen);
	cli_json_end(gen);
}

static double monotonic_s(void)
{
	return (double)pmdp_mono_now_ns() / 1e9;
}

static void paint(struct cli *cli, const struct cli_health *now, const struct cli_health *before,
		  double s)
{
	char when[64], up[32];
	struct timespec ts;

	if (cli->is_json) {
		print_json(cli, now, before, s);
		return;
	}
	if (isatty(STDOUT_FILENO))
		fputs("\033[H\033[2J", stdout);
	clock_gettime(CLOCK_REALTIME, &ts);
	pmdp_rfc3339((uint64_t)ts.tv_sec * 1000000, when, sizeof(when));
	printf("%.8s  instance %s  switch %s", when + 11, cli->instance, now->switch_state);
	if (strcmp(now->switch_state, "up") == 0)
		printf(" for %s",
		       cli_duration((uint64_t)(now->switch_uptime_s * 1e9), up, sizeof(up)));
	printf("  agent %s  open incidents %u\n\n", now->agent_state, now->open_incidents);
	cli_health_table(cli, now, stdout);
	putchar('\n');
	print_rates(now, before, s);
}

int cmd_top(struct cli *cli, int argc, char **argv)
{
	long period_s = 1, times = -1;
	struct cli_health before, now;
	double then;

	for (int i = 1; i < argc; i += 2) {
		if (i + 1 == argc || (strcmp(argv[i], "-d") != 0 && strcmp(argv[i], "-n") != 0))
			return cli_usage("usage: pmdpulse top [-d SECONDS] [-n TIMES]");
		if (argv[i][1] == 'd' && !cli_number("-d", argv[i + 1], 1, 3600, &period_s))
			return CLI_USAGE;
		if (argv[i][1] == 'n' && !cli_number("-n", argv[i + 1], 1, 1000000000, &times))
			return CLI_USAGE;
	}
	cli_health_read(cli, &before);
	then = monotonic_s();
	while (times != 0) {
		const struct timespec period = {.tv_sec = period_s};

		nanosleep(&period, NULL);
		cli_health_read(cli, &now);
		paint(cli, &now, &before, monotonic_s() - then);
		fflush(stdout);
		then = monotonic_s();
		cli_health_free(&before);
		before = now;
		if (times > 0)
			times--;
		if (ferror(stdout))
			break;
	}
	cli_health_free(&before);
	return CLI_OK;
}
