// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "cp_instance.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cp_log.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cp_instance *table[CP_MAX_INSTANCES];
static _Atomic size_t n_table; // entries below it never change (release/acquire)
static bool is_full_told;

static struct cp_instance *find(const char *name)
{
	for (size_t i = 0; i < cp_instances_count(); i++)
		if (strcmp(table[i]->name, name) == 0)
			return table[i];
	return NULL;
}

struct cp_instance *cp_instances_add(const char *name)
{
	struct cp_instance *instance;
	bool is_to_tell = false;
	size_t n;

	pthread_mutex_lock(&lock);
	instance = find(name);
	n = cp_instances_count();
	if (instance == NULL && n < CP_MAX_INSTANCES) {
		instance = calloc(1, sizeof(*instance));
		if (instance != NULL) {
			strncpy(instance->name, name, sizeof(instance->name) - 1);
			table[n] = instance;
			atomic_store_explicit(&n_table, n + 1, memory_order_release);
		}
	} else if (instance == NULL) {
		is_to_tell = !is_full_told;
		is_full_told = true;
	}
	pthread_mutex_unlock(&lock);
	if (is_to_tell)
		cp_log(LOG_WARNING,
		       "instance %s and further ones are left out: more than %d; choose with "
		       "the option Instance",
		       name, CP_MAX_INSTANCES);
	return instance;
}

size_t cp_instances_count(void)
{
	return atomic_load_explicit(&n_table, memory_order_acquire);
}

struct cp_instance *cp_instances_at(size_t i)
{
	return table[i];
}

static void discover(const char *rundir, const char *suffix)
{
	char names[CP_MAX_INSTANCES][PMDP_INSTANCE_BYTES];
	int n = pmdp_instances(rundir, suffix, names, CP_MAX_INSTANCES);

	for (int i = 0; i < n && i < CP_MAX_INSTANCES; i++)
		cp_instances_add(names[i]);
}

void cp_instances_discover(const char *rundir)
{
	discover(rundir, "ring");
	discover(rundir, "incidents");
}

void cp_instances_clear(void (*free_relay)(struct cp_relay *),
			void (*free_sampler)(struct cp_sampler *))
{
	size_t n = cp_instances_count();

	atomic_store_explicit(&n_table, 0, memory_order_release);
	for (size_t i = 0; i < n; i++) {
		free_relay(table[i]->relay);
		free_sampler(table[i]->sampler);
		free(table[i]);
		table[i] = NULL;
	}
	is_full_told = false;
}
