// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Values of fields, from text.
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sw_flow_field.h"

static bool number(const char *text, int base, uint64_t max, uint64_t *out_value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*out_value = strtoull(text, &end, base);
	return errno == 0 && *end == 0 && *out_value <= max;
}

bool sw_number(const char *text, uint64_t max, uint64_t *out_value)
{
	return number(text, 0, max, out_value);
}

bool sw_decimal(const char *text, uint64_t max, uint64_t *out_value)
{
	return number(text, 10, max, out_value);
}

static void put_big_endian(uint64_t value, uint8_t n_bytes, uint8_t *out)
{
	for (unsigned int i = n_bytes; i-- > 0; value >>= 8)
		out[i] = (uint8_t)value;
}

static bool mac(const char *text, uint8_t *out)
{
	unsigned int i;

	for (i = 0; i < 6; i++) {
		char *end;
		unsigned long byte;

		if (strspn(text, "0123456789abcdefABCDEF") == 0)
			return false;
		byte = strtoul(text, &end, 16);
		if (byte > 0xff || *end != (i < 5 ? ':' : 0))
			return false;
		out[i] = (uint8_t)byte;
		text = end + 1;
	}
	return true;
}

static bool prefix(const char *text, uint8_t n_bytes, uint8_t *out)
{
	uint64_t n_bits;

	if (!sw_number(text, n_bytes * 8u, &n_bits))
		return false;
	for (unsigned int i = 0; i < n_bytes; i++) {
		unsigned int bits = n_bits >= 8 ? 8 : (unsigned int)n_bits;

		out[i] = (uint8_t)(0xff00 >> bits);
		n_bits -= bits;
	}
	return true;
}

const char *const sw_tcp_flags[SW_N_TCP_FLAGS] = {"fin", "syn", "rst", "psh", "ack",
						  "urg", "ece", "cwr", "ns"};

const struct sw_frag sw_frags[SW_N_FRAGS] = {
	{"no", 0, 3},
	{"yes", SW_FRAG_ANY, SW_FRAG_ANY},
	{"first", SW_FRAG_ANY, 3},
	{"later", SW_FRAG_ANY | SW_FRAG_LATER, 3},
	{"not_later", 0, SW_FRAG_LATER},
};

static bool flags(const char *text, uint8_t *out_value, uint8_t *out_mask)
{
	unsigned int value = 0, mask = 0, i;

	while (*text) {
		bool is_set = *text == '+';

		if (*text != '+' && *text != '-')
			return false;
		text++;
		for (i = 0; i < SW_N_TCP_FLAGS; i++) {
			size_t len = strlen(sw_tcp_flags[i]);

			if (strncmp(text, sw_tcp_flags[i], len) == 0 && strchr("+-", text[len])) {
				text += len;
				break;
			}
		}
		if (i == SW_N_TCP_FLAGS || mask & 1u << i)
			return false;
		mask |= 1u << i;
		value |= (unsigned int)is_set << i;
	}
	put_big_endian(value, 2, out_value);
	put_big_endian(mask, 2, out_mask);
	return mask != 0;
}

static bool frag(const char *text, uint8_t *out_value, uint8_t *out_mask)
{
	for (size_t i = 0; i < SW_N_FRAGS; i++) {
		if (strcmp(text, sw_frags[i].name) == 0) {
			*out_value = sw_frags[i].value;
			*out_mask = sw_frags[i].mask;
			return true;
		}
	}
	return false;
}

// What stands before a '/', in the way of the field's type, or the mask behind it.
static bool one(const struct sw_field *field, bool is_mask, const char *text, uint8_t *out)
{
	uint64_t value, limit;

	switch (field->type) {
	case SW_FIELD_MAC:
		return mac(text, out);
	case SW_FIELD_IP4:
		return inet_pton(AF_INET, text, out) == 1 || (is_mask && prefix(text, 4, out));
	case SW_FIELD_IP6:
		return inet_pton(AF_INET6, text, out) == 1 || (is_mask && prefix(text, 16, out));
	default:
		limit = is_mask ? UINT64_MAX >> (64 - field->n_bytes * 8)
				: UINT64_MAX >> (64 - field->n_bits);
		if (!sw_number(text, limit, &value))
			return false;
		put_big_endian(value, field->n_bytes, out);
		return true;
	}
}

static const char *expected(const struct sw_field *field)
{
	switch (field->type) {
	case SW_FIELD_MAC:
		return "xx:xx:xx:xx:xx:xx[/MASK]";
	case SW_FIELD_IP4:
		return "a.b.c.d[/PREFIX] or [/MASK]";
	case SW_FIELD_IP6:
		return "an IPv6 address[/PREFIX] or [/MASK]";
	case SW_FIELD_FRAG:
		return "no, yes, first, later or not_later";
	case SW_FIELD_VLAN:
		return "0 to 4095, or 0xffff for untagged frames";
	case SW_FIELD_VID:
		return "0x1000 + VID[/MASK], or 0 for untagged frames";
	case SW_FIELD_PCP:
		return "0 to 7";
	case SW_FIELD_DSCP:
		return "a multiple of 4 from 0 to 252";
	case SW_FIELD_DSCP6:
		return "0 to 63";
	case SW_FIELD_ECN:
		return "0 to 3";
	case SW_FIELD_TYPE:
		return "0x600 to 0xffff, or 0x5ff for frames without a type; no mask";
	case SW_FIELD_FLAGS:
		return "+FLAG or -FLAG of fin syn rst psh ack urg ece cwr ns, or VALUE[/MASK]";
	case SW_FIELD_EXACT:
		return "0 to 255; no mask";
	default:
		return field->n_bits == 8    ? "0 to 255[/MASK]"
		       : field->n_bits == 20 ? "0 to 0xfffff[/MASK]"
					     : "0 to 65535[/MASK]";
	}
}

// Fields that are a part of a byte or have a presence bit. false: not of such a type, or wrong.
static bool special(const struct sw_field *field, const char *text, uint8_t *value, uint8_t *mask)
{
	uint64_t n;

	if (field->type == SW_FIELD_FRAG)
		return frag(text, value, mask);
	if (field->type == SW_FIELD_FLAGS)
		return flags(text, value, mask);
	if (!sw_number(text, UINT64_MAX, &n))
		return false;
	switch (field->type) {
	case SW_FIELD_VLAN:
		if (n > 0xfff && n != 0xffff)
			return false;
		put_big_endian(n == 0xffff ? 0 : n | SW_VLAN_PRESENT, 2, value);
		put_big_endian(n == 0xffff ? 0xffff : 0x0fff | SW_VLAN_PRESENT, 2, mask);
		return true;
	case SW_FIELD_PCP:
		put_big_endian(n << 13 | SW_VLAN_PRESENT, 2, value);
		put_big_endian(0xe000 | SW_VLAN_PRESENT, 2, mask);
		return n <= 7;
	case SW_FIELD_DSCP:
		*value = (uint8_t)n;
		*mask = 0xfc;
		return n <= 0xfc && n % 4 == 0;
	case SW_FIELD_DSCP6:
		*value = (uint8_t)(n << 2);
		*mask = 0xfc;
		return n <= 0x3f;
	case SW_FIELD_ECN:
		*value = (uint8_t)n;
		*mask = 0x03;
		return n <= 3;
	case SW_FIELD_TYPE:
		put_big_endian(n, 2, value);
		put_big_endian(0xffff, 2, mask);
		return n >= SW_ETH_NOT_TYPED && n <= 0xffff;
	case SW_FIELD_EXACT:
		*value = (uint8_t)n;
		*mask = 0xff;
		return n <= 0xff;
	default:
		return false;
	}
}

static bool is_special(const struct sw_field *field, const char *text)
{
	switch (field->type) {
	case SW_FIELD_DEC:
	case SW_FIELD_HEX:
	case SW_FIELD_MAC:
	case SW_FIELD_IP4:
	case SW_FIELD_IP6:
	case SW_FIELD_TCI:
	case SW_FIELD_VID:
		return false;
	case SW_FIELD_FLAGS:
		return *text == '+' || *text == '-';
	default:
		return true;
	}
}

// The mask of a value that stands alone.
static void whole(const struct sw_field *field, uint8_t *mask)
{
	if (field->type == SW_FIELD_VID)
		put_big_endian(0x0fff | SW_VLAN_PRESENT, 2, mask);
	else if (field->n_bits)
		put_big_endian(UINT64_MAX >> (64 - field->n_bytes * 8), field->n_bytes, mask);
	else
		memset(mask, 0xff, SW_FIELD_MAX_BYTES);
}

static int wrong(const struct sw_field *field, const char *text, const char *right,
		 struct sw_error *err)
{
	return sw_fail(err, -EINVAL, "%s=%.100s: not a value of this field (write %s)", field->name,
		       text, right);
}

int sw_field_parse(const struct sw_field *field, const char *text, uint8_t *out_value,
		   uint8_t *out_mask, struct sw_error *err)
{
	uint8_t value[SW_FIELD_MAX_BYTES], mask[SW_FIELD_MAX_BYTES];
	const char *slash = strchr(text, '/');
	char head[64];
	bool is_good;

	if (is_special(field, text)) {
		is_good = special(field, text, value, mask);
	} else {
		size_t len = slash ? (size_t)(slash - text) : strlen(text);

		snprintf(head, sizeof(head), "%.*s", (int)len, text);
		is_good = len < sizeof(head) && one(field, false, head, value);
		whole(field, mask);
		if (slash)
			is_good = is_good && one(field, true, slash + 1, mask);
		if (field->type ==
		    SW_FIELD_FLAGS) // the others are no flags, nor a match of ovs-ofctl
			mask[0] &= 0x0f;
	}
	if (!is_good)
		return wrong(field, text, expected(field), err);
	for (unsigned int i = 0; i < field->n_bytes; i++) {
		out_value[i] = value[i] & mask[i];
		out_mask[i] = mask[i];
	}
	return 0;
}

int sw_field_parse_set(const struct sw_field *field, const char *text, uint8_t *out_value,
		       uint8_t *out_mask, struct sw_error *err)
{
	uint8_t value[SW_FIELD_MAX_BYTES], mask[SW_FIELD_MAX_BYTES];
	bool is_tag = field->type == SW_FIELD_VLAN || field->type == SW_FIELD_VID ||
		      field->type == SW_FIELD_PCP;
	unsigned int any = 0;
	int rc = sw_field_parse(field, text, value, mask, err);

	if (rc < 0)
		return rc;
	if (field->type == SW_FIELD_VLAN && !(value[0] & SW_VLAN_PRESENT >> 8))
		return wrong(field, text, "0 to 4095; strip_vlan takes a tag away", err);
	if (is_tag) { // the tag is there, or is put there
		value[0] &= (uint8_t) ~(SW_VLAN_PRESENT >> 8);
		mask[0] &= (uint8_t) ~(SW_VLAN_PRESENT >> 8);
	}
	if (field->n_bits == 20) // the label shares its word with other bits of the header
		mask[0] = 0, mask[1] &= 0x0f;
	if (field->n_bytes == 2 && field->n_bits == 8) // ICMP: one byte in the packet
		mask[0] = 0;
	for (unsigned int i = 0; i < field->n_bytes; i++)
		any |= mask[i];
	if (!any)
		return wrong(field, text, "a mask that is not 0", err);
	memcpy(out_value, value, field->n_bytes);
	memcpy(out_mask, mask, field->n_bytes);
	return 0;
}
