// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_pipe.h"

#include <string.h>

#include <rte_common.h>
#include <rte_malloc.h>

#include "pmdp_shm.h"
#include "sw_log.h"
#include "sw_pipe_fast.h"

#define LEAST_FLOWS 512
#define READ_TRIES 10

// Zeroed, and touched: a PMD must not fault.
static void *room(const char *name, size_t bytes)
{
	void *memory = rte_malloc(name, bytes, 64);

	if (memory != NULL)
		memset(memory, 0, bytes);
	return memory;
}

static void mega_free(struct sw_mega *mega)
{
	rte_free(mega->flows);
	rte_free(mega->cold);
	rte_free(mega->bigs);
	rte_free(mega->shapes);
	rte_free(mega->buckets);
	rte_free(mega->classifiers);
	memset(mega, 0, sizeof(*mega));
}

static void fill_lists(struct sw_mega *mega)
{
	for (uint32_t i = 0; i < mega->max_flows; i++)
		mega->cold[i].next = i + 1 < mega->max_flows ? i + 1 : SW_MEGA_NONE;
	for (uint32_t i = 0; i < SW_MEGA_MAX_BIG; i++)
		mega->bigs[i].slots[0] = i + 1 < SW_MEGA_MAX_BIG ? i + 1 : SW_MEGA_NONE;
	for (uint32_t i = 0; i < SW_MEGA_MAX_SHAPES; i++)
		mega->shapes[i].next = (uint16_t)(i + 1);
}

static bool mega_alloc(struct sw_mega *mega, uint32_t max_flows)
{
	uint32_t n = max_flows + SW_MEGA_TRANSIENT;
	uint32_t n_buckets = rte_align32pow2(RTE_MAX(max_flows / 4, 64u));

	mega->max_flows = max_flows;
	mega->bucket_mask = n_buckets - 1;
	mega->flows = room("megaflows", n * sizeof(*mega->flows));
	mega->cold = room("megaflows, cold", n * sizeof(*mega->cold));
	mega->bigs =
		room("action lists", (SW_MEGA_MAX_BIG + SW_MEGA_TRANSIENT) * sizeof(*mega->bigs));
	mega->shapes = room("subtables", SW_MEGA_MAX_SHAPES * sizeof(*mega->shapes));
	mega->buckets = room("buckets", n_buckets * sizeof(*mega->buckets));
	mega->classifiers = room("classifiers", SW_MAX_PORTS * 2 * sizeof(*mega->classifiers));
	if (mega->flows == NULL || mega->cold == NULL || mega->bigs == NULL ||
	    mega->shapes == NULL || mega->buckets == NULL || mega->classifiers == NULL) {
		mega_free(mega);
		return false;
	}
	fill_lists(mega);
	return true;
}

struct sw_pipe *sw_pipe_create(uint32_t max_flows)
{
	struct sw_pipe *pipe = room("pipe", sizeof(*pipe));
	uint32_t n = max_flows;

	if (pipe == NULL)
		return NULL;
	while (!mega_alloc(&pipe->mega, n)) {
		n /= 2;
		if (n < LEAST_FLOWS) {
			sw_pipe_destroy(pipe);
			return NULL;
		}
	}
	if (n < max_flows)
		sw_log(SW_LOG_WARNING,
		       "memory for %u megaflows of a PMD, not %u: reserve more hugepages", n,
		       max_flows);
	pipe->emc = room("EMC", sizeof(*pipe->emc));
	if (pipe->emc == NULL) {
		sw_pipe_destroy(pipe);
		return NULL;
	}
	pipe->waiting = &pipe->recirc[0];
	pipe->random = 2463534242u; // any but 0
	return pipe;
}

void sw_pipe_destroy(struct sw_pipe *pipe)
{
	if (pipe == NULL)
		return;
	mega_free(&pipe->mega);
	rte_free(pipe->emc);
	rte_free(atomic_load_explicit(&pipe->smc, memory_order_relaxed));
	rte_free(pipe);
}

struct sw_smc *sw_pipe_smc(struct sw_pipe *pipe)
{
	struct sw_smc *smc = atomic_load_explicit(&pipe->smc, memory_order_relaxed);

	if (smc != NULL)
		return smc;
	smc = room("SMC", sizeof(*smc));
	if (smc == NULL)
		sw_log(SW_LOG_ERR, "smc-enable: no memory for it; reserve more hugepages");
	atomic_store_explicit(&pipe->smc, smc, memory_order_release);
	return smc;
}

uint32_t sw_pipe_n_places(const struct sw_pipe *pipe)
{
	return pipe->mega.max_flows;
}

static void copy_lists(const struct sw_mega *mega, const struct sw_mega_cold *cold,
		       struct sw_mega_copy *out)
{
	out->n_acts = RTE_MIN(cold->n_acts, (uint32_t)SW_XLATE_MAX_ACTS);
	out->drop_reason = cold->drop_reason;
	if (cold->big < SW_MEGA_MAX_BIG)
		memcpy(out->acts, mega->bigs[cold->big].acts, out->n_acts * sizeof(out->acts[0]));
	else
		memcpy(out->acts, cold->acts,
		       RTE_MIN(out->n_acts, (uint32_t)SW_MEGA_SMALL_ACTS) * sizeof(out->acts[0]));
}

static void copy_mask(const struct sw_shape *shape, struct sw_mega_copy *out)
{
	struct sw_key all;

	memset(&out->mask, 0, sizeof(out->mask));
	for (uint32_t i = 0; i < RTE_MIN(shape->n_words, (uint32_t)SW_KEY_WORDS); i++)
		out->mask.word[shape->index[i] % SW_KEY_WORDS] = shape->mask[i];
	// The classifier says these, whatever the shape names.
	memset(&all, 0, sizeof(all));
	all.in_port = UINT16_MAX;
	all.recirc_id = UINT32_MAX;
	out->mask.word[SW_KEY_META_WORD] = all.word[SW_KEY_META_WORD];
	out->port = shape->classifier / 2;
	out->is_recirculated = shape->classifier % 2 != 0;
}

// Whatever a copy holds, the sequence number tells whether it can be believed.
static bool try_read(const struct sw_pipe *pipe, uint32_t place, uint64_t now_ticks,
		     struct sw_mega_copy *out)
{
	const struct sw_mega *mega = &pipe->mega;
	const struct sw_mega_cold *cold = &mega->cold[place];
	uint64_t seq = atomic_load_explicit(&cold->seq, memory_order_acquire);
	struct sw_mega_cold copy;
	struct sw_megaflow hot;
	uint32_t now_used = (uint32_t)(now_ticks >> SW_MEGA_USED_SHIFT);
	uint64_t idle;

	if (seq % 2 != 0)
		return false;
	pmdp_words_load(&copy, cold, sizeof(copy));
	pmdp_words_load(&hot, &mega->flows[place], sizeof(hot));
	copy_lists(mega, &copy, out);
	copy_mask(&mega->shapes[hot.subtable % SW_MEGA_MAX_SHAPES], out);
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&cold->seq, memory_order_relaxed) != seq)
		return false;
	out->key = copy.key;
	out->id = hot.id;
	out->n_packets = hot.packets;
	out->n_bytes = hot.bytes;
	out->created_ticks = copy.created_ticks;
	idle = (int32_t)(now_used - hot.used) > 0 ? now_used - hot.used : 0;
	out->used_ticks = now_ticks - (idle << SW_MEGA_USED_SHIFT);
	return true;
}

bool sw_pipe_read(const struct sw_pipe *pipe, uint32_t place, uint64_t now_ticks,
		  struct sw_mega_copy *out)
{
	for (uint32_t i = 0; i < READ_TRIES; i++) {
		if (try_read(pipe, place, now_ticks, out))
			return out->id != 0;
	}
	return false;
}
