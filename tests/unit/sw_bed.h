// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * A PMD's packet path over fake devices: what a test gives is received, what is sent is kept for it
 * to look at. ofport 1 to 3 on devices 0 to 2. bed_close() checks that no packet is lost uncounted,
 * that passes are what was received and recirculated, and that every buffer is back.
 */
#pragma once

#include <stdint.h>

#include "sw_pipe_fast.h"
#include "sw_pmd_fast.h"

#define BED_DEVICES 3
#define BED_MAX_SENT 256
#define BED_FRAME_BYTES 1600

struct bed_frame {
	uint16_t len;
	uint8_t bytes[BED_FRAME_BYTES];
};

struct bed {
	struct sw_pmd_run run;
	struct sw_flow_table *flows;
	uint64_t *n; // counters by PMDP_C_*
	uint32_t n_sent[BED_DEVICES];
	struct bed_frame *sent[BED_DEVICES]; // the first BED_MAX_SENT of them
};

extern struct bed bed;

// cmocka fixtures: once per program, and around each test.
int bed_start(void **state);
int bed_stop(void **state);
int bed_open(void **state);
int bed_close(void **state);

// Rules in ovs-ofctl syntax, up to NULL; delete all with bed_clear_flows().
void bed_add_flows(const char *const *texts);
void bed_clear_flows(void);
uint64_t bed_rule_packets(const char *match); // of the rules within

// Frames that the next poll of a device gives.
void bed_give(uint16_t device, const void *bytes, uint16_t len);
// The same with a device's mark, a device's hash, or cut into two segments.
void bed_give_marked(uint16_t device, const void *bytes, uint16_t len, uint32_t mark);
void bed_give_hashed(uint16_t device, const void *bytes, uint16_t len, uint32_t rss);
void bed_give_cut(uint16_t device, const void *bytes, uint16_t len, uint16_t first);
void bed_poll(void);

// A UDP datagram of 60 bytes from 10.0.0.source to 20.0.0.1, port 63.
struct bed_frame bed_udp(uint32_t source, uint16_t port);
void bed_give_udp(uint16_t device, uint32_t source, uint32_t n); // n times
void bed_send_udp(uint16_t device, uint32_t source, uint32_t n); // and polls

// The sweep comes round at least once.
void bed_sweep(void);
