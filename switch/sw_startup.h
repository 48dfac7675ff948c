// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The start-up file: the commands of the command line, one a line.
 *
 * Words are separated by blanks; '...' and "..." keep blanks together, \ takes the next character
 * as it is (not inside '...'), # begins a comment where a word could begin. Only commands that
 * change something have a place. add-flows and replace-flows read their file here.
 */
#pragma once

#include <stddef.h>

#include "sw_error.h"

struct sw_switch;

// Carry out the file, to its first error: err is "FILE:LINE: ...". -errno of open and read, or the
// command's.
int sw_startup_run(struct sw_switch *sw, const char *path, struct sw_error *err);

/*
 * Split a line into words, in place. Fills at most n, returns how many, or -EINVAL: a quote without
 * an end or too many words.
 */
int sw_startup_split(char *line, const char **out_words, int n, struct sw_error *err);
