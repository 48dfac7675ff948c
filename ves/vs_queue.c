// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "vs_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int vs_queue_init(struct vs_queue *queue, uint32_t n_max)
{
	memset(queue, 0, sizeof(*queue));
	queue->items = calloc(n_max, sizeof(*queue->items));
	queue->n_max = n_max;
	return queue->items ? 0 : -ENOMEM;
}

void vs_queue_fini(struct vs_queue *queue)
{
	while (queue->n)
		free(queue->items[--queue->n]);
	free(queue->items);
	queue->items = NULL;
}

static void count(struct vs_queue *queue, uint64_t n_events)
{
	queue->n_lost += n_events;
	queue->n_untold += n_events;
}

// Lost behind the newest of this source that stands before the place at.
static void note_behind(struct vs_queue *queue, uint32_t at, uint32_t source, uint64_t n_events)
{
	while (at-- > 0)
		if (queue->items[at]->source == source && !queue->items[at]->is_own) {
			queue->items[at]->n_lost_after += n_events;
			return;
		}
}

void vs_queue_lost(struct vs_queue *queue, uint32_t source, uint64_t n_events)
{
	count(queue, n_events);
	note_behind(queue, queue->n, source, n_events);
}

static void take_out(struct vs_queue *queue, uint32_t at)
{
	free(queue->items[at]);
	queue->n--;
	memmove(&queue->items[at], &queue->items[at + 1], (queue->n - at) * sizeof(*queue->items));
}

static void lose(struct vs_queue *queue, uint32_t at)
{
	const struct vs_item *item = queue->items[at];
	uint64_t n_events = (uint64_t)__builtin_popcount(item->domains);

	count(queue, n_events);
	if (!item->is_own)
		note_behind(queue, at, item->source, n_events + item->n_lost_after);
	take_out(queue, at);
}

static bool is_same(const struct vs_item *a, const struct vs_item *b)
{
	return a->source == b->source && !strcmp(a->incident.id, b->incident.id);
}

// Oldest update, or n.
static uint32_t find_update(const struct vs_queue *queue)
{
	uint32_t at = queue->n_busy;

	while (at < queue->n && queue->items[at]->incident.phase != PMDP_PHASE_UPDATE)
		at++;
	return at;
}

// Drop the oldest incident of which both the raise and the clear wait. false: there is none.
static bool lose_whole(struct vs_queue *queue)
{
	uint32_t first = queue->n_busy;

	while (first < queue->n && !queue->items[first]->is_over)
		first++;
	if (first == queue->n)
		return false;
	for (uint32_t at = queue->n - 1; at > first; at--)
		if (is_same(queue->items[at], queue->items[first]))
			lose(queue, at);
	lose(queue, first);
	return true;
}

// A clear joins the queue: its raise, if that still waits, may go together with it.
static void mark_over(struct vs_queue *queue, const struct vs_item *clear)
{
	for (uint32_t at = queue->n; at-- > 0;)
		if (queue->items[at]->incident.phase == PMDP_PHASE_RAISE &&
		    is_same(queue->items[at], clear)) {
			queue->items[at]->is_over = true;
			return;
		}
}

static void make_room(struct vs_queue *queue)
{
	uint32_t update = find_update(queue);

	if (update < queue->n)
		lose(queue, update);
	else if (!lose_whole(queue))
		lose(queue, queue->n_busy);
}

void vs_queue_push(struct vs_queue *queue, const struct vs_item *item)
{
	bool is_stuck = queue->n_busy == queue->n_max;
	struct vs_item *copy = is_stuck ? NULL : malloc(sizeof(*copy));

	if (!copy) {
		vs_queue_lost(queue, item->source, (uint64_t)__builtin_popcount(item->domains));
		return;
	}
	*copy = *item;
	copy->is_over = false;
	copy->n_lost_after = 0;
	if (queue->n == queue->n_max)
		make_room(queue);
	if (copy->incident.phase == PMDP_PHASE_CLEAR)
		mark_over(queue, copy);
	queue->items[queue->n++] = copy;
}

void vs_queue_done(struct vs_queue *queue, uint32_t domain)
{
	queue->items[0]->domains &= ~domain;
	if (queue->items[0]->domains)
		return;
	take_out(queue, 0);
	if (queue->n_busy)
		queue->n_busy--;
}

void vs_queue_refused(struct vs_queue *queue, uint32_t domain)
{
	count(queue, 1);
	vs_queue_done(queue, domain);
}

uint64_t vs_queue_first_seq(const struct vs_queue *queue, uint32_t source, uint64_t otherwise)
{
	for (uint32_t i = 0; i < queue->n; i++)
		if (queue->items[i]->source == source && !queue->items[i]->is_own)
			return queue->items[i]->incident.seq;
	return otherwise;
}

uint64_t vs_queue_untold_before(const struct vs_queue *queue)
{
	uint64_t n_behind = 0;

	for (uint32_t i = 0; i < queue->n; i++)
		n_behind += queue->items[i]->n_lost_after;
	return queue->n_untold > n_behind ? queue->n_untold - n_behind : 0;
}
