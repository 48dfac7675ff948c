// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Text that came from elsewhere: thread and port names, commands of other processes, segments.
 * Any bytes may stand in it. Internal to lib/. Pure functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

// Length of the valid UTF-8 sequence at text (1 to 4), 0 if there is none (invalid, cut, or n 0).
size_t pmdp_utf8_sequence(const char *text, size_t n);

bool pmdp_utf8_is_valid(const char *text, size_t n);

// Copy bytes as they are, NUL terminated, the rest of dst zeroed; cut before a sequence that does
// not fit. text NULL counts as empty.
void pmdp_text_copy(char *dst, size_t size, const char *text);

// Copy for one line that is read by people: invalid bytes become U+FFFD, control characters '?'.
void pmdp_text_clean(char *dst, size_t size, const char *text);

// Append as snprintf does, cut at a UTF-8 boundary; *used is the length so far. clean arguments
// first.
void pmdp_text_append(char *dst, size_t size, size_t *used, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

// "0.301 s", "4.250 ms". Returns out.
char *pmdp_text_duration(uint64_t ns, char *out, size_t size);

#pragma GCC visibility pop
