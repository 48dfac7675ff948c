// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Flow rules as text, and the table of the control side.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pmdp_clock.h"
#include "sw_flow.h"
#include "sw_flow_field.h"
#include "sw_flow_table.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

static int resolve(void *ctx, const char *name)
{
	(void)ctx;
	return strcmp(name, "uplink") == 0 ? 7 : -ENOENT;
}

static const struct sw_rule_parser with = {.resolve = resolve};

static struct sw_rule rule_of(const char *text)
{
	struct sw_rule rule;
	struct sw_error err;

	if (sw_rule_parse(&with, text, &rule, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	return rule;
}

static void test_flow_good(void **state)
{
	// What is written, and how a dump says it.
	static const struct {
		const char *text, *dump;
	} good[] = {
		{"in_port=1,actions=output:2", "priority=32768,in_port=1 actions=output:2"},
		{"in_port=1 actions=2", "priority=32768,in_port=1 actions=output:2"},
		{"actions=drop", "priority=32768 actions=drop"},
		{"in_port=1,actions=", "priority=32768,in_port=1 actions=drop"},
		{"in_port=1,action=IN_PORT", "priority=32768,in_port=1 actions=IN_PORT"},
		{"in_port=uplink,actions=output:\"uplink\"",
		 "priority=32768,in_port=7 actions=output:7"},
		{"in_port=1,ip,nw_dst=20.0.0.0/24,udp,tp_dst=63,actions=output:2",
		 "priority=32768,udp,in_port=1,nw_dst=20.0.0.0/24,tp_dst=63 actions=output:2"},
		{"udp,nw_dst=20.0.0.7/24,actions=drop",
		 "priority=32768,udp,nw_dst=20.0.0.0/24 actions=drop"},
		{"ip,nw_src=10.0.0.1/255.0.255.0,actions=drop",
		 "priority=32768,ip,nw_src=10.0.0.0/255.0.255.0 actions=drop"},
		{"dl_type=0x800,nw_proto=6,tp_src=3,actions=drop",
		 "priority=32768,tcp,tp_src=3 actions=drop"},
		{"ip,nw_proto=47,actions=drop", "priority=32768,ip,nw_proto=47 actions=drop"},
		{"tcp6,ipv6_src=fd00::1/64,tcp_dst=80,actions=drop",
		 "priority=32768,tcp6,ipv6_src=fd00::/64,tp_dst=80 actions=drop"},
		{"udp,tp_dst=0x10/0xfff0,actions=drop",
		 "priority=32768,udp,tp_dst=0x10/0xfff0 actions=drop"},
		{"arp,arp_spa=1.2.3.4,arp_op=1,nw_dst=4.4.4.4,actions=drop",
		 "priority=32768,arp,arp_spa=1.2.3.4,arp_tpa=4.4.4.4,arp_op=1 actions=drop"},
		{"arp,arp_sha=2:0:0:0:0:1,actions=drop",
		 "priority=32768,arp,arp_sha=02:00:00:00:00:01 actions=drop"},
		{"icmp,icmp_type=8,icmp_code=0,actions=drop",
		 "priority=32768,icmp,icmp_type=8,icmp_code=0 actions=drop"},
		{"icmp6,icmpv6_type=135,actions=drop",
		 "priority=32768,icmp6,icmp_type=135 actions=drop"},
		{"ip,nw_frag=later,actions=drop", "priority=32768,ip,nw_frag=later actions=drop"},
		{"ip,nw_frag=not_later,actions=drop",
		 "priority=32768,ip,nw_frag=not_later actions=drop"},
		{"ip,nw_tos=32,nw_ecn=2,nw_ttl=3,actions=drop",
		 "priority=32768,ip,nw_tos=32,nw_ecn=2,nw_ttl=3 actions=drop"},
		{"ipv6,ipv6_label=0x12345,actions=drop",
		 "priority=32768,ipv6,ipv6_label=0x12345 actions=drop"},
		{"dl_vlan=5,dl_vlan_pcp=3,actions=drop",
		 "priority=32768,dl_vlan=5,dl_vlan_pcp=3 actions=drop"},
		{"dl_vlan=5,dl_vlan1=6,actions=drop",
		 "priority=32768,dl_vlan=5,dl_vlan1=6 actions=drop"},
		{"dl_vlan=0xffff,actions=drop", "priority=32768,vlan_tci=0x0000 actions=drop"},
		{"vlan_tci=0x1000/0x1000,actions=drop",
		 "priority=32768,vlan_tci=0x1000/0x1000 actions=drop"},
		{"dl_dst=01:00:00:00:00:00/01:00:00:00:00:00,actions=drop",
		 "priority=32768,dl_dst=01:00:00:00:00:00/01:00:00:00:00:00 actions=drop"},
		{"tcp,tcp_flags=+syn-ack,actions=drop",
		 "priority=32768,tcp,tcp_flags=+syn-ack actions=drop"},
		{"tcp,tcp_flags=0x2,actions=drop",
		 "priority=32768,tcp,tcp_flags=0x002/0xfff actions=drop"},
		{"tcp,tcp_flags=0x2/0x12,actions=drop",
		 "priority=32768,tcp,tcp_flags=+syn-ack actions=drop"},
		{"dl_type=0x5ff,actions=drop", "priority=32768,dl_type=0x05ff actions=drop"},
		{"priority=0,cookie=0xfe,table=0,actions=drop", "priority=0 actions=drop"},
		{"icmp6,icmp_type=135,icmp_code=0,nd_target=fe80::1,nd_sll=1:2:3:4:5:6,"
		 "actions=drop",
		 "priority=32768,icmp6,icmp_type=135,icmp_code=0,nd_target=fe80::1,"
		 "nd_sll=01:02:03:04:05:06 actions=drop"},
		{"icmp6,icmp_type=136,icmp_code=0,nd_tll=1:2:3:4:5:6/ff:ff:ff:0:0:0,actions=drop",
		 "priority=32768,icmp6,icmp_type=136,icmp_code=0,"
		 "nd_tll=01:02:03:00:00:00/ff:ff:ff:00:00:00 actions=drop"},
		{"icmp6,icmp_type=136,nd_target=fe80::/10,nd_tll=1:2:3:4:5:6,actions=drop",
		 "priority=32768,icmp6,icmp_type=136,nd_target=fe80::/10,"
		 "nd_tll=01:02:03:04:05:06 actions=drop"},
		{"icmp6,nd_sll=1:2:3:4:5:6,icmp_type=135,actions=drop",
		 "priority=32768,icmp6,icmp_type=135,nd_sll=01:02:03:04:05:06 actions=drop"},
		{"ip,ip_dscp=8,actions=drop", "priority=32768,ip,nw_tos=32 actions=drop"},
		{"vlan_vid=0x1005/0x1fff,vlan_pcp=3,actions=drop",
		 "priority=32768,dl_vlan=5,dl_vlan_pcp=3 actions=drop"},
		{"vlan_vid=0,actions=drop", "priority=32768,vlan_tci=0x0000/0x1fff actions=drop"},
		{"table=7,in_port=1,actions=drop", "table=7,priority=32768,in_port=1 actions=drop"},
		{"udp,nw_frag=later,tp_dst=0,actions=drop",
		 "priority=32768,udp,nw_frag=later,tp_dst=0 actions=drop"},
		{" cookie=0x0, duration=1.2s, table=0, n_packets=3, n_bytes=180, idle_age=1, "
		 "priority=7,ip,in_port=1,nw_dst=20.0.0.0/24 actions=output:2",
		 "priority=7,ip,in_port=1,nw_dst=20.0.0.0/24 actions=output:2"},
	};

	(void)state;
	for (size_t i = 0; i < N(good); i++) {
		struct sw_rule rule = rule_of(good[i].text), again;
		char text[SW_FLOW_TEXT_BYTES];

		sw_rule_format(&rule, text, sizeof(text));
		assert_string_equal(strchr(text, ',') + 1, good[i].dump);
		again = rule_of(text);
		assert_true(sw_rule_is_same(&again, &rule));
		sw_rule_free(&again);
		sw_rule_free(&rule);
	}
}

// Actions alone, and how a dump says them (NULL: the same).
static void test_flow_good_actions(void **state)
{
	static const struct {
		const char *match, *actions, *dump;
	} good[] = {
		{"", "output:1,2,\"uplink\"", "output:1,output:2,output:7"},
		{"", "uplink", "output:7"},
		{"", "output=3", "output:3"},
		{"", "normal", "NORMAL"},
		{"", "output:flood", "FLOOD"},
		{"", "ALL,flood,Normal,in_port", "ALL,FLOOD,NORMAL,IN_PORT"},
		{"", "output(port=2,max_len=64),output(max_len=14,port=in_port)",
		 "output(port=2,max_len=64),output(port=IN_PORT,max_len=14)"},
		{"", "mod_dl_src:1:2:3:4:5:6,mod_dl_dst:01:02:03:04:05:06",
		 "mod_dl_src:01:02:03:04:05:06,mod_dl_dst:01:02:03:04:05:06"},
		{"", "set_field:1:2:3:4:5:6/ff:ff:ff:0:0:0->eth_dst,1",
		 "set_field:01:02:03:00:00:00/ff:ff:ff:00:00:00->eth_dst,output:1"},
		{"",
		 "mod_nw_src:1.2.3.4,mod_nw_dst:1.2.3.5,mod_nw_tos:32,mod_nw_ecn:2,mod_nw_ttl:9",
		 NULL},
		{"", "mod_tp_src:0x50,mod_tp_dst:65535", "mod_tp_src:80,mod_tp_dst:65535"},
		{"", "mod_vlan_vid:7,mod_vlan_pcp:3", NULL},
		{"", "set_field:0x1005->vlan_vid,set_field:5->dl_vlan,set_field:3->vlan_pcp",
		 "set_field:0x1005->vlan_vid,set_field:5->dl_vlan,set_field:3->vlan_pcp"},
		{"ip",
		 "set_field:1.2.3.4/255.0.255.0->ip_src,set_field:8->ip_dscp,set_field:1->ip_ecn",
		 "set_field:1.0.3.0/255.0.255.0->ip_src,set_field:8->ip_dscp,set_field:1->ip_ecn"},
		{"tcp", "set_field:80/0xff->tcp_dst", "set_field:0x50/0xff->tcp_dst"},
		{"udp6", "set_field:fd00::1/ffff::->ipv6_src,set_field:0x12345->ipv6_label",
		 "set_field:fd00::/16->ipv6_src,set_field:0x12345->ipv6_label"},
		{"arp",
		 "set_field:2->arp_op,set_field:1.2.3.4->arp_spa,set_field:1:2:3:4:5:6->arp_sha",
		 "set_field:2->arp_op,set_field:1.2.3.4->arp_spa,"
		 "set_field:01:02:03:04:05:06->arp_sha"},
		{"icmp", "set_field:3->icmp_type", NULL},
		{"icmp6,icmp_type=135,icmp_code=0", "set_field:fe80::5->nd_target", NULL},
		{"icmp6,icmp_type=136", "set_field:01:02:03:04:05:06->nd_tll", NULL},
		{"", "push_vlan:0x8100,push_vlan:0x88a8,strip_vlan,pop_vlan",
		 "push_vlan:0x8100,push_vlan:0x88a8,strip_vlan,strip_vlan"},
		{"", "dec_ttl", NULL},
		{"", "resubmit(,3),resubmit(4,5),resubmit:6,resubmit(7),resubmit(in_port,2)",
		 "resubmit(,3),resubmit(4,5),resubmit(6),resubmit(7),resubmit(,2)"},
		{"", "1,goto_table:9", "output:1,goto_table:9"},
		{"", "recirc(table=9)", NULL},
		{"", "note:00.11.aaBB,1", "note:00.11.aa.bb,output:1"},
	};

	(void)state;
	for (size_t i = 0; i < N(good); i++) {
		char text[SW_FLOW_TEXT_BYTES], dump[SW_FLOW_TEXT_BYTES];
		struct sw_rule rule, again;

		snprintf(text, sizeof(text), "%s actions=%s", good[i].match, good[i].actions);
		rule = rule_of(text);
		sw_rule_format_actions(&rule, dump, sizeof(dump));
		assert_string_equal(dump, good[i].dump ? good[i].dump : good[i].actions);
		sw_rule_format(&rule, text, sizeof(text));
		again = rule_of(text);
		if (!sw_rule_is_same(&again, &rule))
			fail_msg("%s is another rule", text);
		sw_rule_free(&again);
		sw_rule_free(&rule);
	}
}

static void test_flow_bad(void **state)
{
	// What is written, and what the complaint must name.
	static const struct {
		const char *text, *named;
	} bad[] = {
		{"", "actions"},
		{"in_port=1,ip", "actions=output:PORT"},
		{"in_port=1,nw_dst=1.2.3.4,actions=drop", "nw_dst: needs the protocol"},
		{"in_port=1,nw_dst=1.2.3.4,actions=drop", "ip, arp or rarp"},
		{"ipv6,nw_dst=1.2.3.4,actions=drop", "ipv6_dst"},
		{"ip,tp_dst=3,actions=drop", "tp_dst"},
		{"ip,ipv6_src=fd00::1,actions=drop", "ipv6_src"},
		{"udp,tcp_dst=3,actions=drop", "tcp or tcp6"},
		{"tcp,icmp_type=3,actions=drop", "icmp_type"},
		{"dl_vlan1=3,actions=drop", "dl_vlan=VID"},
		{"nw_frag=yes,actions=drop", "nw_frag"},
		{"ip,udp,tcp,actions=drop", "tcp: contradicts"},
		{"ip,arp,actions=drop", "arp: contradicts"},
		{"dl_vlan=0xffff,dl_vlan_pcp=3,actions=drop", "dl_vlan_pcp: contradicts"},
		{"tcp,tp_dst=99999,actions=drop", "tp_dst=99999"},
		{"tcp,tp_dst=-1,actions=drop", "tp_dst=-1"},
		{"tcp,tp_dst=0x,actions=drop", "tp_dst=0x"},
		{"tcp,tp_dst=1/,actions=drop", "tp_dst=1/"},
		{"ip,nw_dst=1.2.3,actions=drop", "nw_dst=1.2.3"},
		{"ip,nw_dst=1.2.3.4/33,actions=drop", "nw_dst=1.2.3.4/33"},
		{"ip,nw_tos=3,actions=drop", "nw_tos=3"},
		{"ip,nw_ecn=4,actions=drop", "0 to 3"},
		{"ip,nw_frag=maybe,actions=drop", "not_later"},
		{"dl_vlan=4096,actions=drop", "0 to 4095"},
		{"dl_vlan_pcp=8,actions=drop", "0 to 7"},
		{"dl_type=0x500,actions=drop", "0x600"},
		{"dl_type=0x800/0xff00,actions=drop", "no mask"},
		{"dl_src=1:2:3:4:5,actions=drop", "dl_src"},
		{"dl_src=1:2:3:4:5:6:7,actions=drop", "dl_src"},
		{"dl_src=1:2:3:4:5:g,actions=drop", "dl_src"},
		{"tcp,tcp_flags=+foo,actions=drop", "tcp_flags"},
		{"tcp,tcp_flags=+syn+syn,actions=drop", "tcp_flags"},
		{"ipv6,ipv6_label=0x100000,actions=drop", "ipv6_label"},
		{"foo=3,actions=drop", "foo: no such field"},
		{"mpls,actions=drop", "mpls: no such protocol"},
		{"nw_dst,ip,actions=drop", "nw_dst=VALUE"},
		{"tp_dst=,udp,actions=drop", "tp_dst=VALUE"},
		{"in_port=nowhere,actions=drop", "in_port=nowhere: no such port"},
		{"in_port=0,actions=drop", "in_port=0"},
		{"in_port=65280,actions=drop", "65279"},
		{"priority=65536,actions=drop", "priority=65536"},
		{"cookie=x,actions=drop", "cookie=x"},
		{"table=255,actions=drop", "0 to 254"},
		{"icmp6,icmp_type=135,icmp_code=1,nd_target=fe80::1,actions=drop", "no code but 0"},
		{"icmp6,icmp_code=0,nd_target=fe80::1,actions=drop", "icmp_type=136"},
		{"icmp6,icmp_type=136,nd_sll=1:2:3:4:5:6,actions=drop", "icmp_type=135"},
		{"icmp6,icmp_type=135/0xfe,nd_target=fe80::1,actions=drop", "icmp_type=136"},
		{"icmp6,icmp_type=135,icmp_code=0,nd_tll=1:2:3:4:5:6,actions=drop",
		 "icmp_type=136"},
		{"idle_timeout=10,actions=drop", "idle_timeout=10"},
		{"in_port=1,actions=drop,output:3", "\"output\" comes too late"},
		{"in_port=1,actions=3,drop", "drop beside other actions"},
		{"in_port=1,actions=frob:3", "\"frob\""},
		{"in_port=1,actions=controller", "no controller"},
		{"in_port=1,actions=learn(table=1)", "addresses are learned by normal"},
		{"in_port=1,actions=group:5", "no groups"},
		{"in_port=1,check_overlap,actions=3", "rules have no flags"},
		{"in_port=1,actions=load:5->NXM_OF_IP_TOS[]", "write set_field"},
		{"in_port=1,actions=output(port=3)", "max_len=BYTES"},
		{"in_port=1,actions=output(port=3,max_len=13)", "max_len=13"},
		{"in_port=1,actions=output(port=3,len=13)", "len=13"},
		{"in_port=1,actions=set_field:5", "->FIELD"},
		{"in_port=1,actions=set_field:5->foo", "foo: no such field"},
		{"in_port=1,actions=set_field:5->nw_proto", "nw_proto is read-only"},
		{"in_port=1,actions=set_field:1.2.3.4->nw_src", "add ip to the match"},
		{"arp,actions=set_field:1.2.3.4->nw_src", "nw_src"},
		{"ip,actions=set_field:1.2.3->nw_src", "nw_src=1.2.3"},
		{"udp,actions=set_field:5->tcp_dst", "tcp or tcp6"},
		{"in_port=1,actions=set_field:0xffff->dl_vlan", "strip_vlan"},
		{"in_port=1,actions=set_field:0:0:0:0:0:0/0:0:0:0:0:0->eth_src", "mask"},
		{"in_port=1,actions=mod_nw_tos:3", "multiple of 4"},
		{"in_port=1,actions=push_vlan:0x9100", "push_vlan:0x9100"},
		{"in_port=1,actions=resubmit", "resubmit: where to?"},
		{"in_port=1,actions=resubmit(,255)", "0 to 254"},
		{"in_port=1,actions=resubmit(nowhere,2)", "no such port"},
		{"table=3,actions=goto_table:3", "later table"},
		{"table=3,actions=goto_table:4,2", "comes too late"},
		{"table=3,actions=recirc(table=4),2", "comes too late"},
		{"actions=recirc(3)", "recirc(table=N)"},
		{"actions=note:1", "hexadecimal"},
		{"in_port=1,actions=output:0", "output=0"},
		{"in_port=1,actions=output:", "output="},
		{"in_port=1,actions=output:nowhere", "output=nowhere"},
	};
	char endless[2 * SW_FLOW_TEXT_BYTES];
	struct sw_rule rule, untouched;
	struct sw_error err;

	(void)state;
	memset(&untouched, 0x5a, sizeof(untouched));
	for (size_t i = 0; i < N(bad); i++) {
		rule = untouched;
		if (sw_rule_parse(&with, bad[i].text, &rule, &err) != -EINVAL)
			fail_msg("%s: taken", bad[i].text);
		if (!strstr(err.text, bad[i].named))
			fail_msg("%s: \"%s\" does not name \"%s\"", bad[i].text, err.text,
				 bad[i].named);
		assert_memory_equal(&rule, &untouched, sizeof(rule));
	}
	memset(endless, 'x', sizeof(endless) - 1);
	endless[sizeof(endless) - 1] = 0;
	assert_int_equal(sw_rule_parse(&with, endless, &rule, &err), -EINVAL);
	assert_int_equal(sw_rule_parse(NULL, "in_port=uplink,actions=drop", &rule, &err), -EINVAL);
}

static void test_flow_lines(void **state)
{
	static const char *const lines[] = {"# rules",
					    "",
					    "  ",
					    "in_port=1,actions=drop # why",
					    "in_port=2,actions=drop",
					    "ip,tp_dst=1,actions=drop"};
	struct sw_rule *rules = NULL;
	struct sw_error err;
	uint32_t n;

	(void)state;
	assert_int_equal(sw_rules_parse(&with, lines, 5, &rules, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_int_equal(rules[1].value.in_port, 2);
	sw_rules_free(rules, n);
	assert_int_equal(sw_rules_parse(&with, lines, 6, &rules, &n, &err), -EINVAL);
	assert_non_null(strstr(err.text, "line 6: tp_dst"));
}

static uint32_t xorshift(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

// Any rule that can be put together field by field: its text gives the same rule again.
static void test_flow_round_trip_of_random_rules(void **state)
{
	static const char *const protocols[] = {"",     "ip",    "arp",  "rarp", "ipv6",
						"tcp",  "udp",   "icmp", "sctp", "tcp6",
						"udp6", "icmp6", "sctp6"};
	uint32_t seed = 20260102;
	unsigned int n_tried = 0;

	(void)state;
	for (unsigned int round = 0; round < 20000; round++) {
		char text[SW_FLOW_TEXT_BYTES], dump[SW_FLOW_TEXT_BYTES], value[200];
		struct sw_rule rule, again;
		const struct sw_field *field;
		struct sw_error err;
		int len = snprintf(text, sizeof(text), "%s actions=drop",
				   protocols[xorshift(&seed) % N(protocols)]);

		struct sw_rule protocol = rule_of(text);

		len -= (int)strlen(" actions=drop");
		for (size_t i = 0; (field = sw_field_at(i)); i++) {
			uint32_t a = xorshift(&seed), b = xorshift(&seed), c = xorshift(&seed);

			if (a % 8 != 0 || !sw_field_is_met((enum sw_field_needs)field->needs,
							   &protocol.value, &protocol.mask))
				continue;
			if (field->type == SW_FIELD_MAC)
				snprintf(value, sizeof(value), "%x:%x:0:1:%x:ff/ff:%x:00:ff:ff:%x",
					 b & 255, b >> 24, c & 255, c >> 24, b >> 8 & 255);
			else if (field->type == SW_FIELD_IP4)
				snprintf(value, sizeof(value),
					 c & 1 ? "%u.%u.%u.%u/%u" : "%u.%u.%u.%u/%u.0.255.0",
					 b & 255, b >> 24, c >> 24, c >> 16 & 255, c % 33);
			else if (field->type == SW_FIELD_IP6)
				snprintf(value, sizeof(value), "%x::%x:%x/%u", b >> 16, c >> 16,
					 b & 0xffff, c % 129);
			else if (field->type == SW_FIELD_FRAG)
				snprintf(value, sizeof(value), "%s", sw_frags[b % SW_N_FRAGS].name);
			else if (field->n_bits > 8 && c & 1)
				snprintf(value, sizeof(value), "0x%x/0x%x", b & 0xffff, b >> 16);
			else
				snprintf(value, sizeof(value), "%u", b % (c & 2 ? 256 : 70000));
			len += snprintf(text + len, sizeof(text) - (size_t)len, ",%s=%s",
					field->name, value);
		}
		snprintf(text + len, sizeof(text) - (size_t)len,
			 ",table=%u,priority=%u,cookie=%u,actions=%u", xorshift(&seed) % 255,
			 xorshift(&seed) & 0xffff, xorshift(&seed),
			 1 + xorshift(&seed) % SW_OFPORT_MAX);
		if (sw_rule_parse(&with, text, &rule, &err) < 0)
			continue;
		n_tried++;
		for (unsigned int i = 0; i < SW_KEY_WORDS; i++)
			assert_int_equal(rule.value.word[i] & ~rule.mask.word[i], 0);
		sw_rule_format(&rule, dump, sizeof(dump));
		if (sw_rule_parse(&with, dump, &again, &err) < 0)
			fail_msg("%s gives %s: %s", text, dump, err.text);
		if (!sw_rule_is_same(&again, &rule))
			fail_msg("%s gives %s, another rule", text, dump);
		sw_rule_free(&again);
		sw_rule_free(&rule);
	}
	assert_true(n_tried > 3000);
}

static struct sw_flow_filter filter_of(const char *text, bool is_strict)
{
	struct sw_flow_filter filter;
	struct sw_error err;

	if (sw_flow_filter_parse(&with, text, is_strict, &filter, &err) < 0)
		fail_msg("%s: %s", text ? text : "all", err.text);
	return filter;
}

// Megaflows: a match meets all that it does not contradict, wider ones as well.
static void test_flow_filter_meets(void **state)
{
	static const struct {
		const char *filter, *megaflow;
		bool is_met;
	} cases[] = {
		{"", "in_port=1,udp,tp_dst=63", true},
		{"in_port=1", "in_port=1,udp,tp_dst=63", true},
		{"in_port=2", "in_port=1,udp,tp_dst=63", false},
		{"tcp", "in_port=1,udp,tp_dst=63", false},
		{"udp,tp_dst=64", "in_port=1,udp,tp_dst=63", false},
		{"udp,tp_src=9,nw_dst=1.2.3.4", "in_port=1,udp,tp_dst=63", true},
		{"ip,nw_dst=20.0.0.7", "in_port=1,ip,nw_dst=20.0.0.0/24", true},
		{"ip,nw_dst=20.0.1.7", "in_port=1,ip,nw_dst=20.0.0.0/24", false},
		{"ip,nw_dst=20.0.0.0/8", "in_port=1,ip,nw_dst=20.0.0.0/24", true},
		{"recirc_id=2", "in_port=1,recirc_id=2", true},
		{"recirc_id=0", "in_port=1,recirc_id=2", false},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sw_flow_filter filter = filter_of(cases[i].filter, false);
		struct sw_flow_filter megaflow = filter_of(cases[i].megaflow, false);

		if (sw_flow_filter_meets(&filter, &megaflow.match.value, &megaflow.match.mask) !=
		    cases[i].is_met)
			fail_msg("%s against %s", cases[i].filter, cases[i].megaflow);
	}
}

static void test_flow_filter(void **state)
{
	static const struct {
		const char *filter, *rule;
		bool is_strict, is_match;
	} cases[] = {
		{NULL, "in_port=1,ip,actions=drop", false, true},
		{"", "actions=drop", false, true},
		{"ip", "tcp,in_port=1,actions=drop", false, true},
		{"tcp", "ip,actions=drop", false, false}, // the rule says more than TCP
		{"in_port=1", "in_port=1,udp,actions=drop", false, true},
		{"in_port=1", "in_port=2,actions=drop", false, false},
		{"in_port=1", "actions=drop", false, false},
		{"ip,nw_dst=10.0.0.0/8", "ip,nw_dst=10.1.0.0/16,actions=drop", false, true},
		{"ip,nw_dst=10.0.0.0/8", "ip,nw_dst=11.1.0.0/16,actions=drop", false, false},
		{"ip,nw_dst=10.0.0.0/8", "ip,nw_dst=10.0.0.0/7,actions=drop", false, false},
		{"cookie=0x10/0xf0", "cookie=0x1f,actions=drop", false, true},
		{"cookie=0x10/0xf0", "cookie=0x2f,actions=drop", false, false},
		{"cookie=5/-1", "cookie=5,actions=drop", false, true},
		{"out_port=3", "in_port=1,actions=3", false, true},
		{"out_port=3", "in_port=1,actions=4", false, false},
		{"out_port=3", "in_port=1,actions=4,mod_vlan_vid:3,3", false, true},
		{"table=2", "table=2,actions=drop", false, true},
		{"table=2", "table=3,actions=drop", false, false},
		{"ip", "table=3,ip,actions=drop", true, true}, // any table
		{"ip", "ip,actions=drop", true, true},
		{"ip", "tcp,actions=drop", true, false},
		{"ip", "ip,priority=3,actions=drop", true, false},
		{"ip,priority=3", "ip,priority=3,actions=drop", true, true},
	};
	struct sw_flow_filter filter;
	struct sw_error err;

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		struct sw_rule rule = rule_of(cases[i].rule);

		filter = filter_of(cases[i].filter, cases[i].is_strict);
		if (sw_flow_filter_matches(&filter, &rule) != cases[i].is_match)
			fail_msg("%s against %s", cases[i].filter, cases[i].rule);
		sw_rule_free(&rule);
	}
	assert_int_equal(sw_flow_filter_parse(&with, "ip,actions=drop", false, &filter, &err),
			 -EINVAL);
	assert_int_equal(sw_flow_filter_parse(&with, "priority=3", false, &filter, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--strict"));
}

static void add(struct sw_flow_table *table, const char *text)
{
	struct sw_rule rule = rule_of(text);
	struct sw_error err;

	if (sw_flow_add(table, &rule, 1, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	sw_rule_free(&rule);
}

static void check_table(struct sw_flow_table *table, const char *const *dumps, uint32_t n)
{
	assert_int_equal(sw_flow_count(table), n);
	for (uint32_t i = 0; i < n; i++) {
		char text[SW_FLOW_TEXT_BYTES];
		struct sw_flow_info info;

		sw_flow_get(table, i, &info);
		sw_rule_format(info.rule, text, sizeof(text));
		assert_string_equal(strchr(text, ',') + 1, dumps[i]);
		assert_true(info.created_ns > 0);
	}
}

static void test_flow_table_order_and_replacement(void **state)
{
	struct sw_flow_table *table = sw_flow_table_create(NULL);
	struct sw_flow_filter filter;
	struct sw_error err;

	(void)state;
	add(table, "priority=5,in_port=1,actions=2");
	add(table, "priority=9,in_port=1,actions=3");
	add(table, "priority=5,in_port=2,actions=4");
	add(table, "priority=5,in_port=1,actions=drop"); // the same match and priority
	check_table(table,
		    (const char *const[]){"priority=9,in_port=1 actions=output:3",
					  "priority=5,in_port=2 actions=output:4",
					  "priority=5,in_port=1 actions=drop"},
		    3);
	filter = filter_of("in_port=1", false);
	assert_int_equal(sw_flow_delete(table, &filter, &err), 2);
	assert_int_equal(sw_flow_delete(table, &filter, &err), 0);
	check_table(table, (const char *const[]){"priority=5,in_port=2 actions=output:4"}, 1);
	filter = filter_of(NULL, false);
	assert_int_equal(sw_flow_delete(table, &filter, &err), 1);
	check_table(table, NULL, 0);
	sw_flow_table_destroy(table);
}

static int modify(struct sw_flow_table *table, const char *text, bool is_strict)
{
	struct sw_flow_mod mod;
	struct sw_error err;
	int rc = sw_flow_mod_parse(NULL, text, is_strict, &mod, &err);

	if (rc < 0)
		return rc;
	rc = sw_flow_modify(table, &mod, &err);
	sw_flow_mod_free(&mod);
	return rc;
}

// Modified rules keep age, order and counters; what says the same already is left alone.
static void test_flow_table_modify(void **state)
{
	struct sw_flow_table *table = sw_flow_table_create(NULL);
	struct sw_flow_stats *stats = sw_flow_stats_attach(table);
	struct sw_flow_filter all = filter_of(NULL, false);
	struct sw_flow_info info;
	struct sw_error err;
	uint64_t created_ns;

	(void)state;
	add(table, "cookie=1,in_port=1,actions=2");
	add(table, "cookie=2,in_port=1,udp,actions=3");
	add(table, "table=4,cookie=2,in_port=1,actions=drop");
	add(table, "priority=9,in_port=2,actions=3");
	for (uint32_t i = 0; i < 4; i++)
		atomic_store(&stats->rules[i].packets, 10 + i);
	sw_flow_get(table, 0, &info);
	created_ns = info.created_ns;
	assert_int_equal(modify(table, "in_port=1,actions=dec_ttl,output:7", false), 3);
	assert_int_equal(modify(table, "in_port=1,actions=dec_ttl,output:7", false), 0);
	check_table(table,
		    (const char *const[]){"priority=32768,in_port=1 actions=dec_ttl,output:7",
					  "priority=32768,udp,in_port=1 actions=dec_ttl,output:7",
					  "priority=9,in_port=2 actions=output:3",
					  "table=4,priority=32768,in_port=1 "
					  "actions=dec_ttl,output:7"},
		    4);
	// Each in the slot that it had: counts go on, also those of PMDs with the old tables.
	atomic_fetch_add(&stats->rules[0].packets, 5);
	sw_flow_get(table, 0, &info);
	assert_int_equal(info.n_packets, 15);
	assert_int_equal(info.created_ns, created_ns);
	sw_flow_get(table, 3, &info);
	assert_int_equal(info.n_packets, 12);
	assert_ptr_equal(sw_flow_by_slot(table, 2), info.rule);

	// By table, cookie, strictly; with another cookie.
	assert_int_equal(modify(table, "table=4,actions=1", false), 1);
	assert_int_equal(modify(table, "cookie=2/-1,actions=5", false), 2);
	assert_int_equal(modify(table, "cookie=2/-1,cookie=8,actions=5", false), 2);
	assert_int_equal(modify(table, "cookie=2/-1,actions=6", false), 0);
	assert_int_equal(modify(table, "in_port=1,actions=6", true), 2);
	assert_int_equal(modify(table, "priority=9,in_port=1,actions=6", true), 0);
	// Refused as a whole.
	assert_int_equal(modify(table, "in_port=1,actions=goto_table:3", false), -EINVAL);
	assert_int_equal(modify(table, "priority=9,in_port=1,actions=6", false), -EINVAL);
	assert_int_equal(modify(table, "in_port=1", false), -EINVAL);
	assert_int_equal(modify(table, "recirc_id=1,actions=6", false), -EINVAL);
	assert_int_equal(modify(table, "table=0,in_port=1,actions=goto_table:3", false), 2);
	sw_flow_get(table, 0, &info);
	assert_int_equal(info.n_packets, 15);
	assert_int_equal(info.rule->cookie, 1);
	sw_flow_get(table, 1, &info);
	assert_int_equal(info.rule->cookie, 8);
	assert_int_equal(sw_flow_delete(table, &all, &err), 4);
	// Their slots are free again, all of them and once.
	atomic_store(&stats->oldest_generation, UINT64_MAX);
	sw_flow_reap(table);
	assert_int_equal(table->n_free_slots, SW_FLOW_MAX_SLOTS);
	sw_flow_stats_detach(table, stats);
	sw_flow_table_destroy(table);
}

// What is there stays, later lines win, the rest goes.
static void test_flow_table_replace(void **state)
{
	struct sw_flow_table *table = sw_flow_table_create(NULL);
	struct sw_flow_stats *stats = sw_flow_stats_attach(table);
	struct sw_rule rules[3];
	struct sw_flow_info info;
	struct sw_error err;

	(void)state;
	add(table, "in_port=1,actions=2"); // slot 0
	add(table, "in_port=2,actions=1"); // slot 1
	atomic_store(&stats->rules[0].packets, 10);
	atomic_store(&stats->rules[1].packets, 20);
	rules[0] = rule_of("in_port=1,actions=3");
	rules[1] = rule_of("in_port=3,actions=3");
	rules[2] = rule_of("in_port=1,actions=2");
	assert_int_equal(sw_flow_replace(table, rules, 3, &err), 0);
	check_table(table,
		    (const char *const[]){"priority=32768,in_port=1 actions=output:2",
					  "priority=32768,in_port=3 actions=output:3"},
		    2);
	for (uint32_t i = 0; i < 3; i++)
		sw_rule_free(&rules[i]);
	sw_flow_get(table, 0, &info);
	assert_int_equal(info.n_packets, 10);
	sw_flow_get(table, 1, &info);
	assert_int_equal(info.n_packets, 0);
	sw_flow_table_destroy(table);
}

// Counters of an ended PMD stay with the rule; a slot that is used again starts at 0.
static void test_flow_table_counters(void **state)
{
	struct sw_flow_table *table = sw_flow_table_create(NULL);
	struct sw_flow_stats *a = sw_flow_stats_attach(table), *b = sw_flow_stats_attach(table);
	struct sw_flow_filter all = filter_of(NULL, false);
	struct sw_flow_info info;
	struct sw_error err;
	uint64_t bad[SW_N_BAD];

	(void)state;
	add(table, "in_port=1,actions=2");
	atomic_store(&a->rules[0].packets, 3);
	atomic_store(&a->rules[0].bytes, 300);
	atomic_store(&b->rules[0].packets, 4);
	atomic_store(&b->rules[0].bytes, 400);
	atomic_store(&b->bad[SW_BAD_IP4], 9);
	sw_flow_get(table, 0, &info);
	assert_int_equal(info.n_packets, 7);
	sw_flow_stats_detach(table, b);
	sw_flow_get(table, 0, &info);
	assert_int_equal(info.n_packets, 7);
	assert_int_equal(info.n_bytes, 700);
	sw_flow_bad_counts(table, bad);
	assert_int_equal(bad[SW_BAD_IP4], 9);
	add(table, "in_port=1,actions=3"); // takes its place, counts anew
	sw_flow_get(table, 0, &info);
	assert_int_equal(info.n_packets, 0);
	// A PMD may still count for the deleted ones, until it says that it has gone on.
	assert_int_equal(sw_flow_delete(table, &all, &err), 1);
	add(table, "in_port=5,actions=2");
	atomic_fetch_add(&a->rules[0].packets, 1);
	atomic_fetch_add(&a->rules[1].packets, 1);
	sw_flow_get(table, 0, &info);
	assert_int_equal(info.n_packets, 0);
	assert_int_equal(sw_flow_delete(table, &all, &err), 1);
	atomic_store(&a->oldest_generation, UINT64_MAX);
	sw_flow_reap(table);
	add(table, "in_port=5,actions=2"); // a slot of before
	sw_flow_get(table, 0, &info);
	assert_int_equal(info.n_packets, 0);
	for (uint32_t i = 0; i < 3; i++)
		atomic_fetch_add(&a->rules[i].packets, 1);
	sw_flow_get(table, 0, &info);
	assert_int_equal(info.n_packets, 1);
	assert_int_equal(info.n_bytes, 0);
	sw_flow_table_destroy(table);
}

static double now_s(void)
{
	return (double)pmdp_mono_now_ns() / 1e9;
}

// As many rules as there may be: all at once, replaced by others at once, and one by one.
static void test_flow_table_full(void **state)
{
	struct sw_flow_table *table = sw_flow_table_create(NULL);
	struct sw_rule *rules = calloc(SW_FLOW_MAX_RULES + 1, sizeof(*rules));
	struct sw_flow_filter filter = filter_of("udp", false);
	double begin_s = now_s(), add_s, replace_s, one_s;
	struct sw_error err;

	(void)state;
	for (uint32_t i = 0; i <= SW_FLOW_MAX_RULES; i++) {
		char text[128];

		snprintf(text, sizeof(text), "udp,nw_dst=10.%u.%u.7,tp_dst=%u,actions=2", i >> 16,
			 i >> 8 & 255, i & 255);
		rules[i] = rule_of(text);
	}
	assert_int_equal(sw_flow_add(table, rules, SW_FLOW_MAX_RULES + 1, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "del-flows"));
	assert_int_equal(sw_flow_count(table), 0);
	begin_s = now_s();
	assert_int_equal(sw_flow_add(table, rules, SW_FLOW_MAX_RULES, &err), 0);
	add_s = now_s() - begin_s;
	assert_int_equal(sw_flow_add(table, &rules[SW_FLOW_MAX_RULES], 1, &err), -ENOSPC);
	assert_int_equal(sw_flow_count(table), SW_FLOW_MAX_RULES);
	for (uint32_t i = 0; i < SW_FLOW_MAX_RULES; i++)
		rules[i].cookie = 5;
	begin_s = now_s();
	assert_int_equal(sw_flow_replace(table, rules, SW_FLOW_MAX_RULES, &err), 0);
	replace_s = now_s() - begin_s;
	begin_s = now_s();
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(sw_flow_add(table, &rules[i], 1, &err), 0);
	one_s = (now_s() - begin_s) / 10;
	print_message("%u rules: %.0f ms to add, %.0f ms to replace, %.1f ms to add one more\n",
		      SW_FLOW_MAX_RULES, add_s * 1e3, replace_s * 1e3, one_s * 1e3);
	assert_int_equal(sw_flow_delete(table, &filter, &err), SW_FLOW_MAX_RULES);
	assert_int_equal(sw_flow_count(table), 0);
	sw_rules_free(rules, SW_FLOW_MAX_RULES + 1);
	sw_flow_table_destroy(table);
}

// More masks than a table takes: refused, and nothing has changed.
static void test_flow_table_masks(void **state)
{
	struct sw_flow_table *table = sw_flow_table_create(NULL);
	struct sw_rule *rules = calloc(SW_FLOW_MAX_MASKS + 1, sizeof(*rules));
	struct sw_error err;

	(void)state;
	for (uint32_t i = 0; i <= SW_FLOW_MAX_MASKS; i++) {
		char text[128];

		snprintf(text, sizeof(text), "udp,tp_dst=0/0x%x,actions=2", i + 1);
		rules[i] = rule_of(text);
	}
	assert_int_equal(sw_flow_add(table, rules, SW_FLOW_MAX_MASKS + 1, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "masks"));
	assert_int_equal(sw_flow_count(table), 0);
	assert_int_equal(sw_flow_add(table, rules, SW_FLOW_MAX_MASKS, &err), 0);
	assert_int_equal(sw_flow_add(table, &rules[SW_FLOW_MAX_MASKS], 1, &err), -ENOSPC);
	assert_int_equal(sw_flow_count(table), SW_FLOW_MAX_MASKS);
	rules[SW_FLOW_MAX_MASKS].table = 1; // there is room in another
	assert_int_equal(sw_flow_add(table, &rules[SW_FLOW_MAX_MASKS], 1, &err), 0);
	sw_rules_free(rules, SW_FLOW_MAX_MASKS + 1);
	sw_flow_table_destroy(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flow_good),
		cmocka_unit_test(test_flow_good_actions),
		cmocka_unit_test(test_flow_bad),
		cmocka_unit_test(test_flow_lines),
		cmocka_unit_test(test_flow_round_trip_of_random_rules),
		cmocka_unit_test(test_flow_filter),
		cmocka_unit_test(test_flow_filter_meets),
		cmocka_unit_test(test_flow_table_order_and_replacement),
		cmocka_unit_test(test_flow_table_modify),
		cmocka_unit_test(test_flow_table_replace),
		cmocka_unit_test(test_flow_table_counters),
		cmocka_unit_test(test_flow_table_full),
		cmocka_unit_test(test_flow_table_masks),
	};

	return cmocka_run_group_tests_name("sw_flow", tests, NULL, NULL);
}
