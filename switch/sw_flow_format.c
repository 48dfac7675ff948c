// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Rules and their fields, to text.
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sw_flow_field.h"

static uint64_t get_big_endian(const uint8_t *from, uint8_t n_bytes)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < n_bytes; i++)
		value = value << 8 | from[i];
	return value;
}

static int format_flags(uint64_t value, uint64_t mask, char *out, size_t size)
{
	size_t len = 0;

	if (mask >> SW_N_TCP_FLAGS)
		return snprintf(out, size, "0x%03x/0x%03x", (unsigned int)value,
				(unsigned int)mask);
	out[0] = 0;
	for (unsigned int i = 0; i < SW_N_TCP_FLAGS && len < size; i++) {
		if (mask & 1u << i)
			len += (size_t)snprintf(out + len, size - len, "%c%s",
						value & 1u << i ? '+' : '-', sw_tcp_flags[i]);
	}
	return (int)len;
}

// A mask as a prefix length, -1 if it is none.
static int prefix_of(const uint8_t *mask, uint8_t n_bytes)
{
	int n_bits = 0;

	for (unsigned int i = 0; i < n_bytes * 8u; i++) {
		if (!(mask[i / 8] & 0x80 >> i % 8))
			break;
		n_bits++;
	}
	for (unsigned int i = (unsigned int)n_bits; i < n_bytes * 8u; i++) {
		if (mask[i / 8] & 0x80 >> i % 8)
			return -1;
	}
	return n_bits;
}

static void format_address(const uint8_t *value, const uint8_t *mask, uint8_t n_bytes, char *out,
			   size_t size)
{
	int family = n_bytes == 4 ? AF_INET : AF_INET6;
	int n_bits = prefix_of(mask, n_bytes);
	char address[INET6_ADDRSTRLEN], dotted[INET6_ADDRSTRLEN];

	inet_ntop(family, value, address, sizeof(address));
	inet_ntop(family, mask, dotted, sizeof(dotted));
	if (n_bits == n_bytes * 8)
		snprintf(out, size, "%s", address);
	else if (n_bits >= 0)
		snprintf(out, size, "%s/%d", address, n_bits);
	else
		snprintf(out, size, "%s/%s", address, dotted);
}

static int put_mac(const uint8_t *from, char *out, size_t size)
{
	return snprintf(out, size, "%02x:%02x:%02x:%02x:%02x:%02x", from[0], from[1], from[2],
			from[3], from[4], from[5]);
}

static void format_mac(const uint8_t *value, const uint8_t *mask, char *out, size_t size)
{
	static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	int len = put_mac(value, out, size);

	if (memcmp(mask, all, sizeof(all)) == 0)
		return;
	out[len] = '/';
	put_mac(mask, out + len + 1, size - (size_t)len - 1);
}

// Is a tag's match made of dl_vlan and dl_vlan_pcp, so that these names can say it?
static bool is_plain_tag(uint64_t value, uint64_t mask)
{
	uint64_t vid = mask & 0x0fff, pcp = mask & 0xe000;

	return value & mask & SW_VLAN_PRESENT && (vid == 0 || vid == 0x0fff) &&
	       (pcp == 0 || pcp == 0xe000) && (vid || pcp);
}

static bool format_tag(const struct sw_field *field, uint64_t value, uint64_t mask, char *out,
		       size_t size)
{
	bool is_plain = is_plain_tag(value, mask);

	switch (field->type) {
	case SW_FIELD_VLAN:
		snprintf(out, size, "%u", (unsigned int)(value & 0x0fff));
		return is_plain && mask & 0x0fff;
	case SW_FIELD_PCP:
		snprintf(out, size, "%u", (unsigned int)(value >> 13));
		return is_plain && mask & 0xe000;
	default:
		snprintf(out, size, mask == 0xffff ? "0x%04x" : "0x%04x/0x%04x",
			 (unsigned int)value, (unsigned int)mask);
		return !is_plain;
	}
}

static void format_number(const struct sw_field *field, uint64_t value, uint64_t mask, char *out,
			  size_t size)
{
	uint64_t all = UINT64_MAX >> (64 - field->n_bytes * 8);

	if (mask != all)
		snprintf(out, size, "0x%llx/0x%llx", (unsigned long long)value,
			 (unsigned long long)mask);
	else if (field->type == SW_FIELD_DEC || field->type == SW_FIELD_EXACT)
		snprintf(out, size, "%llu", (unsigned long long)value);
	else
		snprintf(out, size, "0x%0*llx", field->n_bits / 4, (unsigned long long)value);
}

// false: the rule does not match on this field, or says it under another name.
static bool format_value(const struct sw_field *field, const uint8_t *value, const uint8_t *mask,
			 char *out, size_t size)
{
	bool is_long = field->n_bytes > 4;
	uint64_t v = is_long ? 0 : get_big_endian(value, field->n_bytes);
	uint64_t m = is_long ? 0 : get_big_endian(mask, field->n_bytes);

	switch (field->type) {
	case SW_FIELD_MAC:
		format_mac(value, mask, out, size);
		return true;
	case SW_FIELD_IP4:
	case SW_FIELD_IP6:
		format_address(value, mask, field->n_bytes, out, size);
		return true;
	case SW_FIELD_VLAN:
	case SW_FIELD_PCP:
	case SW_FIELD_TCI:
		return format_tag(field, v, m, out, size);
	case SW_FIELD_DSCP:
		snprintf(out, size, "%u", (unsigned int)(v & 0xfc));
		return (m & 0xfc) != 0;
	case SW_FIELD_DSCP6:
		snprintf(out, size, "%u", (unsigned int)(v >> 2));
		return (m & 0xfc) != 0;
	case SW_FIELD_ECN:
		snprintf(out, size, "%u", (unsigned int)(v & 0x03));
		return (m & 0x03) != 0;
	case SW_FIELD_FLAGS:
		format_flags(v, m, out, size);
		return true;
	case SW_FIELD_FRAG:
		for (size_t i = 0; i < SW_N_FRAGS; i++) {
			if (sw_frags[i].value == v && sw_frags[i].mask == (m & 3))
				snprintf(out, size, "%s", sw_frags[i].name);
		}
		if ((v & m & 3) == SW_FRAG_LATER) // a part of it, but says all
			snprintf(out, size, "later");
		return true;
	default:
		format_number(field, v, m, out, size);
		return true;
	}
}

int sw_field_format(const struct sw_field *field, const struct sw_key *value,
		    const struct sw_key *mask, char *out, size_t size)
{
	static const uint8_t nothing[SW_FIELD_MAX_BYTES];
	const uint8_t *v = (const uint8_t *)value + field->offset;
	const uint8_t *m = (const uint8_t *)mask + field->offset;
	char text[128] = "";

	if (memcmp(m, nothing, field->n_bytes) == 0 ||
	    !sw_field_is_met((enum sw_field_needs)field->shown, value, mask) ||
	    !format_value(field, v, m, text, sizeof(text)))
		return snprintf(out, size, "%s", "");
	return snprintf(out, size, "%s=%s", field->name, text);
}

int sw_field_format_set(const struct sw_field *field, const uint8_t *value, const uint8_t *mask,
			char *out, size_t size)
{
	uint8_t whole[SW_FIELD_MAX_BYTES];
	char text[128] = "";

	memcpy(whole, mask, field->n_bytes);
	if (field->type == SW_FIELD_VLAN || field->type == SW_FIELD_PCP)
		return snprintf(out, size, "%u",
				field->type == SW_FIELD_PCP ? value[0] >> 5u
							    : (value[0] & 0x0fu) << 8 | value[1]);
	if (field->type == SW_FIELD_VID && mask[0] == 0x0f && mask[1] == 0xff)
		return snprintf(out, size, "0x%04x",
				(unsigned int)get_big_endian(value, 2) | SW_VLAN_PRESENT);
	// What sw_field_parse_set() takes off a full mask.
	if (field->n_bits == 20 && get_big_endian(mask, 4) == 0xfffff)
		memset(whole, 0xff, 4);
	if (field->n_bytes == 2 && field->n_bits == 8 && mask[1] == 0xff)
		whole[0] = 0xff;
	format_value(field, value, whole, text, sizeof(text));
	return snprintf(out, size, "%s", text);
}

// Appends to a buffer as snprintf does: *len counts what would have been written.
__attribute__((format(printf, 4, 5))) static void append(char *out, size_t size, size_t *len,
							 const char *format, ...)
{
	bool is_full = *len >= size;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(is_full ? NULL : out + *len, is_full ? 0 : size - *len, format, args);
	va_end(args);
	*len += (size_t)n;
}

// The protocol's name says dl_type and nw_proto.
static bool is_said(const struct sw_field *field, const struct sw_protocol *protocol)
{
	if (!protocol)
		return false;
	return field->type == SW_FIELD_TYPE ||
	       (protocol->nw_proto >= 0 && strcmp(field->name, "nw_proto") == 0);
}

int sw_match_format(const struct sw_key *key, const struct sw_key *mask, char *out, size_t size)
{
	const struct sw_protocol *protocol;
	const struct sw_field *field;
	struct sw_key value;
	size_t len = 0;

	for (unsigned int i = 0; i < SW_KEY_WORDS; i++)
		value.word[i] = key->word[i] & mask->word[i];
	protocol = sw_protocol_of(&value, mask);
	append(out, size, &len, "%s", "");
	if (mask->recirc_id)
		append(out, size, &len, "recirc_id=%u", value.recirc_id);
	if (protocol)
		append(out, size, &len, "%s%s", len ? "," : "", protocol->name);
	if (mask->in_port)
		append(out, size, &len, "%sin_port=%u", len ? "," : "", value.in_port);
	for (size_t i = 0; (field = sw_field_at(i)); i++) {
		char text[192];

		if (!is_said(field, protocol) &&
		    sw_field_format(field, &value, mask, text, sizeof(text)) > 0)
			append(out, size, &len, "%s%s", len ? "," : "", text);
	}
	return (int)len;
}

int sw_rule_format_match(const struct sw_rule *rule, char *out, size_t size)
{
	return sw_match_format(&rule->value, &rule->mask, out, size);
}

int sw_rule_format(const struct sw_rule *rule, char *out, size_t size)
{
	char match[1024], table[16] = "";
	size_t len;

	sw_rule_format_match(rule, match, sizeof(match));
	if (rule->table)
		snprintf(table, sizeof(table), "table=%u,", rule->table);
	len = (size_t)snprintf(out, size, "cookie=0x%llx,%spriority=%u%s%s actions=",
			       (unsigned long long)rule->cookie, table, rule->priority,
			       match[0] ? "," : "", match);
	return (int)len + sw_rule_format_actions(rule, len < size ? out + len : NULL,
						 len < size ? size - len : 0);
}
