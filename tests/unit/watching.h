// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * What the tests of the watch share: one watch, one publisher process, the events told so far.
 * Waits are for events, with a deadline. For use inside cmocka tests.
 */
#pragma once

#include <stdint.h>

#include "pmdp_names.h"
#include "pmdp_watch.h"
#include "publisher.h"

#define MS UINT64_C(1000000)
#define INTERVAL_NS (200 * MS) // a thread is dead after 400 ms
#define HOLD_NS (300 * MS)
#define MAX_EVENTS 256
#define NAME "w"

extern struct pmdp_watch *watch;
extern struct test_publisher pub;
extern struct pmdp_watch_event events[MAX_EVENTS];
extern uint32_t n_events;
extern uint64_t last_event_ns;

int watching_setup(void **state);
int watching_teardown(void **state);

void on_event(void *ctx, const struct pmdp_watch_event *event);
const struct pmdp_watch_event *watching_find(uint32_t kind, uint32_t phase);
uint32_t count(uint32_t kind, uint32_t phase); // phase 0: any
void step(void);                               // and sleep until the next one is due
void run_for(uint32_t ms);
void await_status(uint32_t status);
const struct pmdp_watch_event *await_event(uint32_t kind, uint32_t phase);
void new_watch(void);
void start(void); // the publisher
void start_and_attach(void);
