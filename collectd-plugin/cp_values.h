// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The values thread: does the rounds of cp_metrics.c when the read callback asks for one.
 *
 * The callback itself only sets a flag, so that it takes microseconds whatever happens: a round is
 * thousands of queue operations, and on a busy machine each may cost a switch to one of collectd's
 * write threads. A round that is asked for while one runs follows it; two asked for become one.
 */
#pragma once

// Start in init. 0 or -errno.
int cp_values_start(void);
// Join; takes no longer than a round.
void cp_values_stop(void);

// The read callback: always 0, since collectd would call one that fails less and less often.
int cp_values_read(void);
