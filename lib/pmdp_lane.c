// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// A thread's lane: claim, beats that come late, announcements, the copy of its body.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmdp_publisher.h"
#include "pmdp_shm.h"
#include "pmdp_stat.h"

#define DEFAULT_START_NS (10 * PMDP_NS_PER_S)

static void store(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_relaxed);
}

// What was stored before is seen by whoever sees what is stored after. Costs nothing on x86.
static void order_stores(void)
{
	atomic_thread_fence(memory_order_release);
}

// Limits in ticks, made anew when the owner changed a setting.
static void take_settings(struct pmdp_lane *lane)
{
	const struct pmdp_publisher *pub = lane->pub;
	uint64_t interval_ns = pmdp_publisher_interval_ns(pub);
	uint64_t gap_limit_ns =
		atomic_load_explicit(&pub->header->gap_limit_ns, memory_order_relaxed);
	uint64_t floor_ns = UINT64_C(1) << PMDP_HIST_FLOOR_BIN;

	if (interval_ns == lane->interval_ns && gap_limit_ns == lane->gap_limit_ns)
		return;
	lane->interval_ns = interval_ns;
	lane->gap_limit_ns = gap_limit_ns;
	lane->stall_limit_ticks = pmdp_ns_to_ticks(2 * interval_ns, pub->ticks_hz);
	lane->gap_limit_ticks = pmdp_ns_to_ticks(gap_limit_ns, pub->ticks_hz);
	lane->floor_ticks =
		pmdp_ns_to_ticks(gap_limit_ns < floor_ns ? gap_limit_ns : floor_ns, pub->ticks_hz);
}

static void push_record(struct pmdp_lane *lane, const struct pmdp_record_body *body)
{
	uint64_t n = lane->n_records++;
	struct pmdp_record_shm *record = &lane->records[n & lane->records_mask];

	pmdp_ring_write(&record->seq, &record->body, body, sizeof *body, &lane->hot->n_records, n);
}

// C1: the only read-modify-write. Acquire: pairs with C2, so that the words of the thread that gave
// the lane up come before ours.
static bool claim_word(struct pmdp_lane_shm *shm, uint64_t tid)
{
	uint64_t free_word = 0;

	return atomic_compare_exchange_strong_explicit(&shm->claimed, &free_word, tid,
						       memory_order_acquire, memory_order_relaxed);
}

static int find_free(struct pmdp_publisher *pub, uint32_t tid, uint32_t *out_index)
{
	for (uint32_t i = 0; i < pub->n_lanes; i++) {
		if (atomic_load_explicit(&pub->lanes[i].claimed, memory_order_relaxed) == 0 &&
		    claim_word(&pub->lanes[i], tid)) {
			*out_index = i;
			return 0;
		}
	}
	return -ENOSPC;
}

// A fresh slot. It announces NONE while its fields are in between two threads.
static void reset_hot(struct pmdp_hot_shm *hot)
{
	uint64_t incarnation = atomic_load_explicit(&hot->incarnation, memory_order_relaxed);

	store(&hot->announce, pmdp_announce_word(PMDP_ANNOUNCE_NONE, PMDP_REASON_NONE));
	order_stores(); // H1: before anything of the new thread
	store(&hot->longest_gap_ticks, 0);
	store(&hot->last_stall_ticks, 0);
	store(&hot->stall_ticks, 0);
	store(&hot->n_stalls, 0);
	store(&hot->gap_ticks, 0);
	store(&hot->n_gaps, 0);
	store(&hot->incarnation, incarnation + 1);
	store(&hot->crumb, 0);
	store(&hot->beat_ticks, 0);
	store(&hot->beats, 0);
}

static void bind_lane(struct pmdp_lane *lane, struct pmdp_publisher *pub, uint32_t index)
{
	lane->pub = pub;
	lane->index = index;
	lane->hot = &pub->hot[index].slot;
	lane->counters = pub->hot[index].counters;
	memset(lane->counters, 0, sizeof lane->body.counters);
	lane->shm = &pub->lanes[index];
	lane->records = &pub->records[(size_t)index * pub->records_per_lane];
	lane->records_mask = pub->records_per_lane - 1;
	lane->n_records = atomic_load_explicit(&lane->hot->n_records, memory_order_relaxed);
	take_settings(lane);
	atomic_store_explicit(&pub->handles[index], lane, memory_order_relaxed);
}

// Own cache lines, so that the handles of two threads never share one.
static struct pmdp_lane *allocate_lane(void)
{
	size_t size = (sizeof(struct pmdp_lane) + 127) / 128 * 128;
	struct pmdp_lane *lane = aligned_alloc(128, size);

	if (lane)
		memset(lane, 0, size);
	return lane;
}

int pmdp_lane_claim(struct pmdp_publisher *pub, const char *name, uint32_t kind, int core, int numa,
		    uint64_t start_ns, struct pmdp_lane **out_lane)
{
	size_t len = name ? strlen(name) : 0;
	uint32_t tid = (uint32_t)gettid(), index = 0;
	struct pmdp_lane *lane;
	struct pmdp_stat stat;
	int rc;

	if (len == 0 || len >= PMDP_LANE_NAME_BYTES)
		return -EINVAL;
	lane = allocate_lane();
	if (!lane)
		return -ENOMEM;
	memcpy(lane->body.name, name, len);
	lane->body.kind = kind;
	lane->body.tid = tid;
	lane->body.core = core;
	lane->body.numa = numa;
	rc = pmdp_stat_read_path("/proc/thread-self/stat", &stat);
	if (rc == 0)
		rc = find_free(pub, tid, &index);
	if (rc < 0) {
		free(lane);
		return rc;
	}
	lane->body.thread_start_ticks = stat.start_ticks;
	bind_lane(lane, pub, index);
	reset_hot(lane->hot);
	pmdp_lane_publish(lane, pmdp_lane_clock(lane));
	pmdp_lane_dozing(lane, PMDP_REASON_START, start_ns ? start_ns : DEFAULT_START_NS);
	*out_lane = lane;
	return 0;
}

static uint32_t histogram_bin(uint64_t ns)
{
	uint32_t bin = ns ? 63 - (uint32_t)__builtin_clzll(ns) : 0;

	return bin < PMDP_N_HIST ? bin : PMDP_N_HIST - 1;
}

static void count_stall(struct pmdp_lane *lane, uint64_t length_ticks)
{
	lane->n_stalls++;
	lane->stall_ticks += length_ticks;
	store(&lane->hot->last_stall_ticks, length_ticks);
	store(&lane->hot->stall_ticks, lane->stall_ticks);
	order_stores(); // H2: lengths before the count
	store(&lane->hot->n_stalls, lane->n_stalls);
}

static void count_gap(struct pmdp_lane *lane, uint64_t length_ticks)
{
	struct pmdp_record_body record = {
		.kind = PMDP_RECORD_GAP,
		.begin_ticks = lane->last_ticks,
		.length_ticks = length_ticks,
		.crumb = atomic_load_explicit(&lane->hot->crumb, memory_order_relaxed),
	};

	push_record(lane, &record);
	if (length_ticks >= lane->stall_limit_ticks)
		count_stall(lane, length_ticks);
	lane->n_gaps++;
	lane->gap_ticks += length_ticks;
	store(&lane->hot->gap_ticks, lane->gap_ticks);
	order_stores(); // H2
	store(&lane->hot->n_gaps, lane->n_gaps);
}

void pmdp_lane_gap(struct pmdp_lane *lane, uint64_t now_ticks)
{
	uint64_t length_ticks = now_ticks - lane->last_ticks, ns;

	// The counter of this socket may lag behind that of the last one by a few ticks.
	if (length_ticks > INT64_MAX)
		return;
	ns = pmdp_ticks_to_ns(length_ticks, lane->pub->ticks_hz);
	if (ns >> PMDP_HIST_FLOOR_BIN)
		lane->body.gap_hist[histogram_bin(ns)]++;
	if (length_ticks > lane->longest_gap_ticks) {
		lane->longest_gap_ticks = length_ticks;
		store(&lane->hot->longest_gap_ticks, length_ticks);
	}
	if (length_ticks >= lane->gap_limit_ticks)
		count_gap(lane, length_ticks);
	order_stores(); // H3: the gap before the beat that ends it
}

static void record_announcement(struct pmdp_lane *lane, uint64_t now_ticks, uint64_t word,
				uint64_t deadline_ns)
{
	struct pmdp_record_body record = {
		.kind = PMDP_RECORD_ANNOUNCE,
		.begin_ticks = now_ticks,
		.crumb = atomic_load_explicit(&lane->hot->crumb, memory_order_relaxed),
		.value0 = word,
		.value1 = deadline_ns,
	};

	push_record(lane, &record);
}

// The last beat before a pause, so that a stall just before it is timed. Not while keepalive is
// off: then the time since the last beat means nothing.
static void beat_before_pause(struct pmdp_lane *lane, uint64_t now_ticks)
{
	uint64_t flags = atomic_load_explicit(&lane->pub->header->flags, memory_order_relaxed);

	if (lane->announce == PMDP_ANNOUNCE_POLLING && (flags & PMDP_FLAG_KEEPALIVE))
		pmdp_lane_beat(lane, now_ticks);
	lane->last_ticks = now_ticks;
}

static void announce_pause(struct pmdp_lane *lane, uint32_t announce, uint32_t reason,
			   uint64_t deadline_ns)
{
	uint64_t word = pmdp_announce_word(announce, reason), now_ticks = pmdp_lane_clock(lane);

	beat_before_pause(lane, now_ticks);
	record_announcement(lane, now_ticks, word, deadline_ns);
	// The other pauses have no deadline, and one taken away early would leave DOZING without.
	if (announce == PMDP_ANNOUNCE_DOZING)
		store(&lane->hot->deadline_ns, deadline_ns);
	order_stores(); // H4: the deadline and the last beat before the word
	store(&lane->hot->announce, word);
	lane->announce = announce;
}

void pmdp_lane_polling(struct pmdp_lane *lane)
{
	uint64_t word = pmdp_announce_word(PMDP_ANNOUNCE_POLLING, PMDP_REASON_NONE);
	uint64_t now_ticks = pmdp_lane_clock(lane);

	record_announcement(lane, now_ticks, word, 0);
	lane->last_ticks = now_ticks; // what lies before was announced: no gap
	pmdp_lane_beat(lane, now_ticks);
	order_stores(); // H4: who sees POLLING sees the beat that began it
	store(&lane->hot->announce, word);
	lane->announce = PMDP_ANNOUNCE_POLLING;
}

void pmdp_lane_dozing(struct pmdp_lane *lane, uint32_t reason, uint64_t max_ns)
{
	uint64_t now_ns = pmdp_mono_now_ns();
	uint64_t deadline_ns = max_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + max_ns;

	announce_pause(lane, PMDP_ANNOUNCE_DOZING, reason, max_ns ? deadline_ns : 0);
}

void pmdp_lane_sleep(struct pmdp_lane *lane, uint32_t reason)
{
	announce_pause(lane, PMDP_ANNOUNCE_SLEEP, reason, 0);
}

void pmdp_lane_release(struct pmdp_lane *lane)
{
	if (!lane)
		return;
	announce_pause(lane, PMDP_ANNOUNCE_EXITED, PMDP_REASON_STOP, 0);
	pmdp_lane_publish(lane, lane->last_ticks);
	atomic_store_explicit(&lane->pub->handles[lane->index], NULL, memory_order_relaxed);
	atomic_store_explicit(&lane->shm->claimed, 0, memory_order_release); // C2: our words first
	free(lane);
}

void pmdp_lane_publish(struct pmdp_lane *lane, uint64_t now_ticks)
{
	uint64_t seq;

	take_settings(lane);
	lane->body.snapshot_ticks = now_ticks;
	memcpy(lane->body.counters, lane->counters, sizeof lane->body.counters);
	seq = pmdp_seq_write_begin(&lane->shm->seq);
	pmdp_words_store(&lane->shm->body, &lane->body, sizeof lane->body);
	pmdp_seq_write_end(&lane->shm->seq, seq);
}

uint64_t pmdp_lane_clock(const struct pmdp_lane *lane)
{
	return pmdp_publisher_clock(lane->pub);
}
