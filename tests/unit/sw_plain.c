// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_plain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_byteorder.h>

#include "pmdp_abi.h"
#include "sw_needs_fast.h"

#define PRESENT RTE_BE16(SW_VLAN_PRESENT)

static void show_tags(struct sw_plain_packet *p)
{
	p->key.vlan_tci = p->tags[0];
	p->key.vlan_tci1 = p->tags[1];
}

static void leave(struct sw_plain_way *way, const struct sw_plain_packet *p, uint8_t type,
		  uint16_t port, uint32_t arg)
{
	struct sw_plain_left *left = &way->out[way->n_out];

	if (way->is_dead) {
		way->n_late++;
		return;
	}
	assert_true(way->n_out < SW_PLAIN_MAX_OUT);
	way->n_out++;
	memset(left, 0, sizeof(*left));
	left->type = type;
	left->port = port;
	left->arg = arg;
	left->packet = *p;
	left->packet.key.in_port = 0;
}

static void push(struct sw_plain_packet *p)
{
	if (p->tags[SW_PLAIN_TAGS - 1] != 0) {
		assert_true(p->n_deep < SW_PLAIN_MAX_DEEP);
		memmove(&p->deep[1], &p->deep[0], p->n_deep * sizeof(p->deep[0]));
		p->deep[0] = p->tags[SW_PLAIN_TAGS - 1];
		p->n_deep++;
	}
	memmove(&p->tags[1], &p->tags[0], (SW_PLAIN_TAGS - 1) * sizeof(p->tags[0]));
	p->tags[0] = PRESENT;
	show_tags(p);
}

static void pop(struct sw_plain_packet *p)
{
	memmove(&p->tags[0], &p->tags[1], (SW_PLAIN_TAGS - 1) * sizeof(p->tags[0]));
	p->tags[SW_PLAIN_TAGS - 1] = 0;
	show_tags(p);
}

static void set_bytes(struct sw_plain_packet *p, uint32_t offset, uint32_t n, const uint8_t *value,
		      const uint8_t *mask)
{
	for (uint32_t i = 0; i < n; i++) {
		uint8_t *at = (uint8_t *)&p->key + offset + i;

		*at = (uint8_t)((*at & ~mask[i]) | (value[i] & mask[i]));
	}
	p->tags[0] = p->key.vlan_tci;
}

static void plain_set(struct sw_plain_way *way, struct sw_plain_packet *p,
		      const struct sw_rule_act *act)
{
	struct sw_key ignored = {.word = {0}};

	if (act->offset == offsetof(struct sw_key, vlan_tci)) {
		if (!(p->tags[0] & PRESENT))
			push(p);
	} else if (!sw_needs_are_met((enum sw_field_needs)act->needs, &p->key, &ignored)) {
		return;
	}
	set_bytes(p, act->offset, act->n_bytes, act->value, act->mask);
	if (act->offset == offsetof(struct sw_key, nw_ttl))
		way->known_ttl |= act->mask[0];
}

// Where the rules say what the TTL is, its end is that of the whole megaflow. Otherwise others of
// the megaflow go on, and this one with them, but for what it sends.
static void plain_dec_ttl(struct sw_plain_way *way, struct sw_plain_packet *p)
{
	if (p->key.dl_type != SW_TYPE_IP4 && p->key.dl_type != SW_TYPE_IP6)
		return;
	if (way->known_ttl != UINT8_MAX)
		way->known_ttl = 0;
	else if (p->key.nw_ttl <= 1)
		way->is_over = true;
	if (p->key.nw_ttl <= 1)
		way->is_dead = true;
	p->key.nw_ttl--;
}

static bool plain_matches(const struct sw_rule *rule, const struct sw_key *key)
{
	for (unsigned int i = 0; i < offsetof(struct sw_key, recirc_id); i++) {
		uint8_t mask = ((const uint8_t *)&rule->mask)[i];

		if ((((const uint8_t *)key)[i] & mask) != ((const uint8_t *)&rule->value)[i])
			return false;
	}
	for (unsigned int i = offsetof(struct sw_key, nd_target); i < sizeof(*key); i++) {
		uint8_t mask = ((const uint8_t *)&rule->mask)[i];

		if ((((const uint8_t *)key)[i] & mask) != ((const uint8_t *)&rule->value)[i])
			return false;
	}
	return true;
}

// The rules in the order of their addition.
static struct {
	struct sw_rule rules[SW_PLAIN_MAX_RULES];
	uint32_t n;
} model;

static const struct sw_rule *plain_find(uint8_t table, const struct sw_key *key)
{
	const struct sw_rule *best = NULL;

	for (uint32_t i = 0; i < model.n; i++) {
		const struct sw_rule *rule = &model.rules[i];

		if (rule->table == table && (!best || rule->priority > best->priority) &&
		    plain_matches(rule, key))
			best = rule;
	}
	return best;
}

// in_port: as which port's packet it is looked up.
static void plain_table(struct sw_plain_way *way, struct sw_plain_packet *p, uint8_t table,
			uint16_t in_port);

static void plain_act(struct sw_plain_way *way, struct sw_plain_packet *p,
		      const struct sw_rule *rule, const struct sw_rule_act *act)
{
	uint16_t in_port = p->key.in_port;

	way->n_acts++;
	switch (act->type) {
	case SW_RULE_OUTPUT:
		if (act->port == SW_PORT_IN_PORT)
			leave(way, p, SW_ACT_OUTPUT, in_port, act->max_len);
		else if (act->port != in_port)
			leave(way, p, SW_ACT_OUTPUT, act->port, act->max_len);
		break;
	case SW_RULE_FLOOD:
	case SW_RULE_ALL:
		leave(way, p, SW_ACT_FLOOD, 0, 0);
		break;
	case SW_RULE_NORMAL:
		leave(way, p, SW_ACT_NORMAL, 0, 0);
		break;
	case SW_RULE_SET:
		way->n_acts++; // a tag first, perhaps
		plain_set(way, p, act);
		break;
	case SW_RULE_PUSH_VLAN:
		push(p);
		break;
	case SW_RULE_POP_VLAN:
		if (p->tags[0] & PRESENT)
			pop(p);
		break;
	case SW_RULE_DEC_TTL:
		plain_dec_ttl(way, p);
		break;
	case SW_RULE_RESUBMIT:
	case SW_RULE_GOTO:
		if (++way->n_resubmits > SW_XLATE_MAX_RESUBMIT) {
			way->is_limited = way->is_over = true;
			break;
		}
		plain_table(way, p, act->table == SW_TABLE_SAME ? rule->table : act->table,
			    act->type == SW_RULE_RESUBMIT && act->port != SW_PORT_IN_PORT
				    ? act->port
				    : in_port);
		break;
	case SW_RULE_RECIRC:
		leave(way, p, SW_ACT_RECIRC, 0, act->table + 1u);
		way->is_over = true;
		break;
	}
}

static void plain_table(struct sw_plain_way *way, struct sw_plain_packet *p, uint8_t table,
			uint16_t in_port)
{
	const struct sw_rule *rule;
	struct sw_key key = p->key;

	key.in_port = in_port;
	rule = plain_find(table, &key);
	way->is_missed = !rule;
	if (!rule)
		return;
	if (way->n_rules == SW_XLATE_MAX_RULES) {
		way->is_limited = way->is_over = true;
		return;
	}
	way->rules[way->n_rules++] = rule;
	for (uint32_t i = 0; i < rule->n_acts && !way->is_over; i++)
		plain_act(way, p, rule, &rule->acts[i]);
}

struct sw_plain_packet sw_plain_packet_of(const struct sw_key *key)
{
	struct sw_plain_packet p = {.key = *key, .tags = {key->vlan_tci, key->vlan_tci1}};

	return p;
}

const struct sw_plain_way *sw_plain_walk(const struct sw_plain_packet *packet)
{
	static struct sw_plain_way way;
	struct sw_plain_packet p = *packet;
	uint32_t id = p.key.recirc_id;

	way.n_out = way.n_late = way.n_rules = way.n_resubmits = way.n_acts = way.known_ttl = 0;
	way.is_over = way.is_dead = way.is_limited = way.is_missed = false;
	plain_table(&way, &p, id ? (uint8_t)(id - 1) : 0, p.key.in_port);
	return &way;
}

// Carry the packet through the actions of a megaflow.
static void execute(struct sw_plain_way *way, const struct sw_key *key,
		    const struct sw_xlate *result)
{
	struct sw_plain_packet p = sw_plain_packet_of(key);

	way->n_out = way->n_late = 0;
	way->is_dead = false;
	for (uint32_t i = 0; i < result->n_acts && !way->is_dead; i++) {
		const struct sw_act *act = &result->acts[i];

		switch (act->type) {
		case SW_ACT_OUTPUT:
			leave(way, &p, act->type, act->port, act->max_len);
			break;
		case SW_ACT_RECIRC:
			assert_int_equal(i + 1, result->n_acts);
			leave(way, &p, act->type, 0, act->recirc_id);
			break;
		case SW_ACT_FLOOD:
		case SW_ACT_NORMAL:
			leave(way, &p, act->type, 0, 0);
			break;
		case SW_ACT_SET:
			if (act->offset == offsetof(struct sw_key, vlan_tci))
				assert_true(p.tags[0] & PRESENT);
			set_bytes(&p, act->offset, act->n_bytes, act->value, act->mask);
			break;
		case SW_ACT_PUSH_VLAN:
			push(&p);
			break;
		case SW_ACT_POP_VLAN:
			assert_true(p.tags[0] & PRESENT);
			pop(&p);
			break;
		case SW_ACT_DEC_TTL:
			way->is_dead = p.key.nw_ttl <= 1;
			p.key.nw_ttl--;
			break;
		default:
			fail_msg("action %u", act->type);
		}
	}
}

void sw_plain_explain(const struct sw_key *key, const char *what)
{
	char text[2048];
	struct sw_key all;

	memset(&all, 0xff, sizeof(all));
	for (unsigned int i = 0; i < SW_KEY_WORDS; i++)
		print_message("key word %u: %016llx\n", i, (unsigned long long)key->word[i]);
	for (uint32_t i = 0; i < model.n; i++) {
		sw_rule_format(&model.rules[i], text, sizeof(text));
		print_message("%s\n", text);
	}
	fail_msg("%s", what);
}

// A translation that is said to be right for this key.
void sw_plain_check(struct sw_flow_table *table, const struct sw_key *key,
		    const struct sw_xlate *result)
{
	static struct sw_plain_way fast;
	struct sw_plain_packet packet = sw_plain_packet_of(key);
	const struct sw_plain_way *plain = sw_plain_walk(&packet);
	bool is_same;

	execute(&fast, key, result);
	if (plain->is_limited) {
		if (result->n_acts != 0 || result->drop_reason != PMDP_DROP_RECIRC_LIMIT)
			sw_plain_explain(key, "limit");
		return;
	}
	is_same = plain->n_out == fast.n_out;
	for (uint32_t i = 0; is_same && i < plain->n_out; i++)
		is_same = memcmp(&plain->out[i], &fast.out[i], sizeof(plain->out[i])) == 0;
	if (!is_same)
		sw_plain_explain(key, "what leaves");
	if ((result->n_acts == 0) != (plain->n_out + plain->n_late == 0))
		sw_plain_explain(key, "whether anything leaves");
	if (result->n_acts == 0 &&
	    result->drop_reason != (plain->is_missed ? PMDP_DROP_NO_RULE : PMDP_DROP_ACTION))
		sw_plain_explain(key, "reason of the drop");
	if (result->n_slots != plain->n_rules)
		sw_plain_explain(key, "number of rules");
	for (uint32_t i = 0; i < plain->n_rules; i++) {
		const struct sw_rule *rule = sw_flow_by_slot(table, result->slots[i]);

		if (!rule || !sw_rule_is_same(rule, plain->rules[i]))
			sw_plain_explain(key, "rules");
	}
}

void sw_plain_add(const struct sw_rule *rule)
{
	for (uint32_t i = 0; i < model.n; i++) {
		if (!sw_rule_is_same_match(&model.rules[i], rule))
			continue;
		sw_rule_free(&model.rules[i]);
		memmove(&model.rules[i], &model.rules[i + 1],
			(model.n - i - 1) * sizeof(model.rules[0]));
		model.n--;
		break;
	}
	model.rules[model.n++] = *rule;
}

void sw_plain_delete(const struct sw_flow_filter *filter)
{
	uint32_t to = 0;

	for (uint32_t i = 0; i < model.n; i++) {
		if (sw_flow_filter_matches(filter, &model.rules[i]))
			sw_rule_free(&model.rules[i]);
		else
			model.rules[to++] = model.rules[i];
	}
	model.n = to;
}

static bool leads_backwards(const struct sw_flow_mod *mod, const struct sw_rule *rule)
{
	const struct sw_rule *how = &mod->filter.match;

	for (uint32_t i = 0; i < how->n_acts; i++)
		if (how->acts[i].type == SW_RULE_GOTO && how->acts[i].table <= rule->table)
			return true;
	return false;
}

bool sw_plain_modify(const struct sw_flow_mod *mod)
{
	for (uint32_t i = 0; i < model.n; i++)
		if (sw_flow_filter_matches(&mod->filter, &model.rules[i]) &&
		    leads_backwards(mod, &model.rules[i]))
			return false;
	for (uint32_t i = 0; i < model.n; i++) {
		struct sw_rule *rule = &model.rules[i], with, copy;

		if (!sw_flow_filter_matches(&mod->filter, rule))
			continue;
		with = *rule;
		with.n_acts = mod->filter.match.n_acts;
		with.acts = mod->filter.match.acts;
		assert_int_equal(sw_rule_copy(&with, &copy), 0);
		sw_rule_free(rule);
		*rule = copy;
	}
	return true;
}

uint32_t sw_plain_count(void)
{
	return model.n;
}

void sw_plain_clear(void)
{
	for (uint32_t i = 0; i < model.n; i++)
		sw_rule_free(&model.rules[i]);
	model.n = 0;
}
