// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "pmdp_settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct pmdp_setting *find_key(const struct pmdp_settings *settings, const char *name,
					   size_t len)
{
	for (uint32_t i = 0; i < settings->n_keys; i++)
		if (strlen(settings->keys[i].name) == len &&
		    !memcmp(settings->keys[i].name, name, len))
			return &settings->keys[i];
	return NULL;
}

bool pmdp_settings_has(const struct pmdp_settings *settings, const char *key)
{
	return find_key(settings, key, strlen(key)) != NULL;
}

void pmdp_settings_help(const struct pmdp_settings *settings, FILE *out)
{
	for (uint32_t i = 0; i < settings->n_keys; i++) {
		const struct pmdp_setting *key = &settings->keys[i];
		char left[64];

		snprintf(left, sizeof(left), "--%s=%s", key->name, key->value_help);
		fprintf(out, "  %-30s %s\n", left, key->help);
	}
}

bool pmdp_settings_get(const struct pmdp_settings *settings, const void *config, uint32_t index,
		       const char **out_key, const char **out_help, char *out_value,
		       size_t value_size)
{
	if (index >= settings->n_keys)
		return false;
	*out_key = settings->keys[index].name;
	if (out_help)
		*out_help = settings->keys[index].help;
	settings->keys[index].get(config, out_value, value_size);
	return true;
}

int pmdp_settings_arg(const struct pmdp_settings *settings, void *config, const char *arg,
		      uint64_t *list_seen, char *error, size_t error_size)
{
	const char *equals = strchr(arg, '=');
	size_t len = equals ? (size_t)(equals - arg) : strlen(arg);
	const struct pmdp_setting *key = find_key(settings, arg, len);

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
	uint64_t bit = UINT64_C(1) << (key - settings->keys);
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
static int file_line(const struct pmdp_settings *settings, void *config, char *line,
		     uint32_t number, uint32_t *seen, char *error, size_t size)
{
	char *text = trim(line);

	if (!*text || *text == '#' || *text == ';' || !strcmp(text, settings->section))
		return 0;
	if (*text == '[') {
		snprintf(error, size, "%s: no such section; the only one is %s", text,
			 settings->section);
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
	const struct pmdp_setting *key = find_key(settings, name, strlen(name));
	if (!key) {
		snprintf(error, size, "%s: no such setting; %s --help lists them", name,
			 settings->program);
		return -EINVAL;
	}
	uint32_t *at = &seen[key - settings->keys];
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

int pmdp_settings_file(const struct pmdp_settings *settings, void *config, const char *path,
		       char *error, size_t error_size)
{
	uint32_t seen[PMDP_SETTINGS_MAX] = {0};
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
		char why[PMDP_SETTINGS_ERROR_BYTES];

		rc = file_line(settings, config, line, ++number, seen, why, sizeof(why));
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

// "-c FILE", "-cFILE": the last one counts. NULL: none. *out_is_wrong: -c without a file.
static const char *file_option(int argc, char **argv, bool *out_is_wrong)
{
	const char *file = NULL;

	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "-c", 2))
			continue;
		if (argv[i][2])
			file = argv[i] + 2;
		else if (i + 1 < argc)
			file = argv[++i];
		else
			*out_is_wrong = true;
	}
	return file;
}

// One option and, for "--key value", the argument after it. Returns how many were used, or -EINVAL.
static int take_option(const struct pmdp_settings *settings, void *config, int n_left, char **argv,
		       uint64_t *list_seen, char *error, size_t error_size)
{
	char joined[PMDP_SETTING_BYTES + 64];
	const char *arg = argv[0];
	int used = 1;

	if (!strncmp(arg, "-c", 2))
		return arg[2] ? 1 : 2;
	if (strncmp(arg, "--", 2) || !arg[2]) {
		snprintf(error, error_size, "%s: not an option; --help lists them", arg);
		return -EINVAL;
	}
	arg += 2;
	if (!strchr(arg, '=') && pmdp_settings_has(settings, arg) && n_left > 1) {
		snprintf(joined, sizeof(joined), "%s=%s", arg, argv[1]);
		arg = joined;
		used = 2;
	}
	int rc = pmdp_settings_arg(settings, config, arg, list_seen, error, error_size);
	return rc ? rc : used;
}

int pmdp_settings_main(const struct pmdp_settings *settings, void *config, int argc, char **argv,
		       char *error, size_t error_size)
{
	bool is_wrong = false;
	uint64_t list_seen = 0;
	const char *file = file_option(argc, argv, &is_wrong);

	if (is_wrong) {
		snprintf(error, error_size, "-c: a file name is missing");
		return -EINVAL;
	}
	int rc = pmdp_settings_file(settings, config, file ? file : settings->file, error,
				    error_size);
	if (rc && (file || rc != -ENOENT))
		return rc;
	for (int i = 1; i < argc;) {
		int used = take_option(settings, config, argc - i, argv + i, &list_seen, error,
				       error_size);

		if (used < 0)
			return used;
		i += used;
	}
	return 0;
}
