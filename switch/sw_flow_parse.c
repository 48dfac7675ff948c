// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Rules from text in ovs-ofctl(8) syntax.
#include "sw_flow_parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sw_flow_field.h"

#define MAX_FIELDS 64

// A rule while it is read.
struct parse {
	const struct sw_rule_parser *parser;
	struct sw_rule rule;
	struct sw_flow_filter *filter; // NULL: a rule to be added
	struct sw_flow_mod *mod;       // beside filter: there are actions, too
	bool has_priority;
	bool has_table;
	const struct sw_field *given[MAX_FIELDS];
	unsigned int n_given;
	struct sw_error *err;
};

int sw_parse_port(const struct sw_rule_parser *parser, const char *field, char *text,
		  uint16_t *out_port, struct sw_error *err)
{
	size_t len = strlen(text);
	uint64_t n;
	int rc;

	if (sw_decimal(text, UINT64_MAX, &n)) {
		if (n == 0 || n > SW_OFPORT_MAX)
			return sw_fail(err, -EINVAL, "%s=%s: a port number is 1 to %u", field, text,
				       SW_OFPORT_MAX);
		*out_port = (uint16_t)n;
		return 0;
	}
	if (len >= 2 && text[0] == '"' && text[len - 1] == '"') {
		text[len - 1] = 0;
		text++;
	}
	rc = parser && parser->resolve ? parser->resolve(parser->resolve_ctx, text) : -ENOENT;
	if (rc <= 0)
		return sw_fail(
			err, -EINVAL,
			"%s=%.100s: no such port (pmdpulse show lists them; a port that comes "
			"later is named by its number)",
			field, text);
	*out_port = (uint16_t)rc;
	return 0;
}

// Enter value and mask of a field that may be said twice only if it says the same.
static int enter(struct parse *p, const char *name, unsigned int offset, unsigned int n_bytes,
		 const uint8_t *value, const uint8_t *mask)
{
	uint8_t *to_value = (uint8_t *)&p->rule.value + offset;
	uint8_t *to_mask = (uint8_t *)&p->rule.mask + offset;
	unsigned int i;

	for (i = 0; i < n_bytes; i++) {
		if ((to_value[i] ^ value[i]) & to_mask[i] & mask[i])
			return sw_fail(
				p->err, -EINVAL,
				"%s: contradicts what stands before it (say each field once)",
				name);
	}
	for (i = 0; i < n_bytes; i++) {
		to_value[i] |= value[i];
		to_mask[i] |= mask[i];
	}
	return 0;
}

static int protocol(struct parse *p, const struct sw_protocol *known)
{
	static const uint8_t all[2] = {0xff, 0xff};
	uint8_t proto = (uint8_t)known->nw_proto;
	int rc = enter(p, known->name, offsetof(struct sw_key, dl_type), 2,
		       (const uint8_t *)&known->dl_type, all);

	if (rc == 0 && known->nw_proto >= 0)
		rc = enter(p, known->name, offsetof(struct sw_key, nw_proto), 1, &proto, all);
	return rc;
}

static int field_value(struct parse *p, const struct sw_field *field, const char *text)
{
	uint8_t value[SW_FIELD_MAX_BYTES], mask[SW_FIELD_MAX_BYTES];
	int rc = sw_field_parse(field, text, value, mask, p->err);

	if (rc < 0)
		return rc;
	if (p->n_given == MAX_FIELDS)
		return sw_fail(p->err, -EINVAL, "%s: too many fields in one rule", field->name);
	p->given[p->n_given++] = field;
	return enter(p, field->name, field->offset, field->n_bytes, value, mask);
}

static int cookie(struct parse *p, char *text)
{
	char *slash = p->filter ? strchr(text, '/') : NULL;
	bool is_new = p->mod && !slash;
	uint64_t value, mask = UINT64_MAX;

	if (slash)
		*slash++ = 0;
	if (slash && strcmp(slash, "-1") != 0 && !sw_number(slash, UINT64_MAX, &mask))
		return sw_fail(p->err, -EINVAL, "cookie=%s/%s: the mask must be a 64-bit number",
			       text, slash);
	if (!sw_number(text, UINT64_MAX, &value))
		return sw_fail(p->err, -EINVAL, "cookie=%s: must be a 64-bit number", text);
	if (is_new) {
		p->mod->cookie = value;
		p->mod->has_cookie = true;
		return 0;
	}
	p->rule.cookie = value;
	if (p->filter)
		p->filter->cookie_mask = mask;
	return 0;
}

// What a dump shows beside match and actions: ignored, so that a dump can be fed back.
static bool is_dump_only(const char *key)
{
	static const char *const keys[] = {"duration", "n_packets", "n_bytes", "idle_age",
					   "hard_age"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(key, keys[i]) == 0)
			return true;
	}
	return false;
}

static int in_port(struct parse *p, char *value)
{
	static const uint8_t all[2] = {0xff, 0xff};
	uint16_t number;
	int rc = sw_parse_port(p->parser, "in_port", value, &number, p->err);

	return rc < 0 ? rc
		      : enter(p, "in_port", offsetof(struct sw_key, in_port), 2,
			      (const uint8_t *)&number, all);
}

// Of megaflows and traces alone.
static int recirc_id(struct parse *p, const char *value)
{
	uint64_t n;

	if (!sw_number(value, SW_N_TABLES, &n))
		return sw_fail(p->err, -EINVAL, "recirc_id=%.40s: must be 0 to %u", value,
			       SW_N_TABLES);
	p->rule.value.recirc_id = (uint32_t)n;
	p->rule.mask.recirc_id = UINT32_MAX;
	return 0;
}

static int number_value(struct parse *p, const char *key, const char *value)
{
	uint64_t n;

	if (strcmp(key, "priority") == 0) {
		if (!sw_number(value, UINT16_MAX, &n))
			return sw_fail(p->err, -EINVAL, "priority=%s: must be 0 to 65535", value);
		p->rule.priority = (uint16_t)n;
		p->has_priority = true;
	} else if (strcmp(key, "table") == 0) {
		if (!sw_decimal(value, SW_N_TABLES - 1, &n))
			return sw_fail(p->err, -EINVAL, "table=%s: tables are 0 to %u", value,
				       SW_N_TABLES - 1);
		p->rule.table = (uint8_t)n;
		p->has_table = true;
	} else if (!sw_number(value, 0, &n)) { // the timeouts
		return sw_fail(p->err, -EINVAL, "%s=%s: rules do not expire (leave it out)", key,
			       value);
	}
	return 0;
}

static int key_value(struct parse *p, const char *key, char *value)
{
	const struct sw_field *field = sw_field_find(key);

	if (field)
		return field_value(p, field, value);
	if (strcmp(key, "in_port") == 0)
		return in_port(p, value);
	if (strcmp(key, "recirc_id") == 0 && p->filter && !p->mod)
		return recirc_id(p, value);
	if (strcmp(key, "out_port") == 0 && p->filter)
		return sw_parse_port(p->parser, key, value, &p->filter->out_port, p->err);
	if (strcmp(key, "cookie") == 0)
		return cookie(p, value);
	if (strcmp(key, "priority") == 0 || strcmp(key, "table") == 0 ||
	    strcmp(key, "idle_timeout") == 0 || strcmp(key, "hard_timeout") == 0)
		return number_value(p, key, value);
	if (is_dump_only(key))
		return 0;
	return sw_fail(p->err, -EINVAL,
		       "%.100s: no such field (known are in_port, dl_*, nw_*, tp_*, ipv6_*, arp_*, "
		       "icmp_*, nd_*, tcp_flags, vlan_*, table, priority and cookie)",
		       key);
}

// What ovs-ofctl takes beside a match.
static bool is_flag(const char *text)
{
	static const char *const flags[] = {"send_flow_rem", "check_overlap", "reset_counts",
					    "no_packet_counts", "no_byte_counts"};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (strcmp(text, flags[i]) == 0)
			return true;
	}
	return false;
}

static int token(struct parse *p, char *text)
{
	const struct sw_protocol *known = sw_protocol_find(text);
	char *equals = strchr(text, '=');

	if (known)
		return protocol(p, known);
	if (!equals) {
		if (is_flag(text))
			return sw_fail(p->err, -EINVAL, "%s: rules have no flags (leave it out)",
				       text);
		if (sw_field_find(text) || strcmp(text, "in_port") == 0)
			return sw_fail(p->err, -EINVAL, "%s: a value is missing (write %s=VALUE)",
				       text, text);
		return sw_fail(
			p->err, -EINVAL,
			"%s: no such protocol (known are ip, ipv6, arp, rarp, icmp, icmp6, tcp, "
			"tcp6, udp, udp6, sctp, sctp6)",
			text);
	}
	*equals++ = 0;
	if (*equals == 0)
		return sw_fail(p->err, -EINVAL, "%s: a value is missing (write %s=VALUE)", text,
			       text);
	return key_value(p, text, equals);
}

static int match(struct parse *p, char *text)
{
	char *save = NULL;
	unsigned int i;

	for (char *t = strtok_r(text, SW_SEPARATORS, &save); t;
	     t = strtok_r(NULL, SW_SEPARATORS, &save)) {
		int rc = token(p, t);

		if (rc < 0)
			return rc;
	}
	for (i = 0; i < p->n_given; i++) {
		enum sw_field_needs needs = (enum sw_field_needs)p->given[i]->needs;

		if (!sw_field_is_met(needs, &p->rule.value, &p->rule.mask))
			return sw_fail(
				p->err, -EINVAL,
				"%s: needs the protocol in the same rule (write %s beside it)",
				p->given[i]->name, sw_field_remedy(needs));
	}
	return 0;
}

// Where "actions=" begins as a word of its own; NULL if nowhere.
static char *find_actions(char *text)
{
	for (char *at = strstr(text, "action"); at; at = strstr(at + 1, "action")) {
		size_t len = strncmp(at, "actions=", 8) == 0 ? 8 : 7;

		if (strncmp(at, "actions=", 8) != 0 && strncmp(at, "action=", 7) != 0)
			continue;
		if (at == text || strchr(SW_SEPARATORS, at[-1])) {
			*at = 0;
			return at + len;
		}
	}
	return NULL;
}

static int too_long(struct sw_error *err)
{
	return sw_fail(err, -EINVAL, "a rule is at most %u characters long",
		       SW_FLOW_TEXT_BYTES - 1);
}

static int parse(struct parse *p, const char *text)
{
	char copy[SW_FLOW_TEXT_BYTES], *then;
	int rc;

	if (strlen(text) >= sizeof(copy))
		return too_long(p->err);
	strcpy(copy, text);
	then = find_actions(copy);
	if (p->filter && !p->mod && then)
		return sw_fail(p->err, -EINVAL,
			       "actions: have no place in a match (leave them out)");
	if ((!p->filter || p->mod) && !then)
		return sw_fail(
			p->err, -EINVAL,
			"a rule needs actions (end it with actions=output:PORT or actions=drop)");
	p->rule.priority = SW_FLOW_DEFAULT_PRIORITY;
	rc = match(p, copy);
	if (rc == 0 && then)
		rc = sw_acts_parse(p->parser, then, &p->rule, p->err);
	return rc;
}

int sw_rule_parse(const struct sw_rule_parser *parser, const char *text, struct sw_rule *out_rule,
		  struct sw_error *err)
{
	struct parse p = {.parser = parser, .err = err};
	int rc = parse(&p, text);

	if (rc < 0)
		sw_rule_free(&p.rule);
	else
		*out_rule = p.rule;
	return rc;
}

// p->filter becomes what was read.
static int parse_filter(struct parse *p, const char *text)
{
	int rc = parse(p, text);

	if (rc == 0 && p->has_priority && !p->filter->is_strict)
		rc = sw_fail(p->err, -EINVAL, "priority: selects only with --strict");
	p->filter->match = p->rule;
	p->filter->is_any_table = !p->has_table;
	return rc;
}

int sw_flow_filter_parse(const struct sw_rule_parser *parser, const char *text, bool is_strict,
			 struct sw_flow_filter *out_filter, struct sw_error *err)
{
	struct sw_flow_filter filter = {.is_strict = is_strict};
	struct parse p = {.parser = parser, .err = err, .filter = &filter};
	int rc = parse_filter(&p, text ? text : "");

	if (rc == 0)
		*out_filter = filter;
	return rc;
}

int sw_flow_mod_parse(const struct sw_rule_parser *parser, const char *text, bool is_strict,
		      struct sw_flow_mod *out_mod, struct sw_error *err)
{
	struct sw_flow_mod mod = {.filter.is_strict = is_strict};
	struct parse p = {.parser = parser, .err = err, .filter = &mod.filter, .mod = &mod};
	int rc = parse_filter(&p, text);

	if (rc < 0)
		sw_flow_mod_free(&mod);
	else
		*out_mod = mod;
	return rc;
}

void sw_flow_mod_free(struct sw_flow_mod *mod)
{
	sw_rule_free(&mod->filter.match);
}

int sw_rules_parse(const struct sw_rule_parser *parser, const char *const *lines, uint32_t n_lines,
		   struct sw_rule **out_rules, uint32_t *out_n, struct sw_error *err)
{
	struct sw_rule *rules = calloc(n_lines ? n_lines : 1, sizeof(*rules));
	uint32_t n = 0;

	if (!rules)
		return sw_fail(err, -ENOMEM, "no memory for %u rules", n_lines);
	for (uint32_t i = 0; i < n_lines; i++) {
		const char *text = lines[i] + strspn(lines[i], SW_SEPARATORS);
		char line[SW_FLOW_TEXT_BYTES];
		struct sw_error why;
		int rc;

		if (*text == 0 || *text == '#')
			continue;
		rc = snprintf(line, sizeof(line), "%.*s", (int)strcspn(text, "#"), text);
		if (rc >= (int)sizeof(line))
			rc = too_long(&why);
		else
			rc = sw_rule_parse(parser, line, &rules[n], &why);
		n += rc == 0;
		if (rc < 0) {
			sw_rules_free(rules, n);
			return sw_fail(err, -EINVAL, "line %u: %.480s", i + 1, why.text);
		}
	}
	*out_rules = rules;
	*out_n = n;
	return 0;
}
