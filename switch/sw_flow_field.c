// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_flow_field.h"

#include <string.h>

#include <rte_byteorder.h>

#define FIELD(name, type, needs, shown, sets, member, n_bits)                                  \
	{                                                                                      \
		name, SW_FIELD_##type, SW_##needs, SW_##shown, SW_##sets,                      \
			offsetof(struct sw_key, member), sizeof(((struct sw_key *)0)->member), \
			n_bits                                                                 \
	}

// The order of a dump. Aliases (NEVER) stand behind.
static const struct sw_field fields[] = {
	FIELD("dl_vlan", VLAN, NEEDS_NOTHING, NEEDS_NOTHING, NEEDS_NOTHING, vlan_tci, 12),
	FIELD("dl_vlan_pcp", PCP, NEEDS_NOTHING, NEEDS_NOTHING, NEEDS_NOTHING, vlan_tci, 3),
	FIELD("vlan_tci", TCI, NEEDS_NOTHING, NEEDS_NOTHING, NEVER, vlan_tci, 16),
	FIELD("dl_vlan1", VLAN, NEEDS_TAG, NEEDS_NOTHING, NEVER, vlan_tci1, 12),
	FIELD("dl_vlan_pcp1", PCP, NEEDS_TAG, NEEDS_NOTHING, NEVER, vlan_tci1, 3),
	FIELD("vlan_tci1", TCI, NEEDS_TAG, NEEDS_NOTHING, NEVER, vlan_tci1, 16),
	FIELD("dl_src", MAC, NEEDS_NOTHING, NEEDS_NOTHING, NEEDS_NOTHING, dl_src, 0),
	FIELD("dl_dst", MAC, NEEDS_NOTHING, NEEDS_NOTHING, NEEDS_NOTHING, dl_dst, 0),
	FIELD("dl_type", TYPE, NEEDS_NOTHING, NEEDS_NOTHING, NEVER, dl_type, 16),
	FIELD("nw_src", IP4, NEEDS_IP4_OR_ARP, NEEDS_IP4, NEEDS_IP4, nw_src, 0),
	FIELD("nw_dst", IP4, NEEDS_IP4_OR_ARP, NEEDS_IP4, NEEDS_IP4, nw_dst, 0),
	FIELD("arp_spa", IP4, NEEDS_ARP, NEEDS_ARP, NEEDS_ARP, nw_src, 0),
	FIELD("arp_tpa", IP4, NEEDS_ARP, NEEDS_ARP, NEEDS_ARP, nw_dst, 0),
	FIELD("ipv6_src", IP6, NEEDS_IP6, NEEDS_IP6, NEEDS_IP6, ipv6_src, 0),
	FIELD("ipv6_dst", IP6, NEEDS_IP6, NEEDS_IP6, NEEDS_IP6, ipv6_dst, 0),
	FIELD("ipv6_label", HEX, NEEDS_IP6, NEEDS_IP6, NEEDS_IP6, ipv6_label, 20),
	FIELD("nw_proto", EXACT, NEEDS_IP_OR_ARP, NEEDS_IP, NEVER, nw_proto, 8),
	FIELD("arp_op", EXACT, NEEDS_ARP, NEEDS_ARP, NEEDS_ARP, nw_proto, 8),
	FIELD("arp_sha", MAC, NEEDS_ARP, NEEDS_ARP, NEEDS_ARP, arp_sha, 0),
	FIELD("arp_tha", MAC, NEEDS_ARP, NEEDS_ARP, NEEDS_ARP, arp_tha, 0),
	FIELD("nw_tos", DSCP, NEEDS_IP, NEEDS_IP, NEEDS_IP, nw_tos, 8),
	FIELD("nw_ecn", ECN, NEEDS_IP, NEEDS_IP, NEEDS_IP, nw_tos, 2),
	FIELD("nw_ttl", DEC, NEEDS_IP, NEEDS_IP, NEEDS_IP, nw_ttl, 8),
	FIELD("nw_frag", FRAG, NEEDS_IP, NEEDS_IP, NEVER, nw_frag, 2),
	FIELD("tp_src", DEC, NEEDS_PORTS, NEEDS_PORTS, NEEDS_PORTS, tp_src, 16),
	FIELD("tp_dst", DEC, NEEDS_PORTS, NEEDS_PORTS, NEEDS_PORTS, tp_dst, 16),
	FIELD("icmp_type", DEC, NEEDS_ICMP, NEEDS_ICMP, NEEDS_ICMP, tp_src, 8),
	FIELD("icmp_code", DEC, NEEDS_ICMP, NEEDS_ICMP, NEEDS_ICMP, tp_dst, 8),
	FIELD("tcp_flags", FLAGS, NEEDS_TCP, NEEDS_TCP, NEVER, tcp_flags, 12),
	FIELD("nd_target", IP6, NEEDS_ND, NEEDS_ND, NEEDS_ND, nd_target, 0),
	FIELD("nd_sll", MAC, NEEDS_ND_SOLICIT, NEEDS_ND_SOLICIT, NEEDS_ND_SOLICIT, nd_sll, 0),
	FIELD("nd_tll", MAC, NEEDS_ND_ADVERT, NEEDS_ND_ADVERT, NEEDS_ND_ADVERT, nd_tll, 0),

	FIELD("vlan_vid", VID, NEEDS_NOTHING, NEVER, NEEDS_NOTHING, vlan_tci, 13),
	FIELD("vlan_pcp", PCP, NEEDS_NOTHING, NEVER, NEEDS_NOTHING, vlan_tci, 3),
	FIELD("eth_src", MAC, NEEDS_NOTHING, NEVER, NEEDS_NOTHING, dl_src, 0),
	FIELD("eth_dst", MAC, NEEDS_NOTHING, NEVER, NEEDS_NOTHING, dl_dst, 0),
	FIELD("eth_type", TYPE, NEEDS_NOTHING, NEVER, NEVER, dl_type, 16),
	FIELD("ip_src", IP4, NEEDS_IP4_OR_ARP, NEVER, NEEDS_IP4, nw_src, 0),
	FIELD("ip_dst", IP4, NEEDS_IP4_OR_ARP, NEVER, NEEDS_IP4, nw_dst, 0),
	FIELD("ip_proto", EXACT, NEEDS_IP_OR_ARP, NEVER, NEVER, nw_proto, 8),
	FIELD("ip_dscp", DSCP6, NEEDS_IP, NEVER, NEEDS_IP, nw_tos, 6),
	FIELD("ip_ecn", ECN, NEEDS_IP, NEVER, NEEDS_IP, nw_tos, 2),
	FIELD("ip_frag", FRAG, NEEDS_IP, NEVER, NEVER, nw_frag, 2),
	FIELD("tcp_src", DEC, NEEDS_TCP, NEVER, NEEDS_TCP, tp_src, 16),
	FIELD("tcp_dst", DEC, NEEDS_TCP, NEVER, NEEDS_TCP, tp_dst, 16),
	FIELD("udp_src", DEC, NEEDS_UDP, NEVER, NEEDS_UDP, tp_src, 16),
	FIELD("udp_dst", DEC, NEEDS_UDP, NEVER, NEEDS_UDP, tp_dst, 16),
	FIELD("sctp_src", DEC, NEEDS_SCTP, NEVER, NEEDS_SCTP, tp_src, 16),
	FIELD("sctp_dst", DEC, NEEDS_SCTP, NEVER, NEEDS_SCTP, tp_dst, 16),
	FIELD("icmpv4_type", DEC, NEEDS_ICMP4, NEVER, NEEDS_ICMP4, tp_src, 8),
	FIELD("icmpv4_code", DEC, NEEDS_ICMP4, NEVER, NEEDS_ICMP4, tp_dst, 8),
	FIELD("icmpv6_type", DEC, NEEDS_ICMP6, NEVER, NEEDS_ICMP6, tp_src, 8),
	FIELD("icmpv6_code", DEC, NEEDS_ICMP6, NEVER, NEEDS_ICMP6, tp_dst, 8),
};

static const struct sw_protocol protocols[] = {
	{"ip", SW_TYPE_IP4, -1},   {"arp", SW_TYPE_ARP, -1},   {"rarp", SW_TYPE_RARP, -1},
	{"ipv6", SW_TYPE_IP6, -1}, {"tcp", SW_TYPE_IP4, 6},    {"udp", SW_TYPE_IP4, 17},
	{"icmp", SW_TYPE_IP4, 1},  {"sctp", SW_TYPE_IP4, 132}, {"tcp6", SW_TYPE_IP6, 6},
	{"udp6", SW_TYPE_IP6, 17}, {"icmp6", SW_TYPE_IP6, 58}, {"sctp6", SW_TYPE_IP6, 132},
};

#define N_ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))

const struct sw_field *sw_field_at(size_t i)
{
	return i < N_ELEMENTS(fields) ? &fields[i] : NULL;
}

const struct sw_field *sw_field_find(const char *name)
{
	for (size_t i = 0; i < N_ELEMENTS(fields); i++) {
		if (strcmp(fields[i].name, name) == 0)
			return &fields[i];
	}
	return NULL;
}

const struct sw_protocol *sw_protocol_find(const char *name)
{
	for (size_t i = 0; i < N_ELEMENTS(protocols); i++) {
		if (strcmp(protocols[i].name, name) == 0)
			return &protocols[i];
	}
	return NULL;
}

size_t sw_field_index(const struct sw_field *field)
{
	return (size_t)(field - fields);
}

const struct sw_protocol *sw_protocol_of(const struct sw_key *value, const struct sw_key *mask)
{
	const struct sw_protocol *best = NULL;

	if (mask->dl_type != UINT16_MAX)
		return NULL;
	for (size_t i = 0; i < N_ELEMENTS(protocols); i++) {
		if (protocols[i].dl_type != value->dl_type)
			continue;
		if (protocols[i].nw_proto < 0)
			best = &protocols[i];
		else if (mask->nw_proto == UINT8_MAX && protocols[i].nw_proto == value->nw_proto)
			return &protocols[i];
	}
	return best;
}

// Fields with one of these names always need what the mask must say in full.
bool sw_field_is_met(enum sw_field_needs needs, const struct sw_key *value,
		     const struct sw_key *mask)
{
	struct sw_key said = *value, looked_at;

	// That later fragments have no ports is a matter of the packet, not of the rule.
	said.nw_frag = 0;
	memset(&looked_at, 0, sizeof(looked_at));
	if (!sw_needs_are_met(needs, &said, &looked_at))
		return false;
	looked_at.nw_frag = 0;
	// Likewise that neighbour discovery has code 0: with another code its fields are 0.
	if (needs == SW_NEEDS_ND || needs == SW_NEEDS_ND_SOLICIT || needs == SW_NEEDS_ND_ADVERT)
		looked_at.tp_dst = 0;
	for (unsigned int i = 0; i < SW_KEY_WORDS; i++) {
		if (looked_at.word[i] & ~mask->word[i])
			return false;
	}
	return true;
}

const char *sw_field_remedy(enum sw_field_needs needs)
{
	static const char *const remedies[] = {
		[SW_NEEDS_NOTHING] = "nothing",
		[SW_NEEDS_TAG] = "dl_vlan=VID (the outer tag)",
		[SW_NEEDS_IP4] = "ip",
		[SW_NEEDS_IP6] = "ipv6",
		[SW_NEEDS_IP] = "ip or ipv6",
		[SW_NEEDS_ARP] = "arp or rarp",
		[SW_NEEDS_IP4_OR_ARP] =
			"ip, arp or rarp (for IPv6 there are ipv6_src and ipv6_dst)",
		[SW_NEEDS_IP_OR_ARP] = "ip, ipv6, arp or rarp",
		[SW_NEEDS_TCP] = "tcp or tcp6",
		[SW_NEEDS_UDP] = "udp or udp6",
		[SW_NEEDS_SCTP] = "sctp or sctp6",
		[SW_NEEDS_PORTS] = "tcp, udp or sctp (tcp6, udp6 or sctp6 for IPv6)",
		[SW_NEEDS_ICMP] = "icmp or icmp6",
		[SW_NEEDS_ICMP4] = "icmp",
		[SW_NEEDS_ICMP6] = "icmp6",
		[SW_NEEDS_ND] = "icmp6,icmp_type=135 or icmp6,icmp_type=136, and no code but 0",
		[SW_NEEDS_ND_SOLICIT] = "icmp6,icmp_type=135, and no code but 0",
		[SW_NEEDS_ND_ADVERT] = "icmp6,icmp_type=136, and no code but 0",
		[SW_NEVER] = "",
	};

	return remedies[needs];
}
