// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Errors of the control side: a negative errno for the program, one line for the operator.
 *
 * The line names the object and the remedy. Whoever decides (the command's reply, main) shows it
 * once; nobody logs on the way.
 */
#pragma once

#include <stdarg.h>
#include <stdio.h>

struct sw_error {
	char text[512];
};

// Fill err (may be NULL) and return rc, so that callers can write: return sw_fail(err, -EINVAL,
// ...).
__attribute__((format(printf, 3, 4))) static inline int sw_fail(struct sw_error *err, int rc,
								const char *format, ...)
{
	va_list args;

	if (err != NULL) {
		va_start(args, format);
		vsnprintf(err->text, sizeof(err->text), format, args);
		va_end(args);
	}
	return rc;
}
