// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Key extraction of any bytes, in one piece and cut into two segments, by every implementation that
// the CPU has: the same key, nothing read beyond.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "sw_impl.h"
#include "sw_impl_fast.h"
#include "sw_key_fast.h"

#define IN_PORT 7

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void segment(struct rte_mbuf *m, uint8_t *bytes, size_t len, struct rte_mbuf *next)
{
	memset(m, 0, sizeof(*m));
	m->buf_addr = bytes;
	m->data_len = (uint16_t)len;
	m->pkt_len = (uint32_t)len + (next ? next->pkt_len : 0);
	m->nb_segs = next ? 2 : 1;
	m->next = next;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	sw_impl_init();
	return 0;
}

// What the implementations say of a burst of both, whose keys are those of sw_key_extract_mbuf().
static void check_bursts(struct rte_mbuf *whole, struct rte_mbuf *cut, struct sw_key key,
			 struct sw_key cut_key, uint32_t bad, uint32_t cut_bad)
{
	struct rte_mbuf *pkts[] = {whole, cut, whole};
	struct sw_key keys[3];
	uint8_t bads[3];

	key.in_port = IN_PORT;
	cut_key.in_port = IN_PORT;
	for (uint32_t i = 0; i < sw_impls_n_usable; i++) {
		memset(keys, 0, sizeof(keys));
		sw_impls_usable[i]->extract(pkts, 3, key.word[SW_KEY_META_WORD], keys, bads);
		if ((bads[0] & ~SW_KEY_WIDE) != bad || (bads[1] & ~SW_KEY_WIDE) != cut_bad ||
		    (bads[2] & ~SW_KEY_WIDE) != bad)
			abort();
		// A runt's key means nothing.
		if (bad != SW_BAD_RUNT && (memcmp(&keys[0], &key, sizeof(key)) != 0 ||
					   memcmp(&keys[2], &key, sizeof(key)) != 0 ||
					   memcmp(&keys[1], &cut_key, sizeof(key)) != 0))
			abort();
	}
}

// The first byte says where to cut.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rte_mbuf whole, a, b;
	struct sw_key key, cut_key;
	uint8_t *bytes, *first, *second;
	uint32_t bad, cut_bad;
	size_t cut;

	if (size < 1 || size > 9000)
		return 0;
	cut = data[0] % size;
	size--;
	bytes = malloc(size > 0 ? size : 1);
	first = malloc(cut > 0 ? cut : 1);
	second = malloc(size > cut ? size - cut : 1);
	memcpy(bytes, data + 1, size);
	memcpy(first, data + 1, cut);
	memcpy(second, data + 1 + cut, size - cut);
	segment(&whole, bytes, size, NULL);
	segment(&b, second, size - cut, NULL);
	segment(&a, first, cut, &b);
	bad = sw_key_extract_mbuf(&whole, SW_DEPTH_FULL, &key);
	cut_bad = sw_key_extract_mbuf(&a, SW_DEPTH_FULL, &cut_key);
	check_bursts(&whole, &a, key, cut_key, bad, cut_bad);
	// Beyond the reach, a chain of headers may end differently.
	if (cut_bad != bad || memcmp(&cut_key, &key, sizeof(key)) != 0) {
		if (size <= SW_KEY_REACH_BYTES)
			abort();
	}
	if (bad >= SW_N_BAD || (bad == SW_BAD_RUNT) != (size < 14))
		abort();
	free(bytes);
	free(first);
	free(second);
	return 0;
}
