// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_cmd.h"

#include <errno.h>
#include <string.h>

#include <rte_version.h>

#include "build_info.h"
#include "pmdp_abi.h"
#include "pmdp_json.h"
#include "sw_cmd_impl.h"
#include "sw_ctl.h"
#include "sw_switch.h"

#define SW_CMD_REST_BYTES 65536 // of a reply, behind its last item

enum kind {
	CHANGES, // something; its reply is null
	SHOWS,   // its reply is a value
};

struct command {
	const char *name;
	const char *usage; // of its arguments
	enum kind kind;
	int min_args, max_args; // -1: no upper bound
	int (*run)(const struct sw_cmd_call *call, struct sw_error *err);
};

static int version(const struct sw_cmd_call *call, struct sw_error *err)
{
	yajl_gen gen = call->gen;

	(void)err;
	yajl_gen_map_open(gen);
	pmdp_json_kv_text(gen, "version", PMDP_VERSION);
	pmdp_json_kv_text(gen, "dpdk", rte_version());
	pmdp_json_kv_int(gen, "abi_version", PMDP_ABI_VERSION);
	pmdp_json_kv_text(gen, "build", PMDP_BUILD_CC " " PMDP_BUILD_FLAGS);
	yajl_gen_map_close(gen);
	return 0;
}

static int list_commands(const struct sw_cmd_call *call, struct sw_error *err);

#ifdef PMDP_TEST_HOOKS
static int test_hook(const struct sw_cmd_call *call, struct sw_error *err)
{
	return sw_test_hook(call->sw, call->argc, call->argv, err);
}
#endif

static const struct command commands[] = {
	{"version", "", SHOWS, 0, 0, version},
	{"list-commands", "", SHOWS, 0, 0, list_commands},
	{"show", "", SHOWS, 0, 0, sw_cmd_show},
	{"dump-ports", "", SHOWS, 0, 0, sw_cmd_dump_ports},
	{"add-port", "NAME DEVARGS [KEY=VALUE...]", CHANGES, 2, -1, sw_cmd_add_port},
	{"del-port", "NAME", CHANGES, 1, 1, sw_cmd_del_port},
	{"add-flow", "FLOW", CHANGES, 1, 1, sw_cmd_add_flow},
	{"add-flows", "FILE", CHANGES, 0, -1, sw_cmd_add_flows},
	{"replace-flows", "FILE", CHANGES, 0, -1, sw_cmd_replace_flows},
	{"mod-flows", "[--strict] FLOW", CHANGES, 1, 2, sw_cmd_mod_flows},
	{"del-flows", "[--strict] [MATCH]", CHANGES, 0, 2, sw_cmd_del_flows},
	{"dump-flows", "[-m] [MATCH]", SHOWS, 0, 2, sw_cmd_dump_flows},
	{"dump-tables", "", SHOWS, 0, 0, sw_cmd_dump_tables},
	{"trace", "FLOW", SHOWS, 1, 1, sw_cmd_trace},
	{"fdb-show", "", SHOWS, 0, 0, sw_cmd_fdb_show},
	{"fdb-flush", "[PORT]", CHANGES, 0, 1, sw_cmd_fdb_flush},
	{"set", "KEY=VALUE...", CHANGES, 1, -1, sw_cmd_set},
	{"get", "[KEY]", SHOWS, 0, 1, sw_cmd_get},
	{"pmd-stats-show", "[-pmd CORE]", SHOWS, 0, 2, sw_cmd_pmd_stats_show},
	{"pmd-stats-clear", "[-pmd CORE]", CHANGES, 0, 2, sw_cmd_pmd_stats_clear},
	{"dpif-impl-get", "", SHOWS, 0, 0, sw_cmd_dpif_impl_get},
	{"dpif-impl-set", "NAME", CHANGES, 1, 1, sw_cmd_dpif_impl_set},
	{"pmd-rxq-show", "[-pmd CORE] [-secs SECONDS]", SHOWS, 0, 4, sw_cmd_pmd_rxq_show},
	{"pmd-perf-show", "[-nh] [-it N] [-ms N] [-pmd CORE]", SHOWS, 0, 7, sw_cmd_pmd_perf_show},
	{"pmd-perf-log", "[-pmd CORE]", SHOWS, 0, 2, sw_cmd_pmd_perf_log},
	{"pmd-perf-log-set", "on|off [-b N] [-a N] [-us N] [-e|-ne]", CHANGES, 1, 8,
	 sw_cmd_pmd_perf_log_set},
#ifdef PMDP_TEST_HOOKS
	{"test-hook", "PMD ACTION [MS]", CHANGES, 2, 3, test_hook},
#endif
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int list_commands(const struct sw_cmd_call *call, struct sw_error *err)
{
	(void)err;
	yajl_gen_array_open(call->gen);
	for (size_t i = 0; i < N_COMMANDS; i++) {
		char line[128];

		snprintf(line, sizeof(line), "%s%s%s", commands[i].name,
			 commands[i].usage[0] ? " " : "", commands[i].usage);
		pmdp_json_text(call->gen, line);
	}
	yajl_gen_array_close(call->gen);
	return 0;
}

int sw_cmd_check_length(const struct sw_cmd_call *call, struct sw_error *err)
{
	const unsigned char *text;
	size_t len;

	if (yajl_gen_get_buf(call->gen, &text, &len) == yajl_gen_status_ok &&
	    len <= SW_CTL_MAX_REPLY_BYTES - SW_CMD_REST_BYTES)
		return 0;
	return sw_fail(err, -EMSGSIZE,
		       "the reply would be longer than %u bytes: ask for less (give a match)",
		       SW_CTL_MAX_REPLY_BYTES);
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

int sw_cmd_run(struct sw_switch *sw, const char *name, int argc, const char *const *argv,
	       yajl_gen gen, struct sw_error *err)
{
	const struct sw_cmd_call call = {.sw = sw, .argc = argc, .argv = argv, .gen = gen};
	const struct command *command = find(name);
	int rc;

	if (!command)
		return sw_fail(err, -ENOENT, "%.100s: no such command (list-commands lists them)",
			       name);
	if (argc < command->min_args || (command->max_args >= 0 && argc > command->max_args))
		return sw_fail(err, -EINVAL, "usage: %s %s", command->name, command->usage);
	if (command->kind == SHOWS && !gen)
		return sw_fail(err, -EINVAL, "%s: only shows something (it has no place here)",
			       name);
	err->text[0] = 0;
	rc = command->run(&call, err);
	if (rc < 0 && err->text[0] == 0)
		return sw_fail(err, rc, "%s: %s", name, strerror(-rc));
	if (rc == 0 && command->kind == CHANGES && gen)
		yajl_gen_null(gen);
	return rc < 0 ? rc : 0;
}
