// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Which threads are meant: the options Thread and IgnoreSelected, as collectd's plugins know them.
 *
 * A pattern between slashes is an extended regular expression, anything else a whole name. Filled
 * while the configuration is read, then only asked: cp_select_match may run in any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct cp_select_item;

struct cp_select {
	struct cp_select_item *items;
	size_t n_items;
	bool is_inverted; // IgnoreSelected: all but these
};

// -EINVAL: not a regular expression; why (may be NULL) says so. -ENOMEM.
int cp_select_add(struct cp_select *select, const char *pattern, char *why, size_t why_size);

// Without a pattern everything is selected.
bool cp_select_match(const struct cp_select *select, const char *name);

void cp_select_clear(struct cp_select *select);
