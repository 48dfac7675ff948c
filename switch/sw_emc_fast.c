// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_emc_fast.h"

#include <string.h>

#define LINE_BYTES (SW_KEY_LINE_WORDS * 8)

static bool is_key(const struct sw_emc *emc, uint32_t at, const struct sw_key *key, bool is_wide)
{
	bool is_entry_wide = (emc->tags[at].id & SW_EMC_WIDE) != 0;

	return is_wide == is_entry_wide &&
	       memcmp(&emc->first[at], &key->word[0], LINE_BYTES) == 0 &&
	       (!is_wide ||
		memcmp(&emc->second[at], &key->word[SW_KEY_LINE_WORDS], LINE_BYTES) == 0);
}

static bool is_dead(const struct sw_emc_tag *tag, const struct sw_mega *mega)
{
	return mega->flows[sw_emc_flow(tag)].id != (tag->id & SW_EMC_ID);
}

uint32_t sw_emc_find(struct sw_emc *emc, const struct sw_mega *mega, const struct sw_key *key,
		     uint32_t hash, bool is_wide)
{
	const struct sw_emc_tag *set = sw_emc_set(emc, hash);

	for (uint32_t way = 0; way < SW_EMC_WAYS; way++) {
		const struct sw_emc_tag *tag = &set[way];

		if (sw_emc_is_tag(tag, hash, key->word[SW_KEY_META_WORD]) && !is_dead(tag, mega) &&
		    is_key(emc, (uint32_t)(tag - emc->tags), key, is_wide))
			return sw_emc_flow(tag);
	}
	return SW_MEGA_NONE;
}

// The same key's entry, else a free or dead one, else one of the two in turn.
static uint32_t choose(struct sw_emc *emc, const struct sw_mega *mega, const struct sw_key *key,
		       uint32_t hash, bool is_wide)
{
	uint32_t first = (uint32_t)(sw_emc_set(emc, hash) - emc->tags);
	uint32_t at = first + emc->next_victim++ % SW_EMC_WAYS;

	for (uint32_t way = 0; way < SW_EMC_WAYS; way++) {
		const struct sw_emc_tag *tag = &emc->tags[first + way];

		if (sw_emc_is_tag(tag, hash, key->word[SW_KEY_META_WORD]) &&
		    is_key(emc, first + way, key, is_wide))
			return first + way;
		if (tag->id == 0 || is_dead(tag, mega))
			at = first + way;
	}
	return at;
}

void sw_emc_insert(struct sw_emc *emc, const struct sw_mega *mega, const struct sw_key *key,
		   uint32_t hash, bool is_wide, uint32_t flow)
{
	uint32_t at = choose(emc, mega, key, hash, is_wide);

	emc->n_entries += emc->tags[at].id == 0;
	emc->tags[at] = (struct sw_emc_tag){
		.hash = hash,
		.id = mega->flows[flow].id | (is_wide ? SW_EMC_WIDE : 0),
		.meta = (key->word[SW_KEY_META_WORD] & SW_EMC_META) | (uint64_t)flow << 16,
	};
	memcpy(&emc->first[at], &key->word[0], LINE_BYTES);
	if (is_wide)
		memcpy(&emc->second[at], &key->word[SW_KEY_LINE_WORDS], LINE_BYTES);
}

void sw_emc_sweep(struct sw_emc *emc, const struct sw_mega *mega)
{
	for (uint32_t i = 0; i < SW_EMC_SWEEP; i++) {
		struct sw_emc_tag *tag = &emc->tags[emc->sweep_at];

		emc->sweep_at = (emc->sweep_at + 1) % SW_EMC_ENTRIES;
		if (tag->id != 0 && is_dead(tag, mega)) {
			tag->id = 0;
			emc->n_entries--;
		}
	}
}
