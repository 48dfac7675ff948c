// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The exact-match cache of one PMD: from a whole key to its megaflow, 2-way associative. Written
 * and read by that PMD alone.
 *
 * Tags and keys stand apart: a lookup that misses touches a tag line alone (all tags are 128 KiB).
 * A hit is always a compare of the whole key, and the flow must be in the life that it had at
 * insertion.
 */
#pragma once

#include <nmmintrin.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "sw_key.h"
#include "sw_mega_fast.h"

#define SW_EMC_ENTRIES 8192
#define SW_EMC_WAYS 2
#define SW_EMC_SWEEP 32 // entries that a sweep looks at

#define SW_EMC_ID UINT32_C(0x7fffffff)
#define SW_EMC_WIDE UINT32_C(0x80000000)         // the key has more in its second line than word 8
#define SW_EMC_META UINT64_C(0xffffffff0000ffff) // where word 8 has something

struct sw_emc_tag {
	uint32_t hash;
	uint32_t id;   // of the flow, 0: free; with SW_EMC_WIDE
	uint64_t meta; // word 8 of the key; bits 16 to 31 are the flow
};

struct sw_emc_line {
	alignas(64) uint64_t word[SW_KEY_LINE_WORDS];
};

struct sw_emc {
	alignas(64) struct sw_emc_tag tags[SW_EMC_ENTRIES];
	struct sw_emc_line first[SW_EMC_ENTRIES];
	struct sw_emc_line second[SW_EMC_ENTRIES]; // of wide keys
	uint32_t n_entries;
	uint32_t next_victim;
	uint32_t sweep_at;
};

static inline struct sw_emc_tag *sw_emc_set(struct sw_emc *emc, uint32_t hash)
{
	return &emc->tags[(hash & (SW_EMC_ENTRIES / SW_EMC_WAYS - 1)) * SW_EMC_WAYS];
}

static inline uint32_t sw_emc_flow(const struct sw_emc_tag *tag)
{
	return (uint32_t)(tag->meta >> 16) & 0xffff;
}

static inline bool sw_emc_is_tag(const struct sw_emc_tag *tag, uint32_t hash, uint64_t meta)
{
	return tag->hash == hash && ((tag->meta ^ meta) & SW_EMC_META) == 0 && tag->id != 0;
}

/*
 * Hash of a key, for EMC and SMC: the device's if it has one, else of addresses, protocol and
 * ports. Without ports in fragments, so that all of a datagram are alike, and without protocol,
 * which later fragments of IPv6 do not have. Word 8 is in it: a recirculated packet hashes
 * differently each time.
 */
static inline uint32_t sw_key_hash(const struct sw_key *key, const struct rte_mbuf *mbuf)
{
	uint64_t a = key->word[SW_KEY_META_WORD];
	uint64_t b = key->word[4];
	uint64_t types = key->word[0];
	uint64_t ports = key->word[3] & UINT32_MAX;

	if ((mbuf->ol_flags & RTE_MBUF_F_RX_RSS_HASH) && mbuf->hash.rss != 0)
		return (uint32_t)_mm_crc32_u64(a, mbuf->hash.rss);
	if (unlikely(key->nw_frag != 0)) {
		types &= UINT64_C(0x0000ffffffffffff); // without nw_proto and nw_frag
		ports = 0;
	}
	a = _mm_crc32_u64(a, types);
	b = _mm_crc32_u64(b, key->word[5]);
	a = _mm_crc32_u64(a, ports);
	b = _mm_crc32_u64(b, key->word[6]);
	b = _mm_crc32_u64(b, key->word[7]);
	if (unlikely(key->word[4] == 0)) { // not IP
		a = _mm_crc32_u64(a, key->word[1]);
		b = _mm_crc32_u64(b, key->word[2]);
	}
	return (uint32_t)_mm_crc32_u64(a, b);
}

// One key. SW_MEGA_NONE: not there, or for a flow that is dead.
uint32_t sw_emc_find(struct sw_emc *emc, const struct sw_mega *mega, const struct sw_key *key,
		     uint32_t hash, bool is_wide);

void sw_emc_insert(struct sw_emc *emc, const struct sw_mega *mega, const struct sw_key *key,
		   uint32_t hash, bool is_wide, uint32_t flow);

// A few entries: those of dead flows become free.
void sw_emc_sweep(struct sw_emc *emc, const struct sw_mega *mega);

static inline bool sw_emc_is_half_full(const struct sw_emc *emc)
{
	return emc->n_entries > SW_EMC_ENTRIES / 2;
}
