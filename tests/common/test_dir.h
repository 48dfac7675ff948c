// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// A folder of its own for each test, on the tmpfs that every Linux has, and a word about skips.
#pragma once

#include <stdint.h>

// Make one; the path stays until test_dir_remove(). Ends the program where that is impossible.
const char *test_dir_make(void);
void test_dir_remove(void);

// cmocka fixtures.
int test_dir_setup(void **state);
int test_dir_teardown(void **state);

// DIR/NAME in a static buffer, good for a few calls.
const char *test_dir_path(const char *name);

// Print why, then skip(). For use inside cmocka tests.
#define test_skip(...)                                  \
	do {                                            \
		print_message("skipped: " __VA_ARGS__); \
		print_message("\n");                    \
		skip();                                 \
	} while (0)

// Seed of a random test: $PMDP_TEST_SEED, else from the clock. Prints it.
uint64_t test_seed(const char *test);
// xorshift; state must not be 0.
uint64_t test_random(uint64_t *state);

// CLOCK_MONOTONIC.
uint64_t test_now_ns(void);
