// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The look thread: steps every instance's relay when it is due, or at once when the agent touches
 * its file (inotify on the run directory). It never waits for a receiver.
 */
#pragma once

// Start in init, after cp_notify_start(). 0 or -errno.
int cp_watch_start(void);
// Join; takes no longer than one step.
void cp_watch_stop(void);
