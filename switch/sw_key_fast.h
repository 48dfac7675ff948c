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
