// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Key extraction, on the packet path: no allocation, no lock, no system call, no log.
 */
#pragma once

#include <stdint.h>

#include "sw_key.h"

struct rte_mbuf;

// What must be readable in one piece: the deepest headers that are looked at. A longer chain of
// IPv6 extension headers is counted and has no ports.
#define SW_KEY_REACH_BYTES 512
#define SW_KEY_MAX_IP6_HEADERS 8

/*
 * Fill *out_key from a frame of len bytes, of which the first avail are readable: all of them, or
 * at least SW_KEY_REACH_BYTES. Nothing beyond avail is read. Returns SW_BAD_*; the key is filled in
 * either case (all 0 for a runt).
 */
uint32_t sw_key_extract(const uint8_t *frame, uint32_t avail, uint32_t len, uint32_t depth,
			struct sw_key *out_key);

// The same from an mbuf; headers that are spread over segments are gathered first.
uint32_t sw_key_extract_mbuf(const struct rte_mbuf *mbuf, uint32_t depth, struct sw_key *out_key);

// In the result of a burst: more of the second line is used than word 8.
#define SW_KEY_WIDE 0x80

/*
 * The keys of a burst. On entry, words 9 to 15 of each key are 0; whoever sees SW_KEY_WIDE in
 * out_bad[i] makes them 0 again before the key is used for the next packet. Word 8 becomes meta.
 * out_bad[i] is SW_BAD_*, perhaps with SW_KEY_WIDE; returns all of them or'ed.
 */
typedef uint32_t sw_key_burst_fn(struct rte_mbuf *const *pkts, uint32_t n, uint64_t meta,
				 struct sw_key *keys, uint8_t *out_bad);

sw_key_burst_fn sw_key_burst_scalar;
sw_key_burst_fn sw_key_burst_avx2;
sw_key_burst_fn sw_key_burst_avx512;

// For the variants: a frame that is not of the common kinds. Writes all words but word 8.
uint32_t sw_key_extract_rest(const struct rte_mbuf *mbuf, struct sw_key *key);
