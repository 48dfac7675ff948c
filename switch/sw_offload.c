// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_offload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sw_log.h"
#include "sw_pipe.h"
#include "sw_pipe_fast.h"
#include "sw_pmd.h"
#include "sw_port.h"
#include "sw_switch.h"

#define BUSY_PACKETS 32      // that a megaflow must have had
#define PLACES_PER_STEP 4096 // that a step looks at, of each PMD

struct mark {
	uint16_t port;     // index
	struct sw_key key; // masked
	struct sw_key mask;
	void *rule; // of the device
	uint32_t n_pmds;
	uint32_t id[SW_MAX_PMDS]; // of the megaflow; 0: this PMD has none
	uint32_t place[SW_MAX_PMDS];
};

struct sw_offload {
	struct mark *marks[SW_MAX_MARKS]; // 0 is none
	uint32_t n;
	uint32_t at[SW_MAX_PMDS];      // where the next step looks
	uint32_t *tried[SW_MAX_PMDS];  // by place: the id that was last asked for
	bool is_refused[SW_MAX_PORTS]; // this port's device marks nothing
};

// What was refused is asked for again.
static void try_again(struct sw_offload *offload)
{
	for (uint32_t i = 0; i < SW_MAX_PMDS; i++) {
		free(offload->tried[i]);
		offload->tried[i] = NULL;
	}
}

int sw_offload_create(struct sw_switch *sw)
{
	sw->offload = calloc(1, sizeof(*sw->offload));
	return sw->offload != NULL ? 0 : -ENOMEM;
}

// The PMD's own table first: no packet may find the flow by a rule that is no more.
static void leave(struct sw_switch *sw, uint32_t number, uint16_t pmd)
{
	struct mark *mark = sw->offload->marks[number];
	struct sw_pipe *pipe;

	if (mark->id[pmd] == 0)
		return;
	mark->id[pmd] = 0;
	mark->n_pmds--;
	if (sw->pmds.slots[pmd] == NULL)
		return;
	pipe = sw->pmds.slots[pmd]->pipe;
	atomic_store_explicit(&pipe->marks[number], 0, memory_order_relaxed);
	atomic_store_explicit(&pipe->n_marks,
			      atomic_load_explicit(&pipe->n_marks, memory_order_relaxed) - 1,
			      memory_order_relaxed);
}

static void take_back(struct sw_switch *sw, uint32_t number)
{
	struct mark *mark = sw->offload->marks[number];
	const struct sw_port *port = sw->ports.slots[mark->port];

	for (uint16_t pmd = 0; pmd < SW_MAX_PMDS; pmd++)
		leave(sw, number, pmd);
	if (port != NULL)
		port->marker->destroy(port, mark->rule);
	free(mark);
	sw->offload->marks[number] = NULL;
	sw->offload->n--;
}

static void take_back_all(struct sw_switch *sw)
{
	for (uint32_t i = 1; i < SW_MAX_MARKS && sw->offload->n > 0; i++)
		if (sw->offload->marks[i] != NULL)
			take_back(sw, i);
}

void sw_offload_destroy(struct sw_switch *sw)
{
	if (sw->offload == NULL)
		return;
	take_back_all(sw);
	try_again(sw->offload);
	free(sw->offload);
	sw->offload = NULL;
}

void sw_offload_forget_port(struct sw_switch *sw, const struct sw_port *port)
{
	if (sw->offload == NULL)
		return;
	for (uint32_t i = 1; i < SW_MAX_MARKS; i++)
		if (sw->offload->marks[i] != NULL && sw->offload->marks[i]->port == port->index)
			take_back(sw, i);
	sw->offload->is_refused[port->index] = false;
	try_again(sw->offload);
}

void sw_offload_forget_pmd(struct sw_switch *sw, uint16_t pmd)
{
	if (sw->offload == NULL)
		return;
	for (uint32_t i = 1; i < SW_MAX_MARKS; i++) {
		if (sw->offload->marks[i] == NULL || sw->offload->marks[i]->id[pmd] == 0)
			continue;
		leave(sw, i, pmd);
		if (sw->offload->marks[i]->n_pmds == 0)
			take_back(sw, i);
	}
	free(sw->offload->tried[pmd]);
	sw->offload->tried[pmd] = NULL;
	sw->offload->at[pmd] = 0;
}

static void join(struct sw_switch *sw, uint32_t number, struct sw_pmd *pmd, uint32_t place,
		 uint32_t id)
{
	struct mark *mark = sw->offload->marks[number];
	struct sw_pipe *pipe = pmd->pipe;

	leave(sw, number, pmd->index); // an earlier life of the flow
	mark->id[pmd->index] = id;
	mark->place[pmd->index] = place;
	mark->n_pmds++;
	atomic_store_explicit(&pipe->marks[number], (uint64_t)id << 32 | place,
			      memory_order_relaxed);
	atomic_store_explicit(&pipe->n_marks,
			      atomic_load_explicit(&pipe->n_marks, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

// The mark of this match, or a free number; 0: there is none.
static uint32_t find(const struct sw_offload *offload, uint16_t port, const struct sw_key *key,
		     const struct sw_key *mask)
{
	uint32_t n_free = 0;

	for (uint32_t i = 1; i < SW_MAX_MARKS; i++) {
		const struct mark *mark = offload->marks[i];

		if (mark == NULL)
			n_free = n_free == 0 ? i : n_free;
		else if (mark->port == port && memcmp(&mark->key, key, sizeof(*key)) == 0 &&
			 memcmp(&mark->mask, mask, sizeof(*mask)) == 0)
			return i;
	}
	return n_free;
}

static struct mark *ask(struct sw_switch *sw, const struct sw_port *port, uint32_t number,
			const struct sw_key *key, const struct sw_key *mask)
{
	struct mark *mark = calloc(1, sizeof(*mark));
	struct sw_error err = {.text = ""};
	int rc;

	if (mark == NULL)
		return NULL;
	mark->port = port->index;
	mark->key = *key;
	mark->mask = *mask;
	rc = port->marker->create(port, key, mask, number, &mark->rule, &err);
	if (rc == 0) {
		sw->offload->n++;
		return mark;
	}
	free(mark);
	if (rc == -ENOSYS) {
		sw->offload->is_refused[port->index] = true;
		sw_log(SW_LOG_WARNING,
		       "port %s: %s marks no packets (%s): hw-offload has no effect there",
		       port->conf.name, port->driver, err.text);
	}
	return NULL;
}

static void offer(struct sw_switch *sw, struct sw_pmd *pmd, uint32_t place,
		  const struct sw_mega_copy *flow)
{
	const struct sw_port *port = sw->ports.slots[flow->port];
	struct sw_offload *offload = sw->offload;
	struct sw_key key = flow->key;
	uint32_t number;

	if (port == NULL || port->state != SW_PORT_ACTIVE || offload->is_refused[port->index] ||
	    flow->key.in_port != port->ofport)
		return;
	for (uint32_t i = 0; i < SW_KEY_WORDS; i++)
		key.word[i] &= flow->mask.word[i];
	number = find(offload, port->index, &key, &flow->mask);
	if (number == 0)
		return;
	if (offload->marks[number] == NULL)
		offload->marks[number] = ask(sw, port, number, &key, &flow->mask);
	if (offload->marks[number] != NULL)
		join(sw, number, pmd, place, flow->id);
}

static void step_pmd(struct sw_switch *sw, struct sw_pmd *pmd)
{
	struct sw_offload *offload = sw->offload;
	uint32_t n = sw_pipe_n_places(pmd->pipe);
	uint64_t now_ticks = 0; // times are not looked at
	struct sw_mega_copy flow;

	if (offload->tried[pmd->index] == NULL)
		offload->tried[pmd->index] = calloc(n, sizeof(uint32_t));
	if (offload->tried[pmd->index] == NULL)
		return;
	for (uint32_t i = 0; i < PLACES_PER_STEP; i++) {
		uint32_t place = offload->at[pmd->index];

		offload->at[pmd->index] = (place + 1) % n;
		if (!sw_pipe_read(pmd->pipe, place, now_ticks, &flow) || flow.is_recirculated ||
		    flow.n_packets < BUSY_PACKETS || offload->tried[pmd->index][place] == flow.id)
			continue;
		offload->tried[pmd->index][place] = flow.id;
		offer(sw, pmd, place, &flow);
	}
}

static void forget_dead(struct sw_switch *sw)
{
	struct sw_mega_copy flow;

	for (uint32_t i = 1; i < SW_MAX_MARKS && sw->offload->n > 0; i++) {
		struct mark *mark = sw->offload->marks[i];

		for (uint16_t pmd = 0; mark != NULL && pmd < SW_MAX_PMDS; pmd++) {
			if (mark->id[pmd] == 0)
				continue;
			if (!sw_pipe_read(sw->pmds.slots[pmd]->pipe, mark->place[pmd], 0, &flow) ||
			    flow.id != mark->id[pmd])
				leave(sw, i, pmd);
		}
		if (mark != NULL && mark->n_pmds == 0)
			take_back(sw, i);
	}
}

void sw_offload_poll(struct sw_switch *sw)
{
	struct sw_pmd *pmd = NULL;

	if (!sw->settings.hw_offload) {
		take_back_all(sw);
		try_again(sw->offload);
		memset(sw->offload->is_refused, 0, sizeof(sw->offload->is_refused));
		return;
	}
	forget_dead(sw);
	while ((pmd = sw_pmd_next(sw, pmd)) != NULL)
		if (pmd->is_known)
			step_pmd(sw, pmd);
}
