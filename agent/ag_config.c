// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_config.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ag_config_keys.h"

#define NS_PER_MS UINT64_C(1000000)

static const struct ag_key *find_key(const char *name, size_t len)
{
	for (size_t i = 0; i < AG_N_KEYS; i++)
		if (strlen(ag_keys[i].name) == len && !memcmp(ag_keys[i].name, name, len))
			return &ag_keys[i];
	return NULL;
}

void ag_config_init(struct ag_config *config)
{
	memset(config, 0, sizeof(*config));
	config->hold_ns = 1000 * NS_PER_MS;
	config->starve_pct = 30;
	config->hook_timeout_ms = 10000;
	config->mode = 0640;
	config->fifo_prio = 1;
}

bool ag_config_has_key(const char *key)
{
	return find_key(key, strlen(key)) != NULL;
}

void ag_config_help(FILE *out)
{
	for (size_t i = 0; i < AG_N_KEYS; i++) {
		char left[64];

		snprintf(left, sizeof(left), "--%s=%s", ag_keys[i].name, ag_keys[i].value_help);
		fprintf(out, "  %-30s %s\n", left, ag_keys[i].help);
	}
}

bool ag_config_get(const struct ag_config *config, uint32_t index, const char **out_key,
		   const char **out_help, char *out_value, size_t value_size)
{
	if (index >= AG_N_KEYS)
		return false;
	*out_key = ag_keys[index].name;
	if (out_help)
		*out_help = ag_keys[index].help;
	ag_keys[index].get(config, out_value, value_size);
	return true;
}

int ag_config_arg(struct ag_config *config, const char *arg, uint64_t *list_seen, char *error,
		  size_t error_size)
{
	const char *equals = strchr(arg, '=');
	size_t len = equals ? (size_t)(equals - arg) : strlen(arg);
	const struct ag_key *key = find_key(arg, len);

	if (!key) {
		snprintf(error, error_size, "--%.*s: no such setting; --help lists them", (int)len,
			 arg);
		return -EINVAL;
	}
	if (!equals) {
		snprintf(error, error_size, "--%s: a value is missing; right would be %s",
			 key->name, key->right);
		return -EINVAL;
	}
	uint64_t bit = UINT64_C(1) << (key - ag_keys);
	if (key->is_list && !(*list_seen & bit))
		key->clear(config);
	*list_seen |= bit;
	if (!key->set(config, equals + 1)) {
		snprintf(error, error_size, "--%s: \"%s\" is wrong; right would be %s", key->name,
			 equals + 1, key->right);
		return -EINVAL;
	}
	return 0;
}

static char *trim(char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	char *end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*end = 0;
	return text;
}

// One line of the file. seen[] holds the line number of each key that stands already.
static int file_line(struct ag_config *config, char *line, uint32_t number, uint32_t *seen,
		     char *error, size_t size)
{
	char *text = trim(line);

	if (!*text || *text == '#' || *text == ';' || !strcmp(text, "[agent]"))
		return 0;
	if (*text == '[') {
		snprintf(error, size, "%s: no such section; the only one is [agent]", text);
		return -EINVAL;
	}
	char *equals = strchr(text, '=');
	if (!equals) {
		snprintf(error, size, "\"%s\" is no setting; right would be key = value", text);
		return -EINVAL;
	}
	*equals = 0;
	char *name = trim(text);
	char *value = trim(equals + 1);
	const struct ag_key *key = find_key(name, strlen(name));
	if (!key) {
		snprintf(error, size, "%s: no such setting; pmdpulse-agent --help lists them",
			 name);
		return -EINVAL;
	}
	uint32_t *at = &seen[key - ag_keys];
	if (*at && !key->is_list) {
		snprintf(error, size, "%s: stands in line %u already; keep one of them", name, *at);
		return -EINVAL;
	}
	*at = number;
	if (!key->set(config, value)) {
		snprintf(error, size, "%s: \"%s\" is wrong; right would be %s", name, value,
			 key->right);
		return -EINVAL;
	}
	return 0;
}

int ag_config_file(struct ag_config *config, const char *path, char *error, size_t error_size)
{
	uint32_t seen[AG_N_KEYS] = {0};
	uint32_t number = 0;
	char *line = NULL;
	size_t line_size = 0;
	int rc = 0;

	FILE *file = fopen(path, "re");
	if (!file) {
		rc = -errno;
		snprintf(error, error_size, "%s: %s; give another file with -c", path,
			 strerror(-rc));
		return rc;
	}
	while (!rc && getline(&line, &line_size, file) >= 0) {
		char why[AG_ERROR_BYTES];

		rc = file_line(config, line, ++number, seen, why, sizeof(why));
		if (rc)
			snprintf(error, error_size, "%s:%u: %s", path, number, why);
	}
	if (!rc && ferror(file)) {
		rc = -EIO;
		snprintf(error, error_size, "%s: can't be read; give another file with -c", path);
	}
	free(line);
	fclose(file);
	return rc;
}
