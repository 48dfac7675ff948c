// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// What a device is asked for to mark a megaflow, over stubs of rte_flow, and what becomes of a
// refusal.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_ethdev.h>
#include <rte_flow.h>

#include "sw_offload.h"
#include "sw_port.h"
#include "sw_rule.h"

#define MAX_ITEMS 8
#define PORT_ID 3
#define MARK 77

// What the stubs have been given, by value, and what they answer.
static struct {
	uint32_t n_validated, n_created, n_destroyed;
	int validate_rc;
	bool is_create_refused;
	const char *message;
	struct rte_flow_attr attr;
	struct rte_flow_item items[MAX_ITEMS];
	uint32_t n_items, n_actions;
	union {
		struct rte_flow_item_eth eth;
		struct rte_flow_item_vlan vlan;
		struct rte_flow_item_ipv4 ip4;
		struct rte_flow_item_ipv6 ip6;
		struct rte_flow_item_udp udp;
		struct rte_flow_item_tcp tcp;
	} spec[MAX_ITEMS], mask[MAX_ITEMS];
	struct rte_flow_action actions[MAX_ITEMS];
	struct rte_flow_action_mark mark;
	struct rte_flow_action_queue queue;
	struct rte_flow_action_rss rss;
	uint16_t queues[SW_MAX_RXQ];
} device;

static int rule_of_device; // its address is the device's handle

static size_t item_bytes(enum rte_flow_item_type type)
{
	switch (type) {
	case RTE_FLOW_ITEM_TYPE_ETH:
		return sizeof(struct rte_flow_item_eth);
	case RTE_FLOW_ITEM_TYPE_VLAN:
		return sizeof(struct rte_flow_item_vlan);
	case RTE_FLOW_ITEM_TYPE_IPV4:
		return sizeof(struct rte_flow_item_ipv4);
	case RTE_FLOW_ITEM_TYPE_IPV6:
		return sizeof(struct rte_flow_item_ipv6);
	case RTE_FLOW_ITEM_TYPE_UDP:
		return sizeof(struct rte_flow_item_udp);
	case RTE_FLOW_ITEM_TYPE_TCP:
		return sizeof(struct rte_flow_item_tcp);
	default:
		fail_msg("item %d", type);
		return 0;
	}
}

static void keep(const struct rte_flow_attr *attr, const struct rte_flow_item *pattern,
		 const struct rte_flow_action *actions)
{
	device.attr = *attr;
	for (device.n_items = 0; pattern->type != RTE_FLOW_ITEM_TYPE_END; pattern++) {
		uint32_t at = device.n_items++;

		assert_true(at < MAX_ITEMS);
		assert_null(pattern->last);
		device.items[at] = *pattern;
		memcpy(&device.spec[at], pattern->spec, item_bytes(pattern->type));
		memcpy(&device.mask[at], pattern->mask, item_bytes(pattern->type));
	}
	for (device.n_actions = 0; actions->type != RTE_FLOW_ACTION_TYPE_END; actions++) {
		assert_true(device.n_actions < MAX_ITEMS);
		device.actions[device.n_actions++] = *actions;
		if (actions->type == RTE_FLOW_ACTION_TYPE_MARK) {
			memcpy(&device.mark, actions->conf, sizeof(device.mark));
		} else if (actions->type == RTE_FLOW_ACTION_TYPE_QUEUE) {
			memcpy(&device.queue, actions->conf, sizeof(device.queue));
		} else {
			assert_int_equal(actions->type, RTE_FLOW_ACTION_TYPE_RSS);
			memcpy(&device.rss, actions->conf, sizeof(device.rss));
			memcpy(device.queues, device.rss.queue,
			       device.rss.queue_num * sizeof(device.queues[0]));
		}
	}
}

// These stand in the place of the library's.
int rte_flow_validate(uint16_t port_id, const struct rte_flow_attr *attr,
		      const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
		      struct rte_flow_error *error)
{
	assert_int_equal(port_id, PORT_ID);
	device.n_validated++;
	keep(attr, pattern, actions);
	error->message = device.message;
	return device.validate_rc;
}

struct rte_flow *rte_flow_create(uint16_t port_id, const struct rte_flow_attr *attr,
				 const struct rte_flow_item pattern[],
				 const struct rte_flow_action actions[],
				 struct rte_flow_error *error)
{
	assert_int_equal(port_id, PORT_ID);
	device.n_created++;
	keep(attr, pattern, actions);
	error->message = device.message;
	return device.is_create_refused ? NULL : (struct rte_flow *)&rule_of_device;
}

int rte_flow_destroy(uint16_t port_id, struct rte_flow *flow, struct rte_flow_error *error)
{
	(void)error;
	assert_int_equal(port_id, PORT_ID);
	assert_ptr_equal(flow, &rule_of_device);
	device.n_destroyed++;
	return 0;
}

static int open_device(void **state)
{
	(void)state;
	memset(&device, 0, sizeof(device));
	return 0;
}

static struct sw_error err;

// Ask for a megaflow with the match of this rule, and of the type it says.
static int ask_for(const char *match, uint16_t n_rxq, void **out_rule)
{
	const struct sw_port port = {.port_id = PORT_ID, .n_rxq = n_rxq};
	char text[256];
	struct sw_rule rule;
	int rc;

	snprintf(text, sizeof(text), "in_port=1,%s,actions=drop", match);
	assert_int_equal(sw_rule_parse(NULL, text, &rule, &err), 0);
	rule.mask.recirc_id = UINT32_MAX;
	memset(&err, 0, sizeof(err));
	rc = sw_marker_rte.create(&port, &rule.value, &rule.mask, MARK, out_rule, &err);
	sw_rule_free(&rule);
	return rc;
}

static void take(const char *match, uint16_t n_rxq)
{
	void *rule = NULL;

	assert_int_equal(ask_for(match, n_rxq, &rule), 0);
	assert_ptr_equal(rule, &rule_of_device);
	assert_int_equal(device.n_validated, 1);
	assert_int_equal(device.n_created, 1);
	assert_int_equal(device.attr.ingress, 1);
	assert_int_equal(device.attr.egress, 0);
	assert_int_equal(device.attr.transfer, 0);
	assert_int_equal(device.attr.group, 0);
	assert_int_equal(device.attr.priority, 0);
	assert_int_equal(device.n_actions, 2);
	assert_int_equal(device.actions[0].type, RTE_FLOW_ACTION_TYPE_MARK);
	assert_int_equal(device.mark.id, MARK);
}

static void check_items(const enum rte_flow_item_type *types, uint32_t n)
{
	assert_int_equal(device.n_items, n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(device.items[i].type, types[i]);
}

// All of it: what is not said is 0, in what must be equal as in the mask.
#define CHECK(at, member, ...)                                                                     \
	do {                                                                                       \
		const __typeof__(device.spec[0].member) spec_mask[2] = {__VA_ARGS__};              \
		assert_memory_equal(&device.spec[at].member, &spec_mask[0], sizeof(spec_mask[0])); \
		assert_memory_equal(&device.mask[at].member, &spec_mask[1], sizeof(spec_mask[1])); \
	} while (0)

static void test_five_tuple(void **state)
{
	static const enum rte_flow_item_type types[] = {
		RTE_FLOW_ITEM_TYPE_ETH, RTE_FLOW_ITEM_TYPE_IPV4, RTE_FLOW_ITEM_TYPE_UDP};

	(void)state;
	take("udp,nw_src=10.0.0.1,nw_dst=20.0.0.0/24,tp_src=9,tp_dst=53,nw_frag=no", 1);
	check_items(types, 3);
	CHECK(0, eth, {.type = RTE_BE16(0x0800)}, {.type = RTE_BE16(0xffff)});
	CHECK(1, ip4,
	      {.hdr = {.src_addr = RTE_BE32(0x0a000001),
		       .dst_addr = RTE_BE32(0x14000000),
		       .next_proto_id = 17}},
	      {.hdr = {.src_addr = UINT32_MAX,
		       .dst_addr = RTE_BE32(0xffffff00),
		       .next_proto_id = 0xff,
		       .fragment_offset = RTE_BE16(0x3fff)}});
	CHECK(2, udp, {.hdr = {.src_port = RTE_BE16(9), .dst_port = RTE_BE16(53)}},
	      {.hdr = {.src_port = UINT16_MAX, .dst_port = UINT16_MAX}});
	assert_int_equal(device.actions[1].type, RTE_FLOW_ACTION_TYPE_QUEUE);
	assert_int_equal(device.queue.index, 0);
}

static void test_ip6_to_several_queues(void **state)
{
	static const enum rte_flow_item_type types[] = {
		RTE_FLOW_ITEM_TYPE_ETH, RTE_FLOW_ITEM_TYPE_IPV6, RTE_FLOW_ITEM_TYPE_TCP};

	(void)state;
	take("tcp6,ipv6_src=fd00::1,ipv6_dst=fd00::/16,ipv6_label=5,nw_ttl=64,nw_tos=32,"
	     "tp_dst=0x100/0xff00,nw_frag=no",
	     3);
	check_items(types, 3);
	CHECK(0, eth, {.type = RTE_BE16(0x86dd)}, {.type = RTE_BE16(0xffff)});
	CHECK(1, ip6,
	      {.hdr = {.vtc_flow = RTE_BE32(0x02000005),
		       .proto = 6,
		       .hop_limits = 64,
		       .src_addr = {0xfd, [15] = 1},
		       .dst_addr = {0xfd}}},
	      {.has_frag_ext = 1,
	       .hdr = {.vtc_flow = RTE_BE32(0x0fcfffff),
		       .proto = 0xff,
		       .hop_limits = 0xff,
		       .src_addr = {[0 ... 15] = 0xff},
		       .dst_addr = {0xff, 0xff}}});
	CHECK(2, tcp, {.hdr = {.dst_port = RTE_BE16(0x100)}},
	      {.hdr = {.dst_port = RTE_BE16(0xff00)}});
	assert_int_equal(device.actions[1].type, RTE_FLOW_ACTION_TYPE_RSS);
	assert_int_equal(device.rss.queue_num, 3);
	for (uint16_t i = 0; i < 3; i++)
		assert_int_equal(device.queues[i], i);
	assert_true(device.rss.types & RTE_ETH_RSS_IP);
	assert_int_equal(device.rss.key_len, 0); // the device's own
}

static void test_tag(void **state)
{
	static const enum rte_flow_item_type types[] = {
		RTE_FLOW_ITEM_TYPE_ETH, RTE_FLOW_ITEM_TYPE_VLAN, RTE_FLOW_ITEM_TYPE_IPV4};

	(void)state;
	take("ip,dl_vlan=5,dl_dst=02:00:00:00:00:01", 1);
	check_items(types, 3);
	CHECK(0, eth, {.dst.addr_bytes = {2, 0, 0, 0, 0, 1}, .has_vlan = 1},
	      {.dst.addr_bytes = {[0 ... 5] = 0xff}, .has_vlan = 1});
	CHECK(1, vlan, {.tci = RTE_BE16(5), .inner_type = RTE_BE16(0x0800)},
	      {.tci = RTE_BE16(0x0fff), .inner_type = UINT16_MAX});
	CHECK(2, ip4, {.hdr = {.version_ihl = 0}}, {.hdr = {.version_ihl = 0}});
}

static void test_no_tag(void **state)
{
	static const enum rte_flow_item_type types[] = {RTE_FLOW_ITEM_TYPE_ETH,
							RTE_FLOW_ITEM_TYPE_IPV4};

	(void)state;
	take("ip,vlan_tci=0,nw_src=10.0.0.1", 1);
	check_items(types, 2);
	CHECK(0, eth, {.type = RTE_BE16(0x0800)}, {.type = UINT16_MAX, .has_vlan = 1});
}

// What no item says: the device is not even asked.
static void test_fields_that_a_device_can_not_tell(void **state)
{
	static const char *const matches[] = {
		"tcp,tcp_flags=+syn-ack",   "ip,dl_vlan=1,dl_vlan1=2",
		"arp,arp_tpa=10.0.0.1",     "icmp,icmp_type=8",
		"ip,nw_frag=later",         "icmp6,icmp_type=135,icmp_code=0,nd_target=fd00::1",
		"dl_dst=02:00:00:00:00:01", // of any type
	};

	(void)state;
	for (size_t i = 0; i < sizeof(matches) / sizeof(matches[0]); i++) {
		void *rule = NULL;

		assert_int_equal(ask_for(matches[i], 1, &rule), -ENOTSUP);
		assert_null(rule);
	}
	assert_int_equal(device.n_validated + device.n_created, 0);
}

static void test_refusal(void **state)
{
	void *rule = NULL;

	(void)state;
	device.validate_rc = -ENOSYS;
	device.message = "no such thing here";
	assert_int_equal(ask_for("ip", 1, &rule), -ENOSYS);
	assert_string_equal(err.text, "no such thing here");
	device.message = NULL;
	device.validate_rc = -EINVAL;
	assert_int_equal(ask_for("ip", 1, &rule), -EINVAL);
	assert_string_equal(err.text, "no reason given");
	assert_int_equal(device.n_created, 0);
	// It may find out only when it does it.
	device.validate_rc = 0;
	device.is_create_refused = true;
	assert_int_equal(ask_for("ip", 1, &rule), -EIO);
	assert_string_equal(err.text, "no reason given");
	device.message = "table full";
	assert_int_equal(ask_for("ip", 1, &rule), -EIO);
	assert_string_equal(err.text, "table full");
	assert_null(rule);
}

static void test_destroy(void **state)
{
	const struct sw_port port = {.port_id = PORT_ID, .n_rxq = 1};

	(void)state;
	sw_marker_rte.destroy(&port, &rule_of_device);
	assert_int_equal(device.n_destroyed, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup(f, open_device)
		TEST(test_five_tuple),
		TEST(test_ip6_to_several_queues),
		TEST(test_tag),
		TEST(test_no_tag),
		TEST(test_fields_that_a_device_can_not_tell),
		TEST(test_refusal),
		TEST(test_destroy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
