// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Pump: an output queue tied to the loop. It writes at once what goes, waits for the descriptor to
 * take more, opens again what broke, and says once when a receiver is broken or too slow and once
 * when it is back, with the number lost.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ag_loop.h"
#include "ag_outq.h"

struct ag_pump {
	struct ag_outq q;
	struct ag_loop *loop;
	const char *name;   // for the log, e.g. "json /var/log/pmdpulse.json"
	const char *remedy; // what the operator can do about it
	// Set q.fd (ag_outq_adopt) or return -errno; must not wait.
	int (*open)(void *ctx, struct ag_pump *pump);
	void *ctx;
	// private
	struct ag_source source;
	struct ag_timer retry;
	bool is_waiting; // registered for EPOLLOUT
	bool is_told;
	uint64_t lost_told;
	int last_error;
};

// n_max: lines that may wait, at least 2. -ENOMEM. open, ctx, name, remedy are set by the caller
// before.
int ag_pump_init(struct ag_pump *pump, struct ag_loop *loop, uint32_t n_max);
// Writes what goes without waiting, closes.
void ag_pump_fini(struct ag_pump *pump);

void ag_pump_put(struct ag_pump *pump, const char *text, size_t len);
void ag_pump_run(struct ag_pump *pump);
// Close; the next run opens again.
void ag_pump_close(struct ag_pump *pump);
