// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "cp_metrics_parts.h"

#include <math.h>
#include <string.h>

static double ns_to_s(uint64_t ns)
{
	return (double)ns / 1e9;
}

static bool is_beat_due(const struct cp_thread *thread)
{
	return thread->look.beat_ns != 0 && thread->state != PMDP_STATE_UNUSED &&
	       thread->state != PMDP_STATE_SLEEP;
}

static void emit_keepalive(const struct cp_object *object, const struct cp_thread *thread,
			   const struct cp_sample *sample)
{
	const struct pmdp_lane_look *look = &thread->look;
	uint64_t age_ns = look->beat_ns != 0 && sample->now_ns > look->beat_ns
				  ? sample->now_ns - look->beat_ns
				  : 0;
	// A stall that lasts is not in the thread's own figures yet.
	bool is_stalling = thread->state == PMDP_STATE_DEAD && look->beat_ns != 0 &&
			   age_ns >= sample->stall_ns;
	uint64_t running_ns = is_stalling ? age_ns : 0;

	cp_gauge(object, CP_T_THREAD_STATE, NULL, thread->state);
	cp_gauge(object, CP_T_THREAD_CORE, NULL, thread->body.core);
	cp_gauge(object, CP_T_THREAD_KEEPALIVE, NULL,
		 (double)thread->body.counters[PMDP_C_KEEPALIVE]);
	cp_count(object, CP_T_THREAD_BEATS, NULL, look->beats);
	cp_gauge(object, CP_T_THREAD_BEAT_AGE, NULL, is_beat_due(thread) ? ns_to_s(age_ns) : NAN);
	cp_count(object, CP_T_THREAD_STALLS, NULL, look->n_stalls + is_stalling);
	cp_gauge(object, CP_T_THREAD_STALLED, NULL, ns_to_s(look->stall_ns + running_ns));
	cp_gauge(object, CP_T_THREAD_LAST_STALL, NULL,
		 ns_to_s(is_stalling ? running_ns : look->last_stall_ns));
	cp_count(object, CP_T_THREAD_GAPS, NULL, look->n_gaps + is_stalling);
	cp_gauge(object, CP_T_THREAD_GAP_TIME, NULL, ns_to_s(look->gap_ns + running_ns));
	cp_gauge(object, CP_T_THREAD_LONGEST_GAP, NULL,
		 ns_to_s(running_ns > look->longest_gap_ns ? running_ns : look->longest_gap_ns));
}

static void emit_buckets(const struct cp_object *object, const struct pmdp_lane_body *body)
{
	uint64_t counts[CP_N_BUCKETS];
	char bound[32];

	cp_buckets(body, counts);
	for (uint32_t i = 0; i < CP_N_BUCKETS; i++)
		cp_count(object, CP_T_THREAD_GAP_BUCKET, cp_bucket_bound(i, bound, sizeof(bound)),
			 counts[i]);
}

static void emit_drops(const struct cp_object *object, enum cp_type_id id, const uint64_t *drops)
{
	for (uint32_t reason = 0; reason <= PMDP_DROP_NO_MEMORY; reason++)
		cp_count(object, id, pmdp_drop_name(reason), drops[reason]);
}

static void emit_pipeline(const struct cp_object *object, const struct cp_thread *thread)
{
	const uint64_t *counters = thread->body.counters;

	cp_count(object, CP_T_THREAD_RECIRCULATIONS, NULL, counters[PMDP_C_RECIRCULATIONS]);
	cp_count(object, CP_T_THREAD_HITS, "phwol", counters[PMDP_C_PHWOL_HITS]);
	cp_count(object, CP_T_THREAD_HITS, "emc", counters[PMDP_C_EMC_HITS]);
	cp_count(object, CP_T_THREAD_HITS, "smc", counters[PMDP_C_SMC_HITS]);
	cp_count(object, CP_T_THREAD_HITS, "megaflow", counters[PMDP_C_MEGAFLOW_HITS]);
	cp_count(object, CP_T_THREAD_RUN_HITS, NULL, counters[PMDP_C_RUN_HITS]);
	cp_count(object, CP_T_THREAD_SUBTABLES, NULL, counters[PMDP_C_LOOKUPS]);
	cp_count(object, CP_T_THREAD_MISSES, NULL, counters[PMDP_C_MISSES]);
	cp_count(object, CP_T_THREAD_LOST, NULL, counters[PMDP_C_LOST]);
	cp_gauge(object, CP_T_THREAD_UPCALL_TIME, NULL, ns_to_s(thread->upcall_ns));
	cp_count(object, CP_T_THREAD_NOT_INSTALLED, "flow_limit", counters[PMDP_C_FLOW_LIMIT_HITS]);
	cp_count(object, CP_T_THREAD_NOT_INSTALLED, "shapes", counters[PMDP_C_SHAPE_LIMIT_HITS]);
	cp_count(object, CP_T_THREAD_COPIES, NULL, counters[PMDP_C_COPIES]);
	cp_gauge(object, CP_T_THREAD_CACHE_ENTRIES, "emc", (double)counters[PMDP_C_EMC_ENTRIES]);
	cp_gauge(object, CP_T_THREAD_CACHE_ENTRIES, "smc", (double)counters[PMDP_C_SMC_ENTRIES]);
	cp_gauge(object, CP_T_THREAD_MEGAFLOWS, NULL, (double)counters[PMDP_C_MEGAFLOWS]);
	cp_gauge(object, CP_T_THREAD_MARKED_MEGAFLOWS, NULL, (double)counters[PMDP_C_MARKS]);
	cp_gauge(object, CP_T_THREAD_SHAPES, NULL, (double)counters[PMDP_C_SHAPES]);
}

void cp_emit_thread(const struct cp_object *object, const struct cp_thread *thread,
		    const struct cp_sample *sample)
{
	const uint64_t *counters = thread->body.counters;

	emit_keepalive(object, thread, sample);
	emit_buckets(object, &thread->body);
	cp_gauge(object, CP_T_THREAD_TIME, "busy", ns_to_s(thread->busy_ns));
	cp_gauge(object, CP_T_THREAD_TIME, "idle", ns_to_s(thread->idle_ns));
	cp_gauge(object, CP_T_THREAD_TIME, "sleep", ns_to_s(thread->sleep_ns));
	cp_count(object, CP_T_THREAD_ITERATIONS, NULL, counters[PMDP_C_ITERATIONS]);
	cp_count(object, CP_T_THREAD_RX, NULL, counters[PMDP_C_RX_PACKETS]);
	cp_count(object, CP_T_THREAD_RX_BATCHES, NULL, counters[PMDP_C_RX_BATCHES]);
	cp_count(object, CP_T_THREAD_TX, NULL, counters[PMDP_C_TX_PACKETS]);
	cp_count(object, CP_T_THREAD_TX_BATCHES, NULL, counters[PMDP_C_TX_BATCHES]);
	emit_pipeline(object, thread);
	cp_count(object, CP_T_THREAD_MALFORMED, NULL, counters[PMDP_C_MALFORMED]);
	emit_drops(object, CP_T_THREAD_DROPS, counters + PMDP_C_DROP0);
	cp_gauge(object, CP_T_THREAD_IN_FLIGHT, NULL, (double)counters[PMDP_C_IN_FLIGHT]);
	cp_gauge(object, CP_T_THREAD_RXQS, NULL, (double)counters[PMDP_C_N_RXQ]);
}

void cp_emit_tally(const struct cp_object *object, const char *thread_name, struct cp_tally *tally)
{
	size_t n_rows = cp_tally_count(tally);
	uint64_t n, ns, plain_n[PMDP_N_CAUSES] = {0}, plain_ns[PMDP_N_CAUSES] = {0};

	for (size_t i = 0; i < n_rows; i++) {
		struct cp_tally_row *row = &tally->rows[i];

		if (strcmp(row->thread_name, thread_name) != 0)
			continue;
		cp_tally_take(row, &n, &ns);
		if (!row->has_culprit && row->cause < PMDP_N_CAUSES) {
			plain_n[row->cause] = n;
			plain_ns[row->cause] = ns;
			continue;
		}
		cp_count(object, CP_T_THREAD_INCIDENTS, row->detail, n);
		cp_gauge(object, CP_T_THREAD_INCIDENT_TIME, row->detail, ns_to_s(ns));
	}
	for (uint32_t cause = 0; cause < PMDP_N_CAUSES; cause++) {
		const char *name = pmdp_cause_name(cause);

		cp_count(object, CP_T_THREAD_INCIDENTS, name, plain_n[cause]);
		cp_gauge(object, CP_T_THREAD_INCIDENT_TIME, name, ns_to_s(plain_ns[cause]));
	}
}

static double link_value(uint32_t state)
{
	return state == PMDP_LINK_UP ? 1 : state == PMDP_LINK_DOWN ? 0 : -1;
}

void cp_emit_port(const struct cp_object *object, const struct pmdp_port_body *port)
{
	const uint64_t *counters = port->counters;

	cp_gauge(object, CP_T_PORT_LINK, NULL, link_value(port->link_state));
	cp_gauge(object, CP_T_PORT_ADMIN, NULL, link_value(port->admin_state));
	cp_gauge(object, CP_T_PORT_OFPORT, NULL, port->ofport);
	cp_gauge(object, CP_T_PORT_MTU, NULL, port->mtu);
	cp_gauge(object, CP_T_PORT_RXQS, NULL, port->n_rxq);
	cp_gauge(object, CP_T_PORT_TXQS, NULL, port->n_txq);
	cp_count2(object, CP_T_PORT_RX, NULL, counters[PMDP_P_RX_PACKETS],
		  counters[PMDP_P_RX_BYTES]);
	cp_count2(object, CP_T_PORT_TX, NULL, counters[PMDP_P_TX_PACKETS],
		  counters[PMDP_P_TX_BYTES]);
	cp_count(object, CP_T_PORT_ERRORS, "rx", counters[PMDP_P_RX_ERRORS]);
	cp_count(object, CP_T_PORT_ERRORS, "rx_missed", counters[PMDP_P_RX_MISSED]);
	cp_count(object, CP_T_PORT_ERRORS, "rx_nombuf", counters[PMDP_P_RX_NOMBUF]);
	cp_count(object, CP_T_PORT_ERRORS, "tx", counters[PMDP_P_TX_ERRORS]);
	cp_count(object, CP_T_PORT_TX_RETRIES, NULL, counters[PMDP_P_TX_RETRIES]);
	cp_count(object, CP_T_PORT_LINK_CHANGES, NULL, counters[PMDP_P_LINK_CHANGES]);
	emit_drops(object, CP_T_PORT_DROPS, counters + PMDP_P_DROP0);
}

static uint64_t load(_Atomic uint64_t *number)
{
	return atomic_load_explicit(number, memory_order_relaxed);
}

void cp_emit_relay(const struct cp_object *object, struct cp_relay_numbers *numbers,
		   uint64_t now_ns)
{
	uint64_t alive_ns = load(&numbers->agent_alive_ns);

	cp_gauge(object, CP_T_AGENT_UP, NULL, (double)load(&numbers->is_agent_up));
	cp_gauge(object, CP_T_AGENT_ALIVE_AGE, NULL,
		 alive_ns == 0       ? NAN
		 : now_ns > alive_ns ? ns_to_s(now_ns - alive_ns)
				     : 0);
	cp_count(object, CP_T_AGENT_LATE, NULL, load(&numbers->n_agent_late));
	cp_count(object, CP_T_AGENT_EVENTS, NULL, load(&numbers->n_agent_events));
	for (uint32_t kind = 1; kind < PMDP_N_KINDS; kind++) {
		cp_count(object, CP_T_INCIDENTS, pmdp_kind_name(kind),
			 load(&numbers->n_raised[kind]));
		cp_gauge(object, CP_T_INCIDENTS_OPEN, pmdp_kind_name(kind),
			 (double)load(&numbers->n_open[kind]));
	}
	for (uint32_t cause = 0; cause < PMDP_N_CAUSES; cause++) {
		const char *name = pmdp_cause_name(cause);

		cp_count(object, CP_T_INCIDENTS_CAUSE, name, load(&numbers->n_cleared[cause]));
		cp_gauge(object, CP_T_INCIDENTS_OPEN_CAUSE, name,
			 (double)load(&numbers->n_open_cause[cause]));
		cp_gauge(object, CP_T_INCIDENTS_TIME, name,
			 ns_to_s(load(&numbers->cleared_ns[cause])));
	}
	cp_gauge(object, CP_T_RELAY_ACTIVE, NULL, (double)load(&numbers->is_relaying));
	cp_count(object, CP_T_RELAY_EVENTS_LOST, NULL, load(&numbers->n_events_lost));
	cp_count(object, CP_T_NOTIFICATIONS_SENT, NULL, load(&numbers->n_sent));
	cp_count(object, CP_T_NOTIFICATIONS_LOST, NULL, load(&numbers->n_lost));
	cp_gauge(object, CP_T_NOTIFICATIONS_QUEUED, NULL, (double)load(&numbers->n_queued));
}
