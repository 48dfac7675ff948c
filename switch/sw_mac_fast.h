// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * MAC learning, as the packet path sees it: where an address was seen last, and asking control to
 * remember where.
 *
 * Only control (sw_mac.h) puts addresses in and takes them out. PMDs read, freshen the time stamp
 * of a known address, and leave a request for a new or moved one in a small table of requests,
 * where each address of a port has one place: it asks once until control has looked, a full place
 * is counted as a drop, and no PMD ever waits for another or for control. A lost request comes
 * again with the next packet. Ports have places of their own: a flood of addresses at one of them
 * does not keep those of others from being learned.
 *
 * N1, release: control stores port and time of an address, then its id. N2, acquire: a reader sees
 * the id, reads the port, and then finds the id unchanged; so the port is this address's. N3,
 * release: a PMD that has claimed a request's place stores the port, then the id. N4, acquire:
 * control sees the id, then the port; it frees the place with N5, release, which the next claim
 * (acquire) sees.
 */
#pragma once

#include <nmmintrin.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SW_MAC_UNKNOWN 0xffff

#define SW_MAC_MAX 8192 // addresses
#define SW_MAC_WAYS 4   // of a bucket, which is one cache line
#define SW_MAC_BUCKETS 4096
#define SW_MAC_SHARES 64 // of the requests: ports that take none from each other
#define SW_MAC_PORT_REQUESTS 256
#define SW_MAC_REQUESTS (SW_MAC_SHARES * SW_MAC_PORT_REQUESTS)

#define SW_MAC_FREE UINT64_C(0)
#define SW_MAC_CLAIMED UINT64_C(1) // a PMD is writing it

struct sw_mac_entry {
	_Atomic uint64_t id;     // W: control, release (N1)
	_Atomic uint32_t port;   // W: control, relaxed; ofport
	_Atomic uint32_t seen_s; // W: control, PMDs, relaxed
};

struct sw_mac_request {
	_Atomic uint64_t id;        // W: PMDs, acquire, release (N3); control, release (N5)
	_Atomic uint32_t port;      // W: the PMD that has claimed it, relaxed
	_Atomic uint32_t n_dropped; // W: PMDs, relaxed add
};

struct sw_mac_table {
	alignas(64) _Atomic uint32_t aging_s; // W: control, relaxed
	alignas(64) struct sw_mac_entry bucket[SW_MAC_BUCKETS][SW_MAC_WAYS];
	alignas(64) struct sw_mac_request request[SW_MAC_REQUESTS];
};

// Address and VLAN in one word; never FREE or CLAIMED.
static inline uint64_t sw_mac_id(const uint8_t mac[6], uint16_t vid)
{
	uint64_t id = 0;

	for (unsigned int i = 0; i < 6; i++)
		id = id << 8 | mac[i];
	return id << 16 | 0x8000 | (vid & 0x0fff);
}

static inline uint32_t sw_mac_hash(uint64_t id)
{
	return (uint32_t)_mm_crc32_u64(0, id);
}

// The two buckets in which an address may stand.
static inline uint32_t sw_mac_bucket(uint32_t hash, unsigned int which)
{
	return (which ? hash >> 16 ^ hash << 3 : hash) % SW_MAC_BUCKETS;
}

// Where an address stands, NULL if it is not known; and the port that it was seen on.
static inline struct sw_mac_entry *sw_mac_find(struct sw_mac_table *table, uint64_t id,
					       uint32_t *out_port)
{
	uint32_t hash = sw_mac_hash(id);

	for (unsigned int i = 0; i < 2 * SW_MAC_WAYS; i++) {
		struct sw_mac_entry *entry =
			&table->bucket[sw_mac_bucket(hash, i / SW_MAC_WAYS)][i % SW_MAC_WAYS];

		if (atomic_load_explicit(&entry->id, memory_order_acquire) != id) // N2
			continue;
		*out_port = atomic_load_explicit(&entry->port, memory_order_relaxed);
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load_explicit(&entry->id, memory_order_relaxed) == id)
			return entry;
	}
	return NULL;
}

// The ofport that an address was seen on, or SW_MAC_UNKNOWN. now_s: CLOCK_MONOTONIC.
static inline uint16_t sw_mac_lookup(struct sw_mac_table *table, const uint8_t mac[6], uint16_t vid,
				     uint32_t now_s)
{
	uint32_t port, age_s;
	struct sw_mac_entry *entry = sw_mac_find(table, sw_mac_id(mac, vid), &port);

	if (!entry)
		return SW_MAC_UNKNOWN;
	// A stamp that another PMD has just set may be a second ahead.
	age_s = now_s + 1 - atomic_load_explicit(&entry->seen_s, memory_order_relaxed);
	return age_s > atomic_load_explicit(&table->aging_s, memory_order_relaxed) + 1
		       ? SW_MAC_UNKNOWN
		       : (uint16_t)port;
}

// Addresses of protocols between neighbours (spanning tree, LACP, LLDP, pause): no bridge forwards
// them.
static inline bool sw_mac_is_reserved(const uint8_t mac[6])
{
	static const uint8_t begin[5] = {0x01, 0x80, 0xc2, 0x00, 0x00};

	return memcmp(mac, begin, sizeof(begin)) == 0 && mac[5] < 0x10;
}

static inline uint32_t sw_mac_request_at(uint64_t id, uint16_t port)
{
	return port % SW_MAC_SHARES * SW_MAC_PORT_REQUESTS + sw_mac_hash(id) % SW_MAC_PORT_REQUESTS;
}

static inline void sw_mac_ask(struct sw_mac_table *table, uint64_t id, uint16_t port)
{
	struct sw_mac_request *request = &table->request[sw_mac_request_at(id, port)];
	uint64_t there = atomic_load_explicit(&request->id, memory_order_relaxed);

	if (there == id)
		return;
	if (there != SW_MAC_FREE ||
	    !atomic_compare_exchange_strong_explicit(&request->id, &there, SW_MAC_CLAIMED,
						     memory_order_acquire, memory_order_relaxed)) {
		atomic_fetch_add_explicit(&request->n_dropped, 1, memory_order_relaxed);
		return;
	}
	atomic_store_explicit(&request->port, port, memory_order_relaxed);
	atomic_store_explicit(&request->id, id, memory_order_release); // N3
}

// A packet with this source address has come from port.
static inline void sw_mac_learn(struct sw_mac_table *table, const uint8_t mac[6], uint16_t vid,
				uint16_t port, uint32_t now_s)
{
	uint64_t id = sw_mac_id(mac, vid);
	struct sw_mac_entry *entry;
	uint32_t known_port;

	if ((mac[0] & 1) || id >> 16 == 0)
		return; // a group, or nobody
	entry = sw_mac_find(table, id, &known_port);
	if (!entry || known_port != port)
		sw_mac_ask(table, id, port);
	else if (atomic_load_explicit(&entry->seen_s, memory_order_relaxed) != now_s)
		atomic_store_explicit(&entry->seen_s, now_s, memory_order_relaxed);
}
