// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The packet as it becomes in the course of a translation: which of its bits are known because a
 * rule has set them, and where the others stand in the key that it began with. What is looked at
 * goes into the megaflow's mask, unless a rule has set it.
 *
 * Changes are gathered and become actions when the packet leaves, so that a field that is set twice
 * is set once. Only tags are pushed and popped at once: their order matters.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sw_xlate_fast.h"

#define SW_XLATE_MAX_TAGS 4

struct sw_rule_act;

// The tag at some place of the packet.
struct sw_xlate_tag {
	uint16_t tci;     // as in the key
	uint16_t written; // bits that a rule has set
	uint8_t from; // the others are those of the key's outer (0) or inner tag (1); 2: of none
};

struct sw_xlate_edit {
	struct sw_xlate *out;
	struct sw_key work;    // as it is now; the tags' place is a copy of tag[0] and tag[1]
	struct sw_key written; // bits of work that a rule has set, without the tags
	struct sw_key pending; // those that no action says yet, the outer tag's included
	struct sw_xlate_tag tag[SW_XLATE_MAX_TAGS];
	bool is_ttl_derived; // its unwritten bits depend on all bits that it had
	bool is_full;        // there was no room for an action
};

void sw_xlate_begin(struct sw_xlate_edit *edit, const struct sw_key *key, struct sw_xlate *out);

// These bits of work have decided something.
void sw_xlate_look(struct sw_xlate_edit *edit, const struct sw_key *look);

// false: the packet does not have the field.
bool sw_xlate_set(struct sw_xlate_edit *edit, const struct sw_rule_act *act);
void sw_xlate_push_vlan(struct sw_xlate_edit *edit, uint16_t tpid);
bool sw_xlate_pop_vlan(struct sw_xlate_edit *edit); // false: no tag

#define SW_TTL_NONE 0     // not an IP packet
#define SW_TTL_DONE 1     // less, or the packet goes no further when it is carried out
#define SW_TTL_EXCEEDED 2 // the packet goes no further
int sw_xlate_dec_ttl(struct sw_xlate_edit *edit);

// Actions for all that is pending; then an action. When there is no room, is_full is set.
void sw_xlate_commit(struct sw_xlate_edit *edit);
void sw_xlate_emit(struct sw_xlate_edit *edit, const struct sw_act *act);
