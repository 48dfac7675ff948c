// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Loads from any address, in the frame's byte order.
#pragma once

#include <stdint.h>
#include <string.h>

static inline uint16_t sw_load16(const uint8_t *p)
{
	uint16_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

static inline uint32_t sw_load32(const uint8_t *p)
{
	uint32_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

static inline uint64_t sw_load64(const uint8_t *p)
{
	uint64_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}
