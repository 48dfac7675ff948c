// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Settings of a program: an ini-like file, then the command line, which wins. One table holds every
 * key with its parser and its help text, so that file, --key and --help never differ.
 *
 * A setting that is wrong stops the start: the error names where it stands (file and line, or the
 * option), the key, and what would be right.
 *
 * For our own programs; not exported. Nothing here prints or exits: errors are texts for the
 * caller.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "pmdp_abi.h"

#pragma GCC visibility push(hidden)

#define PMDP_SETTING_BYTES 4096 // of a value
#define PMDP_SETTINGS_MAX 64    // keys of one program
#define PMDP_SETTINGS_ERROR_BYTES 1024

// set returns false for a wrong value and may leave the setting half changed: the start stops then.
struct pmdp_setting {
	const char *name;
	const char *value_help;
	const char *help;
	const char *right; // what would be right, for the error
	bool is_list;
	bool (*set)(void *config, const char *value);
	void (*get)(const void *config, char *out, size_t size);
	void (*clear)(void *config); // lists only
};

struct pmdp_settings {
	const char *program; // "pmdpulse-agent"
	const char *section; // the one that the file may name: "[agent]"
	const char *file;    // read when there is one and no -c is given
	const struct pmdp_setting *keys;
	uint32_t n_keys; // at most PMDP_SETTINGS_MAX
};

/*
 * Read a settings file. Returns 0, or a negative errno with a text in error: -ENOENT and the like
 * when it can't be read, -EINVAL for a wrong line. Blocks on the file.
 */
int pmdp_settings_file(const struct pmdp_settings *settings, void *config, const char *path,
		       char *error, size_t error_size);

/*
 * Take one "key=value" of the command line (without the dashes). The first use of a repeatable key
 * replaces what the file said; *list_seen (0 at first) remembers which were used. 0 or -EINVAL.
 */
int pmdp_settings_arg(const struct pmdp_settings *settings, void *config, const char *arg,
		      uint64_t *list_seen, char *error, size_t error_size);

/*
 * All of a command line: "-c FILE" (the last one counts) or the program's own file, if there is
 * one, then every "--key=value" and "--key value". 0 or a negative errno, with a text in error.
 */
int pmdp_settings_main(const struct pmdp_settings *settings, void *config, int argc, char **argv,
		       char *error, size_t error_size);

// Is this the name of a setting?
bool pmdp_settings_has(const struct pmdp_settings *settings, const char *key);

// The table of settings, for --help.
void pmdp_settings_help(const struct pmdp_settings *settings, FILE *out);

// Settings in effect, by index: false past the last one. out_help may be NULL.
bool pmdp_settings_get(const struct pmdp_settings *settings, const void *config, uint32_t index,
		       const char **out_key, const char **out_help, char *out_value,
		       size_t value_size);

// Parsers of values that several programs take (pmdp_settings_value.c). false: wrong.

// A whole number and nothing else; base 8 or 10.
bool pmdp_value_number(const char *text, uint64_t min, uint64_t max, int base, uint64_t *out);
// Neither empty nor longer than out has room for.
bool pmdp_value_text(const char *text, char *out, size_t size);
// A text that begins with '/'.
bool pmdp_value_path(const char *text, char *out, size_t size);
// A user that exists, by name or number.
bool pmdp_value_user(const char *text, uint32_t *out_uid);
bool pmdp_value_bool(const char *text, bool *out); // true or false
// Index of text in names, or -1.
int pmdp_value_word(const char *text, const char *const *names, uint32_t n_names);
// One more instance; one that is in the list already changes nothing.
bool pmdp_value_instance(const char *text, char (*names)[PMDP_INSTANCE_BYTES], uint32_t max,
			 uint32_t *n_names);
// A list of instances with blanks between.
void pmdp_value_instances(const char (*names)[PMDP_INSTANCE_BYTES], uint32_t n_names, char *out,
			  size_t size);

#pragma GCC visibility pop
