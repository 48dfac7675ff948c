// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Words shared between a writer and its readers: relaxed copies and the sequence protocol.
 *
 * A payload under a sequence word is copied in relaxed 64-bit atomic words on both sides, so that
 * the race is defined (and the thread sanitizer sees it). One writer per word, by construction. The
 * labels S1/S2 (sequence word) and R1..R4 (record rings) are explained in docs/protocol.md.
 *
 * The private side is a struct with fields of any type, the shared side may be looked at as that
 * struct too: memcpy on the one and a may_alias word on the other keep the compiler from believing
 * that these can't be the same bytes.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// gcc says that the thread sanitizer does not model fences. It need not: every word that a fence
// orders here is atomic, so there is no data race for a fence to excuse.
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif

typedef _Atomic uint64_t __attribute__((__may_alias__)) pmdp_word_shm;

// size is a multiple of 8; the segment's end is 8-byte aligned.
static inline void pmdp_words_store(void *segment_dst, const void *src, size_t size)
{
	pmdp_word_shm *dst = segment_dst;
	const char *from = src;
	uint64_t word;

	for (size_t i = 0; i < size / 8; i++) {
		memcpy(&word, from + 8 * i, 8);
		atomic_store_explicit(&dst[i], word, memory_order_relaxed);
	}
}

static inline void pmdp_words_load(void *dst, const void *segment_src, size_t size)
{
	const pmdp_word_shm *src = segment_src;
	char *to = dst;
	uint64_t word;

	for (size_t i = 0; i < size / 8; i++) {
		word = atomic_load_explicit(&src[i], memory_order_relaxed);
		memcpy(to + 8 * i, &word, 8);
	}
}

// S1: make the sequence word odd before the payload, even after it. A reader that sees the same
// even number before (S2, acquire) and after (acquire fence) its copy has a whole one. A word left
// odd by a writer that died is taken over as it is: odd stays odd until the next end.
static inline uint64_t pmdp_seq_write_begin(_Atomic uint64_t *seq)
{
	uint64_t n = atomic_load_explicit(seq, memory_order_relaxed) | 1;

	atomic_store_explicit(seq, n, memory_order_relaxed);
	atomic_thread_fence(memory_order_release); // S1a: odd before any payload word
	return n;
}

static inline void pmdp_seq_write_end(_Atomic uint64_t *seq, uint64_t n)
{
	atomic_store_explicit(seq, n + 1, memory_order_release); // S1b: payload before even
}

/*
 * R1, R3: put item number n into its place in a ring. *seq is 2n + 1 while it is written and 2n + 2
 * when whole; *n_items then counts it. Readers: R4 for the place, R2 for the count.
 */
static inline void pmdp_ring_write(_Atomic uint64_t *seq, void *segment_body, const void *body,
				   size_t size, _Atomic uint64_t *n_items, uint64_t n)
{
	atomic_store_explicit(seq, 2 * n + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release); // R3a: "being written" before any payload word
	pmdp_words_store(segment_body, body, size);
	atomic_store_explicit(seq, 2 * n + 2, memory_order_release); // R3b: payload before "whole"
	atomic_store_explicit(n_items, n + 1,
			      memory_order_release); // R1: the item before its count
}
