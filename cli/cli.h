// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The operator's command: what its files share.
 *
 * Health, events and status come from the segments, so they work with everything dead; ports,
 * flows, settings and statistics are asked of the switch over its control socket. A command returns
 * the exit status: CLI_OK, CLI_FAILED (reason on stderr), CLI_USAGE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <yajl/yajl_gen.h>
#include <yajl/yajl_tree.h>

#include "pmdpulse.h"

#define CLI_OK 0
#define CLI_FAILED 1
#define CLI_USAGE 2

struct cli {
	char instance[PMDP_INSTANCE_BYTES];
	char rundir[256];
	bool is_json;
	bool is_colour;
	unsigned timeout_s;
	uid_t publisher_uid; // believed as owner of segments beside root, oneself and the services
	bool has_publisher_uid;
};

struct cli_command {
	const char *name;
	const char *args; // synopsis of the arguments
	const char *help;
	int min_args;
	int max_args; // -1: any number
	int (*run)(struct cli *cli, int argc, char **argv);
	// With cmd_ask: shows the data of the switch's answer to an operator.
	void (*print)(yajl_val data);
};

extern const struct cli_command cli_commands[];
const struct cli_command *cli_command_find(const char *name);

// "pmdpulse: MESSAGE" on stderr; returns CLI_FAILED, or CLI_USAGE.
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Decimal number in [min, max]; false and a message that names the object otherwise.
bool cli_number(const char *what, const char *text, long min, long max, long *out);

/*
 * One request to SUFFIX (".ctl": switch). *out_reply, freed by yajl_tree_free, is the whole reply;
 * data is inside. A refusal prints the reply's error. Returns CLI_OK or CLI_FAILED.
 */
int cli_call(struct cli *cli, const char *suffix, const char *command, int argc, char *const *argv,
	     yajl_val *out_reply);
// As cli_call, silent: for facts that may be absent. False when nobody answers.
bool cli_ask(struct cli *cli, const char *suffix, const char *command, yajl_val *out_reply);

// The settings file of the agent, where it stands after an installation.
#define CLI_AGENT_CONFIG "/etc/pmdpulse/agent.conf"

// publisher-user of the agent's settings; false when there is none, or the file can't be read.
bool cli_user_of_agent(const char *path, uid_t *out_uid);
// How to open a segment of the instance; suffix as in pmdp_reader_opts.
struct pmdp_reader_opts cli_reader_opts(const struct cli *cli, const char *suffix);

// Look-ups in a parsed document; the fallback when the key is absent or of another type.
yajl_val cli_get(yajl_val map, const char *key);
const char *cli_get_text(yajl_val map, const char *key, const char *fallback);
double cli_get_number(yajl_val map, const char *key);
uint64_t cli_get_u64(yajl_val map, const char *key);
size_t cli_len(yajl_val list); // 0 when it is none
yajl_val cli_item(yajl_val list, size_t i);

// "pmd thread numa_id 0 core_id 1:", as ovs-appctl heads what belongs to a PMD.
void cli_print_pmd(yajl_val pmd);

// A JSON document: begin, fill through the generator, end (prints it with a newline).
yajl_gen cli_json_begin(void);
void cli_json_end(yajl_gen gen);
void cli_json_value(yajl_gen gen, yajl_val value); // copy a parsed value
void cli_json_print(yajl_val value);

// Table: left aligned, upper-case headers, two blanks between columns.
struct cli_table;
struct cli_table *cli_table_new(const char *const *headers, size_t n_columns);
void cli_table_row(struct cli_table *table, const char *const *cells);
// One cell of the row in a terminal colour (an escape sequence, or "").
void cli_table_row_coloured(struct cli_table *table, const char *const *cells, size_t column,
			    const char *colour);
void cli_table_print(struct cli_table *table, FILE *out); // and free
char *cli_duration(uint64_t ns, char *out, size_t size);  // "1.2 ms", "301 ms", "2 h 03 min"
char *cli_count(double n, char *out, size_t size);        // "12.3 M"

int cmd_status(struct cli *cli, int argc, char **argv);
int cmd_health(struct cli *cli, int argc, char **argv);
int cmd_events(struct cli *cli, int argc, char **argv);
int cmd_top(struct cli *cli, int argc, char **argv);
int cmd_get(struct cli *cli, int argc, char **argv);
int cmd_flows_file(struct cli *cli, int argc, char **argv);
int cmd_version(struct cli *cli, int argc, char **argv);
int cmd_plain(struct cli *cli, int argc, char **argv);
// Asks the switch; what it answers is for the command's print(), or with -j as it is.
int cmd_ask(struct cli *cli, int argc, char **argv);

void cli_print_ports(yajl_val data);
void cli_print_port_counters(yajl_val data);
void cli_print_stats(yajl_val data);
void cli_print_rxqs(yajl_val data);
void cli_print_perf(yajl_val data);
void cli_print_perf_log(yajl_val data);
void cli_print_flows(yajl_val data);
void cli_print_tables(yajl_val data);
void cli_print_trace(yajl_val data);
void cli_print_addresses(yajl_val data);
void cli_print_impls(yajl_val data);
int cmd_help(struct cli *cli, int argc, char **argv);
