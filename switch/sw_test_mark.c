// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// A device that marks: a callback behind any port's receive, for tests. Not in release builds.
#ifdef PMDP_TEST_HOOKS

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "sw_key_fast.h"
#include "sw_offload.h"
#include "sw_switch.h"

#define MAX_RULES 1024 // ever; places are not used again, so that no look meets half of one

struct rule {
	_Atomic uint32_t mark; // W: control, release; 0: none, or taken back
	uint16_t port_id;
	struct sw_key key;
	struct sw_key mask;
};

static struct rule rules[MAX_RULES];
static _Atomic uint32_t n_rules; // W: control, release

static bool is_match(const struct rule *rule, const struct sw_key *key)
{
	uint64_t differs = 0;

	for (uint32_t i = 0; i < SW_KEY_WORDS; i++)
		if (i != SW_KEY_META_WORD)
			differs |= (key->word[i] & rule->mask.word[i]) ^ rule->key.word[i];
	return differs == 0;
}

// In the PMD, between the device and the switch.
static uint16_t mark_burst(uint16_t port_id, uint16_t queue, struct rte_mbuf **pkts, uint16_t n,
			   uint16_t max, void *ctx)
{
	uint32_t n_known = atomic_load_explicit(&n_rules, memory_order_acquire);

	(void)queue;
	(void)max;
	(void)ctx;
	for (uint16_t i = 0; i < n; i++) {
		struct sw_key key;

		if (sw_key_extract_mbuf(pkts[i], SW_DEPTH_FULL, &key) != SW_BAD_NONE)
			continue;
		for (uint32_t r = 0; r < n_known; r++) {
			uint32_t mark = atomic_load_explicit(&rules[r].mark, memory_order_acquire);

			if (mark == 0 || rules[r].port_id != port_id || !is_match(&rules[r], &key))
				continue;
			pkts[i]->ol_flags |= RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID;
			pkts[i]->hash.fdir.hi = mark;
			break;
		}
	}
	return n;
}

static int create(const struct sw_port *port, const struct sw_key *key, const struct sw_key *mask,
		  uint32_t mark, void **out_rule, struct sw_error *err)
{
	uint32_t n = atomic_load_explicit(&n_rules, memory_order_relaxed);

	if (n == MAX_RULES)
		return sw_fail(err, -ENOSPC, "%d rules were made", MAX_RULES);
	rules[n].port_id = port->port_id;
	rules[n].key = *key;
	rules[n].mask = *mask;
	atomic_store_explicit(&rules[n].mark, mark, memory_order_release);
	atomic_store_explicit(&n_rules, n + 1, memory_order_release);
	*out_rule = &rules[n];
	return 0;
}

static void destroy(const struct sw_port *port, void *rule)
{
	(void)port;
	atomic_store_explicit(&((struct rule *)rule)->mark, 0, memory_order_release);
}

static const struct sw_marker marker = {.create = create, .destroy = destroy};

int sw_test_mark(struct sw_switch *sw, const char *name, struct sw_error *err)
{
	struct sw_port *port = sw_port_find(sw, name);

	if (port == NULL)
		return sw_fail(err, -ENOENT, "no port '%s'", name);
	if (port->marker == &marker)
		return 0;
	for (uint16_t q = 0; q < port->n_rxq; q++)
		if (rte_eth_add_rx_callback(port->port_id, q, mark_burst, NULL) == NULL)
			return sw_fail(err, -ENOTSUP, "port %s: DPDK was built without callbacks",
				       name);
	sw_offload_forget_port(sw, port);
	port->marker = &marker;
	return 0;
}

#else
typedef int sw_no_test_mark; // a translation unit must not be empty
#endif
