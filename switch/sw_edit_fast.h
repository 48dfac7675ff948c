// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Changes of a packet's headers, with the checksums that depend on them. The packet is writable and
 * its headers stand in its first segment (sw_exec_fast.c sees to that). A change of a header that
 * the packet does not have, or that is malformed, has no effect.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sw_act.h"
#include "sw_key.h"

struct rte_mbuf;

// Where the headers are; offset 0: there is none.
struct sw_headers {
	uint32_t l3;
	uint32_t l4;
	uint16_t dl_type;
	uint8_t nw_proto;
	uint8_t nw_frag;
	uint8_t n_tags;
	bool is_routed; // the IPv6 packet has further stations before its destination
};

void sw_edit_find(const struct rte_mbuf *mbuf, struct sw_headers *out_headers);

void sw_edit_set(struct rte_mbuf *mbuf, const struct sw_headers *headers, const struct sw_act *act);

// False: the TTL would become 0.
bool sw_edit_dec_ttl(struct rte_mbuf *mbuf, const struct sw_headers *headers);

// False: no room before the packet.
bool sw_edit_push_vlan(struct rte_mbuf *mbuf, uint16_t tpid, uint16_t tci);
void sw_edit_pop_vlan(struct rte_mbuf *mbuf);
