// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "cp_relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cp_config.h"
#include "cp_events.h"
#include "cp_log.h"
#include "cp_own.h"
#include "cp_status_file.h"
#include "pmdpulse.h"

#define POLL_NS UINT64_C(2000000) // events of an agent that does not touch its file
// All else: the agent's sign of life, the file's identity, tries to open, events as a safety net.
// On the same beat as the silent looks of cp_own.c, so that one waking does for all.
#define TICK_NS CP_OWN_SILENT_NS
#define LATE_NS UINT64_C(250000000) // our own pause, after which nobody is called stale
// `collectd -T' runs beside a living collectd and must not overwrite what that one says.
#define STATUS_DELAY_NS UINT64_C(2000000000)
#define UP_GRACE_NS UINT64_C(2000000000) // a switch without an agent for so long is told

enum mode {
	UNDECIDED,
	RELAYING,
	OWN,
};

struct cp_relay {
	struct cp_instance *instance;
	enum mode mode;
	uint64_t begin_ns;
	uint64_t step_ns;       // last call
	uint64_t stamp_ns;      // the agent's, as last seen
	uint64_t stamp_seen_ns; // when it was seen to change, 0 never
	uint64_t stamp_due_ns, open_due_ns, poll_due_ns;
	uint64_t up_since_ns;   // the switch is up and nobody else judges
	bool is_stopped;        // the agent said that it ends
	uint64_t status_due_ns; // INSTANCE.relay is to be written then, 0: it is right
	bool is_touch_told;     // by inotify
	bool is_poked;          // of this agent's events too
	bool is_poked_since_event, is_status_written;
	int open_error;
	struct cp_events events;
	struct cp_own own;
};

struct cp_relay *cp_relay_new(struct cp_instance *instance, uint64_t now_ns)
{
	struct cp_relay *relay = calloc(1, sizeof(*relay));

	if (relay == NULL)
		return NULL;
	relay->instance = relay->events.instance = instance;
	relay->begin_ns = relay->step_ns = now_ns;
	if (cp_own_init(&relay->own, instance) < 0) {
		free(relay);
		return NULL;
	}
	return relay;
}

void cp_relay_free(struct cp_relay *relay)
{
	if (relay == NULL)
		return;
	if (relay->is_status_written)
		cp_status_file_remove(relay->instance->name);
	cp_events_fini(&relay->events);
	cp_own_fini(&relay->own);
	free(relay);
}

void cp_relay_set_touch_told(struct cp_relay *relay, bool is_touch_told)
{
	if (relay->is_touch_told == is_touch_told)
		return;
	relay->is_touch_told = is_touch_told;
	// What was touched before it was watched for is looked for once.
	relay->is_poked = is_touch_told;
	relay->poll_due_ns = relay->stamp_due_ns = relay->open_due_ns = 0;
}

void cp_relay_poke(struct cp_relay *relay)
{
	relay->is_poked_since_event = true;
	relay->is_poked = relay->is_touch_told;
	relay->poll_due_ns = relay->stamp_due_ns = relay->open_due_ns = 0;
}

static uint64_t next_tick(uint64_t now_ns)
{
	return (now_ns / TICK_NS + 1) * TICK_NS;
}

static void store(_Atomic uint64_t *number, uint64_t value)
{
	atomic_store_explicit(number, value, memory_order_relaxed);
}

static void open_segment(struct cp_relay *relay, uint64_t now_ns)
{
	const struct pmdp_reader_opts opts = {
		.rundir = cp_config.rundir,
		.suffix = "incidents",
		.publisher_uid = cp_config.publisher_uid,
		.has_publisher_uid = cp_config.has_publisher_uid,
	};
	struct pmdp_reader *reader;
	char reason[256] = "";
	int rc;

	relay->open_due_ns = next_tick(now_ns);
	rc = pmdp_reader_open_why(relay->instance->name, &opts, &reader, reason, sizeof(reason));
	if (rc == 0) {
		relay->open_error = 0;
		relay->stamp_due_ns = relay->poll_due_ns = 0;
		relay->is_poked = relay->is_touch_told;
		cp_events_attach(&relay->events, reader);
		return;
	}
	if (rc != relay->open_error && rc != -ENOENT)
		cp_log(LOG_WARNING, "instance %s: its incidents can't be read: %s (%s)",
		       relay->instance->name, reason[0] != 0 ? reason : "no reason", strerror(-rc));
	relay->open_error = rc;
}

// Leave the segment; what it still holds is read first, so that nothing is lost with it.
static void close_segment(struct cp_relay *relay, uint64_t now_ns)
{
	if (relay->mode == RELAYING)
		cp_events_pump(&relay->events, now_ns);
	cp_events_detach(&relay->events);
	relay->open_due_ns = 0;
}

static void look_at_stamp(struct cp_relay *relay, uint64_t now_ns)
{
	struct pmdp_look look;

	relay->stamp_due_ns = next_tick(now_ns);
	if (pmdp_reader_check(relay->events.reader) < 0 ||
	    pmdp_reader_look(relay->events.reader, &look) < 0) {
		close_segment(relay, now_ns);
		return;
	}
	relay->is_stopped = look.stopped_ns != 0;
	if (relay->is_stopped || look.alive_ns == relay->stamp_ns)
		return;
	// A stamp met for the first time proves life only when it is a recent one.
	if (relay->stamp_ns != 0 ||
	    (look.alive_ns <= now_ns && now_ns - look.alive_ns < CP_STALE_NS))
		relay->stamp_seen_ns = now_ns;
	relay->stamp_ns = look.alive_ns;
	store(&relay->instance->numbers.agent_alive_ns, look.alive_ns);
}

static bool is_fresh(const struct cp_relay *relay, uint64_t now_ns)
{
	return relay->stamp_seen_ns != 0 && now_ns - relay->stamp_seen_ns < CP_STALE_NS;
}

static void enter_relaying(struct cp_relay *relay, uint64_t now_ns)
{
	if (relay->mode == OWN)
		cp_own_end(&relay->own);
	cp_own_agent_back(&relay->own);
	relay->mode = RELAYING;
	relay->up_since_ns = 0;
	cp_log(LOG_INFO, "instance %s: relaying the agent's incidents", relay->instance->name);
	cp_events_sync(&relay->events, now_ns);
	store(&relay->instance->numbers.is_relaying, 1);
	relay->status_due_ns = relay->begin_ns + STATUS_DELAY_NS;
}

static void enter_own(struct cp_relay *relay, uint64_t now_ns)
{
	bool was_relaying = relay->mode == RELAYING;

	if (was_relaying)
		cp_events_pump(&relay->events, now_ns);
	relay->mode = OWN;
	if (was_relaying)
		cp_own_agent_gone(&relay->own, relay->stamp_ns,
				  relay->is_stopped ? "was stopped" : "gives no sign of life");
	cp_own_begin(&relay->own);
	store(&relay->instance->numbers.is_relaying, 0);
	relay->status_due_ns = relay->begin_ns + STATUS_DELAY_NS;
}

static void decide(struct cp_relay *relay, uint64_t now_ns)
{
	bool is_agent_up = is_fresh(relay, now_ns);

	store(&relay->instance->numbers.is_agent_up, is_agent_up);
	if (is_agent_up && relay->events.reader != NULL && relay->mode != RELAYING)
		enter_relaying(relay, now_ns);
	else if (!is_agent_up &&
		 (relay->mode == RELAYING ||
		  (relay->mode == UNDECIDED && now_ns - relay->begin_ns >= CP_STALE_NS)))
		enter_own(relay, now_ns);
}

// A switch that runs while no agent was ever seen: said once, but not in the seconds of a boot.
static void tell_unwatched(struct cp_relay *relay, uint64_t now_ns)
{
	if (pmdp_watch_status(relay->own.watch) != PMDP_WATCH_UP) {
		relay->up_since_ns = 0;
		return;
	}
	if (relay->up_since_ns == 0)
		relay->up_since_ns = now_ns;
	if (now_ns - relay->up_since_ns >= UP_GRACE_NS)
		cp_own_agent_gone(&relay->own, relay->stamp_ns, "is not there");
}

static void read_events(struct cp_relay *relay, uint64_t now_ns)
{
	int n = cp_events_pump(&relay->events, now_ns);

	if (n < 0) {
		close_segment(relay, now_ns);
		return;
	}
	// Events without a touch of the file: this agent doesn't tell, so poll for the next.
	if (n > 0 && !relay->is_poked_since_event)
		relay->is_poked = false;
	relay->is_poked_since_event = false;
	relay->poll_due_ns = relay->is_poked ? next_tick(now_ns) : now_ns + POLL_NS;
	if (relay->events.sync_due_ns != 0 && now_ns >= relay->events.sync_due_ns)
		cp_events_sync(&relay->events, now_ns);
}

static void write_status(struct cp_relay *relay)
{
	cp_status_file_write(relay->instance->name, relay->mode == RELAYING);
	relay->status_due_ns = 0;
	relay->is_status_written = true;
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t cp_relay_step(struct cp_relay *relay, uint64_t now_ns)
{
	uint64_t due;

	if (now_ns - relay->step_ns > LATE_NS && is_fresh(relay, relay->step_ns))
		relay->stamp_seen_ns = now_ns;
	relay->step_ns = now_ns;

	if (relay->events.reader != NULL && now_ns >= relay->stamp_due_ns)
		look_at_stamp(relay, now_ns);
	if (relay->events.reader == NULL && now_ns >= relay->open_due_ns)
		open_segment(relay, now_ns);
	if (relay->events.reader != NULL && now_ns >= relay->stamp_due_ns)
		look_at_stamp(relay, now_ns);
	decide(relay, now_ns);
	if (relay->mode == OWN)
		tell_unwatched(relay, now_ns);
	if (relay->mode == RELAYING && relay->events.reader != NULL && now_ns >= relay->poll_due_ns)
		read_events(relay, now_ns);
	if (relay->status_due_ns != 0 && now_ns >= relay->status_due_ns)
		write_status(relay);

	due = cp_own_step(&relay->own, now_ns);
	due = earliest(due,
		       relay->events.reader != NULL ? relay->stamp_due_ns : relay->open_due_ns);
	if (relay->mode == RELAYING && relay->events.reader != NULL)
		due = earliest(due, relay->poll_due_ns);
	return due;
}
