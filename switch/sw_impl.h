// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The implementations of extraction and lookup, as control chooses them (dpif-impl-get,
// dpif-impl-set).
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sw_impl;

// Asks the CPU, once, and returns the best implementation that it has.
const struct sw_impl *sw_impl_init(void);

// By number, from 0: all that this build has, the autovalidator last; NULL after it.
const struct sw_impl *sw_impl_at(uint32_t i);
bool sw_impl_is_usable(const struct sw_impl *impl);

// NULL: none of that name that this CPU can run.
const struct sw_impl *sw_impl_find(const char *name);

// What the autovalidator has found different since the start.
uint64_t sw_impl_n_differences(void);
