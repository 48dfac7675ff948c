// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Key extraction: well-formed frames, the odd ones that break switches, and every truncation of
// both. Frames stand in heap blocks of their exact length, so that a sanitizer sees any step
// beyond.
#include <arpa/inet.h>
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
#include "sw_impl.h"
#include "sw_impl_fast.h"
#include "sw_key_fast.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

// A frame under construction.
struct frame {
	uint8_t bytes[2048];
	uint32_t len;
};

static void put(struct frame *f, const void *bytes, uint32_t len)
{
	assert_true(f->len + len <= sizeof(f->bytes));
	memcpy(f->bytes + f->len, bytes, len);
	f->len += len;
}

static void put8(struct frame *f, unsigned int value)
{
	put(f, &(uint8_t){(uint8_t)value}, 1);
}

static void put16(struct frame *f, unsigned int value)
{
	put(f, &(uint16_t){htons((uint16_t)value)}, 2);
}

static void put32(struct frame *f, uint32_t value)
{
	put(f, &(uint32_t){htonl(value)}, 4);
}

static void fill(struct frame *f, unsigned int value, uint32_t n)
{
	while (n-- > 0)
		put8(f, value);
}

// Addresses 02:00:00:00:00:01 to ...:02, up to the ethertype.
static void macs(struct frame *f)
{
	put(f, "\x02\0\0\0\0\x02\x02\0\0\0\0\x01", 12);
}

static void eth(struct frame *f, unsigned int type)
{
	macs(f);
	put16(f, type);
}

// IPv4 from 10.0.0.1 to 10.0.0.2, TTL 64.
static void ip4_odd(struct frame *f, unsigned int ver_ihl, unsigned int total, unsigned int frag,
		    unsigned int proto)
{
	put8(f, ver_ihl);
	put8(f, 0xb8 | 1); // DSCP 46, ECT(1)
	put16(f, total);
	put16(f, 7);
	put16(f, frag);
	put8(f, 64);
	put8(f, proto);
	put16(f, 0);
	put32(f, 0x0a000001);
	put32(f, 0x0a000002);
}

static void ip4(struct frame *f, unsigned int payload, unsigned int proto)
{
	ip4_odd(f, 0x45, 20 + payload, 0, proto);
}

static void ip6(struct frame *f, unsigned int payload, unsigned int next)
{
	put32(f, 6u << 28 | 0xb9u << 20 | 0xabcde);
	put16(f, payload);
	put8(f, next);
	put8(f, 255);
	put(f, "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01", 16);
	put(f, "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02", 16);
}

static void udp(struct frame *f, unsigned int len)
{
	put16(f, 1000);
	put16(f, 2000);
	put16(f, len);
	put16(f, 0);
}

static void tcp(struct frame *f, unsigned int data_offset)
{
	put16(f, 1000);
	put16(f, 80);
	put32(f, 1);
	put32(f, 0);
	put8(f, data_offset << 4);
	put8(f, 0x12); // SYN, ACK
	put16(f, 0x2000);
	put32(f, 0);
}

static uint32_t extract(const uint8_t *bytes, uint32_t len, struct sw_key *key)
{
	uint8_t *exact = malloc(len ? len : 1);
	uint32_t bad;

	memcpy(exact, bytes, len);
	bad = sw_key_extract(exact, len, len, SW_DEPTH_FULL, key);
	free(exact);
	return bad;
}

// The key as the text of a rule that has every field that is there.
static void check(const struct frame *f, uint32_t bad, const char *expected)
{
	char text[SW_FLOW_TEXT_BYTES];
	struct sw_key key, mask = {0};

	assert_int_equal(extract(f->bytes, f->len, &key), bad);
	// Of the second line only what is not 0.
	for (unsigned int i = 0; i < SW_KEY_WORDS; i++)
		mask.word[i] = i < SW_KEY_LINE_WORDS || key.word[i] != 0 ? UINT64_MAX : 0;
	sw_match_format(&key, &mask, text, sizeof(text));
	assert_string_equal(text, expected);
}

#define MACS "dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02"
#define UNTAGGED "vlan_tci=0x0000,vlan_tci1=0x0000," MACS
#define IP4_HOSTS "nw_src=10.0.0.1,nw_dst=10.0.0.2"
#define IP4_REST "nw_tos=184,nw_ecn=1,nw_ttl=64"
#define IP4_ZERO "nw_src=0.0.0.0,nw_dst=0.0.0.0,nw_proto=0,nw_tos=0,nw_ecn=0,nw_ttl=0,nw_frag=no"
#define IP6_HOSTS "ipv6_src=fd00::1,ipv6_dst=fd00::2"
#define IP6_REST "ipv6_label=0xabcde,nw_tos=184,nw_ecn=1,nw_ttl=255"

static void test_key_udp(void **state)
{
	static const char expected[] = "udp," UNTAGGED "," IP4_HOSTS "," IP4_REST
				       ",nw_frag=no,tp_src=1000,tp_dst=2000";
	struct frame f = {.len = 0};

	(void)state;
	eth(&f, 0x0800);
	ip4(&f, 13, 17);
	udp(&f, 13);
	put(&f, "hello", 5);
	check(&f, SW_BAD_NONE, expected);
	fill(&f, 0, 600); // padding behind the datagram is no part of it
	check(&f, SW_BAD_NONE, expected);
}

static void test_key_udp_length_is_not_believed(void **state)
{
	struct frame f = {.len = 0};

	(void)state;
	eth(&f, 0x0800);
	ip4(&f, 13, 17);
	udp(&f, 0);
	put(&f, "hello", 5);
	check(&f, SW_BAD_NONE,
	      "udp," UNTAGGED "," IP4_HOSTS "," IP4_REST ",nw_frag=no,tp_src=1000,tp_dst=2000");
}

static void test_key_ip4_header_that_can_not_be(void **state)
{
	static const struct {
		unsigned int ver_ihl, total;
	} odd[] = {
		{0x44, 33},             // header shorter than 20
		{0x40, 33}, {0x55, 33}, // version 5: receivers discard it, whatever its fields say
		{0x45, 16},             // datagram shorter than its header
		{0x45, 0},  {0x45, 34}, // longer than the frame
		{0x4f, 33},             // header longer than the datagram
	};

	(void)state;
	for (size_t i = 0; i < N(odd); i++) {
		struct frame f = {.len = 0};

		eth(&f, 0x0800);
		ip4_odd(&f, odd[i].ver_ihl, odd[i].total, 0, 17);
		udp(&f, 13);
		put(&f, "hello", 5);
		check(&f, SW_BAD_IP4, "ip," UNTAGGED "," IP4_ZERO);
	}
}

static void test_key_ip4_options(void **state)
{
	struct frame f = {.len = 0};

	(void)state;
	eth(&f, 0x0800);
	ip4_odd(&f, 0x4f, 60 + 8, 0, 17);
	fill(&f, 1, 40);
	udp(&f, 8);
	check(&f, SW_BAD_NONE,
	      "udp," UNTAGGED "," IP4_HOSTS "," IP4_REST ",nw_frag=no,tp_src=1000,tp_dst=2000");
}

static void test_key_tcp(void **state)
{
	struct frame f = {.len = 0};

	(void)state;
	eth(&f, 0x0800);
	ip4(&f, 20, 6);
	tcp(&f, 5);
	check(&f, SW_BAD_NONE,
	      "tcp," UNTAGGED "," IP4_HOSTS "," IP4_REST
	      ",nw_frag=no,tp_src=1000,tp_dst=80,tcp_flags=0x012/0xffff");
}

static void test_key_tcp_header_that_can_not_be(void **state)
{
	static const char expected[] = "tcp," UNTAGGED "," IP4_HOSTS "," IP4_REST
				       ",nw_frag=no,tp_src=0,tp_dst=0,tcp_flags=0x000/0xffff";
	static const unsigned int offsets[] = {0, 4, 6, 15}; // too short; beyond the datagram

	(void)state;
	for (size_t i = 0; i < N(offsets); i++) {
		struct frame f = {.len = 0};

		eth(&f, 0x0800);
		ip4(&f, 20, 6);
		tcp(&f, offsets[i]);
		check(&f, SW_BAD_L4, expected);
	}
	for (unsigned int len = 0; len < 20; len++) {
		struct frame f = {.len = 0};

		eth(&f, 0x0800);
		ip4(&f, len, 6);
		tcp(&f, 5);
		f.len = 34 + len;
		check(&f, SW_BAD_L4, expected);
	}
}

static void test_key_sctp_and_icmp(void **state)
{
	struct frame f = {.len = 0};

	(void)state;
	eth(&f, 0x0800);
	ip4(&f, 12, 132);
	udp(&f, 0);
	put32(&f, 0);
	check(&f, SW_BAD_NONE,
	      "sctp," UNTAGGED "," IP4_HOSTS "," IP4_REST ",nw_frag=no,tp_src=1000,tp_dst=2000");
	f.len = 0;
	eth(&f, 0x0800);
	ip4(&f, 8, 1);
	put(&f, "\x03\x04\0\0\0\0\0\0", 8);
	check(&f, SW_BAD_NONE,
	      "icmp," UNTAGGED "," IP4_HOSTS "," IP4_REST ",nw_frag=no,icmp_type=3,icmp_code=4");
}

static void test_key_ip4_fragments(void **state)
{
	static const struct {
		unsigned int field;
		const char *expected;
	} frags[] = {
		{0x4000, ",nw_frag=no,tp_src=1000,tp_dst=2000"}, // DF alone is no fragment
		{0x8000, ",nw_frag=no,tp_src=1000,tp_dst=2000"},
		{0x2000, ",nw_frag=first,tp_src=1000,tp_dst=2000"},
		{0x0003, ",nw_frag=later,tp_src=0,tp_dst=0"},
		{0x2003, ",nw_frag=later,tp_src=0,tp_dst=0"},
	};

	(void)state;
	for (size_t i = 0; i < N(frags); i++) {
		struct frame f = {.len = 0};
		char expected[512];

		eth(&f, 0x0800);
		ip4_odd(&f, 0x45, 20 + 8, frags[i].field, 17);
		udp(&f, 8);
		snprintf(expected, sizeof(expected), "udp,%s,%s,%s%s", UNTAGGED, IP4_HOSTS,
			 IP4_REST, frags[i].expected);
		check(&f, SW_BAD_NONE, expected);
	}
}

static void test_key_ip6(void **state)
{
	struct frame f = {.len = 0};

	(void)state;
	eth(&f, 0x86dd);
	ip6(&f, 8, 17);
	udp(&f, 8);
	check(&f, SW_BAD_NONE,
	      "udp6," UNTAGGED "," IP6_HOSTS "," IP6_REST ",nw_frag=no,tp_src=1000,tp_dst=2000");
}

static void test_key_ip6_extension_headers(void **state)
{
	struct frame f = {.len = 0};

	(void)state;
	eth(&f, 0x86dd);
	ip6(&f, 8 + 24 + 12 + 8 + 20, 0);
	put(&f, "\x2b\0\x01\x04\0\0\0\0", 8); // hop-by-hop, then routing of 24 bytes
	put(&f, "\x33\x02", 2);
	fill(&f, 0, 22);
	put(&f, "\x3c\x01", 2); // AH of 12 bytes, then destination options
	fill(&f, 0, 10);
	put(&f, "\x06\0", 2);
	fill(&f, 0, 6);
	tcp(&f, 5);
	check(&f, SW_BAD_NONE,
	      "tcp6," UNTAGGED "," IP6_HOSTS "," IP6_REST
	      ",nw_frag=no,tp_src=1000,tp_dst=80,tcp_flags=0x012/0xffff");
}

#define IP6_NO_L4                      \
	"ipv6," UNTAGGED "," IP6_HOSTS \
	",ipv6_label=0x00000,nw_proto=0,nw_tos=0,nw_ecn=0,nw_ttl=0,nw_frag=no"

static void test_key_ip6_chain_that_can_not_be(void **state)
{
	struct frame f = {.len = 0};

	(void)state;
	eth(&f, 0x86dd);
	ip6(&f, 8, 0);
	put(&f, "\x11\xff\x01\x04\0\0\0\0", 8); // says 2048 bytes
	check(&f, SW_BAD_IP6_CHAIN, IP6_NO_L4);

	f.len = 0; // more headers than anyone sends
	eth(&f, 0x86dd);
	ip6(&f, 64 * 8 + 8, 0);
	for (unsigned int i = 0; i < 64; i++)
		put(&f, "\0\0\x01\x04\0\0\0\0", 8);
	udp(&f, 8);
	check(&f, SW_BAD_IP6_CHAIN, IP6_NO_L4);

	f.len = 0; // cut inside a header
	eth(&f, 0x86dd);
	ip6(&f, 7, 60);
	fill(&f, 0, 7);
	check(&f, SW_BAD_IP6_CHAIN, IP6_NO_L4);
}

static void test_key_ip6_fragments(void **state)
{
	struct frame f = {.len = 0};

	(void)state;
	eth(&f, 0x86dd);
	ip6(&f, 16, 44);
	put(&f, "\x11\0\0\x01\0\0\0\x07", 8);
	udp(&f, 8);
	check(&f, SW_BAD_NONE,
	      "udp6," UNTAGGED "," IP6_HOSTS "," IP6_REST ",nw_frag=first,tp_src=1000,tp_dst=2000");
	f.bytes[14 + 40 + 3] = 0x19; // offset 24: has no ports, and no protocol that can be trusted
	check(&f, SW_BAD_NONE,
	      "ipv6," UNTAGGED "," IP6_HOSTS
	      ",ipv6_label=0xabcde,nw_proto=44,nw_tos=184,nw_ecn=1,nw_ttl=255,nw_frag=later");
	f.bytes[14 + 40 + 3] = 0x06; // reserved bits are no offset
	check(&f, SW_BAD_NONE,
	      "udp6," UNTAGGED "," IP6_HOSTS "," IP6_REST ",nw_frag=no,tp_src=1000,tp_dst=2000");
}

static void test_key_ip6_header_that_can_not_be(void **state)
{
	static const char zero[] = "ipv6," UNTAGGED ",ipv6_src=::,ipv6_dst=::,ipv6_label=0x00000,"
				   "nw_proto=0,nw_tos=0,nw_ecn=0,nw_ttl=0,nw_frag=no";
	struct frame f = {.len = 0};

	(void)state;
	eth(&f, 0x86dd);
	ip6(&f, 9, 17); // one byte more than there is
	udp(&f, 8);
	check(&f, SW_BAD_IP6, zero);
	f.bytes[14 + 5] = 8;
	f.bytes[14] = 0x40;
	check(&f, SW_BAD_IP6, zero);
}

static void test_key_neighbour_solicitation_with_empty_option(void **state)
{
	struct frame f = {.len = 0};

	(void)state;
	eth(&f, 0x86dd);
	ip6(&f, 32, 58);
	put(&f, "\x87\0\0\0\0\0\0\0", 8);
	fill(&f, 0xfd, 16);
	put(&f, "\x01\0\0\0\0\0\0\0", 8); // an option of length 0
	check(&f, SW_BAD_ND,
	      "icmp6," UNTAGGED "," IP6_HOSTS "," IP6_REST ",nw_frag=no,icmp_type=135,icmp_code=0,"
	      "nd_target=fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd");
}

static void test_key_neighbour_discovery(void **state)
{
	static const char head[] = "icmp6," UNTAGGED "," IP6_HOSTS "," IP6_REST
				   ",nw_frag=no,icmp_type=136,icmp_code=0";
	struct frame f = {.len = 0};
	char expected[1024];

	(void)state;
	eth(&f, 0x86dd);
	ip6(&f, 8 + 16 + 8 + 16 + 8, 58);
	put(&f, "\x88\0\0\0\0\0\0\0", 8);
	fill(&f, 0xfd, 16);
	put(&f, "\x01\x01\x02\0\0\0\0\x0a", 8);
	put(&f, "\x0e\x02", 2); // an option of 16 bytes that has no field here
	fill(&f, 1, 14);
	put(&f, "\x02\x01\x02\0\0\0\0\x0b", 8);
	// The source's address means something in a solicitation alone.
	snprintf(expected, sizeof(expected), "%s,nd_target=%s,nd_tll=%s", head,
		 "fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd", "02:00:00:00:00:0b");
	check(&f, SW_BAD_NONE, expected);
	f.bytes[f.len - 8] = 1; // the same option twice: nothing of it can be believed
	check(&f, SW_BAD_ND, head);
}

// Of a message that is cut somewhere, what stands before the cut is read, and the cut is counted:
// but between two options, where it may end.
static void test_key_neighbour_discovery_cut_off(void **state)
{
	static const char head[] = "icmp6," UNTAGGED "," IP6_HOSTS "," IP6_REST
				   ",nw_frag=no,icmp_type=136,icmp_code=0";
	static const char target[] = ",nd_target=fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd";

	(void)state;
	for (unsigned int n = 8; n <= 8 + 16 + 8 + 16; n++) {
		bool is_whole = n == 24 || n == 32 || n == 48;
		struct frame f = {.len = 0};
		char expected[1024];

		eth(&f, 0x86dd);
		ip6(&f, n, 58);
		put(&f, "\x88\0\0\0\0\0\0\0", 8);
		fill(&f, 0xfd, 16);
		put(&f, "\x02\x01\x02\0\0\0\0\x0b", 8);
		put(&f, "\x0e\x02", 2);
		fill(&f, 1, 14);
		snprintf(expected, sizeof(expected), "%s%s%s", head, n < 24 ? "" : target,
			 n < 32 ? "" : ",nd_tll=02:00:00:00:00:0b");
		check(&f, is_whole ? SW_BAD_NONE : SW_BAD_ND, expected);
		f.len = 54 + n; // likewise without the rest in the frame
		check(&f, is_whole ? SW_BAD_NONE : SW_BAD_ND, expected);
	}
}

static void test_key_tags(void **state)
{
	struct frame f = {.len = 0};

	(void)state;
	macs(&f);
	put32(&f, 0x88a80064);
	put32(&f, 0x8100e0c8);
	put16(&f, 0x0800);
	ip4(&f, 8, 17);
	udp(&f, 8);
	check(&f, SW_BAD_NONE,
	      "udp,dl_vlan=100,dl_vlan_pcp=0,dl_vlan1=200,dl_vlan_pcp1=7," MACS "," IP4_HOSTS
	      "," IP4_REST ",nw_frag=no,tp_src=1000,tp_dst=2000");

	f.len = 0; // a priority tag is a tag, even with VID 0
	macs(&f);
	put32(&f, 0x8100a000);
	put16(&f, 0x0800);
	ip4(&f, 8, 17);
	udp(&f, 8);
	check(&f, SW_BAD_NONE,
	      "udp,dl_vlan=0,dl_vlan_pcp=5,vlan_tci1=0x0000," MACS "," IP4_HOSTS "," IP4_REST
	      ",nw_frag=no,tp_src=1000,tp_dst=2000");

	f.len = 0; // a third tag is payload
	macs(&f);
	put32(&f, 0x88a80064);
	put32(&f, 0x810000c8);
	put32(&f, 0x8100012c);
	put16(&f, 0x0800);
	check(&f, SW_BAD_NONE,
	      "dl_vlan=100,dl_vlan_pcp=0,dl_vlan1=200,dl_vlan_pcp1=0," MACS ",dl_type=0x8100");
}

static void test_key_tag_cut_off(void **state)
{
	struct frame f = {.len = 0};

	(void)state;
	eth(&f, 0x8100);
	check(&f, SW_BAD_VLAN, UNTAGGED ",dl_type=0x8100");
	put16(&f, 10);
	check(&f, SW_BAD_VLAN, UNTAGGED ",dl_type=0x8100");
	f.len = 0;
	macs(&f);
	put32(&f, 0x88a80064);
	put32(&f, 0x8100000a); // the inner tag lacks what follows it
	check(&f, SW_BAD_VLAN,
	      "dl_vlan=100,dl_vlan_pcp=0,vlan_tci1=0x0000," MACS ",dl_type=0x8100");
}

static void test_key_arp(void **state)
{
	struct frame f = {.len = 0};

	(void)state;
	eth(&f, 0x0806);
	put(&f, "\0\x01\x08\0\x06\x04\0\x01", 8);
	put(&f, "\x02\0\0\0\0\x01\x0a\0\0\x01\0\0\0\0\0\0\x0a\0\0\x02", 20);
	check(&f, SW_BAD_NONE,
	      "arp," UNTAGGED ",arp_spa=10.0.0.1,arp_tpa=10.0.0.2,arp_op=1,"
	      "arp_sha=02:00:00:00:00:01,arp_tha=00:00:00:00:00:00");
	f.len--;
	check(&f, SW_BAD_ARP,
	      "arp," UNTAGGED ",arp_spa=0.0.0.0,arp_tpa=0.0.0.0,arp_op=0,"
	      "arp_sha=00:00:00:00:00:00,arp_tha=00:00:00:00:00:00");
}

static void test_key_802_3(void **state)
{
	struct frame f = {.len = 0};

	(void)state;
	eth(&f, 46); // a length: LLC, no type
	put(&f, "\x42\x42\x03", 3);
	check(&f, SW_BAD_NONE, UNTAGGED ",dl_type=0x05ff");
	f.len = 0;
	eth(&f, 8 + 28);
	put(&f, "\xaa\xaa\x03\0\0\0\x08\0", 8); // SNAP: the type stands behind
	ip4(&f, 8, 17);
	udp(&f, 8);
	check(&f, SW_BAD_NONE,
	      "udp," UNTAGGED "," IP4_HOSTS "," IP4_REST ",nw_frag=no,tp_src=1000,tp_dst=2000");
}

static void test_key_runt(void **state)
{
	struct frame f = {.len = 0};

	(void)state;
	eth(&f, 0x0800);
	for (f.len = 0; f.len < 14; f.len++)
		check(&f, SW_BAD_RUNT,
		      "vlan_tci=0x0000,vlan_tci1=0x0000,dl_src=00:00:00:00:00:00,"
		      "dl_dst=00:00:00:00:00:00,dl_type=0x0000");
}

static void segment(struct rte_mbuf *m, uint8_t *bytes, uint32_t len, struct rte_mbuf *next);

// By every implementation that this CPU has: the same key and finding.
static void extract_all(const uint8_t *bytes, uint32_t len)
{
	uint8_t *exact = malloc(len ? len : 1);
	struct sw_key expected;
	struct rte_mbuf mbuf, *pkts[] = {&mbuf};
	const struct sw_impl *impl;
	uint32_t bad;

	memcpy(exact, bytes, len);
	segment(&mbuf, exact, len, NULL);
	bad = sw_key_extract(exact, len, len, SW_DEPTH_FULL, &expected);
	expected.in_port = 7;
	for (uint32_t i = 0; (impl = sw_impl_at(i)) != NULL; i++) {
		struct sw_key key = {0};
		uint8_t out_bad;

		if (!sw_impl_is_usable(impl))
			continue;
		impl->extract(pkts, 1, expected.word[SW_KEY_META_WORD], &key, &out_bad);
		assert_int_equal(out_bad & ~SW_KEY_WIDE, bad);
		assert_memory_equal(&key, &expected, sizeof(key));
		if (memcmp(key.nd_target, (uint8_t[16]){0}, 16) != 0)
			assert_true(out_bad & SW_KEY_WIDE);
	}
	free(exact);
}

// Whatever a frame is made of, no cut of it and no flipped byte leads beyond its end.
static void test_key_never_reads_beyond(void **state)
{
	struct frame frames[10] = {{.len = 0}};
	uint32_t seed = 20260101;

	(void)state;
	sw_impl_init();
	macs(&frames[0]);
	put32(&frames[0], 0x88a80064);
	put32(&frames[0], 0x810000c8);
	put16(&frames[0], 0x0800);
	ip4_odd(&frames[0], 0x4f, 60 + 20, 0, 6);
	fill(&frames[0], 1, 40);
	tcp(&frames[0], 5);
	eth(&frames[1], 0x86dd);
	ip6(&frames[1], 8 + 8 + 20, 0);
	put(&frames[1], "\x3c\0\x01\x04\0\0\0\0\x06\0\0\0\0\0\0\0", 16);
	tcp(&frames[1], 5);
	eth(&frames[2], 0x0806);
	put(&frames[2], "\0\x01\x08\0\x06\x04\0\x01", 8);
	fill(&frames[2], 1, 20);
	eth(&frames[3], 0x0800);
	ip4(&frames[3], 8, 1);
	fill(&frames[3], 8, 8);
	// Two each of the common kinds: without, with one and with two tags.
	for (unsigned int i = 4; i < 10; i++) {
		macs(&frames[i]);
		for (unsigned int n = 0; n < (i - 4) / 2; n++)
			put32(&frames[i], 0x81002064 + n);
		put16(&frames[i], i % 2 ? 0x86dd : 0x0800);
		if (i % 2)
			ip6(&frames[i], 30, 6);
		else
			ip4(&frames[i], 26, 17);
		if (i % 2)
			tcp(&frames[i], 5);
		else
			udp(&frames[i], 26);
		fill(&frames[i], 0xee, i % 2 ? 10 : 18);
	}
	for (size_t i = 0; i < N(frames); i++) {
		struct frame f = frames[i];

		for (uint32_t len = 0; len <= f.len; len++)
			extract_all(f.bytes, len);
		for (unsigned int n = 0; n < 20000; n++) {
			f = frames[i];
			for (unsigned int flips = 0; flips < 3; flips++) {
				seed = seed * 1664525 + 1013904223;
				f.bytes[(seed >> 8) % f.len] ^= (uint8_t)(seed >> 24);
			}
			extract_all(f.bytes, seed & 0x100 ? f.len - (seed >> 16) % f.len : f.len);
		}
	}
}

// An mbuf without a pool; extraction touches nothing else.
static void segment(struct rte_mbuf *m, uint8_t *bytes, uint32_t len, struct rte_mbuf *next)
{
	memset(m, 0, sizeof(*m));
	m->buf_addr = bytes;
	m->data_len = (uint16_t)len;
	m->pkt_len = len + (next ? next->pkt_len : 0);
	m->nb_segs = (uint16_t)(1 + (next ? next->nb_segs : 0));
	m->next = next;
}

static void test_key_headers_spread_over_segments(void **state)
{
	struct frame f = {.len = 0};
	struct sw_key whole, key;

	(void)state;
	eth(&f, 0x86dd);
	ip6(&f, 8 + 20, 60);
	put(&f, "\x06\0\0\0\0\0\0\0", 8);
	tcp(&f, 5);
	assert_int_equal(extract(f.bytes, f.len, &whole), SW_BAD_NONE);
	for (uint32_t cut = 0; cut <= f.len; cut++) {
		struct rte_mbuf a, b;
		uint8_t *first = malloc(cut ? cut : 1), *second = malloc(f.len - cut + 1);

		memcpy(first, f.bytes, cut);
		memcpy(second, f.bytes + cut, f.len - cut);
		segment(&b, second, f.len - cut, NULL);
		segment(&a, first, cut, &b);
		assert_int_equal(sw_key_extract_mbuf(&a, SW_DEPTH_FULL, &key), SW_BAD_NONE);
		assert_memory_equal(&key, &whole, sizeof(key));
		free(first);
		free(second);
	}
}

static void test_key_depth_l2_leaves_the_rest(void **state)
{
	struct frame f = {.len = 0};
	struct sw_key key;

	(void)state;
	eth(&f, 0x0800);
	ip4_odd(&f, 0x44, 16, 0, 17); // not looked at, so not counted either
	assert_int_equal(sw_key_extract(f.bytes, f.len, f.len, SW_DEPTH_L2, &key), SW_BAD_NONE);
	assert_int_equal(key.dl_type, htons(0x0800));
	assert_int_equal(key.nw_proto, 0);
	assert_int_equal(key.nw_src, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_key_udp),
		cmocka_unit_test(test_key_udp_length_is_not_believed),
		cmocka_unit_test(test_key_ip4_header_that_can_not_be),
		cmocka_unit_test(test_key_ip4_options),
		cmocka_unit_test(test_key_tcp),
		cmocka_unit_test(test_key_tcp_header_that_can_not_be),
		cmocka_unit_test(test_key_sctp_and_icmp),
		cmocka_unit_test(test_key_ip4_fragments),
		cmocka_unit_test(test_key_ip6),
		cmocka_unit_test(test_key_ip6_extension_headers),
		cmocka_unit_test(test_key_ip6_chain_that_can_not_be),
		cmocka_unit_test(test_key_ip6_fragments),
		cmocka_unit_test(test_key_ip6_header_that_can_not_be),
		cmocka_unit_test(test_key_neighbour_solicitation_with_empty_option),
		cmocka_unit_test(test_key_neighbour_discovery),
		cmocka_unit_test(test_key_neighbour_discovery_cut_off),
		cmocka_unit_test(test_key_tags),
		cmocka_unit_test(test_key_tag_cut_off),
		cmocka_unit_test(test_key_arp),
		cmocka_unit_test(test_key_802_3),
		cmocka_unit_test(test_key_runt),
		cmocka_unit_test(test_key_never_reads_beyond),
		cmocka_unit_test(test_key_headers_spread_over_segments),
		cmocka_unit_test(test_key_depth_l2_leaves_the_rest),
	};

	return cmocka_run_group_tests_name("sw_key", tests, NULL, NULL);
}
