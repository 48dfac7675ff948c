// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The table of commands. Those with cmd_plain are the switch's own and pass through as they are.
#include <string.h>

#include "cli.h"

const struct cli_command cli_commands[] = {
	{"status", "", "switch, agent and collectd relay: up or not, and the states of all threads",
	 0, 0, cmd_status, NULL},
	{"pmd-health-show", "",
	 "a row per thread: state, beat age, last stall with cause and culprit", 0, 0, cmd_health,
	 NULL},
	{"events", "[-f|--follow] [--since TIME]",
	 "incidents, raise and clear; TIME is RFC 3339, seconds since 1970, or 90s, 10m, 2h, 1d "
	 "ago",
	 0, -1, cmd_events, NULL},
	{"top", "[-d SECONDS] [-n TIMES]", "live view of all threads", 0, -1, cmd_top, NULL},
	{"pmd-stats-show", "[-pmd CORE]",
	 "packets, cache hits and cycles per PMD since the last clear", 0, 2, cmd_ask,
	 cli_print_stats},
	{"pmd-stats-clear", "[-pmd CORE]", "start those counters anew", 0, 2, cmd_plain, NULL},
	{"pmd-perf-show", "[-nh] [-it N] [-ms N] [-pmd CORE]",
	 "iterations of each PMD with histograms; -nh without, -it and -ms the newest N iterations "
	 "and milliseconds (setting pmd-perf-metrics)",
	 0, 7, cmd_ask, cli_print_perf},
	{"pmd-perf-log", "[-pmd CORE]", "suspicious iterations with their neighbours", 0, 2,
	 cmd_ask, cli_print_perf_log},
	{"pmd-perf-log-set", "on|off [-b N] [-a N] [-us N] [-e|-ne]",
	 "what is suspicious (longer than -us) and how many neighbours before and after are kept",
	 1, 8, cmd_plain, NULL},
	{"pmd-rxq-show", "[-pmd CORE] [-secs SECONDS]",
	 "which PMD polls which receive queue, and how much of its time that took of late", 0, 4,
	 cmd_ask, cli_print_rxqs},
	{"show", "", "ports with their devices and link states", 0, 0, cmd_ask, cli_print_ports},
	{"dump-ports", "", "counters and drops by reason of every port", 0, 0, cmd_ask,
	 cli_print_port_counters},
	{"add-port", "NAME DEVARGS [KEY=VALUE...]", "add a port on any DPDK device", 2, -1,
	 cmd_plain, NULL},
	{"del-port", "NAME", "remove a port", 1, 1, cmd_plain, NULL},
	{"add-flow", "FLOW", "add a flow rule (ovs-ofctl syntax)", 1, 1, cmd_plain, NULL},
	{"add-flows", "FILE", "add the rules of a file, one per line; - reads standard input", 1, 1,
	 cmd_flows_file, NULL},
	{"replace-flows", "FILE", "replace all rules by those of a file, all or nothing", 1, 1,
	 cmd_flows_file, NULL},
	{"mod-flows", "[--strict] FLOW",
	 "give the rules that FLOW covers its actions; --strict: the one with this very match", 1,
	 2, cmd_plain, NULL},
	{"del-flows", "[--strict] [MATCH]",
	 "delete the rules that MATCH covers, or all; --strict: the one with this very match", 0, 2,
	 cmd_plain, NULL},
	{"dump-flows", "[-m] [MATCH]",
	 "flow rules with their counters; -m: megaflows of the PMDs that packets within MATCH may "
	 "use",
	 0, 2, cmd_ask, cli_print_flows},
	{"dump-tables", "", "rules, masks and counters of each table", 0, 0, cmd_ask,
	 cli_print_tables},
	{"trace", "FLOW", "what would become of a packet: rules, megaflow and actions", 1, 1,
	 cmd_ask, cli_print_trace},
	{"fdb-show", "", "MAC addresses that NORMAL has learned", 0, 0, cmd_ask,
	 cli_print_addresses},
	{"fdb-flush", "[PORT]", "forget them, all or those of a port", 0, 1, cmd_plain, NULL},
	{"dpif-impl-get", "", "implementations of extraction and lookup", 0, 0, cmd_ask,
	 cli_print_impls},
	{"dpif-impl-set", "NAME", "use another one", 1, 1, cmd_plain, NULL},
	{"set", "KEY=VALUE...", "change settings while running, all or nothing", 1, -1, cmd_plain,
	 NULL},
	{"get", "[KEY]", "settings with value, default and meaning", 0, 1, cmd_get, NULL},
	{"version", "", "versions of this command and of the running switch", 0, 0, cmd_version,
	 NULL},
	{"list-commands", "", "commands that the running switch knows", 0, 0, cmd_plain, NULL},
	{"help", "", "this list", 0, 0, cmd_help, NULL},
	{NULL, NULL, NULL, 0, 0, NULL, NULL},
};

// test-hook exists in test builds of the switch only; it is passed on but not listed.
static const struct cli_command hidden = {"test-hook", "HOOK [ARG...]", "", 1, -1, cmd_plain, NULL};

const struct cli_command *cli_command_find(const char *name)
{
	for (const struct cli_command *c = cli_commands; c->name != NULL; c++) {
		if (strcmp(c->name, name) == 0)
			return c;
	}
	return strcmp(name, hidden.name) == 0 ? &hidden : NULL;
}
