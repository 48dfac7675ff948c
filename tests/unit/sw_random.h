// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Random rules and keys with few values each, so that they meet often.
 */
#pragma once

#include <stdint.h>

#include "sw_key.h"
#include "sw_rule.h"

#define SW_RANDOM_PORTS 5
#define SW_RANDOM_TABLES 4

extern uint64_t sw_random_seed; // to be set first

// 0 to n - 1.
uint32_t sw_random_dice(uint32_t n);
struct sw_rule sw_random_rule(void);
struct sw_key sw_random_key(void);
