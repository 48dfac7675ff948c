// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The table of the agent's settings, private to ag_config*.c.
 */
#pragma once

#include "ag_config.h"

// set returns false for a wrong value and may leave the setting half changed: the start stops then.
struct ag_key {
	const char *name;
	const char *value_help;
	const char *help;
	const char *right; // what would be right, for the error
	bool is_list;
	bool (*set)(struct ag_config *config, const char *value);
	void (*get)(const struct ag_config *config, char *out, size_t size);
	void (*clear)(struct ag_config *config); // lists only
};

#define AG_N_KEYS 15

extern const struct ag_key ag_keys[];
