// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_xlate_edit_fast.h"

#include <stddef.h>
#include <string.h>

#include <rte_byteorder.h>

#include "sw_needs_fast.h"
#include "sw_rule.h"

#define TPID_VLAN RTE_BE16(0x8100)
#define PRESENT RTE_BE16(SW_VLAN_PRESENT)
#define TAG_OFFSET offsetof(struct sw_key, vlan_tci)

#define SPAN(member)                                                                  \
	{                                                                             \
		offsetof(struct sw_key, member), sizeof(((struct sw_key *)0)->member) \
	}

// What one action can set.
struct span {
	uint16_t offset;
	uint16_t n_bytes;
};

static const struct span always[] = {
	SPAN(vlan_tci),   SPAN(nw_proto),  SPAN(dl_dst), SPAN(nw_tos),
	SPAN(nw_ttl),     SPAN(dl_src),    SPAN(tp_src), SPAN(tp_dst),
	SPAN(ipv6_label), SPAN(nd_target), SPAN(nd_sll), SPAN(nd_tll),
};
static const struct span of_ip6[] = {SPAN(ipv6_src), SPAN(ipv6_dst)};
static const struct span of_others[] = {SPAN(nw_src), SPAN(nw_dst), SPAN(arp_sha), SPAN(arp_tha)};

void sw_xlate_begin(struct sw_xlate_edit *edit, const struct sw_key *key, struct sw_xlate *out)
{
	memset(&edit->written, 0, sizeof(edit->written));
	memset(&edit->pending, 0, sizeof(edit->pending));
	edit->out = out;
	edit->work = *key;
	edit->tag[0] = (struct sw_xlate_tag){.tci = key->vlan_tci, .from = 0};
	edit->tag[1] = (struct sw_xlate_tag){.tci = key->vlan_tci1, .from = 1};
	for (unsigned int i = 2; i < SW_XLATE_MAX_TAGS; i++)
		edit->tag[i] = (struct sw_xlate_tag){.from = 2};
	edit->is_ttl_derived = edit->is_full = false;
	memset(&out->mask, 0, sizeof(out->mask));
	out->mask.in_port = UINT16_MAX;
	out->mask.recirc_id = UINT32_MAX;
	out->n_acts = out->n_slots = 0;
}

static void look_at_tag(struct sw_xlate_edit *edit, unsigned int i, uint16_t bits)
{
	const struct sw_xlate_tag *tag = &edit->tag[i];
	uint16_t unknown = bits & (uint16_t)~tag->written;

	if (tag->from == 0)
		edit->out->mask.vlan_tci |= unknown;
	else if (tag->from == 1)
		edit->out->mask.vlan_tci1 |= unknown;
}

void sw_xlate_look(struct sw_xlate_edit *edit, const struct sw_key *look)
{
	struct sw_key *mask = &edit->out->mask;
	uint16_t tci = mask->vlan_tci, tci1 = mask->vlan_tci1;
	uint8_t ttl = mask->nw_ttl;

	for (unsigned int i = 0; i < SW_KEY_WORDS; i++)
		mask->word[i] |= look->word[i] & ~edit->written.word[i];
	mask->vlan_tci = tci;
	mask->vlan_tci1 = tci1;
	look_at_tag(edit, 0, look->vlan_tci);
	look_at_tag(edit, 1, look->vlan_tci1);
	if (edit->is_ttl_derived)
		mask->nw_ttl = look->nw_ttl & (uint8_t)~edit->written.nw_ttl ? UINT8_MAX : ttl;
}

static void copy_tags(struct sw_xlate_edit *edit)
{
	edit->work.vlan_tci = edit->tag[0].tci;
	edit->work.vlan_tci1 = edit->tag[1].tci;
}

static bool has_tag(struct sw_xlate_edit *edit)
{
	look_at_tag(edit, 0, PRESENT);
	return edit->tag[0].tci & PRESENT;
}

void sw_xlate_emit(struct sw_xlate_edit *edit, const struct sw_act *act)
{
	struct sw_xlate *out = edit->out;

	if (out->n_acts == SW_XLATE_MAX_ACTS)
		edit->is_full = true;
	else
		out->acts[out->n_acts++] = *act;
}

static void commit_span(struct sw_xlate_edit *edit, const struct span *span)
{
	uint8_t *pending = (uint8_t *)&edit->pending + span->offset;
	const uint8_t *work = (const uint8_t *)&edit->work + span->offset;
	struct sw_act act = {
		.type = SW_ACT_SET, .n_bytes = (uint8_t)span->n_bytes, .offset = span->offset};
	unsigned int any = 0;

	for (unsigned int i = 0; i < span->n_bytes; i++) {
		act.mask[i] = pending[i];
		act.value[i] = work[i] & pending[i];
		any |= pending[i];
		pending[i] = 0;
	}
	if (any)
		sw_xlate_emit(edit, &act);
}

static void commit_spans(struct sw_xlate_edit *edit, const struct span *spans, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		commit_span(edit, &spans[i]);
}

void sw_xlate_commit(struct sw_xlate_edit *edit)
{
	uint64_t any = 0;

	for (unsigned int i = 0; i < SW_KEY_WORDS; i++)
		any |= edit->pending.word[i];
	if (!any)
		return;
	commit_spans(edit, always, sizeof(always) / sizeof(always[0]));
	// A rule that has set one of these has looked at the type.
	if (edit->work.dl_type == SW_TYPE_IP6)
		commit_spans(edit, of_ip6, sizeof(of_ip6) / sizeof(of_ip6[0]));
	else
		commit_spans(edit, of_others, sizeof(of_others) / sizeof(of_others[0]));
}

void sw_xlate_push_vlan(struct sw_xlate_edit *edit, uint16_t tpid)
{
	const struct sw_act act = {.type = SW_ACT_PUSH_VLAN, .tpid = tpid};

	commit_span(edit, &always[0]);
	sw_xlate_emit(edit, &act);
	memmove(&edit->tag[1], &edit->tag[0], (SW_XLATE_MAX_TAGS - 1) * sizeof(edit->tag[0]));
	edit->tag[0] = (struct sw_xlate_tag){.tci = PRESENT, .written = UINT16_MAX, .from = 2};
	copy_tags(edit);
}

bool sw_xlate_pop_vlan(struct sw_xlate_edit *edit)
{
	const struct sw_act act = {.type = SW_ACT_POP_VLAN};

	if (!has_tag(edit))
		return false;
	edit->pending.vlan_tci = 0;
	sw_xlate_emit(edit, &act);
	memmove(&edit->tag[0], &edit->tag[1], (SW_XLATE_MAX_TAGS - 1) * sizeof(edit->tag[0]));
	edit->tag[SW_XLATE_MAX_TAGS - 1] = (struct sw_xlate_tag){.from = 2};
	copy_tags(edit);
	return true;
}

// An untagged packet gets a tag first, as in ovs-actions(7).
static bool set_tag(struct sw_xlate_edit *edit, const struct sw_rule_act *act)
{
	uint16_t value, mask;

	memcpy(&value, act->value, sizeof(value));
	memcpy(&mask, act->mask, sizeof(mask));
	if (!has_tag(edit))
		sw_xlate_push_vlan(edit, TPID_VLAN);
	edit->tag[0].tci = (uint16_t)((edit->tag[0].tci & ~mask) | value);
	edit->tag[0].written |= mask;
	edit->pending.vlan_tci |= mask;
	copy_tags(edit);
	return true;
}

bool sw_xlate_set(struct sw_xlate_edit *edit, const struct sw_rule_act *act)
{
	struct sw_key look;
	bool is_met;

	if (act->offset == TAG_OFFSET)
		return set_tag(edit, act);
	memset(&look, 0, sizeof(look));
	is_met = sw_needs_are_met((enum sw_field_needs)act->needs, &edit->work, &look);
	sw_xlate_look(edit, &look);
	if (!is_met)
		return false;
	for (unsigned int i = 0; i < act->n_bytes; i++) {
		uint32_t at = act->offset + i;
		uint8_t *work = (uint8_t *)&edit->work + at;

		*work = (uint8_t)((*work & ~act->mask[i]) | act->value[i]);
		((uint8_t *)&edit->written)[at] |= act->mask[i];
		((uint8_t *)&edit->pending)[at] |= act->mask[i];
	}
	if (edit->written.nw_ttl == UINT8_MAX)
		edit->is_ttl_derived = false;
	return true;
}

int sw_xlate_dec_ttl(struct sw_xlate_edit *edit)
{
	static const struct span ttl = SPAN(nw_ttl);
	const struct sw_act act = {.type = SW_ACT_DEC_TTL};
	struct sw_key look;
	bool is_ip;

	memset(&look, 0, sizeof(look));
	is_ip = sw_needs_are_met(SW_NEEDS_IP, &edit->work, &look);
	sw_xlate_look(edit, &look);
	if (!is_ip)
		return SW_TTL_NONE;
	if (edit->written.nw_ttl == UINT8_MAX) { // known to the translation
		if (edit->work.nw_ttl <= 1)
			return SW_TTL_EXCEEDED;
		edit->work.nw_ttl--;
		edit->pending.nw_ttl = UINT8_MAX;
		return SW_TTL_DONE;
	}
	commit_span(edit, &ttl);
	sw_xlate_emit(edit, &act);
	edit->work.nw_ttl--;
	// Bits that were set no longer stand by themselves.
	edit->written.nw_ttl = 0;
	edit->is_ttl_derived = true;
	return SW_TTL_DONE;
}
