// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// What actions do to packets: bytes and checksums of what is sent, copies, lengths, and who gets
// which.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "sw_mac.h"
#include "tests/unit/sw_bed.h"

static struct rte_ipv4_hdr *ip_of(struct bed_frame *frame, uint32_t l3)
{
	return (void *)(frame->bytes + l3);
}

// Sums of IPv4 and UDP are right.
static void check_sums(struct bed_frame *frame, uint32_t l3)
{
	struct rte_ipv4_hdr *ip = ip_of(frame, l3);

	struct rte_udp_hdr *udp = (void *)(ip + 1);
	uint16_t sent = udp->dgram_cksum;

	assert_int_equal(rte_raw_cksum(ip, 20), 0xffff);
	udp->dgram_cksum = 0;
	assert_int_equal(rte_ipv4_udptcp_cksum(ip, udp), sent);
	udp->dgram_cksum = sent;
}

static void rule(const char *text)
{
	const char *const texts[] = {text, NULL};

	bed_add_flows(texts);
}

static void send_one(void)
{
	bed_send_udp(0, 1, 1);
}

static void test_set_addresses_and_ports(void **state)
{
	struct bed_frame *frame = bed.sent[1];

	(void)state;
	rule("in_port=1,udp,actions=mod_nw_src:1.2.3.4,mod_nw_dst:5.6.7.8,mod_tp_src:53,"
	     "mod_tp_dst:5353,mod_dl_dst:02:11:22:33:44:55,mod_nw_tos:184,output:2");
	send_one();
	assert_int_equal(bed.n_sent[1], 1);
	assert_int_equal(frame->len, 60);
	assert_memory_equal(frame->bytes, "\x02\x11\x22\x33\x44\x55", 6);
	assert_memory_equal(frame->bytes + 26, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
	assert_memory_equal(frame->bytes + 34, "\x00\x35\x14\xe9", 4);
	assert_int_equal(frame->bytes[15], 184);
	check_sums(frame, 14);
}

static void test_set_keeps_an_absent_udp_checksum(void **state)
{
	struct bed_frame frame = bed_udp(1, 1000);

	(void)state;
	rule("in_port=1,udp,actions=mod_nw_src:1.2.3.4,mod_tp_src:53,output:2");
	memset(frame.bytes + 40, 0, 2);
	bed_give(0, frame.bytes, frame.len);
	bed_poll();
	assert_memory_equal(bed.sent[1]->bytes + 40, "\0\0", 2);
	assert_memory_equal(bed.sent[1]->bytes + 34, "\x00\x35", 2);
}

static void test_set_a_part_of_an_address(void **state)
{
	(void)state;
	rule("in_port=1,udp,actions=set_field:0.0.7.0/0.0.255.0->ip_src,output:2");
	send_one();
	assert_memory_equal(bed.sent[1]->bytes + 26, "\x0a\x00\x07\x01", 4);
	check_sums(bed.sent[1], 14);
}

// UDP over IPv6 behind a routing header, its sum right for the final destination.
static struct bed_frame routed_udp(uint8_t segments_left)
{
	static const uint8_t head[] = {2, 0,    0,    0,    0, 2, 2, 0, 0,  0,  0,
				       1, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 40, 43, 64};
	struct bed_frame frame = {.len = 14 + 40 + 24 + 16};
	uint8_t *routing = frame.bytes + 54, *udp = frame.bytes + 78;

	memcpy(frame.bytes, head, sizeof(head));
	memset(frame.bytes + 22, 0xa1, 16);
	memset(frame.bytes + 38, segments_left ? 0xb2 : 0xc3, 16);
	routing[0] = 17;
	routing[1] = 2;
	routing[3] = segments_left;
	memset(routing + 8, segments_left ? 0xc3 : 0xb2, 16);
	memcpy(udp, "\x03\xe8\0\x3f\0\x10\0\0payload.", 16);
	return frame;
}

static uint16_t routed_udp_sum(const struct bed_frame *frame, uint8_t dst)
{
	struct rte_ipv6_hdr pseudo = {.payload_len = RTE_BE16(16), .proto = 17};
	struct rte_udp_hdr udp[2]; // and the payload

	memcpy(udp, frame->bytes + 78, sizeof(udp));
	udp->dgram_cksum = 0;
	memcpy(pseudo.src_addr, frame->bytes + 22, 16);
	memset(pseudo.dst_addr, dst, 16);
	return rte_ipv6_udptcp_cksum(&pseudo, udp);
}

// The destination that is written where stations are left is not the one that UDP covers.
static void test_set_addresses_before_a_routing_header(void **state)
{
	static const char *const addresses[] = {
		"in_port=1,udp6,actions=set_field:5555:5555:5555:5555:5555:5555:5555:5555->"
		"ipv6_src,set_field:6666:6666:6666:6666:6666:6666:6666:6666->ipv6_dst,output:2",
		NULL};

	(void)state;
	bed_add_flows(addresses);
	for (uint8_t left = 0; left <= 1; left++) {
		struct bed_frame frame = routed_udp(left);
		uint16_t sum = routed_udp_sum(&frame, 0xc3), sent;

		memcpy(frame.bytes + 84, &sum, 2);
		bed_give(0, frame.bytes, frame.len);
		bed_poll();
		assert_int_equal(bed.n_sent[1], left + 1);
		frame = bed.sent[1][left];
		assert_int_equal(frame.bytes[22], 0x55);
		assert_int_equal(frame.bytes[38], 0x66);
		memcpy(&sent, frame.bytes + 84, 2);
		assert_int_equal(sent, routed_udp_sum(&frame, left ? 0xc3 : 0x66));
	}
}

static void test_headers_in_two_segments(void **state)
{
	struct bed_frame frame = bed_udp(1, 1000);

	(void)state;
	rule("in_port=1,udp,actions=mod_nw_src:1.2.3.4,mod_tp_dst:5353,output:2");
	for (uint16_t first = 1; first < 60; first++) {
		bed_give_cut(0, frame.bytes, frame.len, first);
		bed_poll();
		assert_memory_equal(bed.sent[1][first - 1].bytes + 26, "\x01\x02\x03\x04", 4);
		check_sums(&bed.sent[1][first - 1], 14);
	}
}

static void test_dec_ttl(void **state)
{
	struct bed_frame frame = bed_udp(1, 1000);

	(void)state;
	rule("in_port=1,ip,actions=dec_ttl,output:2");
	send_one();
	assert_int_equal(bed.sent[1]->bytes[22], 63);
	check_sums(bed.sent[1], 14);
	frame.bytes[22] = 1;
	bed_give(0, frame.bytes, frame.len);
	bed_poll();
	assert_int_equal(bed.n_sent[1], 1);
	assert_int_equal(bed.n[PMDP_C_DROP0 + PMDP_DROP_ACTION], 1);
}

static void test_tags(void **state)
{
	static const char *const rules[] = {
		"in_port=1,actions=push_vlan:0x8100,set_field:4196->vlan_vid,output:2",
		"in_port=2,dl_vlan=100,actions=strip_vlan,output:3", NULL};
	struct bed_frame frame = bed_udp(1, 1000);

	(void)state;
	bed_add_flows(rules);
	send_one();
	assert_int_equal(bed.sent[1]->len, 64);
	assert_memory_equal(bed.sent[1]->bytes + 12, "\x81\0\0\x64\x08\0", 6);
	check_sums(bed.sent[1], 18);
	bed_give(1, bed.sent[1]->bytes, 64);
	bed_poll();
	assert_int_equal(bed.sent[2]->len, 60);
	assert_memory_equal(bed.sent[2]->bytes, frame.bytes, 60);
}

// Headers that stood where they can be found are changed behind any number of tags, as in
// ovs-actions(7).
static void test_changes_behind_three_tags(void **state)
{
	struct bed_frame *frame = bed.sent[1];

	(void)state;
	rule("in_port=1,udp,actions=push_vlan:0x8100,push_vlan:0x88a8,push_vlan:0x8100,"
	     "mod_nw_src:1.2.3.4,mod_tp_dst:5353,dec_ttl,output:2,strip_vlan,mod_nw_tos:184,"
	     "output:3");
	send_one();
	assert_int_equal(frame->len, 72);
	assert_memory_equal(frame->bytes + 12, "\x81\0\0\0\x88\xa8\0\0\x81\0\0\0\x08\0", 14);
	assert_memory_equal(frame->bytes + 38, "\x01\x02\x03\x04", 4);
	assert_memory_equal(frame->bytes + 48, "\x14\xe9", 2);
	assert_int_equal(frame->bytes[34], 63);
	check_sums(frame, 26);
	frame = bed.sent[2];
	assert_int_equal(frame->len, 68);
	assert_int_equal(frame->bytes[23], 184);
	check_sums(frame, 22);
}

// What goes out before a change does not see it.
static void test_outputs_between_changes(void **state)
{
	(void)state;
	rule("in_port=1,udp,actions=output:2,mod_nw_src:1.1.1.1,output:3,mod_nw_src:2.2.2.2,"
	     "in_port");
	bed_send_udp(0, 1, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_memory_equal(bed.sent[1][i].bytes + 26, "\x0a\0\0\x01", 4);
		assert_memory_equal(bed.sent[2][i].bytes + 26, "\x01\x01\x01\x01", 4);
		assert_memory_equal(bed.sent[0][i].bytes + 26, "\x02\x02\x02\x02", 4);
		check_sums(&bed.sent[0][i], 14);
	}
	assert_int_equal(bed.n[PMDP_C_COPIES], 6);
	assert_int_equal(bed.n[PMDP_C_TX_PACKETS], 9);
}

static void test_truncated_output(void **state)
{
	struct bed_frame frame = bed_udp(1, 1000);

	(void)state;
	rule("in_port=1,actions=output(port=3,max_len=40),output:2");
	rule("in_port=2,actions=output(port=3,max_len=20)");
	send_one();
	assert_int_equal(bed.sent[1]->len, 60);
	assert_int_equal(bed.sent[2]->len, 40);
	assert_memory_equal(bed.sent[2]->bytes, frame.bytes, 40);
	bed_give_cut(1, frame.bytes, frame.len, 30);
	bed_give_cut(1, frame.bytes, frame.len, 15);
	bed_give(1, frame.bytes, frame.len);
	bed_poll();
	for (uint32_t i = 1; i <= 3; i++) {
		assert_int_equal(bed.sent[2][i].len, 20);
		assert_memory_equal(bed.sent[2][i].bytes, frame.bytes, 20);
	}
}

static void test_flood(void **state)
{
	(void)state;
	rule("in_port=1,actions=flood");
	bed_send_udp(0, 1, 20);
	assert_int_equal(bed.n_sent[0], 0);
	assert_int_equal(bed.n_sent[1], 20);
	assert_int_equal(bed.n_sent[2], 20);
	assert_int_equal(bed.n[PMDP_C_COPIES], 20);
}

static void test_normal_learns(void **state)
{
	struct bed_frame there = bed_udp(1, 1000), back = bed_udp(2, 1000);

	(void)state;
	rule("actions=normal");
	memcpy(back.bytes, there.bytes + 6, 6);
	memcpy(back.bytes + 6, there.bytes, 6);
	bed_give(0, there.bytes, there.len); // to an unknown address
	bed_poll();
	assert_int_equal(bed.n_sent[1], 1);
	assert_int_equal(bed.n_sent[2], 1);
	sw_mac_poll(bed.run.macs, 0);
	bed_give(1, back.bytes, back.len); // to a known one
	bed_poll();
	assert_int_equal(bed.n_sent[0], 1);
	assert_int_equal(bed.n_sent[2], 1);
	bed_give(0, back.bytes, back.len); // to where it came from
	bed_poll();
	assert_int_equal(bed.n[PMDP_C_DROP0 + PMDP_DROP_ACTION], 1);
	back.bytes[0] |= 1; // a group
	bed_give(1, back.bytes, back.len);
	bed_poll();
	assert_int_equal(bed.n_sent[0], 2);
	assert_int_equal(bed.n_sent[2], 2);
}

// The addresses may lie in two segments, and a frame may end before a tag could.
static void test_normal_learns_from_two_segments(void **state)
{
	struct bed_frame there = bed_udp(1, 1000), back = bed_udp(2, 1000);
	uint32_t n_back = 0;

	(void)state;
	rule("actions=normal");
	memset(back.bytes + 6, 0, 6); // nobody: not learned
	for (uint16_t len = 14; len <= 17; len++)
		for (uint16_t first = 1; first < len; first++) {
			there.bytes[6] = 2;
			there.bytes[10] = (uint8_t)len;
			there.bytes[11] = (uint8_t)first;
			bed_give_cut(0, there.bytes, len, first);
			bed_poll();
			sw_mac_poll(bed.run.macs, 0);
			memcpy(back.bytes, there.bytes + 6, 6);
			bed_give_cut(1, back.bytes, len, first);
			bed_poll();
			n_back++;
			assert_int_equal(bed.n_sent[0], n_back);
			assert_int_equal(bed.n_sent[2], n_back); // those to unknown addresses
		}
}

// A list of many outputs: beyond what a flow holds by itself.
static void test_long_list(void **state)
{
	(void)state;
	rule("in_port=1,udp,actions=output:2,output:3,mod_tp_src:7,output:2,output:3,mod_tp_src:8,"
	     "output:2,output:3,mod_tp_src:9,output:2");
	bed_send_udp(0, 1, 5);
	bed_send_udp(0, 1, 5);
	assert_int_equal(bed.n_sent[1], 40);
	assert_int_equal(bed.n_sent[2], 30);
	for (uint32_t i = 0; i < 40; i++)
		check_sums(&bed.sent[1][i], 14);
	bed_clear_flows();
}

static void test_no_buffer_for_a_copy(void **state)
{
	struct rte_mbuf *all[4096];
	struct rte_mempool *pool = rte_mempool_lookup("test");
	uint32_t n = 0;

	(void)state;
	rule("in_port=1,udp,actions=output:2,mod_tp_src:7,output:3");
	bed_give_udp(0, 1, 4);
	while ((all[n] = rte_pktmbuf_alloc(pool)) != NULL)
		n++;
	bed_poll();
	rte_pktmbuf_free_bulk(all, n);
	assert_int_equal(bed.n_sent[1], 0);
	assert_int_equal(bed.n_sent[2], 4);
	assert_int_equal(bed.n[PMDP_C_DROP0 + PMDP_DROP_NO_MEMORY], 4);
}

static void test_output_to_a_port_that_is_not(void **state)
{
	(void)state;
	rule("in_port=1,udp,actions=output:9,output:2");
	rule("in_port=2,udp,actions=output:9");
	bed_give_udp(0, 1, 4);
	bed_send_udp(1, 1, 3);
	assert_int_equal(bed.n_sent[1], 4);
	assert_int_equal(bed.n[PMDP_C_DROP0 + PMDP_DROP_PORT_DOWN], 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, bed_open, bed_close)
		TEST(test_set_addresses_and_ports),
		TEST(test_set_keeps_an_absent_udp_checksum),
		TEST(test_set_a_part_of_an_address),
		TEST(test_set_addresses_before_a_routing_header),
		TEST(test_headers_in_two_segments),
		TEST(test_dec_ttl),
		TEST(test_tags),
		TEST(test_changes_behind_three_tags),
		TEST(test_outputs_between_changes),
		TEST(test_truncated_output),
		TEST(test_flood),
		TEST(test_normal_learns),
		TEST(test_normal_learns_from_two_segments),
		TEST(test_long_list),
		TEST(test_no_buffer_for_a_copy),
		TEST(test_output_to_a_port_that_is_not),
	};

	return cmocka_run_group_tests(tests, bed_start, bed_stop);
}
