// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "cp_book.h"

#include <stdlib.h>
#include <string.h>

#include "cp_config.h"
#include "cp_notify.h"

struct cp_book_entry *cp_book_find_id(struct cp_book *book, const char *id)
{
	for (size_t i = 0; i < book->n; i++)
		if (strcmp(book->entries[i].incident.id, id) == 0)
			return &book->entries[i];
	return NULL;
}

struct cp_book_entry *cp_book_find_key(struct cp_book *book, uint64_t key)
{
	for (size_t i = 0; i < book->n; i++)
		if (book->entries[i].key == key)
			return &book->entries[i];
	return NULL;
}

struct cp_book_entry *cp_book_add(struct cp_book *book, const struct pmdp_incident *incident)
{
	struct cp_book_entry *entry;

	if (book->n == CP_BOOK_MAX)
		cp_book_remove(book, &book->entries[0]);
	if (book->n == book->n_max) {
		size_t n_max = book->n_max == 0 ? 8 : book->n_max * 2;

		entry = realloc(book->entries, n_max * sizeof(*entry));
		if (entry == NULL)
			return NULL;
		book->entries = entry;
		book->n_max = n_max;
	}
	entry = &book->entries[book->n++];
	memset(entry, 0, sizeof(*entry));
	entry->incident = *incident;
	return entry;
}

void cp_book_remove(struct cp_book *book, struct cp_book_entry *entry)
{
	size_t i = (size_t)(entry - book->entries);

	memmove(entry, entry + 1, (book->n - i - 1) * sizeof(*entry));
	book->n--;
}

void cp_book_clear(struct cp_book *book)
{
	free(book->entries);
	memset(book, 0, sizeof(*book));
}

bool cp_book_is_lasting(const struct pmdp_incident *incident)
{
	return incident->severity != PMDP_SEVERITY_OKAY;
}

static void count(_Atomic uint64_t *numbers, size_t n, uint32_t index, uint64_t more)
{
	if (index < n)
		atomic_fetch_add_explicit(&numbers[index], more, memory_order_relaxed);
}

static void store(_Atomic uint64_t *numbers, const uint64_t *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		atomic_store_explicit(&numbers[i], values[i], memory_order_relaxed);
}

void cp_book_publish(const struct cp_book *book, struct cp_relay_numbers *numbers)
{
	uint64_t kinds[PMDP_N_KINDS] = {0}, causes[PMDP_N_CAUSES] = {0};

	for (size_t i = 0; i < book->n; i++) {
		const struct pmdp_incident *incident = &book->entries[i].incident;

		if (incident->kind < PMDP_N_KINDS)
			kinds[incident->kind]++;
		if (incident->cause < PMDP_N_CAUSES)
			causes[incident->cause]++;
	}
	store(numbers->n_open, kinds, PMDP_N_KINDS);
	store(numbers->n_open_cause, causes, PMDP_N_CAUSES);
}

void cp_tell(struct cp_instance *instance, const struct pmdp_incident *incident)
{
	struct cp_relay_numbers *numbers = &instance->numbers;

	if (incident->phase == PMDP_PHASE_RAISE)
		count(numbers->n_raised, PMDP_N_KINDS, incident->kind, 1);
	if (incident->phase == PMDP_PHASE_CLEAR) {
		count(numbers->n_cleared, PMDP_N_CAUSES, incident->cause, 1);
		count(numbers->cleared_ns, PMDP_N_CAUSES, incident->cause, incident->duration_ns);
		cp_tally_add(&instance->tally, incident);
	}
	if (incident->thread_name[0] != 0 &&
	    !cp_select_match(&cp_config.threads, incident->thread_name))
		return;
	cp_notify_submit(instance, incident);
}
