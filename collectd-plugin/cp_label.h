// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Labels: the OBJECT part of an identifier (cp_types.h), from names that may hold anything.
 *
 * '/', blanks, control characters and bytes that are not UTF-8 become '_'; all else stays as it is.
 * Two objects of one kind never share a label: where two names meet, one that needed no change
 * keeps it, the others get "~SLOT" at the end. A set belongs to one read of one instance. One
 * thread at a time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CP_LABEL_BYTES 128 // collectd's DATA_MAX_NAME_LEN

// INSTANCE:NAME, cleaned; INSTANCE alone when name is empty or NULL. Returns out (CP_LABEL_BYTES).
char *cp_label(const char *instance, const char *name, char *out);

struct cp_label_set;

// NULL without memory. n: how many names will come.
struct cp_label_set *cp_label_set_new(size_t n);
void cp_label_set_free(struct cp_label_set *set);

/*
 * Labels of n objects, all at once: names[i] in slots[i] gives out[i]. The strings stay with the
 * set until its next use. -ENOMEM.
 */
int cp_label_set_fill(struct cp_label_set *set, const char *instance, const char *const *names,
		      const uint32_t *slots, size_t n, const char **out);
