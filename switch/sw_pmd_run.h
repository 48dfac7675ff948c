// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * What a PMD thread does from its start to its end; sw_pmd.c is control's side of it.
 */
#pragma once

#include <stdint.h>

struct pmdp_lane;
struct sw_pmd;
struct sw_pmd_run;

// How often a PMD leaves its poll loop to publish its counters and look at its plan.
#define SW_PMD_HOUSEKEEP_NS UINT64_C(500000)

// Entry of the thread; arg is its struct sw_pmd.
void *sw_pmd_main(void *arg);

#ifdef PMDP_TEST_HOOKS
#define SW_TEST_NONE 0
#define SW_TEST_SPIN 1
#define SW_TEST_BLOCK 2
#define SW_TEST_FAULT 3
#define SW_TEST_EXIT 4
// In the PMD: do what a test asked for. Does not return for SW_TEST_EXIT.
void sw_test_act(struct sw_pmd *pmd);
#endif
