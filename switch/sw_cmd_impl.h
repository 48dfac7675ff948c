// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The functions behind the table of commands. They return 0 or a negative errno with err filled;
 * the table has checked argc and whether there is a gen to write to.
 */
#pragma once

#include "sw_cmd.h"
#include "sw_rule.h"

struct sw_pmd;

int sw_cmd_show(const struct sw_cmd_call *call, struct sw_error *err);
int sw_cmd_dump_ports(const struct sw_cmd_call *call, struct sw_error *err);
int sw_cmd_add_port(const struct sw_cmd_call *call, struct sw_error *err);
int sw_cmd_del_port(const struct sw_cmd_call *call, struct sw_error *err);

int sw_cmd_add_flow(const struct sw_cmd_call *call, struct sw_error *err);
int sw_cmd_add_flows(const struct sw_cmd_call *call, struct sw_error *err);
int sw_cmd_replace_flows(const struct sw_cmd_call *call, struct sw_error *err);
int sw_cmd_mod_flows(const struct sw_cmd_call *call, struct sw_error *err);
int sw_cmd_del_flows(const struct sw_cmd_call *call, struct sw_error *err);
int sw_cmd_dump_flows(const struct sw_cmd_call *call, struct sw_error *err);
// Reads rules that name the ports of this switch.
struct sw_rule_parser sw_cmd_rule_parser(const struct sw_cmd_call *call);

int sw_cmd_dump_tables(const struct sw_cmd_call *call, struct sw_error *err);
int sw_cmd_trace(const struct sw_cmd_call *call, struct sw_error *err);
int sw_cmd_fdb_show(const struct sw_cmd_call *call, struct sw_error *err);
int sw_cmd_fdb_flush(const struct sw_cmd_call *call, struct sw_error *err);

int sw_cmd_set(const struct sw_cmd_call *call, struct sw_error *err);
int sw_cmd_get(const struct sw_cmd_call *call, struct sw_error *err);

int sw_cmd_dpif_impl_get(const struct sw_cmd_call *call, struct sw_error *err);
int sw_cmd_dpif_impl_set(const struct sw_cmd_call *call, struct sw_error *err);
// dump-flows -m
int sw_cmd_dump_megaflows(const struct sw_cmd_call *call, const struct sw_flow_filter *filter,
			  struct sw_error *err);

// -EMSGSIZE: the reply has become longer than one may be. Asked for at each item of a long list.
int sw_cmd_check_length(const struct sw_cmd_call *call, struct sw_error *err);

// The number behind option *i; *i is then the number's place. -EINVAL.
int sw_cmd_number(const struct sw_cmd_call *call, int *i, uint32_t max, uint32_t *out,
		  struct sw_error *err);
// The same of "-pmd CORE", the one option *i may be. -EINVAL, -ENOENT: no PMD is there.
int sw_cmd_core(const struct sw_cmd_call *call, int *i, int *out_core, struct sw_error *err);

int sw_cmd_pmd_stats_show(const struct sw_cmd_call *call, struct sw_error *err);
int sw_cmd_pmd_stats_clear(const struct sw_cmd_call *call, struct sw_error *err);
int sw_cmd_pmd_rxq_show(const struct sw_cmd_call *call, struct sw_error *err);
int sw_cmd_pmd_perf_show(const struct sw_cmd_call *call, struct sw_error *err);
int sw_cmd_pmd_perf_log(const struct sw_cmd_call *call, struct sw_error *err);
int sw_cmd_pmd_perf_log_set(const struct sw_cmd_call *call, struct sw_error *err);

// Puts keys of a PMD into the open map; ctx is the caller's.
typedef void sw_cmd_pmd_fn(const struct sw_cmd_call *call, const struct sw_pmd *pmd,
			   const void *ctx);
// "pmds": a map for each PMD, or for the one on this core (-1: all). Says who it is, put() the
// rest.
void sw_cmd_pmds(const struct sw_cmd_call *call, int core, sw_cmd_pmd_fn *put, const void *ctx);
// What it has counted, without ctx.
sw_cmd_pmd_fn sw_cmd_pmd_counters;
