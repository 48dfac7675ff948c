// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Events that wait for the collector, in order, bounded. Never waits, never grows past its limit.
 *
 * When it is full something must go, and is counted: the oldest update, which a later event
 * overtakes; else the oldest incident that was raised and cleared while it waited, all of it, so
 * that an alarm that the collector knows is still cleared; else the oldest event. What is on its
 * way (the first n_busy) is never dropped.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "pmdp_incident.h"

struct vs_item {
	struct pmdp_incident incident;
	uint32_t source;       // index of the instance's follower
	uint32_t domains;      // VS_FAULT, VS_STATE_CHANGE: what is still to be sent, never 0
	bool is_own;           // made here: its seq is not one of the agent's
	bool is_over;          // the queue's: a raise whose clear waits too
	uint64_t n_lost_after; // the queue's: lost between this one and the source's next one
};

struct vs_queue {
	struct vs_item **items; // oldest first
	uint32_t n, n_max;
	uint32_t n_busy;
	uint64_t n_lost;   // VES events (an item may be two), ever
	uint64_t n_untold; // of these, those that the collector was not told of yet
};

int vs_queue_init(struct vs_queue *queue, uint32_t n_max); // -ENOMEM
void vs_queue_fini(struct vs_queue *queue);

// A copy goes to the end. Without memory, or when all the rest is on its way, it is lost, and
// counted.
void vs_queue_push(struct vs_queue *queue, const struct vs_item *item);
// So many of this source, newer than all that wait, were lost before they could be queued.
void vs_queue_lost(struct vs_queue *queue, uint32_t source, uint64_t n_events);
// The collector will never take the first one.
void vs_queue_refused(struct vs_queue *queue, uint32_t domain);
// The first one's domain was taken by the collector.
void vs_queue_done(struct vs_queue *queue, uint32_t domain);

/*
 * First seq of this source that was not dealt with, if it still waits here; else otherwise. A later
 * start begins there.
 */
uint64_t vs_queue_first_seq(const struct vs_queue *queue, uint32_t source, uint64_t otherwise);

// Losses that a later start has to tell: without those behind vs_queue_first_seq(), which it will
// read, or miss and count, by itself.
uint64_t vs_queue_untold_before(const struct vs_queue *queue);
