// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// A megaflow as an rte_flow rule: its match as pattern items, MARK and the queues that the port
// has.
#include <errno.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_flow.h>

#include "sw_offload.h"
#include "sw_port.h"

#define TYPE_IP4 RTE_BE16(0x0800)
#define TYPE_IP6 RTE_BE16(0x86dd)

struct pattern {
	struct rte_flow_item items[6];
	uint32_t n;
	struct rte_flow_item_eth eth[2]; // spec, mask; here and below
	struct rte_flow_item_vlan vlan[2];
	struct rte_flow_item_ipv4 ip4[2];
	struct rte_flow_item_ipv6 ip6[2];
	union {
		struct rte_flow_item_tcp tcp[2];
		struct rte_flow_item_udp udp[2];
		struct rte_flow_item_sctp sctp[2];
	};
};

static void add(struct pattern *pattern, enum rte_flow_item_type type, const void *spec,
		const void *mask)
{
	pattern->items[pattern->n++] =
		(struct rte_flow_item){.type = type, .spec = spec, .mask = mask};
}

// Fields that stand nowhere in the pattern: what is left of the mask when all others are taken
// away.
static bool has_others(const struct sw_key *mask, const struct sw_key *key)
{
	struct sw_key left = *mask;

	left.in_port = 0;
	left.recirc_id = 0;
	left.dl_type = 0;
	memset(left.dl_src, 0, sizeof(left.dl_src));
	memset(left.dl_dst, 0, sizeof(left.dl_dst));
	left.vlan_tci = 0;
	if (key->vlan_tci1 == 0)
		left.vlan_tci1 = 0; // no second tag: a type of IP behind the first says so
	if (key->dl_type == TYPE_IP4 || key->dl_type == TYPE_IP6) {
		left.nw_proto = 0;
		left.nw_tos = 0;
		left.nw_ttl = 0;
		memset(&left.word[4], 0, 32);
		left.nw_frag = key->nw_frag == 0 ? 0 : left.nw_frag;
		if (key->dl_type == TYPE_IP6)
			left.ipv6_label = 0;
		if (key->nw_proto == 6 || key->nw_proto == 17 || key->nw_proto == 132) {
			left.tp_src = 0;
			left.tp_dst = 0;
		}
	}
	for (uint32_t i = 0; i < SW_KEY_WORDS; i++)
		if (left.word[i] != 0)
			return true;
	return false;
}

static void add_l2(struct pattern *pattern, const struct sw_key *key, const struct sw_key *mask)
{
	memcpy(&pattern->eth[0].dst, key->dl_dst, 6);
	memcpy(&pattern->eth[1].dst, mask->dl_dst, 6);
	memcpy(&pattern->eth[0].src, key->dl_src, 6);
	memcpy(&pattern->eth[1].src, mask->dl_src, 6);
	pattern->eth[1].has_vlan = mask->vlan_tci != 0;
	pattern->eth[0].has_vlan = key->vlan_tci != 0;
	if (key->vlan_tci == 0) {
		pattern->eth[0].type = key->dl_type;
		pattern->eth[1].type = mask->dl_type;
	}
	add(pattern, RTE_FLOW_ITEM_TYPE_ETH, &pattern->eth[0], &pattern->eth[1]);
	if (key->vlan_tci == 0)
		return;
	pattern->vlan[0].tci = key->vlan_tci & ~RTE_BE16(SW_VLAN_PRESENT);
	pattern->vlan[1].tci = mask->vlan_tci & ~RTE_BE16(SW_VLAN_PRESENT);
	pattern->vlan[0].inner_type = key->dl_type;
	pattern->vlan[1].inner_type = mask->dl_type;
	add(pattern, RTE_FLOW_ITEM_TYPE_VLAN, &pattern->vlan[0], &pattern->vlan[1]);
}

static void add_ip4(struct pattern *pattern, const struct sw_key *key, const struct sw_key *mask)
{
	const struct sw_key *from[] = {key, mask};

	for (uint32_t i = 0; i < 2; i++) {
		struct rte_ipv4_hdr *ip = &pattern->ip4[i].hdr;

		ip->src_addr = from[i]->nw_src;
		ip->dst_addr = from[i]->nw_dst;
		ip->type_of_service = from[i]->nw_tos;
		ip->time_to_live = from[i]->nw_ttl;
		ip->next_proto_id = from[i]->nw_proto;
	}
	// The key says that it is none.
	pattern->ip4[1].hdr.fragment_offset = mask->nw_frag != 0 ? RTE_BE16(0x3fff) : 0;
	add(pattern, RTE_FLOW_ITEM_TYPE_IPV4, &pattern->ip4[0], &pattern->ip4[1]);
}

static void add_ip6(struct pattern *pattern, const struct sw_key *key, const struct sw_key *mask)
{
	const struct sw_key *from[] = {key, mask};

	for (uint32_t i = 0; i < 2; i++) {
		struct rte_ipv6_hdr *ip = &pattern->ip6[i].hdr;

		memcpy(ip->src_addr, from[i]->ipv6_src, 16);
		memcpy(ip->dst_addr, from[i]->ipv6_dst, 16);
		// A rule's mask of the label has all the bits of its word, also the version's.
		ip->vtc_flow = (from[i]->ipv6_label & RTE_BE32(0x000fffff)) |
			       rte_cpu_to_be_32((uint32_t)from[i]->nw_tos << 20);
		ip->hop_limits = from[i]->nw_ttl;
		ip->proto = from[i]->nw_proto;
	}
	pattern->ip6[1].has_frag_ext = mask->nw_frag != 0;
	add(pattern, RTE_FLOW_ITEM_TYPE_IPV6, &pattern->ip6[0], &pattern->ip6[1]);
}

static void add_l4(struct pattern *pattern, const struct sw_key *key, const struct sw_key *mask)
{
	const struct sw_key *from[] = {key, mask};
	enum rte_flow_item_type type;
	void *at[2];

	if (mask->nw_proto != 0xff || (mask->tp_src == 0 && mask->tp_dst == 0))
		return;
	if (key->nw_proto == 6) {
		type = RTE_FLOW_ITEM_TYPE_TCP;
		at[0] = &pattern->tcp[0];
		at[1] = &pattern->tcp[1];
	} else if (key->nw_proto == 17) {
		type = RTE_FLOW_ITEM_TYPE_UDP;
		at[0] = &pattern->udp[0];
		at[1] = &pattern->udp[1];
	} else {
		type = RTE_FLOW_ITEM_TYPE_SCTP;
		at[0] = &pattern->sctp[0];
		at[1] = &pattern->sctp[1];
	}
	// All three begin with the ports, as they stand in the key.
	for (uint32_t i = 0; i < 2; i++)
		memcpy(at[i], &from[i]->tp_src, 4);
	add(pattern, type, at[0], at[1]);
}

static int create(const struct sw_port *port, const struct sw_key *key, const struct sw_key *mask,
		  uint32_t mark, void **out_rule, struct sw_error *err)
{
	const struct rte_flow_attr attr = {.ingress = 1};
	const struct rte_flow_action_mark marking = {.id = mark};
	const struct rte_flow_action_queue first = {.index = 0};
	uint16_t queues[SW_MAX_RXQ];
	const struct rte_flow_action_rss all = {
		.types = RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_SCTP,
		.queue_num = port->n_rxq,
		.queue = queues,
	};
	const struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_MARK, .conf = &marking},
		port->n_rxq > 1
			? (struct rte_flow_action){.type = RTE_FLOW_ACTION_TYPE_RSS, .conf = &all}
			: (struct rte_flow_action){.type = RTE_FLOW_ACTION_TYPE_QUEUE,
						   .conf = &first},
		{.type = RTE_FLOW_ACTION_TYPE_END},
	};
	struct rte_flow_error error = {.message = NULL};
	struct pattern pattern = {.n = 0};
	struct rte_flow *rule;
	int rc;

	if (mask->dl_type != UINT16_MAX || has_others(mask, key))
		return -ENOTSUP;
	for (uint16_t i = 0; i < port->n_rxq; i++)
		queues[i] = i;
	add_l2(&pattern, key, mask);
	if (key->dl_type == TYPE_IP4)
		add_ip4(&pattern, key, mask);
	else if (key->dl_type == TYPE_IP6)
		add_ip6(&pattern, key, mask);
	if (key->dl_type == TYPE_IP4 || key->dl_type == TYPE_IP6)
		add_l4(&pattern, key, mask);
	add(&pattern, RTE_FLOW_ITEM_TYPE_END, NULL, NULL);
	rc = rte_flow_validate(port->port_id, &attr, pattern.items, actions, &error);
	if (rc != 0)
		return sw_fail(err, rc, "%s",
			       error.message != NULL ? error.message : "no reason given");
	rule = rte_flow_create(port->port_id, &attr, pattern.items, actions, &error);
	if (rule == NULL)
		return sw_fail(err, -EIO, "%s",
			       error.message != NULL ? error.message : "no reason given");
	*out_rule = rule;
	return 0;
}

static void destroy(const struct sw_port *port, void *rule)
{
	struct rte_flow_error error;

	// A rule that stays marks packets that no PMD knows the mark of: they go the usual way.
	rte_flow_destroy(port->port_id, rule, &error);
}

const struct sw_marker sw_marker_rte = {.create = create, .destroy = destroy};
