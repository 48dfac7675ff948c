// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_key_fast.h"

#include <string.h>

#include <rte_byteorder.h>
#include <rte_mbuf.h>

#include "sw_load_fast.h"

#if RTE_BYTE_ORDER != RTE_LITTLE_ENDIAN
#error "the words of a key are laid out for little-endian machines"
#endif

#define ETH_BYTES 14
#define VLAN_BYTES 4
#define IP4_BYTES 20
#define IP6_BYTES 40
#define ARP_BYTES 28
#define TCP_BYTES 20
#define UDP_BYTES 8
#define SCTP_BYTES 12
#define ICMP_BYTES 8

#define TYPE_IP4 RTE_BE16(0x0800)
#define TYPE_ARP RTE_BE16(0x0806)
#define TYPE_RARP RTE_BE16(0x8035)
#define TYPE_IP6 RTE_BE16(0x86dd)
#define TYPE_VLAN RTE_BE16(0x8100)
#define TYPE_QINQ RTE_BE16(0x88a8)

#define PROTO_HOPOPTS 0
#define PROTO_ICMP 1
#define PROTO_TCP 6
#define PROTO_UDP 17
#define PROTO_ROUTING 43
#define PROTO_FRAGMENT 44
#define PROTO_AH 51
#define PROTO_ICMP6 58
#define PROTO_DSTOPTS 60
#define PROTO_SCTP 132

#define ND_SOLICITATION 135
#define ND_ADVERTISEMENT 136
#define ND_OPTION_BYTES 8

#define MASK48 UINT64_C(0x0000ffffffffffff)

// What is left to parse. bytes never exceeds what is readable behind p.
struct cursor {
	const uint8_t *p;
	uint32_t bytes;
};

static inline void skip(struct cursor *at, uint32_t bytes)
{
	at->p += bytes;
	at->bytes -= bytes;
}

static inline uint32_t tcp_ports(const struct cursor *at, struct sw_key *key)
{
	uint32_t header_bytes;

	if (at->bytes < TCP_BYTES)
		return SW_BAD_L4;
	header_bytes = (uint32_t)(at->p[12] >> 4) * 4;
	if (header_bytes < TCP_BYTES || header_bytes > at->bytes)
		return SW_BAD_L4;
	key->tp_src = sw_load16(at->p);
	key->tp_dst = sw_load16(at->p + 2);
	key->tcp_flags = sw_load16(at->p + 12) & RTE_BE16(0x0fff);
	return SW_BAD_NONE;
}

static inline uint32_t icmp_type(const struct cursor *at, struct sw_key *key)
{
	if (at->bytes < ICMP_BYTES)
		return SW_BAD_L4;
	key->tp_src = rte_cpu_to_be_16(at->p[0]);
	key->tp_dst = rte_cpu_to_be_16(at->p[1]);
	return SW_BAD_NONE;
}

// Behind the target: options of at least 8 bytes. One that can't be ends the walk; one that is
// there twice makes the message mean nothing.
static uint32_t nd_options(struct cursor at, struct sw_key *key)
{
	static const uint8_t zero[6];

	while (at.bytes > 0) {
		uint32_t bytes;
		uint8_t *to;

		if (at.bytes < ND_OPTION_BYTES)
			return SW_BAD_ND;
		bytes = at.p[1] * ND_OPTION_BYTES;
		to = at.p[0] == 1 ? key->nd_sll : at.p[0] == 2 ? key->nd_tll : NULL;
		if (bytes == 0 || bytes > at.bytes)
			return SW_BAD_ND;
		if (to && bytes == ND_OPTION_BYTES) {
			if (memcmp(to, zero, sizeof(zero)) != 0) {
				memset(key->nd_target, 0, sizeof(key->nd_target));
				memset(key->nd_sll, 0, sizeof(key->nd_sll));
				memset(key->nd_tll, 0, sizeof(key->nd_tll));
				return SW_BAD_ND;
			}
			memcpy(to, at.p + 2, sizeof(zero));
		}
		skip(&at, bytes);
	}
	return SW_BAD_NONE;
}

static inline uint32_t icmp6(const struct cursor *at, struct sw_key *key)
{
	uint32_t bad = icmp_type(at, key);
	struct cursor rest = *at;

	if (bad || at->p[1] != 0 || (at->p[0] != ND_SOLICITATION && at->p[0] != ND_ADVERTISEMENT))
		return bad;
	skip(&rest, ICMP_BYTES);
	if (rest.bytes < sizeof(key->nd_target))
		return SW_BAD_ND;
	memcpy(key->nd_target, rest.p, sizeof(key->nd_target));
	skip(&rest, sizeof(key->nd_target));
	return nd_options(rest, key) | SW_KEY_WIDE;
}

static inline uint32_t ports(const struct cursor *at, uint32_t min_bytes, struct sw_key *key)
{
	if (at->bytes < min_bytes)
		return SW_BAD_L4;
	key->tp_src = sw_load16(at->p);
	key->tp_dst = sw_load16(at->p + 2);
	return SW_BAD_NONE;
}

static inline uint32_t l4(const struct cursor *at, bool is_ip6, struct sw_key *key)
{
	switch (key->nw_proto) {
	case PROTO_UDP:
		return ports(at, UDP_BYTES, key);
	case PROTO_TCP:
		return tcp_ports(at, key);
	case PROTO_SCTP:
		return ports(at, SCTP_BYTES, key);
	case PROTO_ICMP:
		return is_ip6 ? SW_BAD_NONE : icmp_type(at, key);
	case PROTO_ICMP6:
		return is_ip6 ? icmp6(at, key) : SW_BAD_NONE;
	default:
		return SW_BAD_NONE;
	}
}

// at->bytes counts what is readable, l3_bytes what the frame has from here on.
static inline uint32_t ip4(struct cursor *at, uint32_t l3_bytes, struct sw_key *key)
{
	uint32_t header_bytes, total_bytes;
	uint16_t fragment;

	if (at->bytes < IP4_BYTES)
		return SW_BAD_IP4;
	header_bytes = (uint32_t)(at->p[0] & 0x0f) * 4;
	total_bytes = rte_be_to_cpu_16(sw_load16(at->p + 2));
	if (at->p[0] >> 4 != 4 || header_bytes < IP4_BYTES || total_bytes < header_bytes ||
	    total_bytes > l3_bytes || header_bytes > at->bytes)
		return SW_BAD_IP4;
	key->nw_tos = at->p[1];
	key->nw_ttl = at->p[8];
	key->nw_proto = at->p[9];
	key->word[4] = sw_load64(at->p + 12); // both addresses
	fragment = sw_load16(at->p + 6) & RTE_BE16(0x3fff);
	if (unlikely(fragment)) {
		key->nw_frag = SW_FRAG_ANY;
		if (fragment & RTE_BE16(0x1fff)) {
			key->nw_frag |= SW_FRAG_LATER;
			return SW_BAD_NONE;
		}
	}
	// Padding behind the datagram is no part of it.
	at->bytes = RTE_MIN(at->bytes, total_bytes);
	skip(at, header_bytes);
	return l4(at, false, key);
}

// Walk the extension headers. Sets *proto to what follows them, or to the fragment header's number
// for a later fragment.
static uint32_t ip6_chain(struct cursor *at, uint8_t *proto, uint8_t *frag)
{
	uint32_t header_bytes;
	unsigned int i;

	for (i = 0; i <= SW_KEY_MAX_IP6_HEADERS; i++) {
		switch (*proto) {
		case PROTO_HOPOPTS:
		case PROTO_ROUTING:
		case PROTO_DSTOPTS:
		case PROTO_AH:
		case PROTO_FRAGMENT:
			break;
		default:
			return SW_BAD_NONE;
		}
		if (at->bytes < 8)
			return SW_BAD_IP6_CHAIN;
		if (*proto == PROTO_FRAGMENT) {
			uint16_t fragment = sw_load16(at->p + 2) & RTE_BE16(0xfff9);

			if (fragment)
				*frag = SW_FRAG_ANY;
			if (fragment & RTE_BE16(0xfff8)) {
				*frag |= SW_FRAG_LATER;
				return SW_BAD_NONE;
			}
			header_bytes = 8;
		} else if (*proto == PROTO_AH) {
			header_bytes = ((uint32_t)at->p[1] + 2) * 4;
		} else {
			header_bytes = ((uint32_t)at->p[1] + 1) * 8;
		}
		if (header_bytes > at->bytes)
			return SW_BAD_IP6_CHAIN;
		*proto = at->p[0];
		skip(at, header_bytes);
	}
	return SW_BAD_IP6_CHAIN;
}

static uint32_t ip6(struct cursor *at, uint32_t l3_bytes, struct sw_key *key)
{
	const uint8_t *header = at->p;
	uint32_t payload_bytes, bad;
	uint8_t proto, frag = 0;

	if (at->bytes < IP6_BYTES)
		return SW_BAD_IP6;
	payload_bytes = rte_be_to_cpu_16(sw_load16(header + 4));
	if (header[0] >> 4 != 6 || payload_bytes > l3_bytes - IP6_BYTES)
		return SW_BAD_IP6;
	memcpy(key->ipv6_src, header + 8, sizeof(key->ipv6_src));
	memcpy(key->ipv6_dst, header + 24, sizeof(key->ipv6_dst));
	proto = header[6];
	at->bytes = RTE_MIN(at->bytes, payload_bytes + IP6_BYTES);
	skip(at, IP6_BYTES);
	bad = ip6_chain(at, &proto, &frag);
	if (bad)
		return bad;
	key->nw_proto = proto;
	key->nw_frag = frag;
	key->nw_tos = (uint8_t)(rte_be_to_cpu_16(sw_load16(header)) >> 4);
	key->nw_ttl = header[7];
	key->ipv6_label = sw_load32(header) & RTE_BE32(0x000fffff);
	if (frag & SW_FRAG_LATER)
		return SW_BAD_NONE;
	return l4(at, true, key);
}

static uint32_t arp(const struct cursor *at, struct sw_key *key)
{
	const uint8_t *p = at->p;

	if (at->bytes < ARP_BYTES)
		return SW_BAD_ARP;
	// Ethernet and IPv4 only; others are well formed, but have no fields here.
	if (sw_load16(p) != RTE_BE16(1) || sw_load16(p + 2) != TYPE_IP4 || p[4] != 6 || p[5] != 4)
		return SW_BAD_NONE;
	if (p[6] == 0)
		key->nw_proto = p[7];
	memcpy(key->arp_sha, p + 8, sizeof(key->arp_sha));
	key->nw_src = sw_load32(p + 14);
	memcpy(key->arp_tha, p + 18, sizeof(key->arp_tha));
	key->nw_dst = sw_load32(p + 24);
	return SW_BAD_NONE;
}

// Behind the tags: an ethertype, or the length of an 802.3 frame whose LLC/SNAP header has it.
static uint16_t ether_type(struct cursor *at)
{
	static const uint8_t snap[6] = {0xaa, 0xaa, 0x03, 0x00, 0x00, 0x00};
	uint16_t type = sw_load16(at->p);

	skip(at, 2);
	if (likely(rte_be_to_cpu_16(type) >= 0x0600))
		return type;
	if (at->bytes < sizeof(snap) + 2 || memcmp(at->p, snap, sizeof(snap)))
		return RTE_BE16(SW_ETH_NOT_TYPED);
	type = sw_load16(at->p + sizeof(snap));
	if (rte_be_to_cpu_16(type) < 0x0600)
		return RTE_BE16(SW_ETH_NOT_TYPED);
	skip(at, sizeof(snap) + 2);
	return type;
}

// The cursor stands at the outer ethertype; two tags at most are taken off.
static uint32_t tags(struct cursor *at, struct sw_key *key)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		uint16_t *tci = i ? &key->vlan_tci1 : &key->vlan_tci;
		uint16_t type = sw_load16(at->p);

		if (type != TYPE_VLAN && type != TYPE_QINQ)
			break;
		if (at->bytes < VLAN_BYTES + 2)
			return SW_BAD_VLAN;
		*tci = sw_load16(at->p + 2) | RTE_BE16(SW_VLAN_PRESENT);
		skip(at, VLAN_BYTES);
	}
	return SW_BAD_NONE;
}

// The key is 0 but for word 8. Returns SW_BAD_*, with SW_KEY_WIDE when more of the second line is
// used.
static inline uint32_t extract(const uint8_t *frame, uint32_t avail, uint32_t len, uint32_t depth,
			       struct sw_key *key)
{
	struct cursor at = {.p = frame, .bytes = avail};
	uint32_t bad, l3_bytes;

	if (unlikely(avail < ETH_BYTES))
		return SW_BAD_RUNT;
	key->word[1] = sw_load64(frame) & MASK48;
	key->word[2] = sw_load64(frame + 6) & MASK48;
	skip(&at, 12);
	if (likely(sw_load16(at.p) == TYPE_IP4)) {
		key->dl_type = TYPE_IP4;
		skip(&at, 2);
		return depth < SW_DEPTH_FULL ? SW_BAD_NONE : ip4(&at, len - ETH_BYTES, key);
	}
	bad = tags(&at, key);
	key->dl_type = ether_type(&at);
	if (bad || depth < SW_DEPTH_FULL)
		return bad;
	l3_bytes = len - (uint32_t)(at.p - frame);
	switch (key->dl_type) {
	case TYPE_IP4:
		return ip4(&at, l3_bytes, key);
	case TYPE_IP6:
		return ip6(&at, l3_bytes, key);
	case TYPE_ARP:
	case TYPE_RARP:
		return arp(&at, key);
	default:
		return SW_BAD_NONE;
	}
}

uint32_t sw_key_extract(const uint8_t *frame, uint32_t avail, uint32_t len, uint32_t depth,
			struct sw_key *out_key)
{
	memset(out_key, 0, sizeof(*out_key));
	return extract(frame, avail, len, depth, out_key) & ~SW_KEY_WIDE;
}

static __rte_noinline uint32_t extract_gathered(const struct rte_mbuf *mbuf, uint32_t depth,
						struct sw_key *key)
{
	uint32_t bytes = RTE_MIN(mbuf->pkt_len, (uint32_t)SW_KEY_REACH_BYTES);
	uint8_t head[SW_KEY_REACH_BYTES];
	const uint8_t *frame = rte_pktmbuf_read(mbuf, 0, bytes, head);

	return frame ? extract(frame, bytes, mbuf->pkt_len, depth, key) : SW_BAD_RUNT;
}

static inline uint32_t extract_mbuf(const struct rte_mbuf *mbuf, uint32_t depth, struct sw_key *key)
{
	if (unlikely(mbuf->data_len < mbuf->pkt_len && mbuf->data_len < SW_KEY_REACH_BYTES))
		return extract_gathered(mbuf, depth, key);
	return extract(rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->data_len, mbuf->pkt_len,
		       depth, key);
}

uint32_t sw_key_extract_mbuf(const struct rte_mbuf *mbuf, uint32_t depth, struct sw_key *out_key)
{
	memset(out_key, 0, sizeof(*out_key));
	return extract_mbuf(mbuf, depth, out_key) & ~SW_KEY_WIDE;
}

uint32_t sw_key_extract_rest(const struct rte_mbuf *mbuf, struct sw_key *key)
{
	memset(key, 0, sizeof(key->word[0]) * SW_KEY_LINE_WORDS);
	return extract_mbuf(mbuf, SW_DEPTH_FULL, key);
}

uint32_t sw_key_burst_scalar(struct rte_mbuf *const *pkts, uint32_t n, uint64_t meta,
			     struct sw_key *keys, uint8_t *out_bad)
{
	uint32_t any = 0;

	for (uint32_t i = 0; i < n; i++) {
		memset(&keys[i], 0, sizeof(keys[i].word[0]) * SW_KEY_LINE_WORDS);
		keys[i].word[SW_KEY_META_WORD] = meta;
		out_bad[i] = (uint8_t)extract_mbuf(pkts[i], SW_DEPTH_FULL, &keys[i]);
		any |= out_bad[i];
	}
	return any;
}

const char *sw_bad_name(uint32_t bad)
{
	static const char *const names[SW_N_BAD] = {
		"none", "runt", "vlan", "arp", "ip4", "ip6", "ip6_chain", "l4", "nd",
	};

	return bad < SW_N_BAD ? names[bad] : "unknown";
}
