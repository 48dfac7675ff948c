// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "pmdp_settings.h"
#include "pmdpulse.h"

bool pmdp_value_number(const char *text, uint64_t min, uint64_t max, int base, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	unsigned long long value = strtoull(text, &end, base);
	if (errno || *end || value < min || value > max)
		return false;
	*out = value;
	return true;
}

bool pmdp_value_text(const char *text, char *out, size_t size)
{
	size_t len = strlen(text);

	if (len == 0 || len >= size)
		return false;
	memcpy(out, text, len + 1);
	return true;
}

bool pmdp_value_path(const char *text, char *out, size_t size)
{
	return text[0] == '/' && pmdp_value_text(text, out, size);
}

bool pmdp_value_user(const char *text, uint32_t *out_uid)
{
	const struct passwd *user = getpwnam(text);
	uint64_t uid;

	if (!user && !pmdp_value_number(text, 0, UINT32_MAX - 1, 10, &uid))
		return false;
	*out_uid = user ? user->pw_uid : (uint32_t)uid;
	return true;
}

bool pmdp_value_bool(const char *text, bool *out)
{
	bool is_true = !strcmp(text, "true");

	if (!is_true && strcmp(text, "false"))
		return false;
	*out = is_true;
	return true;
}

int pmdp_value_word(const char *text, const char *const *names, uint32_t n_names)
{
	for (uint32_t i = 0; i < n_names; i++)
		if (!strcmp(text, names[i]))
			return (int)i;
	return -1;
}

bool pmdp_value_instance(const char *text, char (*names)[PMDP_INSTANCE_BYTES], uint32_t max,
			 uint32_t *n_names)
{
	if (pmdp_instance_check(text))
		return false;
	for (uint32_t i = 0; i < *n_names; i++)
		if (!strcmp(names[i], text))
			return true;
	return *n_names < max && pmdp_value_text(text, names[(*n_names)++], PMDP_INSTANCE_BYTES);
}

void pmdp_value_instances(const char (*names)[PMDP_INSTANCE_BYTES], uint32_t n_names, char *out,
			  size_t size)
{
	size_t used = 0;

	out[0] = 0;
	for (uint32_t i = 0; i < n_names && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", i ? " " : "", names[i]);
}
