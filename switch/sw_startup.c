// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_startup.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sw_cmd.h"

#define MAX_WORDS 64
#define MAX_FILE_LINES 65536

// The lines of a file, without their newlines.
struct lines {
	char **text;
	uint32_t n, room;
};

static void lines_free(struct lines *lines)
{
	for (uint32_t i = 0; i < lines->n; i++)
		free(lines->text[i]);
	free(lines->text);
}

static int lines_add(struct lines *lines, const char *line)
{
	if (lines->n == MAX_FILE_LINES)
		return -EFBIG;
	if (lines->n == lines->room) {
		uint32_t room = lines->room ? lines->room * 2 : 64;
		char **larger = realloc(lines->text, room * sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		lines->text = larger;
		lines->room = room;
	}
	lines->text[lines->n] = strdup(line);
	if (!lines->text[lines->n])
		return -ENOMEM;
	lines->n++;
	return 0;
}

static int lines_read(const char *path, struct lines *out_lines, struct sw_error *err)
{
	struct lines lines = {.text = NULL};
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	int rc = 0;

	if (!file)
		return sw_fail(err, -errno, "%s: %s", path, strerror(errno));
	while (rc == 0 && getline(&line, &size, file) >= 0) {
		line[strcspn(line, "\r\n")] = 0;
		rc = lines_add(&lines, line);
	}
	if (rc == 0 && ferror(file))
		rc = -EIO;
	fclose(file);
	free(line);
	if (rc < 0) {
		lines_free(&lines);
		return sw_fail(err, rc, "%s: %s", path, strerror(-rc));
	}
	*out_lines = lines;
	return 0;
}

// One word at *from, written to *to without its quotes. Moves both on; -EINVAL: a quote has no end.
static int take_word(const char **from, char **to)
{
	char quote = 0;
	const char *at;
	char *end = *to;

	for (at = *from; *at && (quote || !strchr(" \t", *at)); at++) {
		if (quote ? *at == quote : *at == '\'' || *at == '"') {
			quote = quote ? 0 : *at;
		} else {
			if (*at == '\\' && quote != '\'' && at[1])
				at++;
			*end++ = *at;
		}
	}
	if (quote)
		return -EINVAL;
	*from = *at ? at + 1 : at;
	*end++ = 0;
	*to = end;
	return 0;
}

int sw_startup_split(char *line, const char **out_words, int n, struct sw_error *err)
{
	const char *from = line;
	char *to = line;
	int count = 0;

	for (;;) {
		const char *word = to;

		from += strspn(from, " \t");
		if (*from == 0 || *from == '#')
			return count;
		if (count == n)
			return sw_fail(err, -EINVAL, "more than %d words in a line", n);
		if (take_word(&from, &to) < 0)
			return sw_fail(err, -EINVAL, "a quote has no end");
		out_words[count++] = word;
	}
}

// add-flows FILE: the rules, one argument a line.
static int run_with_file(struct sw_switch *sw, int argc, const char **argv, struct sw_error *err)
{
	struct sw_error why;
	struct lines lines;
	int rc;

	if (argc != 2)
		return sw_fail(err, -EINVAL, "usage: %s FILE", argv[0]);
	rc = lines_read(argv[1], &lines, err);
	if (rc < 0)
		return rc;
	rc = sw_cmd_run(sw, argv[0], (int)lines.n, (const char *const *)lines.text, NULL, &why);
	lines_free(&lines);
	return rc < 0 ? sw_fail(err, rc, "%s: %s", argv[1], why.text) : 0;
}

static int run_line(struct sw_switch *sw, char *line, struct sw_error *err)
{
	const char *words[MAX_WORDS];
	int n = sw_startup_split(line, words, MAX_WORDS, err);

	if (n <= 0)
		return n;
	if (strcmp(words[0], "add-flows") == 0 || strcmp(words[0], "replace-flows") == 0)
		return run_with_file(sw, n, words, err);
	return sw_cmd_run(sw, words[0], n - 1, words + 1, NULL, err);
}

int sw_startup_run(struct sw_switch *sw, const char *path, struct sw_error *err)
{
	struct sw_error why;
	struct lines lines;
	int rc = lines_read(path, &lines, err);

	if (rc < 0)
		return rc;
	for (uint32_t i = 0; rc == 0 && i < lines.n; i++) {
		rc = run_line(sw, lines.text[i], &why);
		if (rc < 0)
			sw_fail(err, rc, "%s:%u: %.400s", path, i + 1, why.text);
	}
	lines_free(&lines);
	return rc < 0 ? rc : 0;
}
