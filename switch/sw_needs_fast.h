// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * What a packet must be, or a rule must say, before a field means anything.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_byteorder.h>

#include "sw_key.h"

enum sw_field_needs {
	SW_NEEDS_NOTHING,
	SW_NEEDS_TAG, // an outer tag
	SW_NEEDS_IP4,
	SW_NEEDS_IP6,
	SW_NEEDS_IP, // either version
	SW_NEEDS_ARP,
	SW_NEEDS_IP4_OR_ARP,
	SW_NEEDS_IP_OR_ARP,
	SW_NEEDS_TCP,
	SW_NEEDS_UDP,
	SW_NEEDS_SCTP,
	SW_NEEDS_PORTS, // TCP, UDP or SCTP
	SW_NEEDS_ICMP,  // either version
	SW_NEEDS_ICMP4,
	SW_NEEDS_ICMP6,
	SW_NEEDS_ND,         // neighbour solicitation or advertisement
	SW_NEEDS_ND_SOLICIT, // the former
	SW_NEEDS_ND_ADVERT,  // the latter
	SW_NEVER,
};

#define SW_TYPE_IP4 RTE_BE16(0x0800)
#define SW_TYPE_ARP RTE_BE16(0x0806)
#define SW_TYPE_RARP RTE_BE16(0x8035)
#define SW_TYPE_IP6 RTE_BE16(0x86dd)

static inline bool sw_needs_proto(const struct sw_key *key, uint8_t proto, struct sw_key *look)
{
	look->dl_type = UINT16_MAX;
	if (key->dl_type != SW_TYPE_IP4 && key->dl_type != SW_TYPE_IP6)
		return false;
	look->nw_proto = UINT8_MAX;
	return key->nw_proto == proto;
}

// A protocol whose header stands in this packet: not in a later fragment.
static inline bool sw_needs_header(const struct sw_key *key, uint8_t proto, struct sw_key *look)
{
	if (!sw_needs_proto(key, proto, look))
		return false;
	look->nw_frag |= SW_FRAG_LATER;
	return !(key->nw_frag & SW_FRAG_LATER);
}

static inline bool sw_needs_nd(const struct sw_key *key, uint16_t first, uint16_t last,
			       struct sw_key *look)
{
	uint16_t type = rte_be_to_cpu_16(key->tp_src);

	if (!sw_needs_header(key, 58, look) || key->dl_type != SW_TYPE_IP6)
		return false;
	look->tp_src = look->tp_dst = UINT16_MAX;
	return type >= first && type <= last && key->tp_dst == 0;
}

// Whether the key is what is needed; *look gets the bits that say so.
static inline bool sw_needs_are_met(enum sw_field_needs needs, const struct sw_key *key,
				    struct sw_key *look)
{
	bool is_ip4 = key->dl_type == SW_TYPE_IP4, is_ip6 = key->dl_type == SW_TYPE_IP6;
	bool is_arp = key->dl_type == SW_TYPE_ARP || key->dl_type == SW_TYPE_RARP;

	if (needs == SW_NEEDS_NOTHING)
		return true;
	if (needs == SW_NEEDS_TAG) {
		look->vlan_tci |= RTE_BE16(SW_VLAN_PRESENT);
		return key->vlan_tci & RTE_BE16(SW_VLAN_PRESENT);
	}
	look->dl_type = UINT16_MAX;
	switch (needs) {
	case SW_NEEDS_IP4:
		return is_ip4;
	case SW_NEEDS_IP6:
		return is_ip6;
	case SW_NEEDS_IP:
		return is_ip4 || is_ip6;
	case SW_NEEDS_ARP:
		return is_arp;
	case SW_NEEDS_IP4_OR_ARP:
		return is_ip4 || is_arp;
	case SW_NEEDS_IP_OR_ARP:
		return is_ip4 || is_ip6 || is_arp;
	case SW_NEEDS_TCP:
		return sw_needs_header(key, 6, look);
	case SW_NEEDS_UDP:
		return sw_needs_header(key, 17, look);
	case SW_NEEDS_SCTP:
		return sw_needs_header(key, 132, look);
	case SW_NEEDS_PORTS:
		return sw_needs_header(key, 6, look) || sw_needs_header(key, 17, look) ||
		       sw_needs_header(key, 132, look);
	case SW_NEEDS_ICMP:
		return is_ip4 ? sw_needs_header(key, 1, look) : sw_needs_header(key, 58, look);
	case SW_NEEDS_ICMP4:
		return is_ip4 && sw_needs_header(key, 1, look);
	case SW_NEEDS_ICMP6:
		return is_ip6 && sw_needs_header(key, 58, look);
	case SW_NEEDS_ND:
		return sw_needs_nd(key, 135, 136, look);
	case SW_NEEDS_ND_SOLICIT:
		return sw_needs_nd(key, 135, 135, look);
	case SW_NEEDS_ND_ADVERT:
		return sw_needs_nd(key, 136, 136, look);
	default:
		return false;
	}
}
