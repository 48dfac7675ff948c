// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Bounded queue between the look thread, which must not wait, and the dispatch thread, which may be
 * held up for seconds by a slow receiver.
 *
 * A full queue first gives up the oldest update (raise and clear of an incident matter more), else
 * it refuses the newcomer. Every loss is counted at its instance. The mutex is held for one copy.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cp_instance.h"

struct cp_queue;

struct cp_item {
	struct cp_instance *instance;
	struct pmdp_incident incident;
};

// NULL without memory.
struct cp_queue *cp_queue_new(size_t n_items);
void cp_queue_free(struct cp_queue *queue);

// Never waits for room. False: lost (and counted).
bool cp_queue_push(struct cp_queue *queue, const struct cp_item *item);

// Waits for an item. False: the queue was closed and is empty, or its drain time is over.
bool cp_queue_pop(struct cp_queue *queue, struct cp_item *out_item);

/*
 * Close: nothing can be pushed any more; pop hands out what is left until drain_ns from now, then
 * the rest is counted as lost.
 */
void cp_queue_close(struct cp_queue *queue, uint64_t drain_ns);
