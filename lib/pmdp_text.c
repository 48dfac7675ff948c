// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "pmdp_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" // U+FFFD

static bool is_tail(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

// Bounds of the second byte rule out overlong forms, surrogates and what lies above U+10FFFF.
static bool is_second(unsigned char first, unsigned char second)
{
	switch (first) {
	case 0xe0:
		return second >= 0xa0 && second <= 0xbf;
	case 0xed:
		return second >= 0x80 && second <= 0x9f;
	case 0xf0:
		return second >= 0x90 && second <= 0xbf;
	case 0xf4:
		return second >= 0x80 && second <= 0x8f;
	default:
		return is_tail(second);
	}
}

size_t pmdp_utf8_sequence(const char *text, size_t n)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t len;

	if (n == 0)
		return 0;
	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		len = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		len = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		len = 4;
	else
		return 0;
	if (n < len || !is_second(s[0], s[1]))
		return 0;
	for (size_t i = 2; i < len; i++) {
		if (!is_tail(s[i]))
			return 0;
	}
	return len;
}

bool pmdp_utf8_is_valid(const char *text, size_t n)
{
	for (size_t i = 0, len; i < n; i += len) {
		len = pmdp_utf8_sequence(text + i, n - i);
		if (!len)
			return false;
	}
	return true;
}

void pmdp_text_copy(char *dst, size_t size, const char *text)
{
	size_t n = text ? strlen(text) : 0, used = 0;

	while (used < n) {
		size_t len = pmdp_utf8_sequence(text + used, n - used);

		len = len ? len : 1;
		if (used + len >= size)
			break;
		used += len;
	}
	if (used)
		memcpy(dst, text, used);
	memset(dst + used, 0, size - used);
}

void pmdp_text_clean(char *dst, size_t size, const char *text)
{
	size_t n = text ? strlen(text) : 0, used = 0;

	for (size_t i = 0; i < n;) {
		const char *from = text + i;
		size_t len = pmdp_utf8_sequence(from, n - i);

		i += len ? len : 1;
		if (!len) {
			from = REPLACEMENT;
			len = sizeof(REPLACEMENT) - 1;
		} else if (len == 1 && ((unsigned char)*from < 0x20 || *from == 0x7f)) {
			from = "?";
		}
		if (used + len >= size)
			break;
		memcpy(dst + used, from, len);
		used += len;
	}
	dst[used] = 0;
}

void pmdp_text_append(char *dst, size_t size, size_t *used, const char *format, ...)
{
	size_t room = size - *used, end;
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(dst + *used, room, format, args);
	va_end(args);
	if (len < 0 || (size_t)len < room) {
		*used += len < 0 ? 0 : (size_t)len;
		return;
	}
	// Cut: take back the bytes of a sequence that lost its end.
	end = size - 1;
	for (size_t back = 1; back <= 3 && back <= end; back++) {
		unsigned char c = (unsigned char)dst[end - back];

		if (c < 0x80)
			break;
		if (c >= 0xc0) {
			if (!pmdp_utf8_sequence(dst + end - back, back))
				end -= back;
			break;
		}
	}
	dst[end] = 0;
	*used = end;
}

char *pmdp_text_duration(uint64_t ns, char *out, size_t size)
{
	if (ns >= 100000000)
		snprintf(out, size, "%llu.%03llu s", (unsigned long long)(ns / 1000000000),
			 (unsigned long long)(ns / 1000000 % 1000));
	else
		snprintf(out, size, "%llu.%03llu ms", (unsigned long long)(ns / 1000000),
			 (unsigned long long)(ns / 1000 % 1000));
	return out;
}
