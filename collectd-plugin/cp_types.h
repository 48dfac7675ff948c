// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The naming table of the plugin: every data set (collectd "type") that it dispatches.
 *
 * A value is HOST/pmdpulse-OBJECT/TYPE[-DETAIL]. OBJECT (cp_label.h) is INSTANCE for the switch,
 * the agent and the relay, INSTANCE:THREAD for thread_*, INSTANCE:PORT for port_*. An instance name
 * can't hold ':', so the first one splits. DETAIL is one of: a state, a drop reason, a cache, a
 * kind, a cause (with its culprit), a direction, the upper bound of a histogram bucket.
 * write_prometheus makes of it
 * collectd_pmdpulse_TYPE[_DS][_total]{pmdpulse="OBJECT",type="DETAIL",instance="HOST"}.
 *
 * The name of a data source is its base unit, or "value" for a number without one. Counts are
 * DERIVE with minimum 0. Sums of seconds are GAUGE, because a DERIVE is an integer and would round
 * a stall of 0.3 s to nothing: they grow like a counter and begin at 0 with the switch.
 *
 * contrib/collectd/pmdpulse_types.db holds the same table for central servers; docs/metrics.md
 * explains it; tests compare all three.
 */
#pragma once

#include <stddef.h>

enum cp_type_id {
	CP_T_SWITCH_UP,
	CP_T_SWITCH_STATUS,
	CP_T_SWITCH_UPTIME,
	CP_T_SWITCH_CPU,
	CP_T_SWITCH_RSS,
	CP_T_SWITCH_VSZ,
	CP_T_SWITCH_RESTARTS,
	CP_T_SWITCH_ALIVE_AGE,
	CP_T_SWITCH_KEEPALIVE,
	CP_T_SWITCH_INTERVAL,
	CP_T_SWITCH_THREADS,
	CP_T_THREAD_STATE,
	CP_T_THREAD_CORE,
	CP_T_THREAD_KEEPALIVE,
	CP_T_THREAD_BEATS,
	CP_T_THREAD_BEAT_AGE,
	CP_T_THREAD_STALLS,
	CP_T_THREAD_STALLED,
	CP_T_THREAD_LAST_STALL,
	CP_T_THREAD_GAPS,
	CP_T_THREAD_GAP_TIME,
	CP_T_THREAD_LONGEST_GAP,
	CP_T_THREAD_GAP_BUCKET,
	CP_T_THREAD_TIME,
	CP_T_THREAD_ITERATIONS,
	CP_T_THREAD_RX,
	CP_T_THREAD_RX_BATCHES,
	CP_T_THREAD_TX,
	CP_T_THREAD_TX_BATCHES,
	CP_T_THREAD_RECIRCULATIONS,
	CP_T_THREAD_HITS,
	CP_T_THREAD_MISSES,
	CP_T_THREAD_LOST,
	CP_T_THREAD_MALFORMED,
	CP_T_THREAD_DROPS,
	CP_T_THREAD_IN_FLIGHT,
	CP_T_THREAD_RXQS,
	CP_T_THREAD_INCIDENTS,
	CP_T_THREAD_INCIDENT_TIME,
	CP_T_THREAD_RUN_HITS,
	CP_T_THREAD_SUBTABLES,
	CP_T_THREAD_UPCALL_TIME,
	CP_T_THREAD_NOT_INSTALLED,
	CP_T_THREAD_COPIES,
	CP_T_THREAD_CACHE_ENTRIES,
	CP_T_THREAD_MEGAFLOWS,
	CP_T_THREAD_MARKED_MEGAFLOWS,
	CP_T_THREAD_SHAPES,
	CP_T_PORT_LINK,
	CP_T_PORT_ADMIN,
	CP_T_PORT_OFPORT,
	CP_T_PORT_MTU,
	CP_T_PORT_RXQS,
	CP_T_PORT_TXQS,
	CP_T_PORT_RX,
	CP_T_PORT_TX,
	CP_T_PORT_ERRORS,
	CP_T_PORT_TX_RETRIES,
	CP_T_PORT_LINK_CHANGES,
	CP_T_PORT_DROPS,
	CP_T_AGENT_UP,
	CP_T_AGENT_ALIVE_AGE,
	CP_T_AGENT_LATE,
	CP_T_AGENT_EVENTS,
	CP_T_INCIDENTS,
	CP_T_INCIDENTS_OPEN,
	CP_T_INCIDENTS_CAUSE,
	CP_T_INCIDENTS_OPEN_CAUSE,
	CP_T_INCIDENTS_TIME,
	CP_T_RELAY_ACTIVE,
	CP_T_RELAY_EVENTS_LOST,
	CP_T_NOTIFICATIONS_SENT,
	CP_T_NOTIFICATIONS_LOST,
	CP_T_NOTIFICATIONS_QUEUED,
	CP_T_READ_DURATION,
	CP_T_ROUND_DURATION,
	CP_N_TYPES,
};

#define CP_GAUGE 'G'
#define CP_DERIVE 'D'

struct cp_source {
	const char *name;
	char kind;       // CP_GAUGE or CP_DERIVE
	double min, max; // NAN: no limit
};

struct cp_type {
	const char *name;
	const char *help; // one line for docs/metrics.md
	size_t n_sources; // 1 or 2
	struct cp_source sources[2];
};

extern const struct cp_type cp_types[CP_N_TYPES];
