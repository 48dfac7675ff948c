// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The autovalidator: the scalar implementation's results, after every other one has been asked for
// the same.
#include <string.h>

#include "sw_bits_fast.h"
#include "sw_impl_fast.h"

static void differ(uint64_t n)
{
	if (n > 0)
		atomic_fetch_add_explicit(&sw_impl_differences, n, memory_order_relaxed);
}

static uint32_t extract(struct rte_mbuf *const *pkts, uint32_t n, uint64_t meta,
			struct sw_key *keys, uint8_t *out_bad)
{
	uint32_t any = sw_impl_scalar.extract(pkts, n, meta, keys, out_bad);

	for (uint32_t k = 1; k < sw_impls_n_usable; k++) {
		struct sw_key others[SW_BURST];
		uint8_t bad[SW_BURST];
		uint32_t n_wrong = 0;

		memset(others, 0, sizeof(others));
		sw_impls_usable[k]->extract(pkts, n, meta, others, bad);
		for (uint32_t i = 0; i < n; i++)
			n_wrong += bad[i] != out_bad[i] ||
				   memcmp(&others[i], &keys[i], sizeof(keys[i])) != 0;
		differ(n_wrong);
	}
	return any;
}

// Results of one that looks for flows, against those of the scalar one.
static void compare(uint32_t found, const uint32_t *flows, uint32_t other_found,
		    const uint32_t *other_flows)
{
	uint32_t n_wrong = sw_n_bits(found ^ other_found);

	SW_FOR_EACH_BIT(i, found & other_found)
	n_wrong += flows[i] != other_flows[i];
	differ(n_wrong);
}

static uint32_t runs(const struct sw_key *keys, uint32_t n, uint32_t wide)
{
	uint32_t equal = sw_impl_scalar.runs(keys, n, wide);

	for (uint32_t k = 1; k < sw_impls_n_usable; k++)
		differ(sw_n_bits(equal ^ sw_impls_usable[k]->runs(keys, n, wide)));
	return equal;
}

static uint32_t emc_lookup(struct sw_emc *emc, const struct sw_mega *mega,
			   const struct sw_key *keys, const uint32_t *hashes, uint32_t want,
			   uint32_t wide, uint32_t *out_flows)
{
	uint32_t found = sw_impl_scalar.emc_lookup(emc, mega, keys, hashes, want, wide, out_flows);

	for (uint32_t k = 1; k < sw_impls_n_usable; k++) {
		uint32_t flows[SW_BURST];
		uint32_t other =
			sw_impls_usable[k]->emc_lookup(emc, mega, keys, hashes, want, wide, flows);

		compare(found, out_flows, other, flows);
	}
	return found;
}

static uint32_t mega_lookup(const struct sw_mega *mega, const struct sw_classifier *cls,
			    const struct sw_key *keys, uint32_t want, uint32_t *out_flows,
			    uint64_t *n_visited)
{
	uint32_t kept[SW_BURST];
	uint32_t found = sw_impl_scalar.mega_lookup(mega, cls, keys, want, out_flows, n_visited);

	for (uint32_t k = 1; k < sw_impls_n_usable; k++) {
		uint64_t n_other = 0;
		uint32_t other =
			sw_impls_usable[k]->mega_lookup(mega, cls, keys, want, kept, &n_other);

		compare(found, out_flows, other, kept);
	}
	return found;
}

const struct sw_impl sw_impl_autovalidator = {
	.name = "autovalidator",
	.extract = extract,
	.runs = runs,
	.emc_lookup = emc_lookup,
	.mega_lookup = mega_lookup,
};
