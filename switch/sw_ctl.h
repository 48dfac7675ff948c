// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Control socket: JSON over RUNDIR/INSTANCE.ctl, one request a line, one reply a line, in order.
 *
 *	{"id": 1, "cmd": "add-port", "args": ["p1", "net_null0"]}
 *	{"id": 1, "ok": true, "data": null}   or   {"id": 1, "ok": false, "error": "..."}
 *
 * Main thread only. Nothing here waits for a client: a client that does not read its reply is not
 * served further and is closed when its place is needed; what it sends is bounded, line and memory.
 */
#pragma once

#include "sw_error.h"

struct sw_switch;
struct sw_ctl;

#define SW_CTL_MAX_CLIENTS 32
#define SW_CTL_MAX_LINE_BYTES (16u << 20)  // a rule file is one request
#define SW_CTL_MAX_REPLY_BYTES (64u << 20) // all rules with their counters

/*
 * Listen. A socket that a dead predecessor left is replaced. Mode 0660, the directory's group.
 * -EADDRINUSE another switch answers there; -ENAMETOOLONG; -errno of socket, bind, chmod, rename.
 */
int sw_ctl_create(struct sw_switch *sw, struct sw_ctl **out_ctl, struct sw_error *err);

// Readable when there is something to serve.
int sw_ctl_fd(const struct sw_ctl *ctl);

// Serve what is there: bounded work, commands included as far as they are (sw_cmd.h).
void sw_ctl_serve(struct sw_ctl *ctl);

// Close all and remove the socket if it is still ours. Accepts NULL.
void sw_ctl_destroy(struct sw_ctl *ctl);
