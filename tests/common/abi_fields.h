// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Every struct, field and number of pmdp_abi.h, once, for the table (tests/tools/abi_table.c) and
 * for the test that compares it (tests/unit/test_abi.c). A field that is missing here leaves a hole
 * that test_abi.c finds: the fields of a struct must cover it without a gap.
 */
#pragma once

#include "pmdp_abi.h"

// clang-format off
#define ABI_STRUCTS(S, F) \
	S(pmdp_section_shm) \
	F(pmdp_section_shm, kind) F(pmdp_section_shm, n_items) \
	F(pmdp_section_shm, item_size_bytes) F(pmdp_section_shm, reserved) \
	F(pmdp_section_shm, offset_bytes) \
	S(pmdp_clock_pair_shm) \
	F(pmdp_clock_pair_shm, seq) F(pmdp_clock_pair_shm, ticks) \
	F(pmdp_clock_pair_shm, mono_ns) F(pmdp_clock_pair_shm, ticks_hz) \
	S(pmdp_header_shm) \
	F(pmdp_header_shm, magic) F(pmdp_header_shm, abi_version) \
	F(pmdp_header_shm, segment_kind) F(pmdp_header_shm, segment_size_bytes) \
	F(pmdp_header_shm, header_size_bytes) F(pmdp_header_shm, clock_kind) \
	F(pmdp_header_shm, generation) F(pmdp_header_shm, writer_pid) \
	F(pmdp_header_shm, records_per_lane) F(pmdp_header_shm, writer_start_ticks) \
	F(pmdp_header_shm, pidns_inode) F(pmdp_header_shm, boot_id) \
	F(pmdp_header_shm, created_realtime_us) F(pmdp_header_shm, reserved0) \
	F(pmdp_header_shm, instance) F(pmdp_header_shm, sections) \
	F(pmdp_header_shm, reserved1) F(pmdp_header_shm, alive_ns) F(pmdp_header_shm, flags) \
	F(pmdp_header_shm, keepalive_interval_ns) F(pmdp_header_shm, gap_limit_ns) \
	F(pmdp_header_shm, stopped_ns) F(pmdp_header_shm, n_events) \
	F(pmdp_header_shm, reserved2) F(pmdp_header_shm, clock) F(pmdp_header_shm, reserved3) \
	S(pmdp_hot_shm) \
	F(pmdp_hot_shm, beats) F(pmdp_hot_shm, beat_ticks) F(pmdp_hot_shm, crumb) \
	F(pmdp_hot_shm, announce) F(pmdp_hot_shm, deadline_ns) F(pmdp_hot_shm, incarnation) \
	F(pmdp_hot_shm, n_gaps) F(pmdp_hot_shm, gap_ticks) F(pmdp_hot_shm, n_stalls) \
	F(pmdp_hot_shm, stall_ticks) F(pmdp_hot_shm, last_stall_ticks) \
	F(pmdp_hot_shm, longest_gap_ticks) F(pmdp_hot_shm, n_records) \
	F(pmdp_hot_shm, reserved) \
	S(pmdp_lane_body) \
	F(pmdp_lane_body, name) F(pmdp_lane_body, kind) F(pmdp_lane_body, tid) \
	F(pmdp_lane_body, core) F(pmdp_lane_body, numa) F(pmdp_lane_body, thread_start_ticks) \
	F(pmdp_lane_body, snapshot_ticks) F(pmdp_lane_body, counters) \
	F(pmdp_lane_body, gap_hist) \
	S(pmdp_lane_shm) \
	F(pmdp_lane_shm, claimed) F(pmdp_lane_shm, seq) F(pmdp_lane_shm, reserved0) \
	F(pmdp_lane_shm, body) F(pmdp_lane_shm, reserved1) \
	S(pmdp_record_body) \
	F(pmdp_record_body, kind) F(pmdp_record_body, reserved) \
	F(pmdp_record_body, begin_ticks) F(pmdp_record_body, length_ticks) \
	F(pmdp_record_body, crumb) F(pmdp_record_body, value0) F(pmdp_record_body, value1) \
	S(pmdp_record_shm) \
	F(pmdp_record_shm, seq) F(pmdp_record_shm, body) F(pmdp_record_shm, reserved) \
	S(pmdp_port_body) \
	F(pmdp_port_body, name) F(pmdp_port_body, ofport) F(pmdp_port_body, admin_state) \
	F(pmdp_port_body, link_state) F(pmdp_port_body, link_speed_mbps) \
	F(pmdp_port_body, n_rxq) F(pmdp_port_body, n_txq) F(pmdp_port_body, mtu) \
	F(pmdp_port_body, reserved) F(pmdp_port_body, snapshot_ns) \
	F(pmdp_port_body, counters) \
	S(pmdp_port_shm) \
	F(pmdp_port_shm, seq) F(pmdp_port_shm, slot_generation) F(pmdp_port_shm, in_use) \
	F(pmdp_port_shm, reserved) F(pmdp_port_shm, body) F(pmdp_port_shm, reserved1) \
	S(pmdp_evidence) \
	F(pmdp_evidence, key) F(pmdp_evidence, type) F(pmdp_evidence, reserved) \
	F(pmdp_evidence, integer) F(pmdp_evidence, real) F(pmdp_evidence, text) \
	S(pmdp_incident) \
	F(pmdp_incident, id) F(pmdp_incident, seq) F(pmdp_incident, kind) \
	F(pmdp_incident, phase) F(pmdp_incident, severity) F(pmdp_incident, cause) \
	F(pmdp_incident, state) F(pmdp_incident, n_evidence) \
	F(pmdp_incident, started_realtime_us) F(pmdp_incident, detected_realtime_us) \
	F(pmdp_incident, emitted_realtime_us) F(pmdp_incident, duration_ns) \
	F(pmdp_incident, instance) F(pmdp_incident, thread_name) F(pmdp_incident, thread_tid) \
	F(pmdp_incident, thread_core) F(pmdp_incident, culprit_comm) \
	F(pmdp_incident, culprit_class) F(pmdp_incident, culprit_pid) \
	F(pmdp_incident, culprit_tid) F(pmdp_incident, culprit_took_ns) \
	F(pmdp_incident, message) F(pmdp_incident, object) F(pmdp_incident, evidence) \
	S(pmdp_event_shm) \
	F(pmdp_event_shm, seq) F(pmdp_event_shm, in_use) F(pmdp_event_shm, reserved) \
	F(pmdp_event_shm, body) F(pmdp_event_shm, reserved1)

#define ABI_CONSTANTS(C) \
	C(PMDP_MAGIC) C(PMDP_ABI_VERSION) C(PMDP_SEGMENT_RING) \
	C(PMDP_SEGMENT_INCIDENTS) C(PMDP_CLOCK_MONOTONIC) C(PMDP_CLOCK_TSC) \
	C(PMDP_FLAG_KEEPALIVE) C(PMDP_INSTANCE_BYTES) C(PMDP_NAME_BYTES) \
	C(PMDP_LANE_NAME_BYTES) C(PMDP_N_SECTIONS) C(PMDP_SECTION_HOT) C(PMDP_SECTION_LANES) \
	C(PMDP_SECTION_RECORDS) C(PMDP_SECTION_PORTS) C(PMDP_SECTION_EVENTS) \
	C(PMDP_SECTION_INCIDENTS) C(PMDP_MAX_LANES) C(PMDP_MAX_PORTS) \
	C(PMDP_MAX_RECORDS_PER_LANE) C(PMDP_MAX_EVENTS) C(PMDP_MAX_SEGMENT_BYTES) \
	C(PMDP_STAGE_NONE) C(PMDP_STAGE_RX) C(PMDP_STAGE_PROCESS) C(PMDP_STAGE_TX) \
	C(PMDP_STAGE_UPCALL) C(PMDP_STAGE_HOUSEKEEP) C(PMDP_STAGE_RELOAD) C(PMDP_STAGE_USER) \
	C(PMDP_ANNOUNCE_NONE) C(PMDP_ANNOUNCE_POLLING) C(PMDP_ANNOUNCE_DOZING) \
	C(PMDP_ANNOUNCE_SLEEP) C(PMDP_ANNOUNCE_EXITED) C(PMDP_REASON_NONE) \
	C(PMDP_REASON_START) C(PMDP_REASON_RECONFIGURATION) C(PMDP_REASON_POWER_SAVING) \
	C(PMDP_REASON_NO_QUEUE) C(PMDP_REASON_STOP) C(PMDP_LANE_PMD) C(PMDP_LANE_CONTROL) \
	C(PMDP_C_ITERATIONS) C(PMDP_C_RX_PACKETS) C(PMDP_C_RX_BATCHES) C(PMDP_C_TX_PACKETS) \
	C(PMDP_C_TX_BATCHES) C(PMDP_C_BUSY_TICKS) C(PMDP_C_IDLE_TICKS) C(PMDP_C_SLEEP_TICKS) \
	C(PMDP_C_RECIRCULATIONS) C(PMDP_C_PHWOL_HITS) C(PMDP_C_EMC_HITS) C(PMDP_C_SMC_HITS) \
	C(PMDP_C_MEGAFLOW_HITS) C(PMDP_C_MISSES) C(PMDP_C_LOST) C(PMDP_C_MALFORMED) \
	C(PMDP_C_N_RXQ) C(PMDP_C_IN_FLIGHT) C(PMDP_C_KEEPALIVE) C(PMDP_C_EMC_ENTRIES) \
	C(PMDP_C_SMC_ENTRIES) C(PMDP_C_MEGAFLOWS) C(PMDP_C_SHAPES) C(PMDP_C_MARKS) \
	C(PMDP_C_DROP0) C(PMDP_C_FLOW_LIMIT_HITS) C(PMDP_C_SHAPE_LIMIT_HITS) \
	C(PMDP_C_RUN_HITS) C(PMDP_C_LOOKUPS) C(PMDP_C_UPCALL_TICKS) C(PMDP_C_COPIES) \
	C(PMDP_N_COUNTERS) C(PMDP_DROP_NO_RULE) C(PMDP_DROP_ACTION) \
	C(PMDP_DROP_TX_QUEUE_FULL) C(PMDP_DROP_MTU) C(PMDP_DROP_METER) C(PMDP_DROP_QOS) \
	C(PMDP_DROP_PORT_DOWN) C(PMDP_DROP_QUEUE_DISABLED) C(PMDP_DROP_MALFORMED) \
	C(PMDP_DROP_RECIRC_LIMIT) C(PMDP_DROP_NO_MEMORY) C(PMDP_N_DROPS) C(PMDP_N_HIST) \
	C(PMDP_HIST_FLOOR_BIN) C(PMDP_RECORD_GAP) C(PMDP_RECORD_ANNOUNCE) \
	C(PMDP_LINK_UNKNOWN) C(PMDP_LINK_DOWN) C(PMDP_LINK_UP) C(PMDP_P_RX_PACKETS) \
	C(PMDP_P_RX_BYTES) C(PMDP_P_RX_ERRORS) C(PMDP_P_RX_MISSED) C(PMDP_P_RX_NOMBUF) \
	C(PMDP_P_TX_PACKETS) C(PMDP_P_TX_BYTES) C(PMDP_P_TX_ERRORS) C(PMDP_P_TX_RETRIES) \
	C(PMDP_P_LINK_CHANGES) C(PMDP_P_DROP0) C(PMDP_P_N_COUNTERS) C(PMDP_EVIDENCE_NONE) \
	C(PMDP_EVIDENCE_INT) C(PMDP_EVIDENCE_REAL) C(PMDP_EVIDENCE_TEXT) \
	C(PMDP_EVIDENCE_KEY_BYTES) C(PMDP_EVIDENCE_TEXT_BYTES) C(PMDP_N_EVIDENCE) \
	C(PMDP_ID_BYTES) C(PMDP_MESSAGE_BYTES) C(PMDP_COMM_BYTES) C(PMDP_CLASS_BYTES)
// clang-format on
