// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * One value to collectd, by its row in the naming table. plugin_dispatch_values() copies and
 * queues.
 */
#pragma once

#include <stdint.h>

#include "cp_types.h"

// What the values of one object have in common.
struct cp_object {
	const char *label; // plugin instance (cp_label.h)
	uint64_t time;     // cdtime_t, the same for one round
	uint64_t interval; // cdtime_t
};

// detail (type instance) may be NULL.
void cp_gauge(const struct cp_object *object, enum cp_type_id id, const char *detail, double value);
void cp_count(const struct cp_object *object, enum cp_type_id id, const char *detail,
	      uint64_t value);
// For a type with two sources.
void cp_count2(const struct cp_object *object, enum cp_type_id id, const char *detail,
	       uint64_t first, uint64_t second);

// Register every data set of the table. In module_register.
void cp_types_register(void);
