// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Actions to text: those of rules, and those of megaflows.
#include "sw_act_format.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pmdp_names.h"
#include "sw_act.h"
#include "sw_flow_field.h"
#include "sw_flow_parse.h"

struct text {
	char *out;
	size_t size, len;
};

// As snprintf: len counts what would have been written.
__attribute__((format(printf, 2, 3))) static void put(struct text *to, const char *format, ...)
{
	bool is_full = to->len >= to->size;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(is_full ? NULL : to->out + to->len, is_full ? 0 : to->size - to->len, format,
		      args);
	va_end(args);
	to->len += (size_t)n;
}

static void put_port(struct text *to, uint16_t port)
{
	if (port == SW_PORT_IN_PORT)
		put(to, "IN_PORT");
	else
		put(to, "%u", port);
}

static void put_output(struct text *to, const struct sw_rule_act *act)
{
	if (act->max_len) {
		put(to, "output(port=");
		put_port(to, act->port);
		put(to, ",max_len=%u)", act->max_len);
	} else {
		put(to, "%s", act->port == SW_PORT_IN_PORT ? "" : "output:");
		put_port(to, act->port);
	}
}

static void put_set(struct text *to, const struct sw_rule_act *act)
{
	bool is_mod = act->name < SW_SET_FIELD;
	const struct sw_field *field = is_mod ? sw_field_find(sw_mods[act->name].field)
					      : sw_field_at(act->name - SW_SET_FIELD);
	char value[128];

	sw_field_format_set(field, act->value, act->mask, value, sizeof(value));
	if (is_mod)
		put(to, "%s:%s", sw_mods[act->name].name, value);
	else
		put(to, "set_field:%s->%s", value, field->name);
}

static void put_resubmit(struct text *to, const struct sw_rule_act *act)
{
	put(to, "resubmit(");
	if (act->port != SW_PORT_IN_PORT)
		put_port(to, act->port);
	else if (act->table == SW_TABLE_SAME)
		put(to, "IN_PORT");
	if (act->table != SW_TABLE_SAME)
		put(to, ",%u", act->table);
	put(to, ")");
}

static void put_note(struct text *to, const struct sw_rule_act *act)
{
	put(to, "note:");
	for (unsigned int i = 0; i < act->n_bytes; i++)
		put(to, "%s%02x", i ? "." : "", act->note[i]);
}

static void put_act(struct text *to, const struct sw_rule_act *act)
{
	switch (act->type) {
	case SW_RULE_OUTPUT:
		put_output(to, act);
		break;
	case SW_RULE_FLOOD:
		put(to, "FLOOD");
		break;
	case SW_RULE_ALL:
		put(to, "ALL");
		break;
	case SW_RULE_NORMAL:
		put(to, "NORMAL");
		break;
	case SW_RULE_SET:
		put_set(to, act);
		break;
	case SW_RULE_PUSH_VLAN:
		put(to, "push_vlan:0x%04x", rte_be_to_cpu_16(act->tpid));
		break;
	case SW_RULE_POP_VLAN:
		put(to, "strip_vlan");
		break;
	case SW_RULE_DEC_TTL:
		put(to, "dec_ttl");
		break;
	case SW_RULE_RESUBMIT:
		put_resubmit(to, act);
		break;
	case SW_RULE_GOTO:
		put(to, "goto_table:%u", act->table);
		break;
	case SW_RULE_RECIRC:
		put(to, "recirc(table=%u)", act->table);
		break;
	case SW_RULE_NOTE:
		put_note(to, act);
		break;
	}
}

int sw_rule_act_format(const struct sw_rule_act *act, char *out, size_t size)
{
	struct text to = {.out = out, .size = size};

	put(&to, "%s", "");
	put_act(&to, act);
	return (int)to.len;
}

int sw_rule_format_actions(const struct sw_rule *rule, char *out, size_t size)
{
	struct text to = {.out = out, .size = size};

	if (rule->n_acts == 0)
		put(&to, "drop");
	for (uint32_t i = 0; i < rule->n_acts; i++) {
		put(&to, "%s", i ? "," : "");
		put_act(&to, &rule->acts[i]);
	}
	return (int)to.len;
}

// The fields that an executor can be told to set, by the place in the key and the kind of packet.
static const struct sw_field *field_set(const struct sw_act *act, uint16_t dl_type)
{
	bool is_ip4 = dl_type == SW_TYPE_IP4, is_ip6 = dl_type == SW_TYPE_IP6;
	const struct sw_field *field;

	for (size_t i = 0; (field = sw_field_at(i)); i++) {
		bool is_arp = field->sets == SW_NEEDS_ARP;
		bool is_ip = field->sets == SW_NEEDS_IP4 || field->sets == SW_NEEDS_IP;

		if (field->offset != act->offset || field->n_bytes != act->n_bytes)
			continue;
		if (is_arp ? !is_ip4 && !is_ip6 : !is_ip || is_ip4 || is_ip6)
			return field;
	}
	return NULL;
}

static void put_dp_set(struct text *to, const struct sw_act *act, uint16_t dl_type)
{
	const struct sw_field *field = field_set(act, dl_type);
	bool is_tag = act->offset == offsetof(struct sw_key, vlan_tci);
	bool is_tos = act->offset == offsetof(struct sw_key, nw_tos);
	char value[128];

	if (is_tag)
		put(to, "set(vlan_tci=0x%02x%02x/0x%02x%02x)", act->value[0], act->value[1],
		    act->mask[0], act->mask[1]);
	else if (is_tos)
		put(to, "set(nw_tos=0x%02x/0x%02x)", act->value[0], act->mask[0]);
	else if (!field)
		put(to, "set(offset=%u,bytes=%u)", act->offset, act->n_bytes);
	else {
		sw_field_format_set(field, act->value, act->mask, value, sizeof(value));
		put(to, "set(%s=%s)", field->name, value);
	}
}

static void put_dp_act(struct text *to, const struct sw_act *act, uint16_t dl_type)
{
	switch (act->type) {
	case SW_ACT_OUTPUT:
		if (act->max_len)
			put(to, "output(port=%u,max_len=%u)", act->port, act->max_len);
		else
			put(to, "output:%u", act->port);
		break;
	case SW_ACT_FLOOD:
		put(to, "flood");
		break;
	case SW_ACT_NORMAL:
		put(to, "normal");
		break;
	case SW_ACT_SET:
		put_dp_set(to, act, dl_type);
		break;
	case SW_ACT_PUSH_VLAN:
		put(to, "push_vlan(tpid=0x%04x,tci=0x%04x)", rte_be_to_cpu_16(act->tpid),
		    rte_be_to_cpu_16(act->tci));
		break;
	case SW_ACT_POP_VLAN:
		put(to, "pop_vlan");
		break;
	case SW_ACT_DEC_TTL:
		put(to, "dec_ttl");
		break;
	case SW_ACT_RECIRC:
		put(to, "recirc(%u)", act->recirc_id);
		break;
	}
}

int sw_acts_format(const struct sw_act *acts, uint32_t n_acts, uint32_t drop_reason,
		   uint16_t dl_type, char *out, size_t size)
{
	struct text to = {.out = out, .size = size};

	put(&to, "%s", "");
	if (n_acts == 0)
		put(&to, "drop(%s)", pmdp_drop_name(drop_reason));
	for (uint32_t i = 0; i < n_acts; i++) {
		put(&to, "%s", i ? "," : "");
		put_dp_act(&to, &acts[i], dl_type);
	}
	return (int)to.len;
}
