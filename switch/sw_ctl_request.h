// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * One line of the control protocol: request to reply.
 */
#pragma once

#include <stddef.h>

struct sw_switch;

/*
 * Carry out the request in line (len bytes, followed by a 0 that does not count). Returns the
 * reply, malloc'd, with its newline, *out_len bytes long; NULL without memory. Any line gets a
 * reply.
 */
char *sw_ctl_answer(struct sw_switch *sw, const char *line, size_t len, size_t *out_len);

// The reply to what is no request: {"id": null, "ok": false, "error": text}. NULL without memory.
char *sw_ctl_refuse(const char *text, size_t *out_len);
