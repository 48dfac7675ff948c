// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "pmdp_names.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define N_ELEMENTS(table) (sizeof(table) / sizeof(table)[0])

static const char *const state_names[PMDP_N_STATES] = {
	[PMDP_STATE_UNUSED] = "UNUSED",   [PMDP_STATE_ALIVE] = "ALIVE",
	[PMDP_STATE_DEAD] = "DEAD",       [PMDP_STATE_GONE] = "GONE",
	[PMDP_STATE_MISSING] = "MISSING", [PMDP_STATE_DOZING] = "DOZING",
	[PMDP_STATE_SLEEP] = "SLEEP",
};

static const char *const kind_names[PMDP_N_KINDS] = {
	[PMDP_KIND_PMD_STALL] = "pmd-stall",
	[PMDP_KIND_PMD_STARVED] = "pmd-starved",
	[PMDP_KIND_PMD_NO_PROGRESS] = "pmd-no-progress",
	[PMDP_KIND_THREAD_GONE] = "thread-gone",
	[PMDP_KIND_SWITCH_GONE] = "switch-gone",
	[PMDP_KIND_SWITCH_STOPPED] = "switch-stopped",
	[PMDP_KIND_SWITCH_BACK] = "switch-back",
	[PMDP_KIND_CONTROL_STUCK] = "control-stuck",
	[PMDP_KIND_LINK] = "link",
	[PMDP_KIND_DROPS] = "drops",
	[PMDP_KIND_AGENT_LATE] = "agent-late",
	[PMDP_KIND_VERSION_MISMATCH] = "version-mismatch",
	[PMDP_KIND_AGENT_GONE] = "agent-gone",
};

static const char *const phase_names[] = {
	[PMDP_PHASE_RAISE] = "raise",
	[PMDP_PHASE_UPDATE] = "update",
	[PMDP_PHASE_CLEAR] = "clear",
};

static const char *const severity_names[] = {
	[PMDP_SEVERITY_FAILURE] = "FAILURE",
	[PMDP_SEVERITY_WARNING] = "WARNING",
	[PMDP_SEVERITY_OKAY] = "OKAY",
};

static const char *const cause_names[PMDP_N_CAUSES] = {
	[PMDP_CAUSE_UNKNOWN] = "unknown",
	[PMDP_CAUSE_PREEMPTED] = "preempted",
	[PMDP_CAUSE_CPU_QUOTA] = "cpu-quota",
	[PMDP_CAUSE_RT_THROTTLED] = "rt-throttled",
	[PMDP_CAUSE_STOPPED] = "stopped",
	[PMDP_CAUSE_FROZEN] = "frozen",
	[PMDP_CAUSE_BLOCKED] = "blocked",
	[PMDP_CAUSE_PAGE_FAULT] = "page-fault",
	[PMDP_CAUSE_IRQ] = "irq",
	[PMDP_CAUSE_STEAL] = "steal",
	[PMDP_CAUSE_OWN_CODE] = "own-code",
	[PMDP_CAUSE_EXITED] = "exited",
	[PMDP_CAUSE_PROCESS_DIED] = "process-died",
};

static const char *const stage_names[] = {
	[PMDP_STAGE_NONE] = "none",       [PMDP_STAGE_RX] = "rx",
	[PMDP_STAGE_PROCESS] = "process", [PMDP_STAGE_TX] = "tx",
	[PMDP_STAGE_UPCALL] = "upcall",   [PMDP_STAGE_HOUSEKEEP] = "housekeep",
	[PMDP_STAGE_RELOAD] = "reload",   [PMDP_STAGE_USER] = "user",
};

static const char *const reason_names[] = {
	[PMDP_REASON_NONE] = "none",
	[PMDP_REASON_START] = "start",
	[PMDP_REASON_RECONFIGURATION] = "reconfiguration",
	[PMDP_REASON_POWER_SAVING] = "power-saving",
	[PMDP_REASON_NO_QUEUE] = "no-queue",
	[PMDP_REASON_STOP] = "stop",
};

static const char *const lane_kind_names[] = {
	[PMDP_LANE_PMD] = "pmd",
	[PMDP_LANE_CONTROL] = "control",
};

static const char *const link_names[] = {
	[PMDP_LINK_UNKNOWN] = "unknown",
	[PMDP_LINK_DOWN] = "down",
	[PMDP_LINK_UP] = "up",
};

static const char *const drop_names[PMDP_N_DROPS] = {
	[PMDP_DROP_NO_RULE] = "no_rule",
	[PMDP_DROP_ACTION] = "action",
	[PMDP_DROP_TX_QUEUE_FULL] = "queue_full",
	[PMDP_DROP_MTU] = "mtu",
	[PMDP_DROP_METER] = "meter",
	[PMDP_DROP_QOS] = "qos",
	[PMDP_DROP_PORT_DOWN] = "port_down",
	[PMDP_DROP_QUEUE_DISABLED] = "queue_disabled",
	[PMDP_DROP_MALFORMED] = "malformed",
	[PMDP_DROP_RECIRC_LIMIT] = "recirculation_limit",
	[PMDP_DROP_NO_MEMORY] = "no_memory",
};

static const char *const counter_names[PMDP_N_COUNTERS] = {
	[PMDP_C_ITERATIONS] = "iterations",
	[PMDP_C_RX_PACKETS] = "rx_packets",
	[PMDP_C_RX_BATCHES] = "rx_batches",
	[PMDP_C_TX_PACKETS] = "tx_packets",
	[PMDP_C_TX_BATCHES] = "tx_batches",
	[PMDP_C_BUSY_TICKS] = "busy_ticks",
	[PMDP_C_IDLE_TICKS] = "idle_ticks",
	[PMDP_C_SLEEP_TICKS] = "sleep_ticks",
	[PMDP_C_RECIRCULATIONS] = "recirculations",
	[PMDP_C_PHWOL_HITS] = "phwol_hits",
	[PMDP_C_EMC_HITS] = "emc_hits",
	[PMDP_C_SMC_HITS] = "smc_hits",
	[PMDP_C_MEGAFLOW_HITS] = "megaflow_hits",
	[PMDP_C_MISSES] = "misses",
	[PMDP_C_LOST] = "lost",
	[PMDP_C_MALFORMED] = "malformed",
	[PMDP_C_N_RXQ] = "n_rxq",
	[PMDP_C_IN_FLIGHT] = "in_flight",
	[PMDP_C_KEEPALIVE] = "keepalive",
	[PMDP_C_EMC_ENTRIES] = "emc_entries",
	[PMDP_C_SMC_ENTRIES] = "smc_entries",
	[PMDP_C_MEGAFLOWS] = "megaflows",
	[PMDP_C_SHAPES] = "megaflow_shapes",
	[PMDP_C_MARKS] = "marked_megaflows",
	[PMDP_C_DROP0 + PMDP_DROP_NO_RULE] = "drop_no_rule",
	[PMDP_C_DROP0 + PMDP_DROP_ACTION] = "drop_action",
	[PMDP_C_DROP0 + PMDP_DROP_TX_QUEUE_FULL] = "drop_queue_full",
	[PMDP_C_DROP0 + PMDP_DROP_MTU] = "drop_mtu",
	[PMDP_C_DROP0 + PMDP_DROP_METER] = "drop_meter",
	[PMDP_C_DROP0 + PMDP_DROP_QOS] = "drop_qos",
	[PMDP_C_DROP0 + PMDP_DROP_PORT_DOWN] = "drop_port_down",
	[PMDP_C_DROP0 + PMDP_DROP_QUEUE_DISABLED] = "drop_queue_disabled",
	[PMDP_C_DROP0 + PMDP_DROP_MALFORMED] = "drop_malformed",
	[PMDP_C_DROP0 + PMDP_DROP_RECIRC_LIMIT] = "drop_recirculation_limit",
	[PMDP_C_DROP0 + PMDP_DROP_NO_MEMORY] = "drop_no_memory",
	[PMDP_C_FLOW_LIMIT_HITS] = "flow_limit_hits",
	[PMDP_C_SHAPE_LIMIT_HITS] = "shape_limit_hits",
	[PMDP_C_RUN_HITS] = "run_hits",
	[PMDP_C_LOOKUPS] = "lookups",
	[PMDP_C_UPCALL_TICKS] = "upcall_ticks",
	[PMDP_C_COPIES] = "copies",
};

static const char *const port_counter_names[PMDP_P_N_COUNTERS] = {
	[PMDP_P_RX_PACKETS] = "rx_packets",
	[PMDP_P_RX_BYTES] = "rx_bytes",
	[PMDP_P_RX_ERRORS] = "rx_errors",
	[PMDP_P_RX_MISSED] = "rx_missed",
	[PMDP_P_RX_NOMBUF] = "rx_nombuf",
	[PMDP_P_TX_PACKETS] = "tx_packets",
	[PMDP_P_TX_BYTES] = "tx_bytes",
	[PMDP_P_TX_ERRORS] = "tx_errors",
	[PMDP_P_TX_RETRIES] = "tx_retries",
	[PMDP_P_LINK_CHANGES] = "link_changes",
	[PMDP_P_DROP0 + PMDP_DROP_NO_RULE] = "drop_no_rule",
	[PMDP_P_DROP0 + PMDP_DROP_ACTION] = "drop_action",
	[PMDP_P_DROP0 + PMDP_DROP_TX_QUEUE_FULL] = "drop_queue_full",
	[PMDP_P_DROP0 + PMDP_DROP_MTU] = "drop_mtu",
	[PMDP_P_DROP0 + PMDP_DROP_METER] = "drop_meter",
	[PMDP_P_DROP0 + PMDP_DROP_QOS] = "drop_qos",
	[PMDP_P_DROP0 + PMDP_DROP_PORT_DOWN] = "drop_port_down",
	[PMDP_P_DROP0 + PMDP_DROP_QUEUE_DISABLED] = "drop_queue_disabled",
	[PMDP_P_DROP0 + PMDP_DROP_MALFORMED] = "drop_malformed",
	[PMDP_P_DROP0 + PMDP_DROP_RECIRC_LIMIT] = "drop_recirculation_limit",
	[PMDP_P_DROP0 + PMDP_DROP_NO_MEMORY] = "drop_no_memory",
};

static const char *name_of(const char *const *table, size_t n, uint32_t number, const char *other)
{
	return number < n && table[number] ? table[number] : other;
}

#define NAME_OF(table, number, other) name_of(table, N_ELEMENTS(table), number, other)

const char *pmdp_state_name(uint32_t state)
{
	return NAME_OF(state_names, state, "unknown");
}

const char *pmdp_kind_name(uint32_t kind)
{
	return NAME_OF(kind_names, kind, "unknown");
}

const char *pmdp_phase_name(uint32_t phase)
{
	return NAME_OF(phase_names, phase, "unknown");
}

const char *pmdp_severity_name(uint32_t severity)
{
	return NAME_OF(severity_names, severity, "unknown");
}

const char *pmdp_cause_name(uint32_t cause)
{
	return NAME_OF(cause_names, cause, "unknown");
}

const char *pmdp_stage_name(uint32_t stage)
{
	return NAME_OF(stage_names, stage, "unknown");
}

const char *pmdp_reason_name(uint32_t reason)
{
	return NAME_OF(reason_names, reason, "unknown");
}

const char *pmdp_lane_kind_name(uint32_t kind)
{
	return NAME_OF(lane_kind_names, kind, "unknown");
}

const char *pmdp_link_name(uint32_t link_state)
{
	return NAME_OF(link_names, link_state, "unknown");
}

const char *pmdp_drop_name(uint32_t reason)
{
	return NAME_OF(drop_names, reason, "unknown");
}

const char *pmdp_counter_name(uint32_t index)
{
	return NAME_OF(counter_names, index, "");
}

const char *pmdp_port_counter_name(uint32_t index)
{
	return NAME_OF(port_counter_names, index, "");
}

static int parse(const char *const *table, size_t n, const char *name)
{
	for (size_t i = 0; name && i < n; i++) {
		if (table[i] && strcmp(table[i], name) == 0)
			return (int)i;
	}
	return -EINVAL;
}

int pmdp_kind_parse(const char *name)
{
	return parse(kind_names, N_ELEMENTS(kind_names), name);
}

int pmdp_cause_parse(const char *name)
{
	return parse(cause_names, N_ELEMENTS(cause_names), name);
}
