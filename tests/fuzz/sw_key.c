// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Key extraction of any bytes, in one piece and cut into two segments: the same key, nothing read beyond.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "sw_key_fast.h"

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

// The first byte says where to cut.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rte_mbuf whole, a, b;
	struct sw_key key, cut_key;
	uint8_t *bytes, *first, *second;
	uint32_t bad;
	size_t cut;

	if (size < 1 || size > 9000)
		return 0;
	cut = data[0] % size;
	size--;
	bytes = malloc(size + 1);
	first = malloc(cut + 1);
	second = malloc(size - cut + 1);
	memcpy(bytes, data + 1, size);
	memcpy(first, data + 1, cut);
	memcpy(second, data + 1 + cut, size - cut);
	segment(&whole, bytes, size, NULL);
	segment(&b, second, size - cut, NULL);
	segment(&a, first, cut, &b);
	bad = sw_key_extract_mbuf(&whole, SW_DEPTH_FULL, &key);
	// Beyond the reach, a chain of headers may end differently.
	if (sw_key_extract_mbuf(&a, SW_DEPTH_FULL, &cut_key) != bad ||
	    memcmp(&cut_key, &key, sizeof(key)) != 0) {
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
