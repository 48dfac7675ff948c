// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>

#include "sw_act_format.h"
#include "sw_flow.h"
#include "sw_trace_fast.h"

static void put_rule(FILE *to, const struct sw_trace_step *step, const struct sw_rule *rule)
{
	char match[1024];

	sw_rule_format_match(rule, match, sizeof(match));
	fprintf(to, "%*s%2u. %s%spriority %u", step->depth * 4, "", step->table, match,
		match[0] ? ", " : "", rule->priority);
	if (rule->cookie)
		fprintf(to, ", cookie 0x%llx", (unsigned long long)rule->cookie);
	fputc('\n', to);
	if (rule->n_acts == 0)
		fprintf(to, "%*s    drop\n", step->depth * 4, "");
}

static void put_step(FILE *to, const struct sw_flow_table *table, const struct sw_trace_step *step)
{
	const struct sw_rule *rule = sw_flow_by_slot(table, step->slot);
	unsigned int indent = step->depth * 4u;
	char text[256];

	switch (step->what) {
	case SW_TRACE_RULE:
		put_rule(to, step, rule);
		break;
	case SW_TRACE_NO_RULE:
		fprintf(to, "%*s%2u. no rule matches\n", (int)indent, "", step->table);
		break;
	case SW_TRACE_ACT:
		sw_rule_act_format(&rule->acts[step->act], text, sizeof(text));
		fprintf(to, "%*s%s\n", (int)indent, "", text);
		break;
	case SW_TRACE_SKIPPED:
		fprintf(to, "%*s >> has no effect on this packet\n", (int)indent, "");
		break;
	case SW_TRACE_TTL:
		fprintf(to, "%*s >> TTL exceeded, the packet goes no further\n", (int)indent, "");
		break;
	case SW_TRACE_LIMIT:
		fprintf(to, " >> more than %d resubmits, %d rules or %d actions: dropped\n",
			SW_XLATE_MAX_RESUBMIT, SW_XLATE_MAX_RULES, SW_XLATE_MAX_ACTS);
		break;
	}
}

static void put_result(FILE *to, const struct sw_key *key, const struct sw_xlate *result)
{
	char match[2048], actions[SW_ACTS_TEXT_BYTES];

	sw_match_format(key, &result->mask, match, sizeof(match));
	sw_acts_format(result->acts, result->n_acts, result->drop_reason, key->dl_type, actions,
		       sizeof(actions));
	fprintf(to, "\nMegaflow: %s\nDatapath actions: %s\n", match, actions);
}

static void change_tags(const struct sw_act *act, struct sw_key *key)
{
	if (act->type == SW_ACT_PUSH_VLAN) {
		key->vlan_tci1 = key->vlan_tci;
		key->vlan_tci = act->tci | RTE_BE16(SW_VLAN_PRESENT);
	} else {
		key->vlan_tci = key->vlan_tci1;
		key->vlan_tci1 = 0;
	}
}

bool sw_trace_act(const struct sw_act *act, struct sw_key *key)
{
	switch (act->type) {
	case SW_ACT_SET:
		for (uint32_t b = 0; b < act->n_bytes; b++) {
			uint8_t *byte = (uint8_t *)key + act->offset + b;

			*byte = (uint8_t)((*byte & ~act->mask[b]) | act->value[b]);
		}
		break;
	case SW_ACT_PUSH_VLAN:
	case SW_ACT_POP_VLAN:
		change_tags(act, key);
		break;
	case SW_ACT_DEC_TTL:
		if (key->nw_ttl <= 1)
			return false;
		key->nw_ttl--;
		break;
	case SW_ACT_RECIRC:
		key->recirc_id = act->recirc_id;
		break;
	}
	return true;
}

// The key that the packet has when it comes back; false: it does not.
static bool key_after(const struct sw_xlate *result, struct sw_key *key)
{
	for (uint32_t i = 0; i < result->n_acts; i++) {
		if (!sw_trace_act(&result->acts[i], key))
			return false;
		if (result->acts[i].type == SW_ACT_RECIRC)
			return true;
	}
	return false;
}

int sw_trace_pass(const struct sw_flow_table *table, const struct sw_key *key, FILE *to,
		  struct sw_xlate *out_result, struct sw_key *out_next, bool *out_comes_back)
{
	struct sw_trace *trace = malloc(sizeof(*trace));

	if (!trace)
		return -ENOMEM;
	trace->n = 0;
	sw_xlate_traced(sw_tables_get(sw_flow_table_ref(table)), key, out_result, trace);
	for (uint32_t i = 0; i < trace->n && i < SW_TRACE_MAX_STEPS; i++)
		put_step(to, table, &trace->step[i]);
	if (trace->n > SW_TRACE_MAX_STEPS)
		fprintf(to, " ... and %u steps more\n", trace->n - SW_TRACE_MAX_STEPS);
	put_result(to, key, out_result);
	*out_next = *key;
	*out_comes_back = key_after(out_result, out_next);
	free(trace);
	return 0;
}
