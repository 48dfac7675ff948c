// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The command line: EAL's options, then "--", then ours.
 */
#pragma once

#include "sw_error.h"
#include "sw_switch.h"

#define SW_OPTIONS_RUN 0
#define SW_OPTIONS_DONE 1 // help or version was printed

/*
 * Parse. *out_eal_argc counts argv[0] and what stands before "--". Returns SW_OPTIONS_*, or -EINVAL
 * (wrong usage), -ENAMETOOLONG.
 */
int sw_options_parse(int argc, char **argv, struct sw_options *out_options, int *out_eal_argc,
		     struct sw_error *err);
