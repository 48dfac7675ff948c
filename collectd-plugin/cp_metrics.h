// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * All values of one read: the rows of cp_types.h, for every instance.
 */
#pragma once

// The read callback: always 0, since collectd would call one that fails less and less often.
int cp_metrics_read(void);
// Frees what the placeholder instance needed.
void cp_metrics_clear(void);
