// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Commands about the datapath of the PMDs: implementations and megaflows.
#include <errno.h>
#include <string.h>

#include <rte_cycles.h>

#include "pmdp_clock.h"
#include "pmdp_json.h"
#include "pmdp_names.h"
#include "sw_act_format.h"
#include "sw_cmd_impl.h"
#include "sw_impl.h"
#include "sw_impl_fast.h"
#include "sw_pipe.h"
#include "sw_plan.h"
#include "sw_rule.h"
#include "sw_switch.h"

int sw_cmd_dpif_impl_get(const struct sw_cmd_call *call, struct sw_error *err)
{
	const struct sw_impl *impl;
	yajl_gen gen = call->gen;

	(void)err;
	yajl_gen_map_open(gen);
	pmdp_json_kv_text(gen, "active", call->sw->impl->name);
	pmdp_json_key(gen, "implementations");
	yajl_gen_array_open(gen);
	for (uint32_t i = 0; (impl = sw_impl_at(i)) != NULL; i++) {
		yajl_gen_map_open(gen);
		pmdp_json_kv_text(gen, "name", impl->name);
		pmdp_json_kv_bool(gen, "usable", sw_impl_is_usable(impl));
		pmdp_json_kv_bool(gen, "active", impl == call->sw->impl);
		yajl_gen_map_close(gen);
	}
	yajl_gen_array_close(gen);
	pmdp_json_kv_u64(gen, "differences", sw_impl_n_differences());
	yajl_gen_map_close(gen);
	return 0;
}

int sw_cmd_dpif_impl_set(const struct sw_cmd_call *call, struct sw_error *err)
{
	const struct sw_impl *impl = sw_impl_find(call->argv[0]);
	struct sw_switch *sw = call->sw;

	if (impl == NULL)
		return sw_fail(err, -ENOENT,
			       "%.100s: no such implementation, or this CPU can't run it "
			       "(dpif-impl-get lists them)",
			       call->argv[0]);
	if (impl == sw->impl)
		return 0;
	sw->impl = impl;
	sw_plan_changed(sw);
	return sw->is_starting ? 0 : sw_plan_settle(sw, err);
}

static void megaflow(const struct sw_cmd_call *call, const struct sw_pmd *pmd, uint64_t now_ticks,
		     const struct sw_mega_copy *flow)
{
	double hz = call->sw->tsc_hz != 0 ? (double)call->sw->tsc_hz : 1e9;
	char match[SW_FLOW_TEXT_BYTES], acts[SW_FLOW_TEXT_BYTES],
		line[2 * SW_FLOW_TEXT_BYTES + 256];
	char used[32] = "never";
	yajl_gen gen = call->gen;

	sw_match_format(&flow->key, &flow->mask, match, sizeof(match));
	sw_acts_format(flow->acts, flow->n_acts, flow->drop_reason, flow->key.dl_type, acts,
		       sizeof(acts));
	if (flow->n_packets > 0)
		snprintf(used, sizeof(used), "%.3fs", (double)(now_ticks - flow->used_ticks) / hz);
	snprintf(line, sizeof(line), "pmd=%s, %s, packets:%llu, bytes:%llu, used:%s, actions:%s",
		 pmd->name, match, (unsigned long long)flow->n_packets,
		 (unsigned long long)flow->n_bytes, used, acts);
	yajl_gen_map_open(gen);
	pmdp_json_kv_text(gen, "pmd", pmd->name);
	pmdp_json_kv_u64(gen, "recirc_id", flow->key.recirc_id);
	pmdp_json_kv_text(gen, "match", match);
	pmdp_json_kv_u64(gen, "n_packets", flow->n_packets);
	pmdp_json_kv_u64(gen, "n_bytes", flow->n_bytes);
	pmdp_json_kv_real(gen, "used_s", (double)(now_ticks - flow->used_ticks) / hz);
	pmdp_json_kv_real(gen, "duration_s", (double)(now_ticks - flow->created_ticks) / hz);
	pmdp_json_kv_text(gen, "actions", acts);
	if (flow->n_acts == 0)
		pmdp_json_kv_text(gen, "drop_reason", pmdp_drop_name(flow->drop_reason));
	pmdp_json_kv_text(gen, "text", line);
	yajl_gen_map_close(gen);
}

int sw_cmd_dump_megaflows(const struct sw_cmd_call *call, const struct sw_flow_filter *filter,
			  struct sw_error *err)
{
	struct sw_pmd *pmd = NULL;
	struct sw_mega_copy flow;
	int rc = 0;

	if (!filter->is_any_table || filter->cookie_mask != 0 || filter->out_port != 0)
		return sw_fail(err, -EINVAL,
			       "-m: table, cookie and out_port are of rules, megaflows have none "
			       "(leave them out, or -m)");
	yajl_gen_map_open(call->gen);
	pmdp_json_key(call->gen, "megaflows");
	yajl_gen_array_open(call->gen);
	while (rc == 0 && (pmd = sw_pmd_next(call->sw, pmd)) != NULL) {
		uint64_t now_ticks = call->sw->tsc_hz != 0 ? rte_rdtsc() : pmdp_mono_now_ns();

		for (uint32_t i = 0; i < sw_pipe_n_places(pmd->pipe) && rc == 0; i++) {
			if (!sw_pipe_read(pmd->pipe, i, now_ticks, &flow) ||
			    !sw_flow_filter_meets(filter, &flow.key, &flow.mask))
				continue;
			megaflow(call, pmd, now_ticks, &flow);
			rc = sw_cmd_check_length(call, err);
		}
	}
	yajl_gen_array_close(call->gen);
	yajl_gen_map_close(call->gen);
	return rc;
}
