// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * What a miss costs: nanoseconds of one translation, for tables of several kinds and packets that
 * come in no order. Last line: one JSON document, {"bench": "upcall", "cases": [{"rules",
 * "n_rules", "n_masks", "ns", "worst_ns", "bits"}]}: median of the rounds, the slowest round, and
 * how many bits of the key a megaflow looks at in the mean, in_port aside.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmdp_clock.h"
#include "sw_flow.h"

#define N_ROUNDS 51
#define N_KEYS 4096

static struct sw_key keys[N_KEYS];
static uint64_t seed = 88172645463325252u;

static uint32_t dice(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 16) % n;
}

static double now_ns(void)
{
	return (double)pmdp_mono_now_ns();
}

static void die(const char *why)
{
	fprintf(stderr, "%s\n", why);
	exit(1);
}

static void key_of(const char *text, struct sw_key *out_key)
{
	struct sw_flow_filter filter;
	struct sw_error err;

	if (sw_flow_filter_parse(NULL, text, false, &filter, &err) < 0)
		die(err.text);
	*out_key = filter.match.value;
}

// Hosts of 20.0.0.0/16, any port of origin, ports 0 to 1023.
static void fill_keys(bool is_known, uint32_t n_hosts)
{
	for (uint32_t i = 0; i < N_KEYS; i++) {
		uint32_t host = dice(n_hosts), port = is_known ? host & 0xff : dice(1024);
		char text[256];

		snprintf(text, sizeof(text),
			 "in_port=1,udp,nw_src=10.%u.%u.%u,nw_dst=20.0.%u.%u,tp_src=%u,tp_dst=%u,"
			 "nw_ttl=64",
			 dice(256), dice(256), dice(256), host >> 8, host & 0xff, dice(60000),
			 port);
		key_of(text, &keys[i]);
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void measure(const char *name, struct sw_flow_table *table, bool is_last)
{
	const struct sw_tables *tables = sw_tables_get(sw_flow_table_ref(table));
	uint32_t n_bits = 0, n_masks = 0;
	double rounds[N_ROUNDS];
	struct sw_xlate result;

	for (uint32_t r = 0; r < N_ROUNDS; r++) {
		double begin = now_ns();

		for (uint32_t i = 0; i < 1024; i++)
			sw_xlate(tables, &keys[dice(N_KEYS)], &result);
		rounds[r] = (now_ns() - begin) / 1024;
	}
	for (uint32_t i = 0; i < N_KEYS; i++) {
		sw_xlate(tables, &keys[i], &result);
		for (uint32_t w = 0; w < SW_KEY_WORDS; w++)
			n_bits += (uint32_t)__builtin_popcountll(result.mask.word[w]);
	}
	for (uint32_t t = 0; t < SW_N_TABLES; t++)
		n_masks += sw_flow_masks(table, (uint8_t)t);
	qsort(rounds, N_ROUNDS, sizeof(rounds[0]), compare);
	printf("{\"rules\": \"%s\", \"n_rules\": %u, \"n_masks\": %u, \"ns\": %.0f, \"worst_ns\": "
	       "%.0f, \"bits\": %.1f}%s",
	       name, sw_flow_count(table), n_masks, rounds[N_ROUNDS / 2], rounds[N_ROUNDS - 1],
	       (double)n_bits / N_KEYS - 48, is_last ? "" : ", ");
	sw_flow_table_destroy(table);
}

// n rules from a format with up to two numbers: i / 256 and i % 256.
static struct sw_flow_table *table_of(const char *format, uint32_t n)
{
	struct sw_flow_table *table = sw_flow_table_create(NULL);
	struct sw_rule *rules = calloc(n, sizeof(*rules));
	struct sw_error err;

	for (uint32_t i = 0; rules && i < n; i++) {
		char text[512];

		// The formats stand below, beside their numbers.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(text, sizeof(text), format, i / 256, i % 256, i % 256);
#pragma GCC diagnostic pop
		if (sw_rule_parse(NULL, text, &rules[i], &err) < 0)
			die(err.text);
	}
	if (!table || !rules || sw_flow_add(table, rules, n, &err) < 0)
		die("no memory, or the rules are refused");
	sw_rules_free(rules, n);
	return table;
}

static void add(struct sw_flow_table *table, const char *text)
{
	struct sw_rule rule;
	struct sw_error err;

	if (sw_rule_parse(NULL, text, &rule, &err) < 0 || sw_flow_add(table, &rule, 1, &err) < 0)
		die(err.text);
	sw_rule_free(&rule);
}

// Every rule has a mask of its own: what a hostile rule set can do.
static struct sw_flow_table *masks(uint32_t n)
{
	struct sw_flow_table *table = sw_flow_table_create(NULL);

	for (uint32_t i = 0; i < n; i++) {
		char text[160];

		snprintf(text, sizeof(text),
			 "priority=%u,udp,nw_dst=99.0.0.0/%u,tp_dst=0x%x/0x%x,actions=2", 1000 + i,
			 8 + i % 16, 0x8000 | i << 4, 0xffff & ~(i / 16));
		add(table, text);
	}
	add(table, "priority=1,actions=3");
	return table;
}

static struct sw_flow_table *pipeline(void)
{
	struct sw_flow_table *table = table_of(
		"table=3,ip,nw_dst=20.0.%u.%u,actions=mod_dl_dst:02:00:00:00:00:%02x,goto_table:4",
		4096);

	add(table, "in_port=1,actions=mod_vlan_vid:5,resubmit(,1)");
	add(table, "table=1,ip,nw_frag=no,actions=resubmit(,2)");
	add(table, "table=2,udp,actions=resubmit(,3)");
	add(table, "table=2,tcp,actions=drop");
	add(table, "table=4,actions=dec_ttl,strip_vlan,output:2");
	return table;
}

int main(void)
{
	printf("{\"bench\": \"upcall\", \"cases\": [");
	fill_keys(true, 4096);
	measure("in_port", table_of("in_port=1,actions=output:2", 1), false);
	measure("one 5-tuple",
		table_of("in_port=1,udp,nw_dst=20.0.0.0/16,tp_dst=0/0xff00,actions=output:2", 1),
		false);
	measure("hosts and ports, hit",
		table_of("in_port=1,udp,nw_dst=20.0.%u.%u,tp_dst=%u,actions=output:2", 4096),
		false);
	fill_keys(false, 65536);
	measure("hosts and ports, no hit",
		table_of("in_port=1,udp,nw_dst=20.0.%u.%u,tp_dst=%u,actions=output:2", 4096),
		false);
	measure("hosts and ports, full",
		table_of("in_port=1,udp,nw_dst=20.0.%u.%u,tp_dst=%u,actions=output:2", 65536),
		false);
	fill_keys(true, 4096);
	measure("five tables", pipeline(), false);
	measure("20 masks", masks(20), false);
	measure("256 masks", masks(256), true);
	printf("]}\n");
	return 0;
}
