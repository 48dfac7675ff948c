// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Actions of rules from text, in the syntax of ovs-actions(7).
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sw_flow_field.h"
#include "sw_flow_parse.h"

#define MIN_MAX_LEN 14 // an Ethernet header

const struct sw_mod sw_mods[SW_N_MODS] = {
	{"mod_dl_src", "dl_src", SW_NEEDS_NOTHING},
	{"mod_dl_dst", "dl_dst", SW_NEEDS_NOTHING},
	{"mod_nw_src", "nw_src", SW_NEEDS_IP4},
	{"mod_nw_dst", "nw_dst", SW_NEEDS_IP4},
	{"mod_nw_tos", "nw_tos", SW_NEEDS_IP},
	{"mod_nw_ecn", "nw_ecn", SW_NEEDS_IP},
	{"mod_nw_ttl", "nw_ttl", SW_NEEDS_IP},
	{"mod_tp_src", "tp_src", SW_NEEDS_PORTS},
	{"mod_tp_dst", "tp_dst", SW_NEEDS_PORTS},
	{"mod_vlan_vid", "dl_vlan", SW_NEEDS_NOTHING},
	{"mod_vlan_pcp", "dl_vlan_pcp", SW_NEEDS_NOTHING},
};

// The actions of a rule while they are read.
struct parse {
	const struct sw_rule_parser *parser;
	const struct sw_rule *rule; // its match
	struct sw_error *err;
	struct sw_rule_act acts[SW_RULE_MAX_ACTS];
	uint32_t n;
};

static int port(struct parse *p, const char *action, char *text, uint16_t *out_port)
{
	if (strcasecmp(text, "in_port") == 0) {
		*out_port = SW_PORT_IN_PORT;
		return 0;
	}
	return sw_parse_port(p->parser, action, text, out_port, p->err);
}

static int plain(struct parse *p, char *text, struct sw_rule_act *act)
{
	static const struct {
		const char *name;
		uint8_t type;
	} names[] = {{"strip_vlan", SW_RULE_POP_VLAN}, {"pop_vlan", SW_RULE_POP_VLAN},
		     {"dec_ttl", SW_RULE_DEC_TTL},     {"normal", SW_RULE_NORMAL},
		     {"flood", SW_RULE_FLOOD},         {"all", SW_RULE_ALL},
		     {"in_port", SW_RULE_OUTPUT}};

	(void)p;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcasecmp(names[i].name, text) != 0)
			continue;
		act->type = names[i].type;
		act->port = act->type == SW_RULE_OUTPUT ? SW_PORT_IN_PORT : 0;
		return 0;
	}
	return -ENOENT;
}

// output(port=N,max_len=M), in either order.
static int truncated(struct parse *p, char *text, struct sw_rule_act *act)
{
	char *save = NULL;
	uint64_t n;
	int rc = 0;

	for (char *t = strtok_r(text, SW_SEPARATORS, &save); t && rc == 0;
	     t = strtok_r(NULL, SW_SEPARATORS, &save)) {
		if (strncmp(t, "port=", 5) == 0) {
			rc = port(p, "output(port)", t + 5, &act->port);
		} else if (strncmp(t, "max_len=", 8) == 0) {
			if (!sw_number(t + 8, UINT32_MAX, &n) || n < MIN_MAX_LEN)
				return sw_fail(p->err, -EINVAL,
					       "output: max_len=%.40s must be a number from %u on",
					       t + 8, MIN_MAX_LEN);
			act->max_len = (uint32_t)n;
		} else {
			rc = sw_fail(p->err, -EINVAL,
				     "output: \"%.40s\" is not known (write "
				     "output(port=PORT,max_len=BYTES))",
				     t);
		}
	}
	if (rc == 0 && (!act->port || !act->max_len))
		return sw_fail(p->err, -EINVAL,
			       "output(...): needs both (write output(port=PORT,max_len=BYTES))");
	return rc;
}

static int output(struct parse *p, char *text, char how, struct sw_rule_act *act)
{
	static const char *const others[] = {"normal", "flood", "all"};

	act->type = SW_RULE_OUTPUT;
	if (how == '(')
		return truncated(p, text, act);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (strcasecmp(text, others[i]) == 0)
			return plain(p, text, act);
	}
	return port(p, "output", text, &act->port);
}

// Value and mask for the field's bytes; what else a rule needs to set it.
static int set(struct parse *p, const struct sw_field *field, const char *text, uint8_t name,
	       uint8_t needs, struct sw_rule_act *act)
{
	act->type = SW_RULE_SET;
	act->name = name;
	act->needs = needs;
	act->offset = field->offset;
	act->n_bytes = field->n_bytes;
	return sw_field_parse_set(field, text, act->value, act->mask, p->err);
}

static int set_field(struct parse *p, char *text, char how, struct sw_rule_act *act)
{
	char *arrow = strstr(text, "->");
	const struct sw_field *field;

	(void)how;
	if (!arrow)
		return sw_fail(p->err, -EINVAL,
			       "set_field:%.100s: no field (write set_field:VALUE[/MASK]->FIELD)",
			       text);
	*arrow = 0;
	field = sw_field_find(arrow + 2);
	if (!field)
		return sw_fail(
			p->err, -EINVAL,
			"set_field: %.100s: no such field (see ovs-fields(7); known are dl_*, "
			"vlan_*, nw_*, ipv6_*, tp_*, arp_*, icmp_*, nd_*)",
			arrow + 2);
	if (field->sets == SW_NEVER)
		return sw_fail(p->err, -EINVAL, "set_field: %s is read-only (match on it instead)",
			       field->name);
	if (!sw_field_is_met((enum sw_field_needs)field->sets, &p->rule->value, &p->rule->mask))
		return sw_fail(
			p->err, -EINVAL,
			"set_field: %s: the match does not say that the packet has it (add %s "
			"to the match)",
			field->name, sw_field_remedy((enum sw_field_needs)field->sets));
	return set(p, field, text, (uint8_t)(SW_SET_FIELD + sw_field_index(field)), field->sets,
		   act);
}

static int push_vlan(struct parse *p, char *text, char how, struct sw_rule_act *act)
{
	uint64_t type;

	(void)how;
	if (!sw_number(text, UINT16_MAX, &type) || (type != 0x8100 && type != 0x88a8))
		return sw_fail(p->err, -EINVAL, "push_vlan:%.40s: must be 0x8100 or 0x88a8", text);
	act->type = SW_RULE_PUSH_VLAN;
	act->tpid = rte_cpu_to_be_16((uint16_t)type);
	return 0;
}

static int table(struct parse *p, const char *action, const char *text, uint8_t *out_table)
{
	uint64_t n;

	if (!sw_decimal(text, SW_N_TABLES - 1, &n))
		return sw_fail(p->err, -EINVAL, "%s: table \"%.40s\" must be 0 to %u", action, text,
			       SW_N_TABLES - 1);
	*out_table = (uint8_t)n;
	return 0;
}

// resubmit:PORT, resubmit(PORT), resubmit(,TABLE), resubmit(PORT,TABLE)
static int resubmit(struct parse *p, char *text, char how, struct sw_rule_act *act)
{
	char *comma = how == '(' ? strchr(text, ',') : NULL;
	int rc = 0;

	act->type = SW_RULE_RESUBMIT;
	act->table = SW_TABLE_SAME;
	act->port = SW_PORT_IN_PORT;
	if (comma)
		*comma++ = 0;
	if (!*text && (!comma || !*comma))
		return sw_fail(
			p->err, -EINVAL,
			"resubmit: where to? (write resubmit(,TABLE) or resubmit(PORT,TABLE))");
	if (*text)
		rc = port(p, "resubmit", text, &act->port);
	if (rc == 0 && comma && *comma)
		rc = table(p, "resubmit", comma, &act->table);
	return rc;
}

// Tables are passed upwards, so that a packet comes to an end.
static int goto_table(struct parse *p, char *text, char how, struct sw_rule_act *act)
{
	int rc = table(p, "goto_table", text, &act->table);

	(void)how;
	act->type = SW_RULE_GOTO;
	if (rc == 0 && act->table <= p->rule->table)
		return sw_fail(p->err, -EINVAL,
			       "goto_table:%u: must be a later table than the rule's own, %u "
			       "(resubmit(,N) goes anywhere)",
			       act->table, p->rule->table);
	return rc;
}

static int recirc(struct parse *p, char *text, char how, struct sw_rule_act *act)
{
	(void)how;
	act->type = SW_RULE_RECIRC;
	if (strncmp(text, "table=", 6) != 0)
		return sw_fail(p->err, -EINVAL, "recirc: where to? (write recirc(table=N))");
	return table(p, "recirc", text + 6, &act->table);
}

// Hexadecimal bytes, dots between them as one likes.
static int note(struct parse *p, char *text, char how, struct sw_rule_act *act)
{
	(void)how;
	act->type = SW_RULE_NOTE;
	while (*text) {
		char digits[3] = {text[0], text[1], 0};

		if (*text == '.') {
			text++;
			continue;
		}
		if (!isxdigit((unsigned char)digits[0]) || !isxdigit((unsigned char)digits[1]) ||
		    act->n_bytes == sizeof(act->note))
			return sw_fail(p->err, -EINVAL,
				       "note: at \"%.40s\": must be at most %zu bytes of two "
				       "hexadecimal digits",
				       text, sizeof(act->note));
		act->note[act->n_bytes++] = (uint8_t)strtoul(digits, NULL, 16);
		text += 2;
	}
	return 0;
}

// Does nothing but say so: for what other switches know.
static int refuse(struct parse *p, const char *name)
{
	static const struct {
		const char *name, *remedy;
	} known[] = {
		{"controller", "there is no controller; leave it out"},
		{"local", "there is no local port; send to a port of its own"},
		{"enqueue", "there are no queues to choose from; write output:PORT"},
		{"set_queue", "there are no queues to choose from; leave it out"},
		{"load", "write set_field:VALUE[/MASK]->FIELD"},
		{"move", "fields can't be copied; write set_field:VALUE->FIELD"},
		{"goto", "write goto_table:N"},
		{"learn", "addresses are learned by normal, other rules are added by add-flow"},
		{"group", "there are no groups; write the actions themselves, or normal or flood"},
		{"exit", "put what it would skip into a rule of its own"},
		{"clone", "write output:PORT before what changes the packet"},
		{"clear_actions", "leave it out: rules hold what they do at once"},
		{"write_actions", "write the actions themselves"},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcasecmp(known[i].name, name) == 0)
			return sw_fail(p->err, -EINVAL, "action %s: %s", known[i].name,
				       known[i].remedy);
	}
	return sw_fail(
		p->err, -EINVAL,
		"action \"%.100s\": not known (known are output:PORT, drop, in_port, normal, "
		"flood, all, set_field, mod_*, push_vlan, strip_vlan, dec_ttl, resubmit, "
		"goto_table, recirc, note)",
		name);
}

// ovs-ofctl takes these for mod_..., and dumps that.
static const char *mod_name(const char *name)
{
	if (strcasecmp(name, "set_vlan_vid") == 0)
		return "mod_vlan_vid";
	return strcasecmp(name, "set_vlan_pcp") == 0 ? "mod_vlan_pcp" : name;
}

static int mod(struct parse *p, const char *said, const char *text, struct sw_rule_act *act)
{
	const char *name = mod_name(said);

	for (uint8_t i = 0; i < SW_N_MODS; i++) {
		if (strcasecmp(sw_mods[i].name, name) == 0)
			return set(p, sw_field_find(sw_mods[i].field), text, i, sw_mods[i].needs,
				   act);
	}
	return refuse(p, name);
}

// name, then how the argument follows: ':', '=', '(' or 0 for none.
static int action(struct parse *p, char *name, char how, char *text, struct sw_rule_act *act)
{
	static const struct {
		const char *name;
		int (*parse)(struct parse *p, char *text, char how, struct sw_rule_act *act);
	} names[] = {{"output", output},     {"set_field", set_field},   {"push_vlan", push_vlan},
		     {"resubmit", resubmit}, {"goto_table", goto_table}, {"recirc", recirc},
		     {"note", note}};
	uint64_t n;

	if (!how && plain(p, name, act) == 0)
		return 0;
	if (!how && (sw_decimal(name, UINT64_MAX, &n) || *name == '"' ||
		     (p->parser && p->parser->resolve &&
		      p->parser->resolve(p->parser->resolve_ctx, name) > 0))) {
		act->type = SW_RULE_OUTPUT;
		return port(p, "output", name, &act->port);
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcasecmp(names[i].name, name) == 0)
			return names[i].parse(p, text, how, act);
	}
	return mod(p, name, text, act);
}

/*
 * Cut the next action off *at: its name, how its argument follows, and the argument, without the
 * parentheses around it. false: none is left.
 */
static bool cut(char **at, char **out_name, char *out_how, char **out_text)
{
	char *name = *at + strspn(*at, SW_SEPARATORS), *text = name, *end;
	unsigned int depth = 0;

	if (!*name)
		return false;
	for (end = name; *end && (depth || !strchr(SW_SEPARATORS, *end)); end++) {
		depth += *end == '(';
		depth -= depth && *end == ')';
	}
	*at = *end ? end + 1 : end;
	*end = 0;
	text += strcspn(name, ":=(");
	*out_how = *text;
	if (*text)
		*text++ = 0;
	if (*out_how == '(' && end > text && end[-1] == ')')
		end[-1] = 0;
	*out_name = name;
	*out_text = text;
	return true;
}

int sw_acts_parse(const struct sw_rule_parser *parser, char *text, struct sw_rule *rule,
		  struct sw_error *err)
{
	struct parse p = {.parser = parser, .rule = rule, .err = err};
	bool is_drop = false, is_ended = false;
	char *name, *arg, how;
	int rc;

	while (cut(&text, &name, &how, &arg)) {
		if (is_ended)
			return sw_fail(
				err, -EINVAL,
				"actions: \"%.100s\" comes too late (goto_table and recirc are "
				"the last of their rule, drop is alone)",
				name);
		if (p.n == SW_RULE_MAX_ACTS)
			return sw_fail(err, -EINVAL, "actions: a rule has at most %u",
				       SW_RULE_MAX_ACTS);
		is_drop = strcasecmp(name, "drop") == 0 && !how;
		if (is_drop && p.n > 0)
			return sw_fail(
				err, -EINVAL,
				"actions: drop beside other actions (leave one of them out)");
		rc = is_drop ? 0 : action(&p, name, how, arg, &p.acts[p.n]);
		if (rc < 0)
			return rc;
		p.n += !is_drop;
		is_ended = is_drop || (p.n && (p.acts[p.n - 1].type == SW_RULE_GOTO ||
					       p.acts[p.n - 1].type == SW_RULE_RECIRC));
	}
	if (p.n == 0) // as in ovs-ofctl: no action drops
		return 0;
	rule->acts = malloc(p.n * sizeof(p.acts[0]));
	if (!rule->acts)
		return sw_fail(err, -ENOMEM, "no memory for a rule");
	memcpy(rule->acts, p.acts, p.n * sizeof(p.acts[0]));
	rule->n_acts = p.n;
	return 0;
}
