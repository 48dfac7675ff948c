// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "cp_label.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cp_label_set {
	size_t n_max;
	char (*labels)[CP_LABEL_BYTES];
};

// Length of the UTF-8 sequence at s, 0 when it is none. Overlong forms and surrogates are none.
static size_t utf8_len(const unsigned char *s)
{
	size_t len = s[0] < 0x80                   ? 1
		     : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
		     : (s[0] & 0xf0) == 0xe0       ? 3
		     : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
						   : 0;

	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return len;
}

// Cleaned copy of name; says whether it is the same. Cut between characters.
static int clean(const char *name, char *out, size_t size)
{
	const unsigned char *s = (const unsigned char *)name;
	int is_same = 1;
	size_t used = 0;

	while (*s != 0) {
		size_t len = utf8_len(s);
		int is_bad = len == 0 || *s == '/' || *s <= ' ' || *s == 0x7f;

		if (used + (is_bad ? 1 : len) >= size) {
			is_same = 0;
			break;
		}
		if (is_bad) {
			out[used++] = '_';
			is_same = 0;
			s += len == 0 ? 1 : len;
			continue;
		}
		memcpy(out + used, s, len);
		used += len;
		s += len;
	}
	out[used] = 0;
	return is_same;
}

static int label_clean(const char *instance, const char *name, char *out)
{
	int n = snprintf(out, CP_LABEL_BYTES, "%s", instance);

	if (name == NULL || name[0] == 0 || n < 0 || n >= CP_LABEL_BYTES - 1)
		return 1;
	out[n] = ':';
	return clean(name, out + n + 1, CP_LABEL_BYTES - (size_t)n - 1);
}

char *cp_label(const char *instance, const char *name, char *out)
{
	label_clean(instance, name, out);
	return out;
}

struct cp_label_set *cp_label_set_new(size_t n)
{
	struct cp_label_set *set = calloc(1, sizeof(*set));

	if (set == NULL)
		return NULL;
	set->n_max = n;
	set->labels = calloc(n > 0 ? n : 1, sizeof(*set->labels));
	if (set->labels == NULL) {
		free(set);
		return NULL;
	}
	return set;
}

void cp_label_set_free(struct cp_label_set *set)
{
	if (set == NULL)
		return;
	free(set->labels);
	free(set);
}

// Room for "~SLOT" is made by cutting the name, whole characters at a time.
static void append_slot(char *label, uint32_t slot)
{
	char suffix[16];
	size_t len = strlen(label);
	int n = snprintf(suffix, sizeof(suffix), "~%u", slot);

	while (len + (size_t)n >= CP_LABEL_BYTES) {
		len--;
		while (len > 0 && ((unsigned char)label[len] & 0xc0) == 0x80)
			len--;
	}
	memcpy(label + len, suffix, (size_t)n + 1);
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void keep(void *label)
{
	(void)label;
}

// 1: taken by another; 0: it is ours now; -ENOMEM.
static int take(void **tree, char *label)
{
	char **found = tsearch(label, tree, compare);

	return found == NULL ? -ENOMEM : *found != label;
}

int cp_label_set_fill(struct cp_label_set *set, const char *instance, const char *const *names,
		      const uint32_t *slots, size_t n, const char **out)
{
	void *tree = NULL;
	int rc = 0;

	if (n > set->n_max)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		out[i] = NULL;
	// Unchanged names first, so that they keep theirs whatever slot the others have.
	for (int pass = 0; pass < 2 && rc >= 0; pass++) {
		for (size_t i = 0; i < n && rc >= 0; i++) {
			char *label = set->labels[i];

			if (out[i] != NULL ||
			    (!label_clean(instance, names[i], label) && pass == 0))
				continue;
			rc = take(&tree, label);
			if (rc == 1) {
				append_slot(label, slots[i]);
				rc = take(&tree, label);
			}
			out[i] = label;
		}
	}
	tdestroy(tree, keep);
	return rc < 0 ? rc : 0;
}
