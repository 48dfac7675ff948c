// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "cp_types.h"

#include <math.h>

#define GAUGE(unit, min, max)                    \
	{                                        \
		{                                \
			unit, CP_GAUGE, min, max \
		}                                \
	}
#define COUNT(unit)                             \
	{                                       \
		{                               \
			unit, CP_DERIVE, 0, NAN \
		}                               \
	}

#define T(id, name, help, ...) [CP_T_##id] = {name, help, 1, __VA_ARGS__}
#define T2(id, name, help, ...) [CP_T_##id] = {name, help, 2, {__VA_ARGS__}}

const struct cp_type cp_types[CP_N_TYPES] = {
	// The switch: plugin instance INSTANCE.
	T(SWITCH_UP, "switch_up", "1 while the switch runs, else 0", GAUGE("value", 0, 1)),
	T(SWITCH_STATUS, "switch_status", "0 absent, 1 up, 2 stopped, 3 gone (died), 4 refused",
	  GAUGE("value", 0, 4)),
	T(SWITCH_UPTIME, "switch_uptime", "since the start of the process",
	  GAUGE("seconds", 0, NAN)),
	T(SWITCH_CPU, "switch_cpu", "CPU time: user, system", GAUGE("seconds", 0, NAN)),
	T(SWITCH_RSS, "switch_rss", "resident memory", GAUGE("bytes", 0, NAN)),
	T(SWITCH_VSZ, "switch_vsz", "address space", GAUGE("bytes", 0, NAN)),
	T(SWITCH_RESTARTS, "switch_restarts", "starts seen after the first", COUNT("value")),
	T(SWITCH_ALIVE_AGE, "switch_alive_age", "since the control thread's last sign of life",
	  GAUGE("seconds", 0, NAN)),
	T(SWITCH_KEEPALIVE, "switch_keepalive", "1 while enable-keepalive is true",
	  GAUGE("value", 0, 1)),
	T(SWITCH_INTERVAL, "switch_interval", "keepalive-interval", GAUGE("seconds", 0, NAN)),
	T(SWITCH_THREADS, "switch_threads", "threads by state", GAUGE("value", 0, NAN)),

	// Threads: plugin instance INSTANCE:THREAD.
	T(THREAD_STATE, "thread_state",
	  "0 UNUSED, 1 ALIVE, 2 DEAD, 3 GONE, 4 MISSING, 5 DOZING, 6 SLEEP", GAUGE("value", 0, 6)),
	T(THREAD_CORE, "thread_core", "CPU that it is bound to, -1 none", GAUGE("value", -1, NAN)),
	T(THREAD_KEEPALIVE, "thread_keepalive", "1 while it beats on purpose",
	  GAUGE("value", 0, 1)),
	T(THREAD_BEATS, "thread_beats", "beats", COUNT("value")),
	T(THREAD_BEAT_AGE, "thread_beat_age", "since the last beat; NaN where none is due",
	  GAUGE("seconds", 0, NAN)),
	T(THREAD_STALLS, "thread_stalls", "stalls of two intervals or more, the running one too",
	  COUNT("value")),
	T(THREAD_STALLED, "thread_stalled", "sum of these stalls, the running one too",
	  GAUGE("seconds", 0, NAN)),
	T(THREAD_LAST_STALL, "thread_last_stall", "length of the last stall",
	  GAUGE("seconds", 0, NAN)),
	T(THREAD_GAPS, "thread_gaps", "self-timed gaps from 250 us up", COUNT("value")),
	T(THREAD_GAP_TIME, "thread_gap_time", "sum of these gaps", GAUGE("seconds", 0, NAN)),
	T(THREAD_LONGEST_GAP, "thread_longest_gap", "longest gap since its start",
	  GAUGE("seconds", 0, NAN)),
	T(THREAD_GAP_BUCKET, "thread_gap_bucket",
	  "iterations whose gap was at most so many seconds (cumulative; +Inf: all)",
	  COUNT("value")),
	T(THREAD_TIME, "thread_time", "time spent: busy, idle, sleep", GAUGE("seconds", 0, NAN)),
	T(THREAD_ITERATIONS, "thread_iterations", "turns of its loop", COUNT("value")),
	T(THREAD_RX, "thread_rx", "received", COUNT("packets")),
	T(THREAD_RX_BATCHES, "thread_rx_batches", "receive bursts with packets", COUNT("value")),
	T(THREAD_TX, "thread_tx", "sent", COUNT("packets")),
	T(THREAD_TX_BATCHES, "thread_tx_batches", "transmit bursts", COUNT("value")),
	T(THREAD_RECIRCULATIONS, "thread_recirculations", "further passes", COUNT("packets")),
	T(THREAD_HITS, "thread_hits", "hits by cache: phwol, emc, smc, megaflow", COUNT("packets")),
	T(THREAD_MISSES, "thread_misses", "upcalls", COUNT("packets")),
	T(THREAD_LOST, "thread_lost", "failed upcalls", COUNT("packets")),
	T(THREAD_MALFORMED, "thread_malformed", "malformed frames, dropped or not",
	  COUNT("packets")),
	T(THREAD_DROPS, "thread_drops", "drops by reason", COUNT("packets")),
	T(THREAD_IN_FLIGHT, "thread_in_flight", "received, not yet sent or dropped",
	  GAUGE("packets", 0, NAN)),
	T(THREAD_RXQS, "thread_rxqs", "receive queues that it polls", GAUGE("value", 0, NAN)),
	T(THREAD_INCIDENTS, "thread_incidents", "cleared, by cause and culprit", COUNT("value")),
	T(THREAD_INCIDENT_TIME, "thread_incident_time",
	  "durations of cleared incidents, by cause and culprit", GAUGE("seconds", 0, NAN)),
	T(THREAD_RUN_HITS, "thread_run_hits", "hits that took over the result of the packet before",
	  COUNT("packets")),
	T(THREAD_SUBTABLES, "thread_subtable_lookups",
	  "subtables visited for megaflow hits and misses", COUNT("value")),
	T(THREAD_UPCALL_TIME, "thread_upcall_time", "time in misses and revalidation, part of busy",
	  GAUGE("seconds", 0, NAN)),
	T(THREAD_NOT_INSTALLED, "thread_not_installed",
	  "misses without a new megaflow: flow_limit, shapes", COUNT("packets")),
	T(THREAD_COPIES, "thread_copies", "packets made by actions", COUNT("packets")),
	T(THREAD_CACHE_ENTRIES, "thread_cache_entries", "entries in use: emc, smc",
	  GAUGE("value", 0, NAN)),
	T(THREAD_MEGAFLOWS, "thread_megaflows", "flows of its classifier", GAUGE("value", 0, NAN)),
	T(THREAD_MARKED_MEGAFLOWS, "thread_marked_megaflows", "of these, those that a device marks",
	  GAUGE("value", 0, NAN)),
	T(THREAD_SHAPES, "thread_megaflow_shapes", "their distinct masks, over all input ports",
	  GAUGE("value", 0, NAN)),

	// Ports: plugin instance INSTANCE:PORT.
	T(PORT_LINK, "port_link", "1 up, 0 down, -1 unknown", GAUGE("value", -1, 1)),
	T(PORT_ADMIN, "port_admin", "1 up, 0 down, -1 unknown", GAUGE("value", -1, 1)),
	T(PORT_OFPORT, "port_ofport", "OpenFlow port number", GAUGE("value", 0, NAN)),
	T(PORT_MTU, "port_mtu", "largest frame payload", GAUGE("bytes", 0, NAN)),
	T(PORT_RXQS, "port_rxqs", "receive queues", GAUGE("value", 0, NAN)),
	T(PORT_TXQS, "port_txqs", "transmit queues", GAUGE("value", 0, NAN)),
	T2(PORT_RX, "port_rx", "received", {"packets", CP_DERIVE, 0, NAN},
	   {"bytes", CP_DERIVE, 0, NAN}),
	T2(PORT_TX, "port_tx", "sent", {"packets", CP_DERIVE, 0, NAN},
	   {"bytes", CP_DERIVE, 0, NAN}),
	T(PORT_ERRORS, "port_errors", "errors: rx, rx_missed, rx_nombuf, tx", COUNT("packets")),
	T(PORT_TX_RETRIES, "port_tx_retries", "repeated tries to send", COUNT("value")),
	T(PORT_LINK_CHANGES, "port_link_changes", "link up and down, counted", COUNT("value")),
	T(PORT_DROPS, "port_drops", "drops by reason", COUNT("packets")),

	// Agent, incidents and the plugin itself: plugin instance INSTANCE.
	T(AGENT_UP, "agent_up", "1 while the agent's sign of life is fresh", GAUGE("value", 0, 1)),
	T(AGENT_ALIVE_AGE, "agent_alive_age", "since its last sign of life; NaN: never",
	  GAUGE("seconds", 0, NAN)),
	T(AGENT_LATE, "agent_late", "times that it reported its own lateness", COUNT("value")),
	T(AGENT_EVENTS, "agent_events", "events read from it", COUNT("value")),
	T(INCIDENTS, "incidents", "raised, by kind", COUNT("value")),
	T(INCIDENTS_OPEN, "incidents_open", "open now, by kind", GAUGE("value", 0, NAN)),
	T(INCIDENTS_CAUSE, "incidents_cause", "cleared, by cause", COUNT("value")),
	T(INCIDENTS_OPEN_CAUSE, "incidents_open_cause", "open now, by cause",
	  GAUGE("value", 0, NAN)),
	T(INCIDENTS_TIME, "incidents_time", "durations of cleared incidents, by cause",
	  GAUGE("seconds", 0, NAN)),
	T(RELAY_ACTIVE, "relay_active", "1 relays the agent, 0 judges by itself",
	  GAUGE("value", 0, 1)),
	T(RELAY_EVENTS_LOST, "relay_events_lost", "events overwritten before they could be read",
	  COUNT("value")),
	T(NOTIFICATIONS_SENT, "notifications_sent", "dispatched", COUNT("value")),
	T(NOTIFICATIONS_LOST, "notifications_lost", "dropped, the queue being full",
	  COUNT("value")),
	T(NOTIFICATIONS_QUEUED, "notifications_queued", "waiting for a receiver",
	  GAUGE("value", 0, NAN)),
	T(READ_DURATION, "read_duration", "what the read callback took", GAUGE("seconds", 0, NAN)),
	T(ROUND_DURATION, "round_duration", "what it took to read and queue all values",
	  GAUGE("seconds", 0, NAN)),
};
