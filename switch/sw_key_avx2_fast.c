// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Key extraction with AVX2: common frames by shuffles of 16 bytes.
#include <immintrin.h>

#include <rte_mbuf.h>

#include "sw_key_common_fast.h"
#include "sw_key_fast.h"

#define Z -1 // a byte of 0

static inline __m128i load16(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static inline void store(struct sw_key *key, unsigned int half, __m128i low, __m128i high)
{
	_mm256_store_si256((__m256i *)(void *)&key->word[half * 4], _mm256_set_m128i(high, low));
}

static inline uint64_t tags_of(const uint8_t *frame, uint32_t n)
{
	uint64_t first = 0, second = 0;

	if (likely(n == 0))
		return 0;
	first = sw_load16(frame + 14) | RTE_BE16(0x1000);
	if (n > 1)
		second = sw_load16(frame + 18) | RTE_BE16(0x1000);
	return first << 16 | second << 32;
}

// From the ethertype on: bytes 0 and 1 are dl_type, 2 and on the IP header.
static inline __m128i from_l3(const uint8_t *l3, bool is_ip6)
{
	const __m128i ip4 = _mm_setr_epi8(0, 1, Z, Z, Z, Z, 11, Z, Z, Z, Z, Z, Z, Z, 3, 10);
	const __m128i ip6 = _mm_setr_epi8(0, 1, Z, Z, Z, Z, 8, Z, Z, Z, Z, Z, Z, Z, Z, 9);
	__m128i head = load16(l3 - 2);

	if (likely(!is_ip6))
		return _mm_shuffle_epi8(head, ip4);
	head = _mm_shuffle_epi8(head, ip6);
	return _mm_insert_epi8(head, (uint8_t)(l3[0] << 4 | l3[1] >> 4), 14);
}

static inline void fill(const uint8_t *frame, const struct sw_common *at, struct sw_key *key)
{
	const __m128i to_dst = _mm_setr_epi8(Z, Z, Z, Z, Z, Z, Z, Z, 0, 1, 2, 3, 4, 5, Z, Z);
	const __m128i to_src = _mm_setr_epi8(6, 7, 8, 9, 10, 11, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z);
	const uint8_t *l3 = frame + at->l3;
	__m128i macs = load16(frame);
	__m128i first = _mm_or_si128(_mm_shuffle_epi8(macs, to_dst), from_l3(l3, at->is_ip6));
	__m128i second = _mm_shuffle_epi8(macs, to_src);
	uint32_t ports;

	first = _mm_or_si128(first, _mm_cvtsi64_si128((long long)tags_of(frame, at->n_tags)));
	memcpy(&ports, frame + at->l4, sizeof(ports));
	second = _mm_insert_epi32(second, (int)ports, 2);
	second = _mm_insert_epi16(second, at->tcp_flags, 3);
	if (likely(!at->is_ip6)) {
		store(key, 0, first, second);
		store(key, 1, _mm_loadl_epi64((const __m128i *)(const void *)(l3 + 12)),
		      _mm_setzero_si128());
		return;
	}
	memcpy(&ports, l3, sizeof(ports));
	second = _mm_insert_epi32(second, (int)(ports & RTE_BE32(0x000fffff)), 3);
	store(key, 0, first, second);
	store(key, 1, load16(l3 + 8), load16(l3 + 24));
}

uint32_t sw_key_burst_avx2(struct rte_mbuf *const *pkts, uint32_t n, uint64_t meta,
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
			   sw_common_find(frame, len, &at))) {
			fill(frame, &at, &keys[i]);
			continue;
		}
		out_bad[i] = (uint8_t)sw_key_extract_rest(pkts[i], &keys[i]);
		any |= out_bad[i];
	}
	return any;
}
