// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Key extraction with AVX-512 VBMI: one permutation moves all fields of a common frame to their
// places.
#include <immintrin.h>

#include <rte_mbuf.h>

#include "sw_key_common_fast.h"
#include "sw_key_fast.h"

#define Z 0x80 // a byte of 0
#define Z4 Z, Z, Z, Z
#define Z8 Z4, Z4
#define R4(at) (at), (at) + 1, (at) + 2, (at) + 3
#define R8(at) R4(at), R4((at) + 4)
#define R16(at) R8(at), R8((at) + 8)

// Which byte of the frame each byte of the key comes from. l3: where the IP header begins; a to d:
// the tags. What can't be moved as it is, is filled in later: TCP flags, IPv6's traffic class and
// label.
#define HEAD(l3, a, b, c, d, proto, tos, ttl, l4) \
	(l3) - 2, (l3)-1, a, b, c, d, proto, Z, R4(0), 4, 5, tos, ttl, R4(6), 10, 11, Z, Z, R4(l4)
#define IP4(l3, a, b, c, d)                                                                       \
	{                                                                                         \
		HEAD(l3, a, b, c, d, (l3) + 9, (l3) + 1, (l3) + 8, (l3) + 20), Z4, R8((l3) + 12), \
			Z8, Z8, Z8                                                                \
	}
#define IP6(l3, a, b, c, d)                                                                       \
	{                                                                                         \
		HEAD(l3, a, b, c, d, (l3) + 6, Z, (l3) + 7, (l3) + 40), Z, Z, (l3) + 2, (l3) + 3, \
			R16((l3) + 8), R16((l3) + 24)                                             \
	}

// By IP version and number of tags. IPv6 with two tags does not fit into 64 bytes.
static const struct {
	alignas(64) uint8_t from[64];
} kinds[2][3] = {
	{{IP4(14, Z, Z, Z, Z)}, {IP4(18, 14, 15, Z, Z)}, {IP4(22, 14, 15, 18, 19)}},
	{{IP6(14, Z, Z, Z, Z)}, {IP6(18, 14, 15, Z, Z)}},
};

// Presence bits of tags, by their number.
static const struct {
	alignas(64) uint64_t word[8];
} presence[3] = {{{0}}, {{UINT64_C(0x100000)}}, {{UINT64_C(0x1000100000)}}};

static inline void fill(const uint8_t *frame, uint32_t len, const struct sw_common *at,
			struct sw_key *key)
{
	__m512i from = _mm512_load_si512(kinds[at->is_ip6][at->n_tags].from);
	__m512i head = _mm512_maskz_loadu_epi8(_bzhi_u64(UINT64_MAX, RTE_MIN(len, 64u)), frame);
	__mmask64 take = ~_mm512_movepi8_mask(from); // Z has the sign bit
	__m512i bytes = _mm512_maskz_permutexvar_epi8(take, from, head);

	bytes = _mm512_or_si512(bytes, _mm512_load_si512(&presence[at->n_tags]));
	if (unlikely(at->tcp_flags != 0))
		bytes = _mm512_mask_set1_epi16(bytes, 1u << 11, (short)at->tcp_flags);
	if (unlikely(at->is_ip6)) {
		const uint8_t *l3 = frame + at->l3;
		uint8_t tos = (uint8_t)(l3[0] << 4 | l3[1] >> 4);

		bytes = _mm512_mask_set1_epi8(bytes, UINT64_C(1) << 14, (char)tos);
		bytes = _mm512_mask_set1_epi8(bytes, UINT64_C(1) << 29, (char)(l3[1] & 0x0f));
	}
	_mm512_store_si512(key, bytes);
}

uint32_t sw_key_burst_avx512(struct rte_mbuf *const *pkts, uint32_t n, uint64_t meta,
			     struct sw_key *keys, uint8_t *out_bad)
{
	uint32_t any = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *frame = rte_pktmbuf_mtod(pkts[i], const uint8_t *);
		uint32_t len = pkts[i]->data_len;
		struct sw_common at;

		keys[i].word[SW_KEY_META_WORD] = meta;
		out_bad[i] = SW_BAD_NONE;
		if (likely(len == pkts[i]->pkt_len && len >= SW_COMMON_LEAST_BYTES &&
			   sw_common_find(frame, len, &at) && at.n_tags < 3u - at.is_ip6)) {
			fill(frame, len, &at, &keys[i]);
			continue;
		}
		out_bad[i] = (uint8_t)sw_key_extract_rest(pkts[i], &keys[i]);
		any |= out_bad[i];
	}
	return any;
}
