// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// What a miss is translated to: masks as narrow as can be, actions in order.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sw_act_format.h"
#include "sw_flow.h"

static struct sw_flow_table *table_of(const char *const *rules, uint32_t n_rules)
{
	struct sw_flow_table *table = sw_flow_table_create(NULL);
	struct sw_rule *parsed;
	struct sw_error err;
	uint32_t n;

	if (sw_rules_parse(NULL, rules, n_rules, &parsed, &n, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(sw_flow_add(table, parsed, n, &err), 0);
	sw_rules_free(parsed, n);
	return table;
}

static struct sw_key key_of(const char *text)
{
	struct sw_flow_filter filter;
	struct sw_error err;

	if (sw_flow_filter_parse(NULL, text, false, &filter, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	return filter.match.value;
}

struct expected {
	const char *packet, *megaflow, *actions;
};

static void check_all(const char *const *rules, uint32_t n_rules, const struct expected *cases,
		      uint32_t n_cases)
{
	struct sw_flow_table *table = table_of(rules, n_rules);

	for (uint32_t i = 0; i < n_cases; i++) {
		struct sw_key key = key_of(cases[i].packet);
		char text[2048];
		struct sw_xlate result;

		sw_xlate(sw_tables_get(sw_flow_table_ref(table)), &key, &result);
		result.mask.recirc_id = 0; // always there
		sw_match_format(&key, &result.mask, text, sizeof(text));
		if (strcmp(text, cases[i].megaflow) != 0)
			fail_msg("%s: megaflow %s instead of %s", cases[i].packet, text,
				 cases[i].megaflow);
		sw_acts_format(result.acts, result.n_acts, result.drop_reason, key.dl_type, text,
			       sizeof(text));
		if (strcmp(text, cases[i].actions) != 0)
			fail_msg("%s: %s instead of %s", cases[i].packet, text, cases[i].actions);
	}
	sw_flow_table_destroy(table);
}

#define CHECK_ALL(rules, cases)                                     \
	check_all(rules, sizeof(rules) / sizeof((rules)[0]), cases, \
		  sizeof(cases) / sizeof((cases)[0]))

// No bit more than is needed: a rule that can't match for its port, type or protocol costs nothing
// else.
static void test_xlate_masks_are_narrow(void **state)
{
	static const char *const rules[] = {
		"in_port=1,ip,nw_dst=20.0.0.0/24,udp,tp_dst=63,actions=output:2",
		"in_port=2,actions=output:1",
		"in_port=3,priority=10,tcp,nw_dst=10.1.0.0/16,actions=output:4",
		"in_port=3,priority=10,tcp,nw_dst=10.2.0.0/16,actions=output:5",
		"in_port=3,priority=5,dl_dst=02:00:00:00:00:01,actions=output:6",
		"in_port=4,priority=9,tcp6,ipv6_dst=fd00:1::/64,tp_dst=80,actions=output:7",
		"in_port=4,priority=8,ipv6,actions=output:8",
	};
	static const struct expected cases[] = {
		{"in_port=2,udp,nw_dst=20.0.0.1,tp_dst=63", "in_port=2", "output:1"},
		{"in_port=9,udp,nw_dst=20.0.0.1,tp_dst=63", "in_port=9", "drop(no_rule)"},
		{"in_port=1,udp,nw_src=1.2.3.4,nw_dst=20.0.0.1,tp_src=9,tp_dst=63",
		 "udp,in_port=1,nw_dst=20.0.0.0/24,tp_dst=63", "output:2"},
		{"in_port=1,arp,arp_tpa=20.0.0.1", "arp,in_port=1", "drop(no_rule)"},
		// The first bit in which 30 and 20 differ is the fifth.
		{"in_port=1,udp,nw_dst=30.0.0.1,tp_dst=63", "ip,in_port=1,nw_dst=24.0.0.0/5",
		 "drop(no_rule)"},
		{"in_port=1,tcp,nw_dst=20.0.0.1,tp_dst=63", "tcp,in_port=1", "drop(no_rule)"},
		// 0x8000: the first bit of the port says enough.
		{"in_port=1,udp,nw_dst=20.0.0.1,tp_dst=0x9000",
		 "udp,in_port=1,tp_dst=0x8000/0x8000", "drop(no_rule)"},
		{"in_port=3,dl_dst=02:00:00:00:00:01,tcp,nw_dst=10.2.3.4",
		 "tcp,in_port=3,nw_dst=10.2.0.0/16", "output:5"},
		{"in_port=3,dl_dst=02:00:00:00:00:01,tcp,nw_dst=10.3.3.4",
		 "ip,in_port=3,dl_dst=02:00:00:00:00:01,nw_dst=10.3.0.0/16", "output:6"},
		{"in_port=4,tcp6,ipv6_dst=fd00:1::9,tp_dst=80",
		 "tcp6,in_port=4,ipv6_dst=fd00:1::/64,tp_dst=80", "output:7"},
		{"in_port=4,tcp6,ipv6_dst=fd80:1::9,tp_dst=80", "ipv6,in_port=4,ipv6_dst=fd80::/9",
		 "output:8"},
		{"in_port=4,udp6,ipv6_dst=fd00:1::9,tp_dst=80", "udp6,in_port=4", "output:8"},
	};

	(void)state;
	CHECK_ALL(rules, cases);
}

// What a rule has set is no longer looked at in the packet.
static void test_xlate_sets_hide_the_packet(void **state)
{
	static const char *const rules[] = {
		"in_port=1,ip,actions=mod_nw_dst:10.0.0.1,mod_nw_ttl:9,mod_vlan_vid:5,"
		"resubmit(,1),3",
		"table=1,ip,nw_dst=10.0.0.1,nw_ttl=9,dl_vlan=5,actions=dec_ttl,output:2,strip_vlan",
		"in_port=2,actions=dec_ttl,resubmit(,2)",
		"table=2,ip,nw_ttl=3,actions=output:9",
		"table=2,arp,actions=output:3",
		"in_port=3,actions=strip_vlan,resubmit(,3)",
		"table=3,dl_vlan=7,actions=in_port",
		"in_port=4,actions=resubmit(9,4),output:4,output:9",
		"table=4,in_port=9,actions=output:4,output:9,in_port,resubmit(,6)",
		"table=6,in_port=9,actions=output:8",
		"table=6,in_port=4,actions=output:7",
		"in_port=5,udp,actions=mod_tp_dst:7,mod_tp_dst:8,output(port=1,max_len=60),"
		"recirc(table=5),",
		"table=5,udp,tp_dst=8,actions=flood",
		"in_port=6,ip,actions=mod_nw_ttl:1,2,dec_ttl,3",
		"in_port=7,actions=resubmit(,7)",
		"in_port=8,actions=resubmit(,8),mod_dl_src:0:0:0:0:0:1",
		"table=8,actions=resubmit(,8)",
		"in_port=9,ip,actions=set_field:2/2->nw_ttl,dec_ttl,resubmit(,9)",
		"table=9,ip,nw_ttl=0/2,actions=output:2",
	};
	static const struct expected cases[] = {
		{"in_port=1,udp,nw_dst=20.0.0.1,nw_ttl=64,dl_vlan=3",
		 "ip,in_port=1,vlan_tci=0x1000/0x1000",
		 "set(vlan_tci=0x0005/0x0fff),set(nw_ttl=8),set(nw_dst=10.0.0.1),output:2,pop_vlan,"
		 "output:3"},
		{"in_port=1,udp,nw_dst=20.0.0.1,nw_ttl=64", "ip,in_port=1,vlan_tci=0x0000/0x1000",
		 "push_vlan(tpid=0x8100,tci=0x0000),set(vlan_tci=0x0005/0x0fff),set(nw_ttl=8),"
		 "set(nw_dst=10.0.0.1),output:2,pop_vlan,output:3"},
		{"in_port=2,udp,nw_ttl=4", "ip,in_port=2,nw_ttl=4", "dec_ttl,output:9"},
		{"in_port=2,arp", "arp,in_port=2", "output:3"},
		{"in_port=3,dl_vlan=9,dl_vlan1=7", "in_port=3,vlan_tci=0x1000/0x1000,dl_vlan1=7",
		 "pop_vlan,output:3"},
		// No tag: the outer one that is not there decides.
		{"in_port=3,dl_vlan=0xffff", "in_port=3,vlan_tci=0x0000/0x1fff", "drop(no_rule)"},
		// Table 4 sees another port; to its own a packet goes only by in_port.
		// Another port is for the search alone.
		{"in_port=4,arp", "in_port=4", "output:9,output:4,output:7,output:9"},
		{"in_port=5,udp,tp_dst=3", "udp,in_port=5,nw_frag=not_later",
		 "set(tp_dst=8),output(port=1,max_len=60),recirc(6)"},
		{"in_port=5,udp,nw_frag=later", "udp,in_port=5,nw_frag=later",
		 "output(port=1,max_len=60),recirc(6)"},
		{"recirc_id=6,in_port=5,udp,tp_dst=8", "udp,in_port=5,tp_dst=8", "flood"},
		{"in_port=6,ip", "ip,in_port=6", "set(nw_ttl=1),output:2"},
		{"in_port=7,ip", "in_port=7", "drop(no_rule)"},
		// One bit is looked at, but all have decided what it is.
		{"in_port=9,ip,nw_ttl=4", "ip,in_port=9,nw_ttl=4",
		 "set(nw_ttl=0x2/0x2),dec_ttl,output:2"},
		{"in_port=8,ip", "in_port=8", "drop(recirculation_limit)"},
	};

	(void)state;
	CHECK_ALL(rules, cases);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_xlate_masks_are_narrow),
		cmocka_unit_test(test_xlate_sets_hide_the_packet),
	};

	return cmocka_run_group_tests_name("sw_xlate", tests, NULL, NULL);
}
