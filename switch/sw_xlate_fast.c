// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_xlate_fast.h"

#include <string.h>

#include "pmdp_abi.h"
#include "sw_rule.h"
#include "sw_tables_lookup_fast.h"
#include "sw_trace_fast.h"
#include "sw_xlate_edit_fast.h"

// A rule whose actions are being carried out.
struct frame {
	const struct sw_crule *rule;
	uint32_t at; // its next action
	uint8_t table;
};

struct walk {
	struct sw_xlate_edit edit;
	const struct sw_tables *tables;
	struct sw_trace *trace;
	uint32_t n_resubmits;
	uint32_t depth;
	bool is_missed; // the last lookup found no rule
	bool is_over;
	bool is_limited;
	struct frame frames[SW_XLATE_MAX_RESUBMIT + 1];
};

static void tell(struct walk *w, uint8_t what, uint8_t table, uint32_t act, uint32_t slot)
{
	sw_trace_add(w->trace, (struct sw_trace_step){.what = what,
						      .table = table,
						      .depth = (uint8_t)w->depth,
						      .act = (uint8_t)act,
						      .slot = slot});
}

static void limit(struct walk *w)
{
	w->is_limited = w->is_over = true;
}

// Look a table up, as for a packet from this port, and begin with the rule that is found. Its
// actions, and later tables, know the packet's own port again.
static void enter(struct walk *w, uint8_t table, uint16_t in_port)
{
	uint16_t own_port = w->edit.work.in_port;
	struct sw_xlate *out = w->edit.out;
	struct sw_key look;
	const struct sw_crule *rule;

	memset(&look, 0, sizeof(look));
	w->edit.work.in_port = in_port;
	rule = sw_tables_lookup(w->tables, table, &w->edit.work, &look);
	w->edit.work.in_port = own_port;
	sw_xlate_look(&w->edit, &look);
	w->is_missed = !rule;
	if (!rule) {
		tell(w, SW_TRACE_NO_RULE, table, 0, 0);
		return;
	}
	tell(w, SW_TRACE_RULE, table, 0, rule->slot);
	if (out->n_slots == SW_XLATE_MAX_RULES) {
		limit(w);
		return;
	}
	out->slots[out->n_slots++] = rule->slot;
	w->frames[w->depth++] = (struct frame){.rule = rule, .table = table};
}

static void again(struct walk *w, const struct frame *from, const struct sw_rule_act *act)
{
	uint16_t in_port = w->edit.work.in_port;

	if (++w->n_resubmits > SW_XLATE_MAX_RESUBMIT) {
		limit(w);
		return;
	}
	if (act->type == SW_RULE_RESUBMIT && act->port != SW_PORT_IN_PORT)
		in_port = act->port;
	enter(w, act->table == SW_TABLE_SAME ? from->table : act->table, in_port);
}

static bool output(struct walk *w, const struct sw_rule_act *act)
{
	uint16_t in_port = w->edit.work.in_port;
	struct sw_act to = {.type = SW_ACT_OUTPUT, .port = act->port, .max_len = act->max_len};

	if (act->port == SW_PORT_IN_PORT)
		to.port = in_port;
	else if (act->port == in_port)
		return false; // a packet goes back only by in_port
	sw_xlate_commit(&w->edit);
	sw_xlate_emit(&w->edit, &to);
	return true;
}

static void emit(struct walk *w, struct sw_act act)
{
	sw_xlate_commit(&w->edit);
	sw_xlate_emit(&w->edit, &act);
}

// One action. false: it has no effect on this packet.
static bool act_on(struct walk *w, const struct frame *from, const struct sw_rule_act *act)
{
	switch (act->type) {
	case SW_RULE_OUTPUT:
		return output(w, act);
	case SW_RULE_FLOOD:
	case SW_RULE_ALL:
		emit(w, (struct sw_act){.type = SW_ACT_FLOOD});
		return true;
	case SW_RULE_NORMAL:
		emit(w, (struct sw_act){.type = SW_ACT_NORMAL});
		return true;
	case SW_RULE_SET:
		return sw_xlate_set(&w->edit, act);
	case SW_RULE_PUSH_VLAN:
		sw_xlate_push_vlan(&w->edit, act->tpid);
		return true;
	case SW_RULE_POP_VLAN:
		return sw_xlate_pop_vlan(&w->edit);
	case SW_RULE_DEC_TTL:
		switch (sw_xlate_dec_ttl(&w->edit)) {
		case SW_TTL_NONE:
			return false;
		case SW_TTL_EXCEEDED:
			tell(w, SW_TRACE_TTL, from->table, 0, 0);
			w->is_over = true;
			break;
		}
		return true;
	case SW_RULE_RESUBMIT:
	case SW_RULE_GOTO:
		again(w, from, act);
		return true;
	case SW_RULE_RECIRC:
		emit(w, (struct sw_act){.type = SW_ACT_RECIRC, .recirc_id = act->table + 1u});
		w->is_over = true;
		return true;
	default: // a note
		return true;
	}
}

static void walk(struct walk *w)
{
	while (w->depth > 0 && !w->is_over) {
		// By value: an action may put another frame in its place.
		struct frame *frame = &w->frames[w->depth - 1];
		struct frame from = *frame;
		uint32_t at = frame->at++;

		if (at == from.rule->n_acts) {
			w->depth--;
			continue;
		}
		tell(w, SW_TRACE_ACT, from.table, at, from.rule->slot);
		if (!act_on(w, &from, &from.rule->acts[at]))
			tell(w, SW_TRACE_SKIPPED, from.table, at, from.rule->slot);
		if (w->edit.is_full)
			limit(w);
	}
}

// What changes the packet after its last output changes nothing.
static void trim(struct sw_xlate *out)
{
	while (out->n_acts > 0) {
		uint8_t type = out->acts[out->n_acts - 1].type;

		if (type != SW_ACT_SET && type != SW_ACT_PUSH_VLAN && type != SW_ACT_POP_VLAN &&
		    type != SW_ACT_DEC_TTL)
			break;
		out->n_acts--;
	}
}

void sw_xlate_traced(const struct sw_tables *tables, const struct sw_key *key, struct sw_xlate *out,
		     struct sw_trace *trace)
{
	struct walk w;

	w.tables = tables;
	w.trace = trace;
	w.n_resubmits = w.depth = 0;
	w.is_missed = w.is_over = w.is_limited = false;
	sw_xlate_begin(&w.edit, key, out);
	if (key->recirc_id <= SW_XLATE_N_TABLES)
		enter(&w, key->recirc_id ? (uint8_t)(key->recirc_id - 1) : 0, key->in_port);
	walk(&w);
	trim(out);
	if (w.is_limited) {
		tell(&w, SW_TRACE_LIMIT, 0, 0, 0);
		out->n_acts = 0;
		out->drop_reason = PMDP_DROP_RECIRC_LIMIT;
	} else {
		out->drop_reason = w.is_missed ? PMDP_DROP_NO_RULE : PMDP_DROP_ACTION;
	}
}

void sw_xlate(const struct sw_tables *tables, const struct sw_key *key, struct sw_xlate *out)
{
	sw_xlate_traced(tables, key, out, NULL);
}
