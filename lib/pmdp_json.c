// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "pmdp_json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmdp_text.h"

static int done(yajl_gen_status status)
{
	return status == yajl_gen_status_ok ? 0 : -EIO;
}

static int put_string(yajl_gen gen, const char *text, size_t len)
{
	return done(yajl_gen_string(gen, (const unsigned char *)text, len));
}

// The same text with each invalid byte as U+FFFD (which takes three).
static int put_repaired(yajl_gen gen, const char *text, size_t len)
{
	char *repaired = malloc(3 * len);
	size_t used = 0;
	int rc;

	if (!repaired)
		return -EIO;
	for (size_t i = 0; i < len;) {
		size_t n = pmdp_utf8_sequence(text + i, len - i);

		memcpy(repaired + used, n ? text + i : "\xef\xbf\xbd", n ? n : 3);
		used += n ? n : 3;
		i += n ? n : 1;
	}
	rc = put_string(gen, repaired, used);
	free(repaired);
	return rc;
}

int pmdp_json_text(yajl_gen gen, const char *value)
{
	size_t len;

	if (!value)
		return done(yajl_gen_null(gen));
	len = strlen(value);
	return pmdp_utf8_is_valid(value, len) ? put_string(gen, value, len)
					      : put_repaired(gen, value, len);
}

int pmdp_json_key(yajl_gen gen, const char *key)
{
	return pmdp_json_text(gen, key);
}

static int put_number(yajl_gen gen, const char *digits)
{
	return done(yajl_gen_number(gen, digits, strlen(digits)));
}

int pmdp_json_seconds(yajl_gen gen, uint64_t ns)
{
	char digits[40];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64 ".%09" PRIu64, ns / 1000000000,
			   ns % 1000000000);

	while (digits[len - 1] == '0' && digits[len - 2] != '.')
		len--;
	digits[len] = 0;
	return put_number(gen, digits);
}

// The host program's locale may write a comma: JSON has a point.
static void format_real(char *digits, size_t size, double value)
{
	char *comma;

	snprintf(digits, size, "%.15g", value);
	if (strtod(digits, NULL) != value)
		snprintf(digits, size, "%.17g", value);
	comma = strchr(digits, ',');
	if (comma)
		*comma = '.';
}

int pmdp_json_real(yajl_gen gen, double value)
{
	char digits[40];

	if (!isfinite(value))
		return done(yajl_gen_null(gen));
	format_real(digits, sizeof(digits), value);
	return put_number(gen, digits);
}

int pmdp_json_kv_text(yajl_gen gen, const char *key, const char *value)
{
	int rc = pmdp_json_key(gen, key);

	return rc ? rc : pmdp_json_text(gen, value);
}

int pmdp_json_kv_int(yajl_gen gen, const char *key, long long value)
{
	int rc = pmdp_json_key(gen, key);

	return rc ? rc : done(yajl_gen_integer(gen, value));
}

int pmdp_json_kv_u64(yajl_gen gen, const char *key, uint64_t value)
{
	char digits[24];
	int rc = pmdp_json_key(gen, key);

	// yajl's integers end at 2^63.
	snprintf(digits, sizeof(digits), "%" PRIu64, value);
	return rc ? rc : put_number(gen, digits);
}

int pmdp_json_kv_real(yajl_gen gen, const char *key, double value)
{
	int rc = pmdp_json_key(gen, key);

	return rc ? rc : pmdp_json_real(gen, value);
}

int pmdp_json_kv_seconds(yajl_gen gen, const char *key, uint64_t ns)
{
	int rc = pmdp_json_key(gen, key);

	return rc ? rc : pmdp_json_seconds(gen, ns);
}

int pmdp_json_kv_bool(yajl_gen gen, const char *key, bool value)
{
	int rc = pmdp_json_key(gen, key);

	return rc ? rc : done(yajl_gen_bool(gen, value));
}

int pmdp_json_kv_null(yajl_gen gen, const char *key)
{
	int rc = pmdp_json_key(gen, key);

	return rc ? rc : done(yajl_gen_null(gen));
}

int pmdp_json_kv_drops(yajl_gen gen, const char *key, const uint64_t *drops)
{
	int rc = pmdp_json_key(gen, key);

	if (!rc)
		rc = done(yajl_gen_map_open(gen));
	for (uint32_t i = 0; !rc && i < PMDP_N_DROPS; i++) {
		const char *name = pmdp_drop_name(i);

		if (name[0] && strcmp(name, "unknown"))
			rc = pmdp_json_kv_u64(gen, name, drops[i]);
	}
	return rc ? rc : done(yajl_gen_map_close(gen));
}
