// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Megaflows of one PMD: a pool of flows, and per input port the subtables (one per mask) that find
 * them. Written by that PMD alone; control copies flows for a dump (sw_mega.h).
 *
 * A flow's first cache line holds what a hit needs: its masked words (as far as they fit), counters
 * and verdict. The rest (key of the packet that made it, actions, rules) stands in a second array.
 * Flows of all subtables share one table of buckets; a bucket is a cache line of seven entries. A
 * flow that finds no place in the MAX_PROBES buckets from its own on is not installed, so that no
 * choice of packets makes a lookup longer than that.
 *
 * Each input port has two classifiers: of packets as received, and of recirculated ones, whose
 * masks include word 8. Within a burst only flows of an older generation are deleted
 * (sw_upcall_fast.c); a flow that is alive and of the present generation stays until the next
 * sweep.
 */
#pragma once

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sw_act.h"
#include "sw_key.h"
#include "sw_plan_fast.h"
#include "sw_xlate_fast.h"

#define SW_MEGA_MAX_FLOWS 65536
#define SW_MEGA_TRANSIENT SW_BURST  // further flows, for packets of one burst
#define SW_MEGA_MAX_SHAPES 4096     // subtables of a PMD
#define SW_MEGA_MAX_PORT_SHAPES 128 // of an input port, and as many for its recirculated packets
#define SW_MEGA_MAX_BIG 2048        // flows with more actions or rules than fit into a flow
#define SW_MEGA_MAX_PROBES 8
#define SW_MEGA_BUCKET_ENTRIES 7
#define SW_MEGA_SMALL_ACTS 2
#define SW_MEGA_SMALL_SLOTS 4
#define SW_MEGA_NONE UINT32_MAX

// What a flow does with its packets: an ofport to send them to, or one of these.
#define SW_VERDICT_ACTIONS 0xfff0 // see its list
#define SW_VERDICT_DROP0 0xffe0   // to 0xffef: drop, PMDP_DROP_* added

struct sw_megaflow {
	alignas(64) uint32_t id;  // of this life of the slot; 0: free
	uint32_t generation;      // of the tables that it agrees with, lower half
	_Atomic uint64_t packets; // W: PMD, relaxed
	_Atomic uint64_t bytes;   // W: PMD, relaxed
	_Atomic uint32_t used;    // when last hit, SW_MEGA_USED_SHIFT; W: PMD, relaxed
	uint16_t verdict;
	uint16_t subtable;
	uint64_t words[SW_KEY_WORDS]; // of the key, masked; those that the subtable names
};

// Unit of struct sw_megaflow.used: so many bits of the beat clock are left out.
#define SW_MEGA_USED_SHIFT 16

struct sw_mega_big {
	struct sw_act acts[SW_XLATE_MAX_ACTS];
	uint32_t slots[SW_XLATE_MAX_RULES];
};

struct sw_mega_cold {
	alignas(64) _Atomic uint64_t seq; // W: PMD; odd while the flow is made or ended (S1)
	uint64_t created_ticks;
	uint64_t pushed_packets; // already added to the rules
	uint64_t pushed_bytes;
	uint32_t next; // free list
	uint32_t big;  // SW_MEGA_NONE: the lists are below
	uint16_t n_acts;
	uint16_t n_slots;
	uint32_t drop_reason;
	uint32_t slots[SW_MEGA_SMALL_SLOTS];
	struct sw_act acts[SW_MEGA_SMALL_ACTS];
	struct sw_key key; // of the packet that made it
};

struct sw_shape {
	alignas(64) uint32_t
		n_words;  // of the mask that are not 0; without word 8 for packets as received
	uint32_t n_flows; // 0: the subtable is free
	uint32_t flows;   // all of them, one xor the next: of a single flow, that flow
	uint32_t hits;    // since the last sorting
	uint32_t seed;    // of its hashes
	uint16_t classifier;
	uint16_t next; // free list
	uint8_t index[SW_KEY_WORDS];
	uint64_t mask[SW_KEY_WORDS]; // those n_words words
};

struct sw_bucket {
	alignas(64) uint64_t n_passed; // flows that hash here and stand in a later bucket
	// Lower half: the hash; upper half: flow + 1. No holes: 0 ends the list.
	uint64_t entries[SW_MEGA_BUCKET_ENTRIES];
};

struct sw_classifier {
	uint16_t in_port; // whose flows these are
	uint16_t n;
	uint32_t emc_skip; // megaflow hits until the next insertion into the EMC
	uint16_t order[SW_MEGA_MAX_PORT_SHAPES]; // subtables, by hits
};

struct sw_mega {
	struct sw_megaflow *flows; // max_flows of them, then SW_MEGA_TRANSIENT
	struct sw_mega_cold *cold;
	struct sw_mega_big *bigs;
	struct sw_shape *shapes;
	struct sw_bucket *buckets;
	struct sw_classifier *classifiers; // port index * 2, + 1 for recirculated packets
	uint32_t max_flows;
	uint32_t bucket_mask;
	uint32_t n_flows;
	uint32_t n_shapes;
	uint32_t n_high; // no flow in use from here on
	uint32_t next_id;
	uint32_t free_flow; // heads of free lists
	uint32_t free_big;
	uint32_t free_subtable;
};

static inline struct sw_classifier *sw_mega_classifier(const struct sw_mega *mega, uint16_t port,
						       bool is_recirculated)
{
	return &mega->classifiers[port * 2u + is_recirculated];
}

static inline const struct sw_act *sw_mega_acts(const struct sw_mega *mega, uint32_t flow)
{
	const struct sw_mega_cold *cold = &mega->cold[flow];

	return cold->big == SW_MEGA_NONE ? cold->acts : mega->bigs[cold->big].acts;
}

static inline const uint32_t *sw_mega_slots(const struct sw_mega *mega, uint32_t flow)
{
	const struct sw_mega_cold *cold = &mega->cold[flow];

	return cold->big == SW_MEGA_NONE ? cold->slots : mega->bigs[cold->big].slots;
}

// Does the flow match the key? Also right for a flow that has taken a dead one's place.
static inline bool sw_mega_matches(const struct sw_mega *mega, uint32_t flow, uint32_t classifier,
				   const struct sw_key *key)
{
	const struct sw_megaflow *f = &mega->flows[flow];
	const struct sw_shape *sub = &mega->shapes[f->subtable];
	uint64_t differs = (uint64_t)(f->id == 0) | (sub->classifier ^ classifier);

	for (uint32_t i = 0; i < sub->n_words; i++)
		differs |= (key->word[sub->index[i]] & sub->mask[i]) ^ f->words[i];
	return differs == 0;
}

// One key. SW_MEGA_NONE: no flow. Adds the subtables that were visited to *n_visited.
uint32_t sw_mega_find(const struct sw_mega *mega, const struct sw_classifier *cls,
		      const struct sw_key *key, uint64_t *n_visited);

// Why a flow was not installed.
#define SW_MEGA_ADDED 0
#define SW_MEGA_FULL 1     // flow-limit, or no room for its hash or lists
#define SW_MEGA_TOO_MANY 2 // shapes at this port

/*
 * Install what a translation says for the key; limit is the greatest number of flows. On
 * SW_MEGA_ADDED, *out_flow.
 */
uint32_t sw_mega_add(struct sw_mega *mega, struct sw_classifier *cls, const struct sw_key *key,
		     const struct sw_xlate *xlate, uint32_t generation, uint64_t now_ticks,
		     uint32_t limit, uint32_t *out_flow);

// The transient flow n (below SW_MEGA_TRANSIENT): as a flow, but never found by a lookup.
uint32_t sw_mega_transient(struct sw_mega *mega, uint32_t n, const struct sw_xlate *xlate);

// The flow ends. Its counts have been pushed.
void sw_mega_delete(struct sw_mega *mega, uint32_t flow);

// Is what a translation says what the flow does already?
bool sw_mega_is_same(const struct sw_mega *mega, uint32_t flow, const struct sw_xlate *xlate);

// Order the subtables of a classifier by hits.
void sw_mega_sort(struct sw_mega *mega, struct sw_classifier *cls);
