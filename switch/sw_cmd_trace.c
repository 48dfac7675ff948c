// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Commands that explain: where a packet would go, what the tables hold, which addresses are known.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>

#include "pmdp_abi.h"
#include "pmdp_clock.h"
#include "pmdp_json.h"
#include "pmdp_names.h"
#include "sw_act_format.h"
#include "sw_cmd_impl.h"
#include "sw_flow.h"
#include "sw_flow_field.h"
#include "sw_mac.h"
#include "sw_port.h"
#include "sw_switch.h"
#include "sw_trace.h"

#define MAX_PASSES 7 // as on the packet path: the first and six more

static void put_pass(yajl_gen gen, const struct sw_key *key, const struct sw_xlate *result)
{
	char match[2048], actions[SW_ACTS_TEXT_BYTES];

	sw_match_format(key, &result->mask, match, sizeof(match));
	sw_acts_format(result->acts, result->n_acts, result->drop_reason, key->dl_type, actions,
		       sizeof(actions));
	yajl_gen_map_open(gen);
	pmdp_json_kv_text(gen, "megaflow", match);
	pmdp_json_kv_text(gen, "actions", actions);
	pmdp_json_kv_text(gen, "drop_reason",
			  result->n_acts ? NULL : pmdp_drop_name(result->drop_reason));
	pmdp_json_kv_u64(gen, "n_rules", result->n_slots);
	yajl_gen_map_close(gen);
}

// Where the action normal would send a packet with this key now; no megaflow says that.
static void put_normal(const struct sw_cmd_call *call, const struct sw_key *key, FILE *to)
{
	uint32_t now_s = (uint32_t)(pmdp_mono_now_ns() / UINT64_C(1000000000));
	uint16_t vid = rte_be_to_cpu_16(key->vlan_tci) & 0x0fff;
	const uint8_t *mac = key->dl_dst;
	uint16_t port;

	fprintf(to, "Normal: %02x:%02x:%02x:%02x:%02x:%02x ", mac[0], mac[1], mac[2], mac[3],
		mac[4], mac[5]);
	if (sw_mac_is_reserved(mac)) {
		fputs("is for the next bridge alone: dropped\n", to);
		return;
	}
	if (mac[0] & 1) {
		fputs("is a group: flooded\n", to);
		return;
	}
	sw_mac_poll(call->sw->macs, now_s);
	port = sw_mac_lookup(call->sw->macs, mac, vid, now_s);
	if (port == SW_MAC_UNKNOWN)
		fprintf(to, "has not been seen in VLAN %u: flooded\n", vid);
	else if (port == key->in_port)
		fputs("is behind the port that the packet comes from: dropped\n", to);
	else
		fprintf(to, "was seen in VLAN %u at port %u: output:%u\n", vid, port, port);
}

// What is decided packet by packet, when the actions are carried out.
static void put_run_time(const struct sw_cmd_call *call, const struct sw_key *first,
			 const struct sw_xlate *result, FILE *to)
{
	struct sw_key key = *first;

	for (uint32_t i = 0; i < result->n_acts; i++) {
		if (result->acts[i].type == SW_ACT_NORMAL)
			put_normal(call, &key, to);
		if (!sw_trace_act(&result->acts[i], &key)) {
			fprintf(to, "TTL: %u, so dec_ttl is as far as this packet goes\n",
				key.nw_ttl);
			return;
		}
	}
}

static int trace_all(const struct sw_cmd_call *call, const struct sw_key *first, FILE *to)
{
	struct sw_key key = *first, next;
	bool comes_back = true;
	int rc = 0;

	for (unsigned int pass = 0; comes_back && rc == 0; pass++) {
		struct sw_xlate result;

		if (pass == MAX_PASSES) {
			fprintf(to, "\nRecirculated too often: dropped (%s)\n",
				pmdp_drop_name(PMDP_DROP_RECIRC_LIMIT));
			break;
		}
		if (key.recirc_id)
			fprintf(to, "%sRecirculated to table %u:\n\n", pass ? "\n" : "",
				key.recirc_id - 1);
		rc = sw_trace_pass(call->sw->flows, &key, to, &result, &next, &comes_back);
		if (rc == 0) {
			put_run_time(call, &key, &result, to);
			put_pass(call->gen, &key, &result);
		}
		key = next;
	}
	return rc;
}

int sw_cmd_trace(const struct sw_cmd_call *call, struct sw_error *err)
{
	const struct sw_rule_parser with = sw_cmd_rule_parser(call);
	char match[SW_FLOW_TEXT_BYTES], *text = NULL;
	struct sw_flow_filter packet;
	size_t size;
	FILE *to;
	int rc = sw_flow_filter_parse(&with, call->argv[0], false, &packet, err);

	if (rc < 0)
		return rc;
	if (!packet.is_any_table || packet.cookie_mask != 0 || packet.out_port != 0)
		return sw_fail(
			err, -EINVAL,
			"trace: table, cookie and out_port are of rules, a packet has none (it "
			"begins in table 0, or in table N with recirc_id=N+1)");
	if (packet.match.mask.in_port == 0)
		return sw_fail(err, -EINVAL,
			       "trace: where does the packet come from? (begin with in_port=PORT)");
	to = open_memstream(&text, &size);
	if (!to)
		return sw_fail(err, -ENOMEM, "no memory for a trace");
	sw_rule_format_match(&packet.match, match, sizeof(match));
	fprintf(to, "Flow: %s\n\n", match);
	yajl_gen_map_open(call->gen);
	pmdp_json_kv_text(call->gen, "flow", match);
	pmdp_json_key(call->gen, "passes");
	yajl_gen_array_open(call->gen);
	rc = trace_all(call, &packet.match.value, to);
	yajl_gen_array_close(call->gen);
	fclose(to);
	pmdp_json_kv_text(call->gen, "text", text);
	yajl_gen_map_close(call->gen);
	free(text);
	return rc < 0 ? sw_fail(err, rc, "no memory for a trace") : 0;
}

// Rules of one table, as sw_flow_get() lists them, from number i on.
static uint32_t put_table(const struct sw_cmd_call *call, uint32_t i)
{
	struct sw_flow_table *flows = call->sw->flows;
	uint64_t n_packets = 0, n_bytes = 0;
	uint32_t begin = i, n = sw_flow_count(flows);
	struct sw_flow_info info;
	uint8_t table = 0;
	char text[160];

	for (; i < n; i++) {
		sw_flow_get(flows, i, &info);
		if (i > begin && info.rule->table != table)
			break;
		table = info.rule->table;
		n_packets += info.n_packets;
		n_bytes += info.n_bytes;
	}
	snprintf(text, sizeof(text), "table %u: rules=%u, masks=%u, n_packets=%llu, n_bytes=%llu",
		 table, i - begin, sw_flow_masks(flows, table), (unsigned long long)n_packets,
		 (unsigned long long)n_bytes);
	yajl_gen_map_open(call->gen);
	pmdp_json_kv_int(call->gen, "table", table);
	pmdp_json_kv_u64(call->gen, "rules", i - begin);
	pmdp_json_kv_u64(call->gen, "masks", sw_flow_masks(flows, table));
	pmdp_json_kv_u64(call->gen, "n_packets", n_packets);
	pmdp_json_kv_u64(call->gen, "n_bytes", n_bytes);
	pmdp_json_kv_text(call->gen, "text", text);
	yajl_gen_map_close(call->gen);
	return i;
}

int sw_cmd_dump_tables(const struct sw_cmd_call *call, struct sw_error *err)
{
	uint32_t i = 0, n = sw_flow_count(call->sw->flows);
	uint64_t generation =
		sw_tables_generation(sw_tables_get(sw_flow_table_ref(call->sw->flows)));

	(void)err;
	yajl_gen_map_open(call->gen);
	pmdp_json_kv_u64(call->gen, "generation", generation);
	pmdp_json_kv_u64(call->gen, "rules", n);
	pmdp_json_kv_u64(call->gen, "max_rules", SW_FLOW_MAX_RULES);
	pmdp_json_key(call->gen, "tables");
	yajl_gen_array_open(call->gen);
	while (i < n)
		i = put_table(call, i);
	yajl_gen_array_close(call->gen);
	yajl_gen_map_close(call->gen);
	return 0;
}

static const char *port_name(struct sw_switch *sw, uint16_t ofport)
{
	struct sw_port *port = NULL;

	while ((port = sw_port_next(sw, port)) != NULL) {
		if (port->ofport == ofport)
			return port->conf.name;
	}
	return NULL;
}

static void put_address(const struct sw_cmd_call *call, const struct sw_mac_info *info)
{
	char mac[24];

	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", info->mac[0], info->mac[1],
		 info->mac[2], info->mac[3], info->mac[4], info->mac[5]);
	yajl_gen_map_open(call->gen);
	pmdp_json_kv_int(call->gen, "ofport", info->port);
	pmdp_json_kv_text(call->gen, "port", port_name(call->sw, info->port));
	pmdp_json_kv_int(call->gen, "vlan", info->vid);
	pmdp_json_kv_text(call->gen, "mac", mac);
	pmdp_json_kv_int(call->gen, "age_s", info->age_s);
	yajl_gen_map_close(call->gen);
}

int sw_cmd_fdb_show(const struct sw_cmd_call *call, struct sw_error *err)
{
	uint32_t at = 0, now_s = (uint32_t)(pmdp_mono_now_ns() / UINT64_C(1000000000));
	struct sw_mac_counts counts;
	struct sw_mac_info info;
	yajl_gen gen = call->gen;

	(void)err;
	sw_mac_poll(call->sw->macs, now_s);
	sw_mac_counts(call->sw->macs, &counts);
	yajl_gen_map_open(gen);
	pmdp_json_key(gen, "addresses");
	yajl_gen_array_open(gen);
	while (sw_mac_next(call->sw->macs, &at, now_s, &info))
		put_address(call, &info);
	yajl_gen_array_close(gen);
	pmdp_json_kv_u64(gen, "max_addresses", SW_MAC_MAX);
	pmdp_json_kv_u64(gen, "learned", counts.n_learned);
	pmdp_json_kv_u64(gen, "moved", counts.n_moved);
	pmdp_json_kv_u64(gen, "expired", counts.n_expired);
	pmdp_json_kv_u64(gen, "evicted", counts.n_evicted);
	pmdp_json_kv_u64(gen, "dropped_requests", counts.n_dropped);
	yajl_gen_map_close(gen);
	return 0;
}

// A port by name, or else by its number.
static const struct sw_port *named(struct sw_switch *sw, const char *text)
{
	const struct sw_port *port = sw_port_find(sw, text);
	uint64_t n;

	if (!port && sw_number(text, SW_OFPORT_MAX, &n))
		port = sw_port_by_ofport(sw, (uint16_t)n);
	return port;
}

int sw_cmd_fdb_flush(const struct sw_cmd_call *call, struct sw_error *err)
{
	const struct sw_port *port = call->argc ? named(call->sw, call->argv[0]) : NULL;

	if (call->argc && !port)
		return sw_fail(err, -ENOENT, "%.100s: no such port (pmdpulse show lists them)",
			       call->argv[0]);
	sw_mac_flush(call->sw->macs, port ? port->ofport : 0);
	return 0;
}
