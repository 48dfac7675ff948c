// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Classification of bursts against a plain evaluation of the rules, one packet and one rule at a time,
// while rules come and go. Counters of all rules are checked against the same evaluation.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_mbuf.h>

#include "sw_flow.h"
#include "sw_flow_set.h"
#include "sw_key_fast.h"

#define N_PORTS 6
#define BURST 32

static uint32_t seed;

static uint32_t dice(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return (seed >> 3) % n;
}

// Few values each, so that rules and packets meet often.
static struct sw_rule random_rule(void)
{
	static const char *const protocols[] = {"",      "ip,",   "udp,", "tcp,",
						"ipv6,", "udp6,", "arp,"};
	uint32_t p = dice(7);
	char text[512], port[32] = "", l2[64] = "", l3[64] = "", l4[64] = "", out[32];
	struct sw_rule rule;
	struct sw_error err;

	if (dice(4))
		snprintf(port, sizeof(port), "in_port=%u,", 1 + dice(N_PORTS));
	if (dice(4) == 0)
		snprintf(l2, sizeof(l2), dice(2) ? "dl_vlan=%u," : "dl_dst=02:00:00:00:00:0%u,",
			 dice(3));
	if (dice(2) && p >= 1 && p <= 3)
		snprintf(l3, sizeof(l3), "nw_dst=20.0.%u.%u/%u,", dice(3), dice(4), 20 + dice(13));
	if (dice(2) && (p == 4 || p == 5))
		snprintf(l3, sizeof(l3), "ipv6_dst=fd00::%u/%u,", dice(4), 124 + dice(5));
	if (dice(2) && (p == 2 || p == 3 || p == 5))
		snprintf(l4, sizeof(l4), "tp_dst=%u/0x%x,", dice(8), dice(2) ? 0xffff : 0xfffc);
	snprintf(out, sizeof(out), "output:%u", 1 + dice(N_PORTS));
	snprintf(text, sizeof(text), "%s%s%s%s%spriority=%u,actions=%s", protocols[p], port, l2, l3,
		 l4, dice(6),
		 dice(5) == 0   ? "drop"
		 : dice(8) == 0 ? "in_port"
				: out);
	if (sw_rule_parse(NULL, text, &rule, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	return rule;
}

static uint32_t put16(uint8_t *at, unsigned int value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return 2;
}

// A frame of up to 128 bytes, sometimes odd, sometimes cut off.
static uint32_t random_frame(uint8_t *f)
{
	uint32_t len = 12, kind = dice(6);

	memset(f, 0, 128);
	f[0] = f[6] = 2;
	f[5] = (uint8_t)dice(3);
	if (dice(4) == 0) {
		len += put16(f + len, 0x8100);
		len += put16(f + len, dice(3));
	}
	if (kind < 4) { // IPv4: UDP, TCP, other
		len += put16(f + len, 0x0800);
		f[len] = dice(20) ? 0x45 : 0x44;
		put16(f + len + 2, 40);
		put16(f + len + 6, dice(10) ? 0 : 3);
		f[len + 9] = (uint8_t[]){17, 17, 6, 47}[kind];
		put16(f + len + 16, 20 << 8);
		put16(f + len + 18, dice(3) << 8 | dice(4));
		len += 20;
		put16(f + len + 2, dice(8));
		f[len + 12] = 0x50;
		len += 20;
	} else if (kind == 4) {
		len += put16(f + len, 0x86dd);
		f[len] = 0x60;
		put16(f + len + 4, 8);
		f[len + 6] = 17;
		f[len + 24] = 0xfd;
		f[len + 39] = (uint8_t)dice(4);
		len += 40;
		put16(f + len + 2, dice(8));
		len += 8;
	} else {
		len += put16(f + len, dice(2) ? 0x0806 : 0x88cc);
		len += 28;
	}
	return dice(16) ? len : dice(len + 1);
}

static bool plain_matches(const struct sw_rule *rule, uint16_t in_port, const struct sw_key *key)
{
	if (rule->in_port && rule->in_port != in_port)
		return false;
	for (unsigned int i = 0; i < sizeof(*key); i++) {
		uint8_t mask = ((const uint8_t *)&rule->mask)[i];

		if ((((const uint8_t *)key)[i] & mask) != ((const uint8_t *)&rule->value)[i])
			return false;
	}
	return true;
}

// The rules as a plain list in the order of their addition, with what they should have counted.
struct model {
	struct sw_rule rules[128];
	uint64_t n_packets[128], n_bytes[128];
	uint32_t n;
};

static void model_add(struct model *m, const struct sw_rule *rule)
{
	uint32_t i;

	for (i = 0; i < m->n; i++) {
		if (!sw_rule_is_same_match(&m->rules[i], rule))
			continue;
		// As the table does: the new one is the youngest.
		memmove(&m->rules[i], &m->rules[i + 1], (m->n - i - 1) * sizeof(m->rules[0]));
		memmove(&m->n_packets[i], &m->n_packets[i + 1], (m->n - i - 1) * sizeof(uint64_t));
		memmove(&m->n_bytes[i], &m->n_bytes[i + 1], (m->n - i - 1) * sizeof(uint64_t));
		m->n--;
		break;
	}
	m->rules[m->n] = *rule;
	m->n_packets[m->n] = m->n_bytes[m->n] = 0;
	m->n++;
}

static void model_delete(struct model *m, const struct sw_flow_filter *filter)
{
	uint32_t to = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		if (sw_flow_filter_matches(filter, &m->rules[i]))
			continue;
		m->rules[to] = m->rules[i];
		m->n_packets[to] = m->n_packets[i];
		m->n_bytes[to++] = m->n_bytes[i];
	}
	m->n = to;
}

static uint16_t model_classify(struct model *m, uint16_t in_port, const struct rte_mbuf *pkt)
{
	struct sw_key key;
	uint32_t best = m->n;

	if (sw_key_extract_mbuf(pkt, SW_DEPTH_FULL, &key) == SW_BAD_RUNT)
		return SW_OUT_MALFORMED;
	for (uint32_t i = 0; i < m->n; i++) {
		if (plain_matches(&m->rules[i], in_port, &key) &&
		    (best == m->n || m->rules[i].priority > m->rules[best].priority))
			best = i;
	}
	if (best == m->n)
		return SW_OUT_NO_RULE;
	m->n_packets[best]++;
	m->n_bytes[best] += pkt->pkt_len;
	if (m->rules[best].out == SW_OUT_IN_PORT)
		return in_port;
	return m->rules[best].out == in_port ? SW_OUT_DROP : m->rules[best].out;
}

static void check_counters(const struct sw_flow_table *table, const struct model *m)
{
	assert_int_equal(sw_flow_count(table), m->n);
	for (uint32_t i = 0; i < m->n; i++) {
		struct sw_flow_info info;
		uint32_t at;

		sw_flow_get(table, i, &info);
		for (at = 0; at < m->n; at++) {
			if (sw_rule_is_same_match(&m->rules[at], &info.rule))
				break;
		}
		assert_true(at < m->n);
		assert_int_equal(info.n_packets, m->n_packets[at]);
		assert_int_equal(info.n_bytes, m->n_bytes[at]);
	}
}

static void burst(const struct sw_flow_table *table, struct sw_flow_stats *stats, struct model *m)
{
	static uint8_t frames[BURST][128];
	struct rte_mbuf mbufs[BURST], *pkts[BURST];
	uint16_t n = (uint16_t)(1 + dice(BURST)), in_port = (uint16_t)(1 + dice(N_PORTS + 2));
	uint16_t out[BURST], all;
	bool is_mixed = false;

	for (uint16_t i = 0; i < n; i++) {
		memset(&mbufs[i], 0, sizeof(mbufs[i]));
		mbufs[i].buf_addr = frames[i];
		mbufs[i].pkt_len = random_frame(frames[i]);
		mbufs[i].data_len = (uint16_t)mbufs[i].pkt_len;
		mbufs[i].nb_segs = 1;
		pkts[i] = &mbufs[i];
	}
	all = sw_flow_classify(sw_flow_set_get(sw_flow_table_ref(table)), stats, in_port, pkts, n,
			       out);
	for (uint16_t i = 0; i < n; i++) {
		assert_int_equal(out[i], model_classify(m, in_port, pkts[i]));
		is_mixed = is_mixed || out[i] != out[0];
	}
	assert_int_equal(all, is_mixed ? SW_OUT_MIXED : out[0]);
}

static void test_match_equals_a_plain_evaluation(void **state)
{
	struct sw_flow_table *table = sw_flow_table_create(NULL);
	struct sw_flow_stats *stats = sw_flow_stats_attach(table);
	static struct model model;
	unsigned int n_bursts = 0;
	struct sw_error err;

	(void)state;
	seed = 20260103;
	for (unsigned int round = 0; round < 4000; round++) {
		struct sw_rule rule = random_rule();

		if (model.n >= 40 || dice(4) == 0) {
			struct sw_flow_filter filter = {.match = rule, .is_strict = dice(2)};

			model_delete(&model, &filter);
			assert_true(sw_flow_delete(table, &filter, &err) >= 0);
		}
		if (model.n < 100) {
			model_add(&model, &rule);
			assert_int_equal(sw_flow_add(table, &rule, 1, &err), 0);
		}
		for (uint32_t i = dice(12); i > 0; i--, n_bursts++)
			burst(table, stats, &model);
		check_counters(table, &model);
	}
	print_message("%u bursts, %u rules at the end\n", n_bursts, model.n);
	sw_flow_table_destroy(table);
}

static const struct sw_flow_group *group_of(const struct sw_flow_table *table, uint16_t in_port)
{
	const struct sw_flow_set *set = sw_flow_set_get(sw_flow_table_ref(table));

	for (uint32_t i = 0; i <= set->hash_mask; i++) {
		if (set->hash[i].in_port == in_port)
			return &set->hash[i];
	}
	return &set->rest;
}

static void add(struct sw_flow_table *table, const char *text)
{
	struct sw_rule rule;
	struct sw_error err;

	if (sw_rule_parse(NULL, text, &rule, &err) < 0 || sw_flow_add(table, &rule, 1, &err) < 0)
		fail_msg("%s: %s", text, err.text);
}

// Packets are read only as deep as the rules of their port ask for.
static void test_match_depth_follows_the_rules(void **state)
{
	struct sw_flow_table *table = sw_flow_table_create(NULL);
	struct sw_flow_stats *stats = sw_flow_stats_attach(table);
	struct rte_mbuf mbuf = {.buf_addr = NULL, .pkt_len = 60, .data_len = 60, .nb_segs = 1};
	struct rte_mbuf *pkt = &mbuf;
	uint16_t out;

	(void)state;
	add(table, "in_port=1,actions=2");
	add(table, "in_port=2,dl_vlan=3,actions=1");
	add(table, "in_port=3,udp,actions=1");
	add(table, "in_port=4,priority=40000,actions=1");
	add(table, "in_port=4,udp,actions=2"); // never reached
	assert_int_equal(group_of(table, 1)->depth, SW_DEPTH_NONE);
	assert_int_equal(group_of(table, 2)->depth, SW_DEPTH_L2);
	assert_int_equal(group_of(table, 3)->depth, SW_DEPTH_FULL);
	assert_int_equal(group_of(table, 4)->depth, SW_DEPTH_NONE);
	assert_int_equal(group_of(table, 4)->n_rules, 1);
	assert_int_equal(group_of(table, 9)->depth, SW_DEPTH_NONE);
	// No packet byte is touched: there is none here.
	assert_int_equal(sw_flow_classify(sw_flow_set_get(sw_flow_table_ref(table)), stats, 1, &pkt,
					  1, &out),
			 2);
	assert_int_equal(sw_flow_classify(sw_flow_set_get(sw_flow_table_ref(table)), stats, 9, &pkt,
					  1, &out),
			 SW_OUT_NO_RULE);
	mbuf.pkt_len = mbuf.data_len = 13;
	assert_int_equal(sw_flow_classify(sw_flow_set_get(sw_flow_table_ref(table)), stats, 1, &pkt,
					  1, &out),
			 SW_OUT_MALFORMED);
	assert_int_equal(atomic_load(&stats->bad[SW_BAD_RUNT]), 1);
	sw_flow_table_destroy(table);
}

// Malformed frames are counted and keep to the rules for what can be trusted of them.
static void test_match_malformed_frames_find_no_way_around(void **state)
{
	struct sw_flow_table *table = sw_flow_table_create(NULL);
	struct sw_flow_stats *stats = sw_flow_stats_attach(table);
	uint8_t frame[64] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x44, 0, 0, 40};
	struct rte_mbuf mbuf = {.buf_addr = frame, .pkt_len = 60, .data_len = 60, .nb_segs = 1};
	struct rte_mbuf *pkt = &mbuf;
	uint16_t out;

	(void)state;
	frame[14 + 9] = 17;
	add(table, "in_port=1,priority=10,ip,actions=drop");
	add(table, "in_port=1,priority=20,udp,actions=2");
	add(table, "in_port=1,priority=1,actions=3");
	sw_flow_classify(sw_flow_set_get(sw_flow_table_ref(table)), stats, 1, &pkt, 1, &out);
	assert_int_equal(out, SW_OUT_DROP); // still an IPv4 frame, no longer UDP
	assert_int_equal(atomic_load(&stats->bad[SW_BAD_IP4]), 1);
	frame[14] = 0x45;
	sw_flow_classify(sw_flow_set_get(sw_flow_table_ref(table)), stats, 1, &pkt, 1, &out);
	assert_int_equal(out, 2);
	sw_flow_table_destroy(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_match_equals_a_plain_evaluation),
		cmocka_unit_test(test_match_depth_follows_the_rules),
		cmocka_unit_test(test_match_malformed_frames_find_no_way_around),
	};

	return cmocka_run_group_tests_name("sw_match", tests, NULL, NULL);
}
