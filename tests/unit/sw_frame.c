// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "tests/unit/sw_frame.h"

#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>

#include "sw_needs_fast.h"

#define PROTO_ICMP 1
#define PROTO_TCP 6
#define PROTO_UDP 17
#define PROTO_FRAGMENT 44
#define PROTO_ICMP6 58
#define PAYLOAD_BYTES 8

static bool is_ports(const struct sw_key *key)
{
	return key->nw_proto == PROTO_TCP || key->nw_proto == PROTO_UDP;
}

static bool is_icmp(const struct sw_key *key)
{
	return (key->dl_type == SW_TYPE_IP4 && key->nw_proto == PROTO_ICMP) ||
	       (key->dl_type == SW_TYPE_IP6 && key->nw_proto == PROTO_ICMP6);
}

static bool is_nd(const struct sw_key *key)
{
	return key->dl_type == SW_TYPE_IP6 && is_icmp(key) && key->tp_dst == 0 &&
	       (key->tp_src == RTE_BE16(135) || key->tp_src == RTE_BE16(136));
}

void sw_frame_settle(struct sw_key *key)
{
	if (key->nw_frag & SW_FRAG_LATER) {
		key->tp_src = key->tp_dst = key->tcp_flags = 0;
		if (key->dl_type == SW_TYPE_IP6)
			key->nw_proto = PROTO_FRAGMENT;
	}
	if (!is_icmp(key) && !is_ports(key))
		key->tp_src = key->tp_dst = 0;
	if (!is_nd(key) || (key->nw_frag & SW_FRAG_LATER))
		memset(key->nd_target, 0, sizeof(key->nd_target));
}

static void append(struct bed_frame *frame, const void *bytes, uint16_t n)
{
	memcpy(frame->bytes + frame->len, bytes, n);
	frame->len = (uint16_t)(frame->len + n);
}

static void append16(struct bed_frame *frame, uint16_t value)
{
	append(frame, &value, sizeof(value));
}

// Returns where the checksum stands, 0: there is none.
static uint16_t append_l4(struct bed_frame *frame, const struct sw_key *key)
{
	static const uint8_t zero[20];
	uint16_t at = frame->len, flags = key->tcp_flags | RTE_BE16(0x5000);

	if (key->nw_frag & SW_FRAG_LATER)
		return 0;
	if (key->nw_proto == PROTO_TCP) {
		append(frame, zero, 20);
		memcpy(frame->bytes + at, &key->tp_src, 4);
		memcpy(frame->bytes + at + 12, &flags, 2);
		return at + 16;
	}
	if (key->nw_proto == PROTO_UDP) {
		append(frame, &key->tp_src, 4);
		append16(frame, RTE_BE16(8 + PAYLOAD_BYTES));
		append16(frame, 0);
		return at + 6;
	}
	if (!is_icmp(key))
		return 0;
	append(frame, zero, 8);
	frame->bytes[at] = (uint8_t)rte_be_to_cpu_16(key->tp_src);
	frame->bytes[at + 1] = (uint8_t)rte_be_to_cpu_16(key->tp_dst);
	if (is_nd(key))
		append(frame, key->nd_target, sizeof(key->nd_target));
	return at + 2;
}

// addresses: of the pseudo header, NULL: it counts for nothing.
static void close_l4(struct bed_frame *frame, uint16_t at, uint16_t l4, const uint8_t *addresses,
		     uint32_t n, uint8_t proto)
{
	uint16_t checksum;
	uint32_t sum = rte_raw_cksum(frame->bytes + l4, (uint32_t)frame->len - l4);

	if (addresses)
		sum += rte_raw_cksum(addresses, n) +
		       (uint32_t)rte_cpu_to_be_16((uint16_t)(frame->len - l4)) +
		       rte_cpu_to_be_16(proto);
	while (sum > UINT16_MAX)
		sum = (sum & UINT16_MAX) + (sum >> 16);
	checksum = (uint16_t)~sum;
	if (checksum == 0 && proto == PROTO_UDP)
		checksum = UINT16_MAX;
	memcpy(frame->bytes + at, &checksum, sizeof(checksum));
}

// Behind neighbour discovery it is an option of 8 bytes that nobody knows.
static void append_payload(struct bed_frame *frame, uint32_t number)
{
	append(frame, "\x5a\x01\x5a\xa5", 4);
	append(frame, &number, sizeof(number));
}

static void append_ip4(struct bed_frame *frame, const struct sw_key *key, uint32_t number)
{
	uint16_t l3 = frame->len, checksum_at;
	struct rte_ipv4_hdr ip = {
		.version_ihl = 0x45,
		.type_of_service = key->nw_tos,
		.packet_id = (uint16_t)number,
		.time_to_live = key->nw_ttl,
		.next_proto_id = key->nw_proto,
		.src_addr = key->nw_src,
		.dst_addr = key->nw_dst,
	};

	if (key->nw_frag)
		ip.fragment_offset = RTE_BE16(0x2000) |
				     (key->nw_frag & SW_FRAG_LATER ? RTE_BE16(3) : 0);
	append(frame, &ip, sizeof(ip));
	checksum_at = append_l4(frame, key);
	append_payload(frame, number);
	ip.total_length = rte_cpu_to_be_16((uint16_t)(frame->len - l3));
	ip.hdr_checksum = rte_ipv4_cksum(&ip);
	memcpy(frame->bytes + l3, &ip, sizeof(ip));
	if (checksum_at)
		close_l4(frame, checksum_at, l3 + sizeof(ip),
			 key->nw_proto == PROTO_ICMP ? NULL : (const uint8_t *)&key->nw_src, 8,
			 key->nw_proto);
}

static void append_ip6(struct bed_frame *frame, const struct sw_key *key, uint32_t number)
{
	uint16_t l3 = frame->len, l4, checksum_at;
	uint8_t fragment[8] = {key->nw_proto, 0, 0, 1};
	struct rte_ipv6_hdr ip = {
		.vtc_flow = RTE_BE32(0x60000000) | key->ipv6_label |
			    rte_cpu_to_be_32((uint32_t)key->nw_tos << 20),
		.proto = key->nw_frag ? PROTO_FRAGMENT : key->nw_proto,
		.hop_limits = key->nw_ttl,
	};

	memcpy(ip.src_addr, key->ipv6_src, 32); // both
	append(frame, &ip, sizeof(ip));
	if (key->nw_frag & SW_FRAG_LATER) {
		fragment[0] = PROTO_UDP; // nobody looks
		fragment[3] = 8 | 1;
	}
	if (key->nw_frag)
		append(frame, fragment, sizeof(fragment));
	l4 = frame->len;
	checksum_at = append_l4(frame, key);
	append_payload(frame, number);
	ip.payload_len = rte_cpu_to_be_16((uint16_t)(frame->len - l3 - sizeof(ip)));
	memcpy(frame->bytes + l3, &ip, sizeof(ip));
	if (checksum_at)
		close_l4(frame, checksum_at, l4, key->ipv6_src, 32, key->nw_proto);
}

static void append_arp(struct bed_frame *frame, const struct sw_key *key, uint32_t number)
{
	append(frame, "\0\1\x08\0\6\4\0", 7);
	append(frame, &key->nw_proto, 1);
	append(frame, key->arp_sha, 6);
	append(frame, &key->nw_src, 4);
	append(frame, key->arp_tha, 6);
	append(frame, &key->nw_dst, 4);
	append_payload(frame, number);
}

struct bed_frame sw_frame_make(const struct sw_key *key, const uint16_t *tags, uint32_t n_tags,
			       uint32_t number)
{
	struct bed_frame frame = {.len = 0};

	append(&frame, key->dl_dst, 6);
	append(&frame, key->dl_src, 6);
	for (uint32_t i = 0; i < n_tags; i++) {
		append16(&frame, RTE_BE16(0x8100));
		append16(&frame, tags[i] & (uint16_t)~RTE_BE16(SW_VLAN_PRESENT));
	}
	append16(&frame, key->dl_type);
	if (key->dl_type == SW_TYPE_IP4)
		append_ip4(&frame, key, number);
	else if (key->dl_type == SW_TYPE_IP6)
		append_ip6(&frame, key, number);
	else if (key->dl_type == SW_TYPE_ARP)
		append_arp(&frame, key, number);
	else
		append_payload(&frame, number);
	return frame;
}

static bool is_alike(uint16_t a, uint16_t b, bool is_type)
{
	if (is_type)
		return (a == RTE_BE16(0x8100) || a == RTE_BE16(0x88a8)) &&
		       (b == RTE_BE16(0x8100) || b == RTE_BE16(0x88a8));
	return (a == 0 && b == UINT16_MAX) || (a == UINT16_MAX && b == 0);
}

bool sw_frame_is_same(const struct bed_frame *a, const struct bed_frame *b)
{
	uint32_t type_at = 12;

	if (a->len != b->len)
		return false;
	for (uint32_t i = 0; i + 1 < a->len; i += 2) {
		bool is_type = i == type_at;
		uint16_t x, y;

		memcpy(&x, a->bytes + i, 2);
		memcpy(&y, b->bytes + i, 2);
		if (is_type && (x == RTE_BE16(0x8100) || x == RTE_BE16(0x88a8)))
			type_at += 4;
		if (x != y && !is_alike(x, y, is_type))
			return false;
	}
	return a->len % 2 == 0 || a->bytes[a->len - 1] == b->bytes[b->len - 1];
}
