// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * What the poster remembers over a restart: how far each instance's events were dealt with, losses
 * that the collector was not told of, and open incidents of its own. One small text file, replaced
 * as a whole. After a reboot the segments begin anew, so positions of another boot mean nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "pmdp_abi.h"

#define VS_STATE_MAX 64

struct vs_place {
	char instance[PMDP_INSTANCE_BYTES];
	uint64_t next_seq; // of the first event that is still to be sent; 0 unknown
	char last_id
		[PMDP_ID_BYTES]; // id of the event before it: another one there is another history
	char gone_id[PMDP_ID_BYTES]; // agent-gone that the collector believes open; empty: none
	uint64_t gone_started_us;
};

struct vs_state {
	uint64_t n_untold;
	struct vs_place places[VS_STATE_MAX];
	uint32_t n_places;
};

/*
 * Read FOLDER/state. A missing file or one of another boot is an empty state (n_untold, and what
 * agent-gone is open, hold over a reboot). 0; -EBADMSG: damaged, out is empty; -errno of reading
 * it.
 */
int vs_state_load(const char *folder, struct vs_state *out_state);
// 0 or -errno; the old file stays then.
int vs_state_save(const char *folder, const struct vs_state *state);

// The place of this instance, a new one if need be; NULL when the table is full.
struct vs_place *vs_state_place(struct vs_state *state, const char *instance);
