// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The key of a packet: what rules can match, at fixed places in two cache lines. The first holds
 * all that common packets have; of the second, common packets use word 8 alone.
 *
 * Values are in network byte order, as in the frame. IPv4, IPv6 and ARP share words 4 to 7: a rule
 * that names one of their fields also names dl_type, which stands in word 0 and is compared first.
 * An absent field is 0. vlan_tci has bit 0x1000 (SW_VLAN_PRESENT) set when there is a tag, so that
 * a tag with VID 0 differs from no tag.
 */
#pragma once

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

#define SW_KEY_WORDS 16
#define SW_KEY_LINE_WORDS 8 // words of the first line
#define SW_KEY_META_WORD 8  // in_port and recirc_id: always matched exactly

#define SW_VLAN_PRESENT 0x1000

#define SW_FRAG_ANY 1   // part of a fragmented datagram
#define SW_FRAG_LATER 2 // not its first part: has no ports

#define SW_ETH_NOT_TYPED 0x05ff // dl_type of an 802.3 frame without SNAP, as in ovs-fields(7)

struct sw_key {
	union {
		alignas(64) uint64_t word[SW_KEY_WORDS];
		struct {
			uint16_t dl_type;
			uint16_t vlan_tci;  // outer tag
			uint16_t vlan_tci1; // inner tag
			uint8_t nw_proto;   // of ARP: the low byte of the operation
			uint8_t nw_frag;    // SW_FRAG_*

			uint8_t dl_dst[6];
			uint8_t nw_tos;
			uint8_t nw_ttl;

			uint8_t dl_src[6];
			uint16_t tcp_flags; // 12 bits

			uint16_t tp_src; // ICMP: type
			uint16_t tp_dst; // ICMP: code
			uint32_t ipv6_label;

			union {
				struct {
					uint32_t nw_src; // of ARP: arp_spa
					uint32_t nw_dst; // of ARP: arp_tpa
					uint8_t arp_sha[6];
					uint8_t reserved0[2];
					uint8_t arp_tha[6];
					uint8_t reserved1[2];
				};
				struct {
					uint8_t ipv6_src[16];
					uint8_t ipv6_dst[16];
				};
			};

			uint16_t in_port; // ofport, host order; not of the packet
			uint16_t reserved2;
			uint32_t recirc_id; // 0: as received; host order

			uint8_t nd_target[16];
			uint8_t nd_sll[6];
			uint8_t nd_reserved[2]; // ND: none yet
			uint8_t nd_tll[6];
			uint8_t reserved3[2];

			// Reserved for connection tracking and tunnels; 0 until they are built.
			uint32_t ct_state;
			uint32_t ct_mark;
			uint16_t ct_zone;
			uint16_t tun_flags;
			uint32_t reserved4;
			uint64_t tun_id;
		};
	};
};

_Static_assert(sizeof(struct sw_key) == 128, "the key is two cache lines");
_Static_assert(offsetof(struct sw_key, tp_src) == 24, "word 3");
_Static_assert(offsetof(struct sw_key, nw_src) == 32, "word 4");
_Static_assert(offsetof(struct sw_key, in_port) == 64, "word 8");

// How deep a packet is read. Each level includes the ones before it.
#define SW_DEPTH_NONE 0 // length only
#define SW_DEPTH_L2 1   // addresses, tags, dl_type
#define SW_DEPTH_FULL 2 // all

// Why a frame is malformed. Only a runt is dropped for it; of the others, the fields that can't be
// trusted stay 0 and rules decide.
#define SW_BAD_NONE 0
#define SW_BAD_RUNT 1      // shorter than an Ethernet header
#define SW_BAD_VLAN 2      // tag cut off
#define SW_BAD_ARP 3       // cut off
#define SW_BAD_IP4 4       // version, header or total length can't be
#define SW_BAD_IP6 5       // version or payload length can't be
#define SW_BAD_IP6_CHAIN 6 // extension headers cut off or too many
#define SW_BAD_L4 7        // TCP, UDP, SCTP or ICMP header cut off or too short
#define SW_BAD_ND 8        // neighbour discovery: target cut off, options that can't be or twice
#define SW_N_BAD 9

// "ip4" for SW_BAD_IP4 and so on, for statistics.
const char *sw_bad_name(uint32_t bad);
