// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The frames that most packets are: IPv4 without options or IPv6 without extension headers, not
 * fragmented, with up to two tags, UDP or TCP, well formed, in one segment. For the vector variants
 * of key extraction; what is not of these kinds goes to sw_key_extract_rest().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_byteorder.h>

#include "sw_load_fast.h"

#define SW_COMMON_LEAST_BYTES 42 // Ethernet, IPv4, UDP

struct sw_common {
	uint32_t n_tags;
	uint32_t l3; // offsets in the frame
	uint32_t l4;
	bool is_ip6;
	uint16_t tcp_flags; // as in the key
};

static inline bool sw_common_l4(const uint8_t *frame, uint8_t proto, uint32_t bytes,
				struct sw_common *to)
{
	uint32_t header_bytes;

	if (likely(proto == 17)) {
		to->tcp_flags = 0;
		return bytes >= 8;
	}
	if (proto != 6 || bytes < 20)
		return false;
	header_bytes = (uint32_t)(frame[to->l4 + 12] >> 4) * 4;
	to->tcp_flags = sw_load16(frame + to->l4 + 12) & RTE_BE16(0x0fff);
	return header_bytes >= 20 && header_bytes <= bytes;
}

// False also for what is malformed. At least SW_COMMON_LEAST_BYTES of the frame are readable, in
// all len.
static inline bool sw_common_find(const uint8_t *frame, uint32_t len, struct sw_common *to)
{
	uint16_t type = sw_load16(frame + 12);
	uint64_t begin;
	uint32_t bytes;

	to->n_tags = 0;
	while (unlikely(type == RTE_BE16(0x8100) || type == RTE_BE16(0x88a8)) && to->n_tags < 2)
		type = sw_load16(frame + 12 + 4 * ++to->n_tags);
	to->l3 = 14 + 4 * to->n_tags;
	to->is_ip6 = type == RTE_BE16(0x86dd);
	begin = sw_load64(frame + to->l3);
	if (likely(type == RTE_BE16(0x0800))) {
		bytes = rte_bswap16((uint16_t)(begin >> 16)); // total length
		to->l4 = to->l3 + 20;
		// Version 4, five words of header, no fragment; the last, should the length be
		// below 20.
		if (len < to->l4 + 8 || (begin & UINT64_C(0xff3f0000000000ff)) != 0x45 ||
		    bytes > len - to->l3 || bytes < 20)
			return false;
		return sw_common_l4(frame, frame[to->l3 + 9], bytes - 20, to);
	}
	if (!to->is_ip6)
		return false;
	bytes = rte_bswap16((uint16_t)(begin >> 32)); // payload length
	to->l4 = to->l3 + 40;
	if (len < to->l4 + 8 || (begin & 0xf0) != 0x60 || bytes > len - to->l4)
		return false;
	return sw_common_l4(frame, frame[to->l3 + 6], bytes, to);
}
