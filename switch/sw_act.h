// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Datapath actions: what a megaflow does to its packets, flat, in order. The translation of rules
 * (sw_xlate_fast.h) writes them, the packet path executes them. A list without an action drops, for
 * the reason that stands beside it.
 */
#pragma once

#include <stdint.h>

#define SW_ACT_OUTPUT 1 // to port, at most max_len bytes of it
#define SW_ACT_FLOOD 2  // to every port but the one that it came from, at most max_len bytes
#define SW_ACT_NORMAL 3 // learn and forward by MAC address and VLAN
#define SW_ACT_SET 4 // bytes of the key at offset become value where mask has ones; the packet too
#define SW_ACT_PUSH_VLAN 5 // a tag with tpid and VID, PCP 0
#define SW_ACT_POP_VLAN 6
#define SW_ACT_DEC_TTL 7 // a packet whose TTL would become 0 goes no further
#define SW_ACT_RECIRC 8  // extract and look up again with recirc_id; last in its list

#define SW_ACT_SET_BYTES 16

struct sw_act {
	uint8_t type;    // SW_ACT_*
	uint8_t n_bytes; // SET: of value and mask
	uint16_t port;   // OUTPUT: ofport; the input port is meant when it says so
	union {
		uint32_t max_len;   // OUTPUT, FLOOD; 0: all of it
		uint32_t recirc_id; // RECIRC
		uint32_t offset;    // SET: in struct sw_key
		struct {
			uint16_t tpid; // PUSH_VLAN, network order
			uint16_t tci;  // PUSH_VLAN, network order, without the presence bit
		};
	};
	uint8_t value[SW_ACT_SET_BYTES]; // SET, network order
	uint8_t mask[SW_ACT_SET_BYTES];
};
