// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_mac.h"

#include <stdlib.h>
#include <string.h>

#define N_PLACES (SW_MAC_BUCKETS * SW_MAC_WAYS)

// The table and what only control knows of it.
struct owner {
	struct sw_mac_table table;
	struct sw_mac_counts counts;
	uint32_t swept_s;
	uint32_t n_of_port[UINT16_MAX + 1]; // addresses by the port that they were seen on
	uint16_t most; // the port with the most of them, or one that had until lately
	uint32_t at;   // where the search for a place to free goes on
};

static struct owner *owner_of(struct sw_mac_table *table)
{
	return (struct owner *)(void *)table;
}

struct sw_mac_table *sw_mac_create(void)
{
	struct owner *owner = aligned_alloc(64, (sizeof(*owner) + 63) & ~(size_t)63);

	if (!owner)
		return NULL;
	memset(owner, 0, sizeof(*owner)); // and no PMD has to fault it in
	sw_mac_set_aging(&owner->table, SW_MAC_AGING_S);
	return &owner->table;
}

void sw_mac_destroy(struct sw_mac_table *table)
{
	free(table);
}

void sw_mac_set_aging(struct sw_mac_table *table, uint32_t aging_s)
{
	if (table)
		atomic_store_explicit(&table->aging_s, aging_s, memory_order_relaxed);
}

static struct sw_mac_entry *place(struct sw_mac_table *table, uint32_t i)
{
	return &table->bucket[i / SW_MAC_WAYS][i % SW_MAC_WAYS];
}

static uint64_t id_of(const struct sw_mac_entry *entry)
{
	return atomic_load_explicit(&entry->id, memory_order_relaxed);
}

static uint32_t seen_s_of(const struct sw_mac_entry *entry)
{
	return atomic_load_explicit(&entry->seen_s, memory_order_relaxed);
}

static uint32_t port_of(const struct sw_mac_entry *entry)
{
	return atomic_load_explicit(&entry->port, memory_order_relaxed);
}

static uint32_t *n_of(struct owner *owner, const struct sw_mac_entry *entry)
{
	return &owner->n_of_port[port_of(entry) & UINT16_MAX];
}

static void forget(struct owner *owner, struct sw_mac_entry *entry)
{
	atomic_store_explicit(&entry->id, SW_MAC_FREE, memory_order_release);
	owner->counts.n--;
	--*n_of(owner, entry);
}

static void evict(struct owner *owner, struct sw_mac_entry *entry)
{
	forget(owner, entry);
	owner->counts.n_evicted++;
}

// Rather this one than that: its port has more addresses, or as many and this is older.
static bool is_worse(struct owner *owner, const struct sw_mac_entry *entry,
		     const struct sw_mac_entry *than)
{
	uint32_t n = *n_of(owner, entry), n_than = *n_of(owner, than);

	return n != n_than ? n > n_than : (int32_t)(seen_s_of(entry) - seen_s_of(than)) < 0;
}

// The table is full: an address of the port with the most goes, wherever it stands. There is one:
// the table is not empty, and those of that port will do.
static void evict_anywhere(struct owner *owner)
{
	for (;;) {
		struct sw_mac_entry *entry = place(&owner->table, owner->at);

		owner->at = (owner->at + 1) % N_PLACES;
		if (id_of(entry) != SW_MAC_FREE &&
		    *n_of(owner, entry) >= owner->n_of_port[owner->most]) {
			evict(owner, entry);
			return;
		}
	}
}

/*
 * A place for an address of port: a free one, or that of the port with the most addresses. A flood
 * of addresses at one port thus takes no place from another, whose hosts would else be flooded for.
 */
static struct sw_mac_entry *make_room(struct owner *owner, uint64_t id, uint16_t port)
{
	uint32_t hash = sw_mac_hash(id);
	struct sw_mac_entry *worst = NULL;

	for (unsigned int i = 0; i < 2 * SW_MAC_WAYS; i++) {
		struct sw_mac_entry *entry =
			&owner->table.bucket[sw_mac_bucket(hash, i / SW_MAC_WAYS)][i % SW_MAC_WAYS];

		if (id_of(entry) == SW_MAC_FREE) {
			if (owner->counts.n >= SW_MAC_MAX)
				evict_anywhere(owner);
			return entry;
		}
		if (!worst || is_worse(owner, entry, worst))
			worst = entry;
	}
	if (*n_of(owner, worst) < owner->n_of_port[port])
		return NULL;
	evict(owner, worst);
	return worst;
}

static void count_more(struct owner *owner, uint16_t port)
{
	if (++owner->n_of_port[port] > owner->n_of_port[owner->most])
		owner->most = port;
}

// Many may have gone.
static void find_most(struct owner *owner)
{
	for (uint32_t i = 0; i <= UINT16_MAX; i++) {
		if (owner->n_of_port[i] > owner->n_of_port[owner->most])
			owner->most = (uint16_t)i;
	}
}

static void learn(struct owner *owner, uint64_t id, uint16_t port, uint32_t now_s)
{
	uint32_t old_port;
	struct sw_mac_entry *entry = sw_mac_find(&owner->table, id, &old_port);

	if (entry) {
		owner->counts.n_moved += old_port != port;
		--*n_of(owner, entry);
		count_more(owner, port);
		atomic_store_explicit(&entry->port, port, memory_order_relaxed);
		atomic_store_explicit(&entry->seen_s, now_s, memory_order_relaxed);
		return;
	}
	entry = make_room(owner, id, port);
	if (!entry) {
		owner->counts.n_dropped++;
		return;
	}
	atomic_store_explicit(&entry->port, port, memory_order_relaxed);
	atomic_store_explicit(&entry->seen_s, now_s, memory_order_relaxed);
	atomic_store_explicit(&entry->id, id, memory_order_release); // N1
	owner->counts.n++;
	count_more(owner, port);
	owner->counts.n_learned++;
}

static void expire(struct owner *owner, uint32_t now_s)
{
	uint32_t aging_s = atomic_load_explicit(&owner->table.aging_s, memory_order_relaxed);

	if (owner->swept_s == now_s)
		return;
	owner->swept_s = now_s;
	for (uint32_t i = 0; i < N_PLACES; i++) {
		struct sw_mac_entry *entry = place(&owner->table, i);
		int32_t age_s = (int32_t)(now_s - seen_s_of(entry));

		if (id_of(entry) == SW_MAC_FREE || age_s <= 0 || (uint32_t)age_s <= aging_s)
			continue;
		forget(owner, entry);
		owner->counts.n_expired++;
	}
	find_most(owner);
}

void sw_mac_poll(struct sw_mac_table *table, uint32_t now_s)
{
	struct owner *owner = owner_of(table);

	for (uint32_t i = 0; i < SW_MAC_REQUESTS; i++) {
		struct sw_mac_request *request = &table->request[i];
		uint64_t id = atomic_load_explicit(&request->id, memory_order_acquire); // N4
		uint32_t port;

		if (id == SW_MAC_FREE || id == SW_MAC_CLAIMED)
			continue;
		port = atomic_load_explicit(&request->port, memory_order_relaxed);
		learn(owner, id, (uint16_t)port, now_s);
		atomic_store_explicit(&request->id, SW_MAC_FREE, memory_order_release); // N5
	}
	expire(owner, now_s);
}

// What PMDs asked for before is forgotten, too: a port that has gone must not be learned after it.
static void drop_requests(struct sw_mac_table *table, uint16_t port)
{
	for (uint32_t i = 0; i < SW_MAC_REQUESTS; i++) {
		struct sw_mac_request *request = &table->request[i];
		uint64_t id = atomic_load_explicit(&request->id, memory_order_acquire); // N4

		if (id == SW_MAC_FREE || id == SW_MAC_CLAIMED ||
		    (port && atomic_load_explicit(&request->port, memory_order_relaxed) != port))
			continue;
		atomic_store_explicit(&request->id, SW_MAC_FREE, memory_order_release); // N5
	}
}

void sw_mac_flush(struct sw_mac_table *table, uint16_t port)
{
	drop_requests(table, port);
	for (uint32_t i = 0; i < N_PLACES; i++) {
		struct sw_mac_entry *entry = place(table, i);

		if (id_of(entry) == SW_MAC_FREE || (port && port_of(entry) != port))
			continue;
		forget(owner_of(table), entry);
		owner_of(table)->counts.n_expired++;
	}
	find_most(owner_of(table));
}

void sw_mac_counts(const struct sw_mac_table *table, struct sw_mac_counts *out_counts)
{
	*out_counts = ((const struct owner *)(const void *)table)->counts;
	for (uint32_t i = 0; i < SW_MAC_REQUESTS; i++)
		out_counts->n_dropped +=
			atomic_load_explicit(&table->request[i].n_dropped, memory_order_relaxed);
}

bool sw_mac_next(const struct sw_mac_table *table, uint32_t *at, uint32_t now_s,
		 struct sw_mac_info *out_info)
{
	for (; *at < N_PLACES; ++*at) {
		const struct sw_mac_entry *entry =
			&table->bucket[*at / SW_MAC_WAYS][*at % SW_MAC_WAYS];
		uint64_t id = id_of(entry);
		int32_t age_s = (int32_t)(now_s - seen_s_of(entry));

		if (id == SW_MAC_FREE)
			continue;
		for (unsigned int i = 0; i < 6; i++)
			out_info->mac[i] = (uint8_t)(id >> (56 - 8 * i));
		out_info->vid = id & 0x0fff;
		out_info->port = (uint16_t)atomic_load_explicit(&entry->port, memory_order_relaxed);
		out_info->age_s = age_s > 0 ? (uint32_t)age_s : 0;
		++*at;
		return true;
	}
	return false;
}
