// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Flow commands. Rules of a file arrive as one argument a line.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pmdp_clock.h"
#include "pmdp_json.h"
#include "sw_cmd_impl.h"
#include "sw_flow.h"
#include "sw_switch.h"

static int resolve(void *ctx, const char *name)
{
	const struct sw_port *port = sw_port_find(ctx, name);

	return port && port->state == SW_PORT_ACTIVE ? port->ofport : -ENOENT;
}

struct sw_rule_parser sw_cmd_rule_parser(const struct sw_cmd_call *call)
{
	return (struct sw_rule_parser){.resolve = resolve, .resolve_ctx = call->sw};
}

int sw_cmd_add_flow(const struct sw_cmd_call *call, struct sw_error *err)
{
	const struct sw_rule_parser with = sw_cmd_rule_parser(call);
	struct sw_rule rule;
	int rc = sw_rule_parse(&with, call->argv[0], &rule, err);

	if (rc < 0)
		return rc;
	rc = sw_flow_add(call->sw->flows, &rule, 1, err);
	sw_rule_free(&rule);
	return rc;
}

typedef int change_fn(struct sw_flow_table *table, const struct sw_rule *rules, uint32_t n_rules,
		      struct sw_error *err);

static int change(const struct sw_cmd_call *call, change_fn *fn, struct sw_error *err)
{
	const struct sw_rule_parser with = sw_cmd_rule_parser(call);
	struct sw_rule *rules;
	uint32_t n;
	int rc = sw_rules_parse(&with, call->argv, (uint32_t)call->argc, &rules, &n, err);

	if (rc < 0)
		return rc;
	rc = fn(call->sw->flows, rules, n, err);
	sw_rules_free(rules, n);
	return rc;
}

int sw_cmd_add_flows(const struct sw_cmd_call *call, struct sw_error *err)
{
	return change(call, sw_flow_add, err);
}

int sw_cmd_replace_flows(const struct sw_cmd_call *call, struct sw_error *err)
{
	return change(call, sw_flow_replace, err);
}

// Arguments "[OPTION] [MATCH]", in either order. -EINVAL.
static int option_and_match(const struct sw_cmd_call *call, const char *option, bool *out_is_given,
			    const char **out_match, struct sw_error *err)
{
	*out_is_given = false;
	*out_match = NULL;
	for (int i = 0; i < call->argc; i++) {
		if (strcmp(call->argv[i], option) == 0)
			*out_is_given = true;
		else if (!*out_match)
			*out_match = call->argv[i];
		else
			return sw_fail(err, -EINVAL, "%.100s: one match, and %s, is all it takes",
				       call->argv[i], option);
	}
	return 0;
}

int sw_cmd_del_flows(const struct sw_cmd_call *call, struct sw_error *err)
{
	const struct sw_rule_parser with = sw_cmd_rule_parser(call);
	struct sw_flow_filter filter;
	const char *match;
	bool is_strict;
	int rc = option_and_match(call, "--strict", &is_strict, &match, err);

	if (rc == 0)
		rc = sw_flow_filter_parse(&with, match, is_strict, &filter, err);
	if (rc < 0)
		return rc;
	rc = sw_flow_delete(call->sw->flows, &filter, err);
	return rc < 0 ? rc : 0;
}

int sw_cmd_mod_flows(const struct sw_cmd_call *call, struct sw_error *err)
{
	const struct sw_rule_parser with = sw_cmd_rule_parser(call);
	struct sw_flow_mod mod;
	const char *rule;
	bool is_strict;
	int rc = option_and_match(call, "--strict", &is_strict, &rule, err);

	if (rc == 0)
		rc = sw_flow_mod_parse(&with, rule ? rule : "", is_strict, &mod, err);
	if (rc < 0)
		return rc;
	rc = sw_flow_modify(call->sw->flows, &mod, err);
	sw_flow_mod_free(&mod);
	return rc < 0 ? rc : 0;
}

static void flow(yajl_gen gen, const struct sw_flow_info *info, uint64_t now_ns)
{
	uint64_t age_ns = now_ns > info->created_ns ? now_ns - info->created_ns : 0;
	char match[1024], actions[SW_FLOW_TEXT_BYTES], cookie[32];
	char text[SW_FLOW_TEXT_BYTES + 1280], priority[32] = "";
	const struct sw_rule *rule = info->rule;

	sw_rule_format_match(rule, match, sizeof(match));
	sw_rule_format_actions(rule, actions, sizeof(actions));
	snprintf(cookie, sizeof(cookie), "0x%llx", (unsigned long long)rule->cookie);
	if (rule->priority != SW_FLOW_DEFAULT_PRIORITY)
		snprintf(priority, sizeof(priority), "priority=%u%s", rule->priority,
			 match[0] ? "," : "");
	snprintf(text, sizeof(text),
		 "cookie=%s, duration=%.3fs, table=%u, n_packets=%llu, n_bytes=%llu, "
		 "%s%s%sactions=%s",
		 cookie, (double)age_ns / 1e9, rule->table, (unsigned long long)info->n_packets,
		 (unsigned long long)info->n_bytes, priority, match,
		 match[0] || priority[0] ? " " : "", actions);
	yajl_gen_map_open(gen);
	pmdp_json_kv_int(gen, "table", rule->table);
	pmdp_json_kv_int(gen, "priority", rule->priority);
	pmdp_json_kv_text(gen, "cookie", cookie);
	pmdp_json_kv_text(gen, "match", match);
	pmdp_json_kv_text(gen, "actions", actions);
	pmdp_json_kv_u64(gen, "n_packets", info->n_packets);
	pmdp_json_kv_u64(gen, "n_bytes", info->n_bytes);
	pmdp_json_kv_seconds(gen, "duration_s", age_ns);
	pmdp_json_kv_text(gen, "text", text);
	yajl_gen_map_close(gen);
}

int sw_cmd_dump_flows(const struct sw_cmd_call *call, struct sw_error *err)
{
	const struct sw_rule_parser with = sw_cmd_rule_parser(call);
	uint32_t n = sw_flow_count(call->sw->flows);
	struct sw_flow_filter filter;
	uint64_t now_ns = pmdp_mono_now_ns();
	bool is_of_megaflows;
	const char *match;
	int rc = option_and_match(call, "-m", &is_of_megaflows, &match, err);

	if (rc == 0)
		rc = sw_flow_filter_parse(&with, match, false, &filter, err);
	if (rc < 0)
		return rc;
	if (is_of_megaflows)
		return sw_cmd_dump_megaflows(call, &filter, err);
	yajl_gen_map_open(call->gen);
	pmdp_json_key(call->gen, "flows");
	yajl_gen_array_open(call->gen);
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		struct sw_flow_info info;

		sw_flow_get(call->sw->flows, i, &info);
		if (!sw_flow_filter_matches(&filter, info.rule))
			continue;
		flow(call->gen, &info, now_ns);
		rc = sw_cmd_check_length(call, err);
	}
	yajl_gen_array_close(call->gen);
	yajl_gen_map_close(call->gen);
	return rc;
}
