// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The table of learnt MAC addresses, control side: it alone puts addresses in and takes them out.
 * Times are seconds of CLOCK_MONOTONIC.
 */
#pragma once

#include <stdint.h>

#include "sw_mac_fast.h"

#define SW_MAC_AGING_S 300 // default of the setting mac-aging-time

struct sw_mac_info {
	uint8_t mac[6];
	uint16_t vid; // 0: untagged
	uint16_t port;
	uint32_t age_s;
};

struct sw_mac_counts {
	uint32_t n; // addresses now
	uint64_t n_learned;
	uint64_t n_moved;   // to another port
	uint64_t n_expired; // or gone with their port
	uint64_t n_evicted; // had to make room
	uint64_t n_dropped; // requests for whose place there was another, or no room
};

// NULL without memory.
struct sw_mac_table *sw_mac_create(void);
// No PMD uses it any more. Accepts NULL.
void sw_mac_destroy(struct sw_mac_table *table);

// Accepts NULL.
void sw_mac_set_aging(struct sw_mac_table *table, uint32_t aging_s);

// Carry out the requests; forget, once a second, what is too old. Call it some times a second.
void sw_mac_poll(struct sw_mac_table *table, uint32_t now_s);

// Forget what was seen on a port, requests included; 0: all. When a port goes, call it after the
// last PMD has left the port.
void sw_mac_flush(struct sw_mac_table *table, uint16_t port);

void sw_mac_counts(const struct sw_mac_table *table, struct sw_mac_counts *out_counts);

// Iterate: *at begins at 0. false: there is no other.
bool sw_mac_next(const struct sw_mac_table *table, uint32_t *at, uint32_t now_s,
		 struct sw_mac_info *out_info);
