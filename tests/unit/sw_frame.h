// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Frames from keys: what extraction does, the other way round, with checksums.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sw_key.h"
#include "tests/unit/sw_bed.h"

// Fields that no frame can have beside the others become 0.
void sw_frame_settle(struct sw_key *key);

// A frame with this key but for its tags, which are given, outermost first. number: it differs from
// others in that.
struct bed_frame sw_frame_make(const struct sw_key *key, const uint16_t *tags, uint32_t n_tags,
			       uint32_t number);

// Both kinds of tags are alike, and the two ways to write a checksum of 0.
bool sw_frame_is_same(const struct bed_frame *a, const struct bed_frame *b);
