// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The words of the product: numbers that stand in segments and the names that users see.
 *
 * One table per kind of word (pmdp_names.c). Every rendering (text, JSON, journal, collectd, VES)
 * takes its words from here. All functions are pure, thread-safe, never return NULL and accept any
 * number: an unknown one gives "unknown". The reverse look-ups return a number or -EINVAL.
 */
#pragma once

#include <stdint.h>

#include "pmdp_abi.h"

// States of a thread, in the numbers of rte_keepalive (enum rte_keepalive_state, DPDK).
#define PMDP_STATE_UNUSED 0
#define PMDP_STATE_ALIVE 1
#define PMDP_STATE_DEAD 2
#define PMDP_STATE_GONE 3
#define PMDP_STATE_MISSING 4
#define PMDP_STATE_DOZING 5
#define PMDP_STATE_SLEEP 6
#define PMDP_N_STATES 7

#define PMDP_KIND_PMD_STALL 1
#define PMDP_KIND_PMD_STARVED 2
#define PMDP_KIND_PMD_NO_PROGRESS 3
#define PMDP_KIND_THREAD_GONE 4
#define PMDP_KIND_SWITCH_GONE 5
#define PMDP_KIND_SWITCH_STOPPED 6
#define PMDP_KIND_SWITCH_BACK 7
#define PMDP_KIND_CONTROL_STUCK 8
#define PMDP_KIND_LINK 9
#define PMDP_KIND_DROPS 10
#define PMDP_KIND_AGENT_LATE 11
#define PMDP_KIND_VERSION_MISMATCH 12 // a segment that this build can't read
#define PMDP_KIND_AGENT_GONE 13       // told by the plugin: the agent gives no sign of life
#define PMDP_N_KINDS 14

#define PMDP_PHASE_RAISE 1
#define PMDP_PHASE_UPDATE 2
#define PMDP_PHASE_CLEAR 3

// Severities of the field (collectd's NOTIF_*).
#define PMDP_SEVERITY_FAILURE 1
#define PMDP_SEVERITY_WARNING 2
#define PMDP_SEVERITY_OKAY 4

#define PMDP_CAUSE_UNKNOWN 0
#define PMDP_CAUSE_PREEMPTED 1
#define PMDP_CAUSE_CPU_QUOTA 2
#define PMDP_CAUSE_RT_THROTTLED 3
#define PMDP_CAUSE_STOPPED 4
#define PMDP_CAUSE_FROZEN 5
#define PMDP_CAUSE_BLOCKED 6
#define PMDP_CAUSE_PAGE_FAULT 7
#define PMDP_CAUSE_IRQ 8
#define PMDP_CAUSE_STEAL 9
#define PMDP_CAUSE_OWN_CODE 10
#define PMDP_CAUSE_EXITED 11
#define PMDP_CAUSE_PROCESS_DIED 12
#define PMDP_N_CAUSES 13

const char *pmdp_state_name(uint32_t state);       // "ALIVE"
const char *pmdp_kind_name(uint32_t kind);         // "pmd-stall"
const char *pmdp_phase_name(uint32_t phase);       // "raise"
const char *pmdp_severity_name(uint32_t severity); // "FAILURE"
const char *pmdp_cause_name(uint32_t cause);       // "preempted"
const char *pmdp_stage_name(uint32_t stage);       // "rx"
const char *pmdp_reason_name(uint32_t reason);     // "reconfiguration"
const char *pmdp_lane_kind_name(uint32_t kind);    // "pmd"
const char *pmdp_link_name(uint32_t link_state);   // "up", "down", "unknown"
const char *pmdp_drop_name(uint32_t reason); // "no_rule"; "unknown" for a number without a name yet
const char *
pmdp_counter_name(uint32_t index); // "rx_packets" of a lane; "" for an index without a name
const char *pmdp_port_counter_name(uint32_t index);

int pmdp_kind_parse(const char *name);
int pmdp_cause_parse(const char *name);
