// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <errno.h>
#include <string.h>

#include "pmdp_watch_internal.h"

static void link_up(struct pmdp_watch *watch, struct pmdp_watch_port *port, bool is_removed)
{
	struct pmdp_watch_open *open = pmdp_watch_find(watch, port->key);

	if (open && is_removed)
		pmdp_evidence_int(&open->incident, "removed", 1);
	pmdp_watch_end_now(watch, &port->key);
}

static void link_down(struct pmdp_watch *watch, struct pmdp_watch_port *port,
		      const struct pmdp_port_body *body, uint64_t now_ns)
{
	struct pmdp_watch_event event;

	pmdp_watch_begin(watch, 0, PMDP_KIND_LINK, PMDP_PHASE_RAISE, &event);
	memcpy(event.incident.object, body->name, sizeof(event.incident.object));
	pmdp_evidence_int(&event.incident, "ofport", body->ofport);
	port->key = pmdp_watch_raise(watch, &event, now_ns);
}

// A port that is seen for the first time is as it is; only an incident of an earlier run goes on.
static void meet_port(struct pmdp_watch *watch, struct pmdp_watch_port *port,
		      const struct pmdp_port_body *body, uint64_t generation)
{
	struct pmdp_watch_open *open = pmdp_watch_adopted(watch, PMDP_KIND_LINK, 0, body->name);

	memset(port, 0, sizeof(*port));
	port->is_known = true;
	port->generation = generation;
	if (!open || body->link_state == PMDP_LINK_UNKNOWN)
		return;
	open->is_adopted = false;
	port->key = open->key;
	port->link_state = PMDP_LINK_DOWN;
}

static void follow_port(struct pmdp_watch *watch, struct pmdp_watch_port *port,
			const struct pmdp_port_body *body, uint64_t now_ns)
{
	uint32_t before = port->link_state;

	if (body->link_state != PMDP_LINK_UP && body->link_state != PMDP_LINK_DOWN)
		return; // unknown is a state, not an event
	port->link_state = body->link_state;
	if (body->link_state == PMDP_LINK_UP)
		link_up(watch, port, false);
	else if (before == PMDP_LINK_UP)
		link_down(watch, port, body, now_ns);
}

void pmdp_watch_ports_look(struct pmdp_watch *watch, uint64_t now_ns)
{
	bool is_slow = now_ns >= watch->free_ports_ns;

	if (now_ns < watch->ports_ns)
		return;
	watch->ports_ns = now_ns + PMDP_WATCH_PORTS_NS;
	if (is_slow)
		watch->free_ports_ns = now_ns + PMDP_WATCH_SLOW_NS;
	for (uint32_t i = 0; i < watch->n_ports; i++) {
		struct pmdp_watch_port *port = &watch->ports[i];
		struct pmdp_port_body body;
		uint64_t generation = 0;
		int rc;

		if (!port->is_known && !is_slow)
			continue; // a free slot costs a look as well, and most are free
		rc = pmdp_reader_port(watch->reader, i, &body, &generation);
		if (rc && rc != -ENOENT)
			continue; // torn or unreadable: as it was
		if (port->is_known && (rc || generation != port->generation)) {
			link_up(watch, port, true);
			memset(port, 0, sizeof(*port));
		}
		if (rc)
			continue;
		body.name[sizeof(body.name) - 1] = 0;
		if (!port->is_known)
			meet_port(watch, port, &body, generation);
		follow_port(watch, port, &body, now_ns);
	}
}

void pmdp_watch_ports_end(struct pmdp_watch *watch)
{
	for (uint32_t i = 0; i < watch->n_ports; i++)
		pmdp_watch_end(watch, &watch->ports[i].key, 0);
}

static bool is_any_alive(const struct pmdp_watch *watch)
{
	for (uint32_t i = 0; i < watch->n_lanes; i++) {
		if (pmdp_detector_state(&watch->detector, i) == PMDP_STATE_ALIVE)
			return true;
	}
	return false;
}

/*
 * The publisher's housekeeping shows no life while its threads do. A process that is stopped as a
 * whole is not stuck: the time counts only while a thread beats.
 */
void pmdp_watch_control(struct pmdp_watch *watch, uint64_t now_ns)
{
	struct pmdp_watch_event event;
	uint64_t from_ns;

	if (watch->look.alive_ns != watch->alive_ns) {
		watch->alive_ns = watch->look.alive_ns;
		watch->alive_seen_ns = now_ns;
		pmdp_watch_end_now(watch, &watch->stuck_key);
		return;
	}
	if (watch->stuck_key)
		return;
	if (!is_any_alive(watch)) {
		watch->quiet_ns = now_ns;
		return;
	}
	from_ns = watch->alive_seen_ns > watch->quiet_ns ? watch->alive_seen_ns : watch->quiet_ns;
	if (now_ns < from_ns || now_ns - from_ns < PMDP_WATCH_STUCK_NS)
		return;
	pmdp_watch_begin(watch, 0, PMDP_KIND_CONTROL_STUCK, PMDP_PHASE_RAISE, &event);
	event.incident.duration_ns = now_ns - from_ns;
	pmdp_evidence_int(&event.incident, "pid", (int64_t)watch->last_pid);
	watch->stuck_key = pmdp_watch_raise(watch, &event, from_ns);
}
