// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "cp_select.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cp_select_item {
	char *name; // NULL: a regular expression
	regex_t regex;
};

static int compile(const char *pattern, size_t len, regex_t *out_regex, char *why, size_t why_size)
{
	char *inner = strndup(pattern + 1, len - 2);
	int rc;

	if (inner == NULL)
		return -ENOMEM;
	rc = regcomp(out_regex, inner, REG_EXTENDED | REG_NOSUB);
	free(inner);
	if (rc == 0)
		return 0;
	if (why != NULL)
		regerror(rc, out_regex, why, why_size);
	return rc == REG_ESPACE ? -ENOMEM : -EINVAL;
}

int cp_select_add(struct cp_select *select, const char *pattern, char *why, size_t why_size)
{
	struct cp_select_item *items, item = {0};
	size_t len = strlen(pattern);
	int rc = 0;

	if (len == 0) {
		if (why != NULL)
			snprintf(why, why_size, "empty name");
		return -EINVAL;
	}
	items = realloc(select->items, (select->n_items + 1) * sizeof(*items));
	if (items == NULL)
		return -ENOMEM;
	select->items = items;
	if (len >= 2 && pattern[0] == '/' && pattern[len - 1] == '/') {
		rc = compile(pattern, len, &item.regex, why, why_size);
	} else {
		item.name = strdup(pattern);
		rc = item.name == NULL ? -ENOMEM : 0;
	}
	if (rc < 0) {
		free(item.name);
		return rc;
	}
	items[select->n_items++] = item;
	return 0;
}

bool cp_select_match(const struct cp_select *select, const char *name)
{
	bool is_listed = false;

	if (select->n_items == 0)
		return true;
	for (size_t i = 0; i < select->n_items && !is_listed; i++) {
		const struct cp_select_item *item = &select->items[i];

		is_listed = item->name != NULL ? strcmp(item->name, name) == 0
					       : regexec(&item->regex, name, 0, NULL, 0) == 0;
	}
	return is_listed != select->is_inverted;
}

void cp_select_clear(struct cp_select *select)
{
	for (size_t i = 0; i < select->n_items; i++) {
		if (select->items[i].name == NULL)
			regfree(&select->items[i].regex);
		free(select->items[i].name);
	}
	free(select->items);
	memset(select, 0, sizeof(*select));
}
