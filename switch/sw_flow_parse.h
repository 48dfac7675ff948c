// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Shared by the parser of matches (sw_flow_parse.c) and that of actions (sw_act_parse.c).
 */
#pragma once

#include <stdint.h>

#include "sw_flow_count_fast.h"
#include "sw_rule.h"

#define SW_SEPARATORS ", \t\r\n"

// A port by number or name; text is changed. field is for messages. -EINVAL.
int sw_parse_port(const struct sw_rule_parser *parser, const char *field, char *text,
		  uint16_t *out_port, struct sw_error *err);

// Parse what stands behind "actions=", which is changed, into rule->acts; rule has its match
// already.
// -EINVAL, -ENOMEM.
int sw_acts_parse(const struct sw_rule_parser *parser, char *text, struct sw_rule *rule,
		  struct sw_error *err);

// How an action that sets a field is said: its name, the field, and what it needs.
struct sw_mod {
	const char *name;  // e.g. "mod_dl_src"
	const char *field; // as in ovs-fields(7)
	uint8_t needs;     // of the packet
};

#define SW_N_MODS 11
#define SW_SET_FIELD 128 // sw_rule_act.name: this plus the index of the field; below: of the mod
extern const struct sw_mod sw_mods[SW_N_MODS];
