// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Actions to text. Control thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sw_act;
struct sw_rule_act;

#define SW_ACTS_TEXT_BYTES 4096 // enough for SW_XLATE_MAX_ACTS

// One action of a rule. Length as of snprintf, here and below.
int sw_rule_act_format(const struct sw_rule_act *act, char *out, size_t size);

// The actions of a megaflow whose packets have this dl_type (network order), e.g.
// "set(nw_dst=10.0.0.1),output:2" or "drop(no_rule)".
int sw_acts_format(const struct sw_act *acts, uint32_t n_acts, uint32_t drop_reason,
		   uint16_t dl_type, char *out, size_t size);
