// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "cp_queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "pmdp_clock.h"

struct cp_queue {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	bool is_closed;
	uint64_t drain_until_ns;
	size_t size, head, n;
	struct cp_item items[];
};

struct cp_queue *cp_queue_new(size_t n_items)
{
	struct cp_queue *queue = calloc(1, sizeof(*queue) + n_items * sizeof(queue->items[0]));

	if (queue == NULL)
		return NULL;
	queue->size = n_items;
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->filled, NULL);
	return queue;
}

void cp_queue_free(struct cp_queue *queue)
{
	if (queue == NULL)
		return;
	pthread_cond_destroy(&queue->filled);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}

static struct cp_item *at(struct cp_queue *queue, size_t i)
{
	return &queue->items[(queue->head + i) % queue->size];
}

static void count_lost(struct cp_item *item)
{
	atomic_fetch_add_explicit(&item->instance->numbers.n_lost, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&item->instance->numbers.n_queued, 1, memory_order_relaxed);
}

// Give up the oldest update; the order of the others stays.
static bool make_room(struct cp_queue *queue)
{
	size_t i = 0;

	while (i < queue->n && at(queue, i)->incident.phase != PMDP_PHASE_UPDATE)
		i++;
	if (i == queue->n)
		return false;
	count_lost(at(queue, i));
	for (; i + 1 < queue->n; i++)
		*at(queue, i) = *at(queue, i + 1);
	queue->n--;
	return true;
}

bool cp_queue_push(struct cp_queue *queue, const struct cp_item *item)
{
	struct cp_relay_numbers *numbers = &item->instance->numbers;
	bool is_taken = false;

	pthread_mutex_lock(&queue->lock);
	if (!queue->is_closed && (queue->n < queue->size || make_room(queue))) {
		*at(queue, queue->n++) = *item;
		atomic_fetch_add_explicit(&numbers->n_queued, 1, memory_order_relaxed);
		is_taken = true;
		pthread_cond_signal(&queue->filled);
	}
	pthread_mutex_unlock(&queue->lock);
	if (!is_taken)
		atomic_fetch_add_explicit(&numbers->n_lost, 1, memory_order_relaxed);
	return is_taken;
}

bool cp_queue_pop(struct cp_queue *queue, struct cp_item *out_item)
{
	bool is_got = false;

	pthread_mutex_lock(&queue->lock);
	while (queue->n == 0 && !queue->is_closed)
		pthread_cond_wait(&queue->filled, &queue->lock);
	if (queue->is_closed && pmdp_mono_now_ns() >= queue->drain_until_ns)
		for (; queue->n > 0; queue->n--, queue->head = (queue->head + 1) % queue->size)
			count_lost(at(queue, 0));
	if (queue->n > 0) {
		*out_item = *at(queue, 0);
		queue->head = (queue->head + 1) % queue->size;
		queue->n--;
		atomic_fetch_sub_explicit(&out_item->instance->numbers.n_queued, 1,
					  memory_order_relaxed);
		is_got = true;
	}
	pthread_mutex_unlock(&queue->lock);
	return is_got;
}

void cp_queue_close(struct cp_queue *queue, uint64_t drain_ns)
{
	pthread_mutex_lock(&queue->lock);
	queue->is_closed = true;
	queue->drain_until_ns = pmdp_mono_now_ns() + drain_ns;
	pthread_cond_broadcast(&queue->filled);
	pthread_mutex_unlock(&queue->lock);
}
