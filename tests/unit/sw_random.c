// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_byteorder.h>

#include "sw_needs_fast.h"
#include "test_dir.h"

#define PRESENT RTE_BE16(SW_VLAN_PRESENT)
#define dice sw_random_dice

uint64_t sw_random_seed;

uint32_t sw_random_dice(uint32_t n)
{
	return (uint32_t)(test_random(&sw_random_seed) % n);
}

static const char *pick(const char *const *from, uint32_t n)
{
	return from[dice(n)];
}

#define PICK(array) pick(array, sizeof(array) / sizeof((array)[0]))

static void say(char *text, size_t size, const char *word)
{
	size_t len = strlen(text);

	snprintf(text + len, size - len, "%s%s", len ? "," : "", word);
}

// Few values each, so that rules and packets meet often. Protocols by what may stand beside them.
static void random_match(char *text, size_t size)
{
	static const char *const protocols[] = {"",     "ip",   "udp", "tcp",  "ipv6",
						"udp6", "tcp6", "arp", "icmp", "icmp6"};
	static const char *const l2[] = {"dl_vlan=1",
					 "dl_vlan=2",
					 "dl_vlan=0xffff",
					 "vlan_tci=0x1000/0x1000",
					 "dl_vlan_pcp=3",
					 "dl_dst=02:00:00:00:00:01",
					 "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00",
					 "dl_src=02:00:00:00:00:02",
					 "dl_vlan=1,dl_vlan1=2",
					 "dl_vlan=2,dl_vlan_pcp=3"};
	static const char *const ip4[] = {"nw_dst=20.0.0.1",
					  "nw_dst=20.0.0.0/24",
					  "nw_dst=20.0.0.0/30",
					  "nw_src=20.0.0.0/8",
					  "nw_dst=20.0.0.2/255.0.0.255",
					  "nw_src=20.0.1.1,nw_dst=20.0.0.1"};
	static const char *const ip[] = {"nw_ttl=1",      "nw_ttl=1/0x1", "nw_ttl=0/0x2",
					 "nw_ttl=2",      "nw_tos=32",    "nw_ecn=1",
					 "nw_frag=later", "nw_frag=no"};
	static const char *const ip6[] = {"ipv6_dst=fd00::1", "ipv6_dst=fd00::/64",
					  "ipv6_src=fd00::2/127", "ipv6_dst=fd00::3/::ff",
					  "ipv6_label=0x5"};
	static const char *const l4[] = {"tp_dst=1", "tp_dst=2/0xfffe", "tp_src=3",
					 "tp_dst=0x100/0xff00", "tp_src=1,tp_dst=1"};
	static const char *const nd[] = {"icmp_type=135,icmp_code=0,nd_target=fd00::1",
					 "icmp_type=135,nd_target=fd00::1",
					 "icmp_type=135,nd_target=fd00::/126",
					 "icmp_type=135,nd_target=::"};
	const char *protocol = PICK(protocols);
	bool is_ip6 = strchr(protocol, '6') != NULL;
	bool is_ip = *protocol && strcmp(protocol, "arp") != 0;

	*text = 0;
	if (*protocol)
		say(text, size, protocol);
	if (dice(3))
		snprintf(text + strlen(text), size - strlen(text), "%sin_port=%u", *text ? "," : "",
			 1 + dice(SW_RANDOM_PORTS));
	if (dice(3) == 0)
		say(text, size, PICK(l2));
	if (is_ip && !is_ip6 && dice(2))
		say(text, size, PICK(ip4));
	if (is_ip6 && dice(2))
		say(text, size, PICK(ip6));
	if (is_ip && dice(4) == 0)
		say(text, size, PICK(ip));
	if ((*protocol == 'u' || *protocol == 't') && dice(2))
		say(text, size, PICK(l4));
	if (strcmp(protocol, "tcp") == 0 && dice(4) == 0)
		say(text, size, "tcp_flags=+syn-ack");
	if (strncmp(protocol, "icmp", 4) == 0 && dice(2))
		say(text, size, is_ip6 ? PICK(nd) : "icmp_type=8");
	if (strcmp(protocol, "arp") == 0 && dice(2))
		say(text, size,
		    dice(2) ? "arp_op=1,arp_tpa=20.0.0.1" : "arp_sha=02:00:00:00:00:02");
}

static void random_actions(const char *match, uint32_t table, char *text, size_t size)
{
	static const char *const any[] = {"1",
					  "2",
					  "3",
					  "in_port",
					  "flood",
					  "normal",
					  "output(port=2,max_len=64)",
					  "mod_dl_dst:02:00:00:00:00:01",
					  "set_field:02:00:00:00:00:02/ff:00:00:00:00:ff->eth_src",
					  "mod_vlan_vid:1",
					  "mod_vlan_pcp:3",
					  "strip_vlan",
					  "push_vlan:0x8100",
					  "push_vlan:0x88a8",
					  "mod_nw_dst:20.0.0.1",
					  "mod_nw_src:20.0.1.1",
					  "mod_nw_tos:32",
					  "mod_nw_ttl:2",
					  "mod_nw_ttl:1",
					  "dec_ttl",
					  "dec_ttl",
					  "mod_tp_dst:1",
					  "mod_tp_src:3",
					  "note:00",
					  "resubmit(,1)",
					  "resubmit(,2)",
					  "resubmit(2,3)",
					  "resubmit(1)",
					  "resubmit(3,2)"};
	static const char *const ip6[] = {"set_field:fd00::1->ipv6_dst",
					  "set_field:fd00::/64->ipv6_src",
					  "set_field:5->ipv6_label"};
	static const char *const ip4[] = {"set_field:20.0.0.0/24->nw_dst", "set_field:1->nw_ecn",
					  "set_field:2/2->nw_ttl,dec_ttl"};
	uint32_t n = dice(5);

	*text = 0;
	for (uint32_t i = 0; i < n; i++) {
		bool is_ip6 = strstr(match, "ipv6") || strstr(match, "p6");
		bool is_ip4 = !is_ip6 &&
			      (strncmp(match, "ip", 2) == 0 || strncmp(match, "udp", 3) == 0);

		if (is_ip6 && dice(3) == 0)
			say(text, size, PICK(ip6));
		else if (is_ip4 && dice(3) == 0)
			say(text, size, PICK(ip4));
		else
			say(text, size, PICK(any));
	}
	if (dice(4) == 0 && table + 1 < SW_RANDOM_TABLES)
		snprintf(text + strlen(text), size - strlen(text), "%s%s%u%s", n ? "," : "",
			 dice(3) ? "goto_table:" : "recirc(table=", table + 1, "");
	if (strstr(text, "recirc("))
		snprintf(text + strlen(text), size - strlen(text), ")");
}

struct sw_rule sw_random_rule(void)
{
	char match[256], actions[512], text[1024];
	uint32_t table = dice(2) ? 0 : dice(SW_RANDOM_TABLES);
	struct sw_rule rule;
	struct sw_error err;

	random_match(match, sizeof(match));
	random_actions(match, table, actions, sizeof(actions));
	snprintf(text, sizeof(text), "table=%u,priority=%u%s%s actions=%s", table, dice(8),
		 *match ? "," : "", match, actions);
	if (sw_rule_parse(NULL, text, &rule, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	return rule;
}

static void put(uint8_t *at, unsigned int n_bytes, uint64_t value)
{
	while (n_bytes-- > 0) {
		at[n_bytes] = (uint8_t)value;
		value >>= 8;
	}
}

struct sw_key sw_random_key(void)
{
	static const uint8_t protos[] = {17, 6, 1, 58, 47};
	struct sw_key key;

	memset(&key, 0, sizeof(key));
	key.in_port = (uint16_t)(1 + dice(SW_RANDOM_PORTS + 1));
	key.recirc_id = dice(8) ? 0 : 1 + dice(SW_RANDOM_TABLES);
	put(key.dl_dst, 6,
	    (dice(4) ? UINT64_C(0x020000000000) : UINT64_C(0x010000000000)) + dice(3));
	put(key.dl_src, 6, UINT64_C(0x020000000000) + dice(4));
	if (dice(3) == 0) {
		key.vlan_tci = rte_cpu_to_be_16((uint16_t)(dice(3) | dice(2) * 0x6000)) | PRESENT;
		key.vlan_tci1 = dice(3) ? 0 : rte_cpu_to_be_16((uint16_t)dice(3)) | PRESENT;
	}
	switch (dice(5)) {
	case 0:
	case 1:
		key.dl_type = SW_TYPE_IP4;
		put((uint8_t *)&key.nw_src, 4, 0x14000000 + dice(2) * 0x100 + dice(3));
		put((uint8_t *)&key.nw_dst, 4, (dice(5) ? 0x14000000 : 0x1e000000) + dice(6));
		break;
	case 2:
		key.dl_type = SW_TYPE_IP6;
		put(key.ipv6_src, 2, 0xfd00);
		put(key.ipv6_src + 8, 8, dice(5));
		put(key.ipv6_dst, 2, dice(6) ? 0xfd00 : 0xfe00);
		put(key.ipv6_dst + 8, 8, dice(5));
		put((uint8_t *)&key.ipv6_label, 4, dice(6));
		break;
	case 3:
		key.dl_type = SW_TYPE_ARP;
		key.nw_proto = (uint8_t)(1 + dice(2));
		put((uint8_t *)&key.nw_dst, 4, 0x14000000 + dice(3));
		put(key.arp_sha, 6, UINT64_C(0x020000000000) + dice(4));
		return key;
	default:
		key.dl_type = dice(2) ? RTE_BE16(0x88cc) : RTE_BE16(0x8847);
		return key;
	}
	key.nw_proto = protos[dice(5)];
	key.nw_ttl = (uint8_t)dice(5);
	key.nw_tos = (uint8_t)(dice(2) * 32 + dice(3));
	key.nw_frag = dice(8) ? 0 : (uint8_t)(1 + 2 * dice(2));
	if (key.nw_frag & SW_FRAG_LATER)
		return key;
	if (key.nw_proto == 17 || key.nw_proto == 6) {
		key.tp_src = rte_cpu_to_be_16((uint16_t)dice(5));
		key.tp_dst = rte_cpu_to_be_16((uint16_t)(dice(5) + dice(2) * 0x100));
		key.tcp_flags = key.nw_proto == 6 ? rte_cpu_to_be_16((uint16_t)(2 + dice(2) * 16))
						  : 0;
	} else if (key.nw_proto == 1 || key.nw_proto == 58) {
		key.tp_src = rte_cpu_to_be_16(dice(2) ? 135 : 8);
		if (dice(4) == 0) { // no neighbour discovery: its fields are 0
			key.tp_dst = RTE_BE16(1);
			return key;
		}
		key.nd_target[0] = 0xfd;
		key.nd_target[15] = (uint8_t)dice(3);
	}
	return key;
}
