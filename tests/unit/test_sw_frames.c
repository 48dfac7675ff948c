// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// What the hash of a key must do: fragments of one datagram hash alike, flows do not.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <rte_mbuf.h>

#include "sw_emc_fast.h"
#include "sw_key_fast.h"

#define MAX_FRAME_BYTES 2048

static uint32_t hash_of(const uint8_t *frame, uint32_t len)
{
	struct rte_mbuf mbuf;
	struct sw_key key;

	memset(&mbuf, 0, sizeof(mbuf));
	sw_key_extract(frame, len, len, SW_DEPTH_FULL, &key);
	key.in_port = 1;
	return sw_key_hash(&key, &mbuf);
}

// Frame number n of a capture in tests/frames. Returns its length.
static uint32_t frame_of(const char *name, uint32_t n, uint8_t *out)
{
	char path[256];
	uint32_t item[4];
	FILE *file;

	snprintf(path, sizeof(path), "tests/frames/%s.pcap", name);
	file = fopen(path, "rb");
	assert_non_null(file);
	assert_int_equal(fseek(file, 24, SEEK_SET), 0);
	do {
		assert_int_equal(fread(item, sizeof(item), 1, file), 1);
		assert_true(item[2] <= MAX_FRAME_BYTES);
		assert_int_equal(fread(out, 1, item[2], file), item[2]);
	} while (n-- > 0);
	fclose(file);
	return item[2];
}

static void test_fragments_hash_alike(void **state)
{
	uint8_t first[MAX_FRAME_BYTES], later[MAX_FRAME_BYTES];
	uint32_t n_first = frame_of("P13_frag_first_then_later", 0, first);
	uint32_t n_later = frame_of("P13_frag_first_then_later", 1, later);

	(void)state;
	assert_int_equal(hash_of(first, n_first), hash_of(later, n_later));
	first[29] ^= 1; // another source address
	assert_int_not_equal(hash_of(first, n_first), hash_of(later, n_later));
}

// IPv6 says what a datagram carries in its first fragment alone: the later ones begin with 44.
static uint32_t ip6_fragment(uint8_t proto, uint16_t offset_and_more, uint8_t *out)
{
	static const uint8_t head[] = {0x02, 0,    0,    0,    0, 2, 0x02, 0, 0,  0,  0,
				       1,    0x86, 0xdd, 0x60, 0, 0, 0,    0, 24, 44, 64};
	uint8_t *at = out + sizeof(head);

	memset(out, 0, 78);
	memcpy(out, head, sizeof(head));
	memset(at, 0xfd, 31); // both addresses
	at += 32;
	at[0] = proto;
	at[2] = (uint8_t)(offset_and_more >> 8);
	at[3] = (uint8_t)offset_and_more;
	memset(at + 8, 0x14, 16); // ports, and what stands in their place later
	return 78;
}

static void test_fragments_of_ip6_hash_alike(void **state)
{
	static const uint8_t protos[] = {17, 6, 58, 132};
	uint8_t frame[MAX_FRAME_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(protos); i++) {
		uint32_t n = ip6_fragment(protos[i], 0x0001, frame), first = hash_of(frame, n);

		n = ip6_fragment(protos[i], 0x0011, frame);
		assert_int_equal(hash_of(frame, n), first);
		n = ip6_fragment(protos[i], 0x0020, frame);
		assert_int_equal(hash_of(frame, n), first);
		frame[53] ^= 1; // another destination address
		assert_int_not_equal(hash_of(frame, n), first);
		// A fragment header of a whole datagram makes no fragment.
		n = ip6_fragment(protos[i], 0, frame);
		assert_int_not_equal(hash_of(frame, n), first);
	}
}

static void test_ports_count_where_there_are_any(void **state)
{
	uint8_t frame[MAX_FRAME_BYTES];
	uint32_t n = frame_of("P00_good_udp", 0, frame), hash = hash_of(frame, n);

	(void)state;
	frame[34] ^= 1;
	assert_int_not_equal(hash_of(frame, n), hash);
	frame[34] ^= 1;
	assert_int_equal(hash_of(frame, n), hash);
	// DF alone is no fragment: its flows keep their ports.
	n = frame_of("P15_df_set_not_frag", 0, frame);
	hash = hash_of(frame, n);
	n = frame_of("P15_df_set_not_frag", 1, frame);
	assert_int_not_equal(hash_of(frame, n), hash);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fragments_hash_alike),
		cmocka_unit_test(test_fragments_of_ip6_hash_alike),
		cmocka_unit_test(test_ports_count_where_there_are_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
