// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Making and ending megaflows.
#include "sw_mega_fast.h"

#include <string.h>

#include "pmdp_abi.h"
#include "sw_mega_hash_fast.h"

// S1: readers of the slot see an odd number while it changes.
static void change_begin(struct sw_mega_cold *cold)
{
	uint64_t seq = atomic_load_explicit(&cold->seq, memory_order_relaxed);

	atomic_store_explicit(&cold->seq, seq | 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
}

static void change_end(struct sw_mega_cold *cold)
{
	uint64_t seq = atomic_load_explicit(&cold->seq, memory_order_relaxed);

	atomic_store_explicit(&cold->seq, (seq | 1) + 1, memory_order_release);
}

static bool is_recirculated(const struct sw_mega *mega, const struct sw_classifier *cls)
{
	return ((cls - mega->classifiers) & 1) != 0;
}

// Word 8 needs no look where the classifier says all of it.
static bool is_named(const struct sw_key *mask, uint32_t word, bool has_meta)
{
	return mask->word[word] != 0 && (word != SW_KEY_META_WORD || has_meta);
}

static bool is_mask_of(const struct sw_shape *sub, const struct sw_key *mask, bool has_meta)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < SW_KEY_WORDS; i++) {
		if (!is_named(mask, i, has_meta))
			continue;
		if (n == sub->n_words || sub->index[n] != i || sub->mask[n] != mask->word[i])
			return false;
		n++;
	}
	return n == sub->n_words;
}

static uint32_t subtable_new(struct sw_mega *mega, struct sw_classifier *cls,
			     const struct sw_key *mask)
{
	uint32_t at = mega->free_subtable;
	struct sw_shape *sub;

	if (at == SW_MEGA_MAX_SHAPES || cls->n == SW_MEGA_MAX_PORT_SHAPES)
		return SW_MEGA_NONE;
	sub = &mega->shapes[at];
	mega->free_subtable = sub->next;
	sub->n_words = 0;
	sub->hits = 0;
	sub->n_flows = 0;
	sub->flows = 0;
	sub->seed = (at + 1) * UINT32_C(0x9e3779b1);
	sub->classifier = (uint16_t)(cls - mega->classifiers);
	for (uint8_t i = 0; i < SW_KEY_WORDS; i++) {
		if (!is_named(mask, i, is_recirculated(mega, cls)))
			continue;
		sub->index[sub->n_words] = i;
		sub->mask[sub->n_words++] = mask->word[i];
	}
	cls->order[cls->n++] = (uint16_t)at;
	mega->n_shapes++;
	return at;
}

static uint32_t subtable_for(struct sw_mega *mega, struct sw_classifier *cls,
			     const struct sw_key *mask)
{
	for (uint32_t i = 0; i < cls->n; i++) {
		if (is_mask_of(&mega->shapes[cls->order[i]], mask, is_recirculated(mega, cls)))
			return cls->order[i];
	}
	return subtable_new(mega, cls, mask);
}

static void subtable_leave(struct sw_mega *mega, uint32_t subtable)
{
	struct sw_shape *sub = &mega->shapes[subtable];
	struct sw_classifier *cls = &mega->classifiers[sub->classifier];
	uint32_t at = 0;

	if (sub->n_flows > 0)
		return;
	while (cls->order[at] != subtable)
		at++;
	cls->n--;
	memmove(&cls->order[at], &cls->order[at + 1], (cls->n - at) * sizeof(cls->order[0]));
	sub->next = (uint16_t)mega->free_subtable;
	mega->free_subtable = subtable;
	mega->n_shapes--;
}

static bool bucket_insert(struct sw_mega *mega, uint32_t hash, uint32_t flow)
{
	for (uint32_t n = 0; n < SW_MEGA_MAX_PROBES; n++) {
		uint64_t *entries = sw_bucket_at(mega, hash, n)->entries;

		for (uint32_t i = 0; i < SW_MEGA_BUCKET_ENTRIES; i++) {
			if (entries[i] != 0)
				continue;
			entries[i] = (uint64_t)(flow + 1) << 32 | hash;
			while (n > 0)
				sw_bucket_at(mega, hash, --n)->n_passed++;
			return true;
		}
	}
	return false;
}

static void bucket_remove(struct sw_mega *mega, uint32_t hash, uint32_t flow)
{
	uint64_t wanted = (uint64_t)(flow + 1) << 32 | hash;

	for (uint32_t n = 0; n < SW_MEGA_MAX_PROBES; n++) {
		uint64_t *entries = sw_bucket_at(mega, hash, n)->entries;
		uint32_t at = 0, last = SW_MEGA_BUCKET_ENTRIES - 1;

		while (at < SW_MEGA_BUCKET_ENTRIES && entries[at] != wanted)
			at++;
		if (at == SW_MEGA_BUCKET_ENTRIES)
			continue;
		while (entries[last] == 0)
			last--;
		entries[at] = entries[last];
		entries[last] = 0;
		while (n > 0)
			sw_bucket_at(mega, hash, --n)->n_passed--;
		return;
	}
}

static uint16_t verdict_of(const struct sw_xlate *xlate)
{
	const struct sw_act *act = &xlate->acts[0];

	if (xlate->n_acts == 0)
		return (uint16_t)(SW_VERDICT_DROP0 + xlate->drop_reason % PMDP_N_DROPS);
	if (xlate->n_acts == 1 && act->type == SW_ACT_OUTPUT && act->max_len == 0)
		return act->port;
	return SW_VERDICT_ACTIONS;
}

// Lists of a flow. False: too long to be stored within it, and no big one is free.
static bool lists_fill(struct sw_mega *mega, struct sw_mega_cold *cold,
		       const struct sw_xlate *xlate)
{
	struct sw_act *acts = cold->acts;
	uint32_t *slots = cold->slots;

	cold->big = SW_MEGA_NONE;
	if (xlate->n_acts > SW_MEGA_SMALL_ACTS || xlate->n_slots > SW_MEGA_SMALL_SLOTS) {
		struct sw_mega_big *big;

		if (mega->free_big == SW_MEGA_NONE)
			return false;
		cold->big = mega->free_big;
		big = &mega->bigs[cold->big];
		mega->free_big = big->slots[0];
		acts = big->acts;
		slots = big->slots;
	}
	cold->n_acts = (uint16_t)xlate->n_acts;
	cold->n_slots = (uint16_t)xlate->n_slots;
	cold->drop_reason = xlate->drop_reason;
	memcpy(acts, xlate->acts, xlate->n_acts * sizeof(acts[0]));
	memcpy(slots, xlate->slots, xlate->n_slots * sizeof(slots[0]));
	return true;
}

static void lists_free(struct sw_mega *mega, struct sw_mega_cold *cold)
{
	if (cold->big == SW_MEGA_NONE)
		return;
	mega->bigs[cold->big].slots[0] = mega->free_big;
	mega->free_big = cold->big;
	cold->big = SW_MEGA_NONE;
}

static void counts_clear(struct sw_megaflow *f, struct sw_mega_cold *cold)
{
	atomic_store_explicit(&f->packets, 0, memory_order_relaxed);
	atomic_store_explicit(&f->bytes, 0, memory_order_relaxed);
	cold->pushed_packets = 0;
	cold->pushed_bytes = 0;
}

uint32_t sw_mega_add(struct sw_mega *mega, struct sw_classifier *cls, const struct sw_key *key,
		     const struct sw_xlate *xlate, uint32_t generation, uint64_t now_ticks,
		     uint32_t limit, uint32_t *out_flow)
{
	uint32_t flow = mega->free_flow;
	uint32_t result = SW_MEGA_FULL;
	uint32_t subtable;
	struct sw_megaflow *f;
	struct sw_shape *sub;

	if (flow == SW_MEGA_NONE || mega->n_flows >= limit)
		return SW_MEGA_FULL;
	subtable = subtable_for(mega, cls, &xlate->mask);
	if (subtable == SW_MEGA_NONE)
		return SW_MEGA_TOO_MANY;
	sub = &mega->shapes[subtable];
	f = &mega->flows[flow];
	change_begin(&mega->cold[flow]);
	for (uint32_t i = 0; i < sub->n_words; i++)
		f->words[i] = key->word[sub->index[i]] & sub->mask[i];
	if (lists_fill(mega, &mega->cold[flow], xlate)) {
		if (bucket_insert(mega, sw_mega_hash_words(sub, f->words), flow))
			result = SW_MEGA_ADDED;
		else
			lists_free(mega, &mega->cold[flow]);
	}
	if (result == SW_MEGA_ADDED) {
		mega->free_flow = mega->cold[flow].next;
		mega->n_flows++;
		mega->n_high = flow >= mega->n_high ? flow + 1 : mega->n_high;
		sub->n_flows++;
		sub->flows ^= flow;
		counts_clear(f, &mega->cold[flow]);
		mega->cold[flow].created_ticks = now_ticks;
		mega->cold[flow].key = *key;
		f->generation = generation;
		f->verdict = verdict_of(xlate);
		f->subtable = (uint16_t)subtable;
		// The top bit is left to the EMC.
		mega->next_id = mega->next_id % INT32_MAX + 1;
		f->id = mega->next_id;
		atomic_store_explicit(&f->used, (uint32_t)(now_ticks >> SW_MEGA_USED_SHIFT),
				      memory_order_relaxed);
		*out_flow = flow;
	}
	change_end(&mega->cold[flow]);
	subtable_leave(mega, subtable);
	return result;
}

uint32_t sw_mega_transient(struct sw_mega *mega, uint32_t n, const struct sw_xlate *xlate)
{
	uint32_t flow = mega->max_flows + n;
	struct sw_megaflow *f = &mega->flows[flow];
	struct sw_mega_cold *cold = &mega->cold[flow];
	// Behind the free list's bigs, one for each of these.
	struct sw_mega_big *big = &mega->bigs[SW_MEGA_MAX_BIG + n];

	cold->big = SW_MEGA_MAX_BIG + n;
	cold->n_acts = (uint16_t)xlate->n_acts;
	cold->n_slots = (uint16_t)xlate->n_slots;
	cold->drop_reason = xlate->drop_reason;
	memcpy(big->acts, xlate->acts, xlate->n_acts * sizeof(big->acts[0]));
	memcpy(big->slots, xlate->slots, xlate->n_slots * sizeof(big->slots[0]));
	counts_clear(f, cold);
	f->verdict = verdict_of(xlate);
	return flow;
}

void sw_mega_delete(struct sw_mega *mega, uint32_t flow)
{
	struct sw_megaflow *f = &mega->flows[flow];
	struct sw_mega_cold *cold = &mega->cold[flow];
	struct sw_shape *sub = &mega->shapes[f->subtable];

	bucket_remove(mega, sw_mega_hash_words(sub, f->words), flow);
	change_begin(cold);
	f->id = 0;
	lists_free(mega, cold);
	cold->next = mega->free_flow;
	change_end(cold);
	mega->free_flow = flow;
	mega->n_flows--;
	sub->n_flows--;
	sub->flows ^= flow;
	subtable_leave(mega, f->subtable);
}

bool sw_mega_is_same(const struct sw_mega *mega, uint32_t flow, const struct sw_xlate *xlate)
{
	const struct sw_mega_cold *cold = &mega->cold[flow];
	const struct sw_shape *sub = &mega->shapes[mega->flows[flow].subtable];

	return cold->n_acts == xlate->n_acts && cold->n_slots == xlate->n_slots &&
	       (xlate->n_acts > 0 || cold->drop_reason == xlate->drop_reason) &&
	       is_mask_of(sub, &xlate->mask, (sub->classifier & 1) != 0) &&
	       memcmp(sw_mega_acts(mega, flow), xlate->acts,
		      xlate->n_acts * sizeof(xlate->acts[0])) == 0 &&
	       memcmp(sw_mega_slots(mega, flow), xlate->slots,
		      xlate->n_slots * sizeof(xlate->slots[0])) == 0;
}

uint32_t sw_mega_find(const struct sw_mega *mega, const struct sw_classifier *cls,
		      const struct sw_key *key, uint64_t *n_visited)
{
	for (uint32_t i = 0; i < cls->n; i++) {
		struct sw_shape *sub = &mega->shapes[cls->order[i]];
		uint32_t hash = sw_mega_hash_key(sub, key, sub->n_words);
		uint32_t flow = sw_mega_probe(mega, cls->order[i], key, hash, sub->n_words);

		++*n_visited;
		if (flow != SW_MEGA_NONE) {
			sub->hits++;
			return flow;
		}
	}
	return SW_MEGA_NONE;
}

void sw_mega_sort(struct sw_mega *mega, struct sw_classifier *cls)
{
	// Insertion: most often in order already.
	for (uint32_t i = 1; i < cls->n; i++) {
		uint16_t moving = cls->order[i];
		uint32_t hits = mega->shapes[moving].hits;
		uint32_t at = i;

		for (; at > 0 && mega->shapes[cls->order[at - 1]].hits < hits; at--)
			cls->order[at] = cls->order[at - 1];
		cls->order[at] = moving;
	}
	for (uint32_t i = 0; i < cls->n; i++)
		mega->shapes[cls->order[i]].hits = 0;
}
