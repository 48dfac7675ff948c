// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_edit_fast.h"

#include <nmmintrin.h>
#include <stddef.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include "sw_key_fast.h"

#define TYPE_IP4 RTE_BE16(0x0800)
#define TYPE_ARP RTE_BE16(0x0806)
#define TYPE_RARP RTE_BE16(0x8035)
#define TYPE_IP6 RTE_BE16(0x86dd)

#define PROTO_ICMP 1
#define PROTO_TCP 6
#define PROTO_UDP 17
#define PROTO_ROUTING 43
#define PROTO_FRAGMENT 44
#define PROTO_AH 51
#define PROTO_ICMP6 58
#define PROTO_SCTP 132

#define IP4_BYTES 20
#define IP6_BYTES 40
#define AT(field) offsetof(struct sw_key, field)

// Extraction has walked the chain before, so that it holds and ends.
static uint32_t ip6_l4(const uint8_t *frame, uint32_t l3, uint8_t proto, bool *out_is_routed)
{
	uint32_t at = l3 + IP6_BYTES;
	uint8_t next = frame[l3 + 6];

	while (next != proto) {
		uint32_t bytes = ((uint32_t)frame[at + 1] + 1) * 8;

		if (next == PROTO_FRAGMENT)
			bytes = 8;
		else if (next == PROTO_AH)
			bytes = ((uint32_t)frame[at + 1] + 2) * 4;
		else if (next == PROTO_ROUTING)
			*out_is_routed |= frame[at + 3] != 0; // segments left
		next = frame[at];
		at += bytes;
	}
	return at;
}

void sw_edit_find(const struct rte_mbuf *mbuf, struct sw_headers *out_headers)
{
	const uint8_t *frame = rte_pktmbuf_mtod(mbuf, const uint8_t *);
	struct sw_headers *to = out_headers;
	struct sw_key key;
	uint32_t bad = sw_key_extract_mbuf(mbuf, SW_DEPTH_FULL, &key);
	uint32_t type_at;

	memset(to, 0, sizeof(*to));
	to->n_tags = (key.vlan_tci != 0) + (key.vlan_tci1 != 0);
	if (bad == SW_BAD_RUNT || bad == SW_BAD_VLAN)
		return;
	to->dl_type = key.dl_type;
	to->nw_proto = key.nw_proto;
	to->nw_frag = key.nw_frag;
	if (bad == SW_BAD_ARP || bad == SW_BAD_IP4 || bad == SW_BAD_IP6 || bad == SW_BAD_IP6_CHAIN)
		return;
	type_at = 12 + 4 * to->n_tags;
	// A length stands there when LLC and SNAP follow.
	to->l3 = frame[type_at] < 0x06 ? type_at + 2 + 8 : type_at + 2;
	if (bad == SW_BAD_L4 || (key.nw_frag & SW_FRAG_LATER))
		return;
	if (key.dl_type == TYPE_IP4)
		to->l4 = to->l3 + (frame[to->l3] & 0x0f) * 4u;
	else if (key.dl_type == TYPE_IP6)
		to->l4 = ip6_l4(frame, to->l3, key.nw_proto, &to->is_routed);
}

static void put(uint8_t *to, const uint8_t *value, const uint8_t *mask, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		to[i] = (uint8_t)((to[i] & ~mask[i]) | (value[i] & mask[i]));
}

// A checksum that covers bytes whose sum was before and is now after.
static void adjust(uint8_t *checksum, uint16_t before, uint16_t after)
{
	uint16_t old;
	uint32_t sum;

	memcpy(&old, checksum, sizeof(old));
	sum = (uint32_t)(uint16_t)~old + (uint16_t)~before + after;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	old = (uint16_t)~sum;
	memcpy(checksum, &old, sizeof(old));
}

// CRC-32C over all of the packet from the SCTP header on, with its own field as 0. Padding behind
// the datagram is not part of it.
static void sctp_checksum(struct rte_mbuf *mbuf, const struct sw_headers *headers, uint8_t *sctp)
{
	const uint8_t *l3 = rte_pktmbuf_mtod_offset(mbuf, const uint8_t *, headers->l3);
	uint32_t end = headers->dl_type == TYPE_IP4
			       ? headers->l3 + (uint32_t)(l3[2] << 8 | l3[3])
			       : headers->l3 + IP6_BYTES + (uint32_t)(l3[4] << 8 | l3[5]);
	uint32_t crc = UINT32_MAX, at = 0;

	memset(sctp + 8, 0, 4);
	for (const struct rte_mbuf *seg = mbuf; seg != NULL; at += seg->data_len, seg = seg->next) {
		const uint8_t *data = rte_pktmbuf_mtod(seg, const uint8_t *);

		for (uint32_t i = 0; i < seg->data_len && at + i < end; i++) {
			if (at + i >= headers->l4)
				crc = _mm_crc32_u8(crc, data[i]);
		}
	}
	crc = ~crc;
	memcpy(sctp + 8, &crc, 4); // the low byte comes first
}

// Of L4, for bytes that it covers: those of the pseudo header (not covered by ICMP for IPv4, nor
// SCTP) or its own.
static void adjust_l4(uint8_t *frame, const struct sw_headers *headers, uint16_t before,
		      uint16_t after, bool is_pseudo)
{
	uint8_t *l4 = frame + headers->l4;

	if (headers->l4 == 0)
		return;
	if (headers->nw_proto == PROTO_TCP) {
		adjust(l4 + 16, before, after);
	} else if (headers->nw_proto == PROTO_UDP) {
		if (l4[6] == 0 && l4[7] == 0)
			return; // none was sent
		adjust(l4 + 6, before, after);
		if (l4[6] == 0 && l4[7] == 0)
			memset(l4 + 6, 0xff, 2);
	} else if ((headers->nw_proto == PROTO_ICMP && !is_pseudo) ||
		   (headers->nw_proto == PROTO_ICMP6 && headers->dl_type == TYPE_IP6)) {
		adjust(l4 + 2, before, after);
	}
}

static void set_ip4(uint8_t *frame, const struct sw_headers *headers, const struct sw_act *act)
{
	uint8_t *l3 = frame + headers->l3;
	uint16_t before = rte_raw_cksum(l3, IP4_BYTES);
	uint16_t after;
	bool is_address = false;
	uint8_t *to;

	switch (act->offset) {
	case AT(nw_tos):
		to = l3 + 1;
		break;
	case AT(nw_ttl):
		to = l3 + 8;
		break;
	case AT(nw_src):
	case AT(nw_dst):
		to = l3 + 12 + (act->offset - AT(nw_src));
		is_address = true;
		break;
	default:
		return;
	}
	put(to, act->value, act->mask, act->n_bytes);
	after = rte_raw_cksum(l3, IP4_BYTES);
	adjust(l3 + 10, before, after);
	// The sums differ by what has changed, which is the same seen from L4.
	if (is_address)
		adjust_l4(frame, headers, before, after, true);
}

static void set_ip6(uint8_t *frame, const struct sw_headers *headers, const struct sw_act *act)
{
	uint8_t *l3 = frame + headers->l3;
	uint16_t before;
	uint32_t word;

	memcpy(&word, l3, sizeof(word));
	switch (act->offset) {
	case AT(nw_tos): {
		uint32_t mask = rte_cpu_to_be_32((uint32_t)act->mask[0] << 20);

		word = (word & ~mask) | (rte_cpu_to_be_32((uint32_t)act->value[0] << 20) & mask);
		memcpy(l3, &word, sizeof(word));
		break;
	}
	case AT(ipv6_label): {
		uint32_t value, mask;

		memcpy(&value, act->value, sizeof(value));
		memcpy(&mask, act->mask, sizeof(mask));
		mask &= RTE_BE32(0x000fffff);
		word = (word & ~mask) | (value & mask);
		memcpy(l3, &word, sizeof(word));
		break;
	}
	case AT(nw_ttl):
		put(l3 + 7, act->value, act->mask, 1);
		break;
	case AT(ipv6_src):
	case AT(ipv6_dst):
		before = rte_raw_cksum(l3 + 8, 32);
		put(l3 + 8 + (act->offset - AT(ipv6_src)), act->value, act->mask, act->n_bytes);
		// L4 covers the final destination, which is not this one where others come first.
		if (act->offset == AT(ipv6_src) || !headers->is_routed)
			adjust_l4(frame, headers, before, rte_raw_cksum(l3 + 8, 32), true);
		break;
	default:
		break;
	}
}

static void set_arp(uint8_t *l3, const struct sw_act *act)
{
	uint32_t at;

	switch (act->offset) {
	case AT(nw_proto):
		at = 7;
		break;
	case AT(arp_sha):
		at = 8;
		break;
	case AT(nw_src):
		at = 14;
		break;
	case AT(arp_tha):
		at = 18;
		break;
	case AT(nw_dst):
		at = 24;
		break;
	default:
		return;
	}
	put(l3 + at, act->value, act->mask, act->n_bytes);
}

// Ports, or type and code of ICMP, which the key holds as numbers of two bytes.
static void set_ports(struct rte_mbuf *mbuf, const struct sw_headers *headers,
		      const struct sw_act *act)
{
	uint8_t *frame = rte_pktmbuf_mtod(mbuf, uint8_t *);
	uint8_t *l4 = frame + headers->l4;
	uint32_t second = act->offset == AT(tp_dst);
	uint16_t before;

	if (headers->l4 == 0)
		return;
	before = rte_raw_cksum(l4, 4);
	switch (headers->nw_proto) {
	case PROTO_TCP:
	case PROTO_UDP:
		put(l4 + 2 * second, act->value, act->mask, 2);
		adjust_l4(frame, headers, before, rte_raw_cksum(l4, 4), false);
		break;
	case PROTO_SCTP:
		put(l4 + 2 * second, act->value, act->mask, 2);
		// That of a first fragment covers what is not here.
		if (headers->nw_frag == 0)
			sctp_checksum(mbuf, headers, l4);
		break;
	case PROTO_ICMP:
	case PROTO_ICMP6:
		before = rte_raw_cksum(l4, 2);
		put(l4 + second, act->value + 1, act->mask + 1, 1);
		adjust_l4(frame, headers, before, rte_raw_cksum(l4, 2), false);
		break;
	default:
		break;
	}
}

static void set_nd(struct rte_mbuf *mbuf, const struct sw_headers *headers,
		   const struct sw_act *act)
{
	uint8_t *frame = rte_pktmbuf_mtod(mbuf, uint8_t *);
	const uint8_t *l3 = frame + headers->l3;
	uint8_t *l4 = frame + headers->l4;
	uint32_t end = headers->l3 + IP6_BYTES + (uint32_t)(l3[4] << 8 | l3[5]);
	uint32_t at = headers->l4 + 8;
	uint8_t wanted = act->offset == AT(nd_sll) ? 1 : 2;
	uint32_t from = at;
	uint16_t before;

	if (headers->l4 == 0 || headers->dl_type != TYPE_IP6 || headers->nw_proto != PROTO_ICMP6 ||
	    (l4[0] != 135 && l4[0] != 136) || l4[1] != 0)
		return;
	end = RTE_MIN(end, (uint32_t)mbuf->data_len);
	if (at + 16 > end)
		return;
	if (act->offset != AT(nd_target)) {
		at += 16;
		while (at + 8 <= end && frame[at + 1] != 0 &&
		       (frame[at] != wanted || frame[at + 1] != 1))
			at += frame[at + 1] * 8u;
		if (at + 8 > end || frame[at] != wanted || frame[at + 1] != 1)
			return;
		from = at;
		at += 2;
	}
	before = rte_raw_cksum(frame + from, from == at ? 16 : 8);
	put(frame + at, act->value, act->mask, act->n_bytes);
	adjust_l4(frame, headers, before, rte_raw_cksum(frame + from, from == at ? 16 : 8), false);
}

void sw_edit_set(struct rte_mbuf *mbuf, const struct sw_headers *headers, const struct sw_act *act)
{
	uint8_t *frame = rte_pktmbuf_mtod(mbuf, uint8_t *);

	switch (act->offset) {
	case AT(dl_dst):
		put(frame, act->value, act->mask, act->n_bytes);
		return;
	case AT(dl_src):
		put(frame + 6, act->value, act->mask, act->n_bytes);
		return;
	case AT(vlan_tci):
		if (headers->n_tags > 0)
			put(frame + 14, act->value, act->mask, act->n_bytes);
		return;
	case AT(tp_src):
	case AT(tp_dst):
		set_ports(mbuf, headers, act);
		return;
	case AT(nd_target):
	case AT(nd_sll):
	case AT(nd_tll):
		set_nd(mbuf, headers, act);
		return;
	default:
		break;
	}
	if (headers->l3 == 0)
		return;
	if (headers->dl_type == TYPE_IP4)
		set_ip4(frame, headers, act);
	else if (headers->dl_type == TYPE_IP6)
		set_ip6(frame, headers, act);
	else if (headers->dl_type == TYPE_ARP || headers->dl_type == TYPE_RARP)
		set_arp(frame + headers->l3, act);
}

bool sw_edit_dec_ttl(struct rte_mbuf *mbuf, const struct sw_headers *headers)
{
	uint8_t *l3 = rte_pktmbuf_mtod_offset(mbuf, uint8_t *, headers->l3);
	uint16_t before;

	// A malformed header has no TTL that could be lowered.
	if (headers->l3 == 0)
		return headers->dl_type != TYPE_IP4 && headers->dl_type != TYPE_IP6;
	if (headers->dl_type == TYPE_IP6) {
		if (l3[7] <= 1)
			return false;
		l3[7]--;
	} else if (headers->dl_type == TYPE_IP4) {
		if (l3[8] <= 1)
			return false;
		before = rte_raw_cksum(l3 + 8, 2);
		l3[8]--;
		adjust(l3 + 10, before, rte_raw_cksum(l3 + 8, 2));
	}
	return true;
}

bool sw_edit_push_vlan(struct rte_mbuf *mbuf, uint16_t tpid, uint16_t tci)
{
	uint8_t *frame = (uint8_t *)rte_pktmbuf_prepend(mbuf, 4);

	if (frame == NULL)
		return false;
	memmove(frame, frame + 4, 2 * RTE_ETHER_ADDR_LEN);
	memcpy(frame + 12, &tpid, sizeof(tpid));
	memcpy(frame + 14, &tci, sizeof(tci));
	return true;
}

void sw_edit_pop_vlan(struct rte_mbuf *mbuf)
{
	uint8_t *frame = rte_pktmbuf_mtod(mbuf, uint8_t *);

	memmove(frame + 4, frame, 2 * RTE_ETHER_ADDR_LEN);
	rte_pktmbuf_adj(mbuf, 4);
}
