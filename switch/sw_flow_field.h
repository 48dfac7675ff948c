// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The fields that a rule can match or set: their names, places in the key, and how values are
 * written. One table serves the parsers and the formatters.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sw_error.h"
#include "sw_needs_fast.h"
#include "sw_rule.h"

// How a value is written.
enum sw_field_type {
	SW_FIELD_DEC,   // number, dumped as decimal
	SW_FIELD_HEX,   // number, dumped as hexadecimal
	SW_FIELD_EXACT, // decimal number without mask: other fields hang on it
	SW_FIELD_TYPE,  // the same, of Ethernet types
	SW_FIELD_MAC,   // aa:bb:cc:dd:ee:ff
	SW_FIELD_IP4,   // a.b.c.d, mask as prefix length or dotted
	SW_FIELD_IP6,
	SW_FIELD_FRAG, // no, yes, first, later, not_later
	SW_FIELD_VLAN, // VID, with the presence bit
	SW_FIELD_VID,  // the same, of which the presence bit is said, too
	SW_FIELD_PCP,
	SW_FIELD_TCI,
	SW_FIELD_DSCP,  // nw_tos: upper six bits
	SW_FIELD_DSCP6, // the same, without the lower two
	SW_FIELD_ECN,
	SW_FIELD_FLAGS, // TCP flags
};

struct sw_field {
	const char *name;
	uint8_t type;    // SW_FIELD_*
	uint8_t needs;   // SW_NEEDS_* of the rule that names it
	uint8_t shown;   // when a dump uses this name: SW_NEVER for an alias
	uint8_t sets;    // what a rule needs to set it: SW_NEVER for one that can't be set
	uint8_t offset;  // in struct sw_key
	uint8_t n_bytes; // of the value
	uint8_t n_bits;  // that may be set, from the lowest; of numbers
};

// NULL after the last, in the order of a dump.
const struct sw_field *sw_field_at(size_t i);
const struct sw_field *sw_field_find(const char *name);
size_t sw_field_index(const struct sw_field *field);

// A protocol's short name: what it says about dl_type and nw_proto.
struct sw_protocol {
	const char *name;
	uint16_t dl_type;
	int nw_proto; // -1: any
};

const struct sw_protocol *sw_protocol_find(const char *name);
// The most telling short name of a match, NULL if there is none.
const struct sw_protocol *sw_protocol_of(const struct sw_key *value, const struct sw_key *mask);

// Does the match say what is needed?
bool sw_field_is_met(enum sw_field_needs needs, const struct sw_key *value,
		     const struct sw_key *mask);
// What to write when it does not, e.g. "ip, arp or rarp".
const char *sw_field_remedy(enum sw_field_needs needs);

// Parse "value" or "value/mask" into n_bytes of value and mask, in network order. -EINVAL.
int sw_field_parse(const struct sw_field *field, const char *text, uint8_t *out_value,
		   uint8_t *out_mask, struct sw_error *err);

// The same of set_field: without the presence bit of a tag, which is no matter of the field.
int sw_field_parse_set(const struct sw_field *field, const char *text, uint8_t *out_value,
		       uint8_t *out_mask, struct sw_error *err);

// "name=value[/mask]", or nothing when there is no match on the field. Length as of snprintf.
int sw_field_format(const struct sw_field *field, const struct sw_key *value,
		    const struct sw_key *mask, char *out, size_t size);
// "value[/mask]" of set_field.
int sw_field_format_set(const struct sw_field *field, const uint8_t *value, const uint8_t *mask,
			char *out, size_t size);

// A whole string as an unsigned number: decimal, 0x or 0.
bool sw_number(const char *text, uint64_t max, uint64_t *out_value);
// The same of a port or table, which ovs-ofctl reads as decimal alone: 010 is 10.
bool sw_decimal(const char *text, uint64_t max, uint64_t *out_value);

#define SW_FIELD_MAX_BYTES 16

// Words that stand for bits.
struct sw_frag {
	const char *name;
	uint8_t value, mask;
};

#define SW_N_FRAGS 5
#define SW_N_TCP_FLAGS 9
extern const struct sw_frag sw_frags[SW_N_FRAGS];
extern const char *const sw_tcp_flags[SW_N_TCP_FLAGS];
