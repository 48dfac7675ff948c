// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "cp_tally.h"

#include <stdio.h>
#include <string.h>

#include "pmdp_names.h"

size_t cp_tally_count(const struct cp_tally *tally)
{
	return atomic_load_explicit(&tally->n_rows, memory_order_acquire);
}

static void name_row(struct cp_tally_row *row, const struct pmdp_incident *incident,
		     const char *culprit)
{
	char detail[CP_LABEL_BYTES];

	memset(row, 0, sizeof(*row));
	memcpy(row->thread_name, incident->thread_name, sizeof(row->thread_name) - 1);
	row->cause = incident->cause;
	row->has_culprit = culprit[0] != 0;
	row->n_zeros = row->has_culprit ? CP_TALLY_ZEROS : 0;
	cp_label(pmdp_cause_name(incident->cause), culprit, detail);
	snprintf(row->detail, sizeof(row->detail), "%.*s", (int)sizeof(row->detail) - 1, detail);
}

static struct cp_tally_row *find(struct cp_tally *tally, const struct cp_tally_row *wanted,
				 size_t *out_n_culprits)
{
	size_t n = cp_tally_count(tally);

	*out_n_culprits = 0;
	for (size_t i = 0; i < n; i++) {
		struct cp_tally_row *row = &tally->rows[i];

		if (strcmp(row->thread_name, wanted->thread_name) != 0)
			continue;
		if (strcmp(row->detail, wanted->detail) == 0)
			return row;
		*out_n_culprits += row->has_culprit;
	}
	return NULL;
}

static struct cp_tally_row *append(struct cp_tally *tally, const struct cp_tally_row *wanted)
{
	size_t n = cp_tally_count(tally);

	if (n == CP_TALLY_ROWS)
		return NULL;
	tally->rows[n] = *wanted;
	atomic_store_explicit(&tally->n_rows, n + 1, memory_order_release);
	return &tally->rows[n];
}

void cp_tally_add(struct cp_tally *tally, const struct pmdp_incident *incident)
{
	struct cp_tally_row wanted, *row;
	size_t n_culprits;

	if (incident->thread_name[0] == 0)
		return;
	name_row(&wanted, incident, incident->culprit_comm);
	row = find(tally, &wanted, &n_culprits);
	if (row == NULL && wanted.has_culprit && n_culprits >= CP_TALLY_CULPRITS) {
		name_row(&wanted, incident, "other");
		row = find(tally, &wanted, &n_culprits);
	}
	if (row == NULL)
		row = append(tally, &wanted);
	if (row == NULL)
		return;
	atomic_fetch_add_explicit(&row->n, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&row->ns, incident->duration_ns, memory_order_relaxed);
}

void cp_tally_take(struct cp_tally_row *row, uint64_t *out_n, uint64_t *out_ns)
{
	*out_n = *out_ns = 0;
	if (row->n_zeros > 0) {
		row->n_zeros--;
		return;
	}
	*out_n = atomic_load_explicit(&row->n, memory_order_relaxed);
	*out_ns = atomic_load_explicit(&row->ns, memory_order_relaxed);
}
