// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ag_agent.h"
#include "ag_log.h"
#include "build_info.h"

#define EXIT_USAGE 2 // wrong usage or a wrong setting: starting again would not help

static const char usage_head[] =
	"Usage: pmdpulse-agent [-c FILE] [--KEY=VALUE]...\n"
	"Watches the threads of a pmdpulse switch, finds out why one stalls, and raises\n"
	"incidents.\n\n"
	"  -c FILE                        settings file (default: " AG_CONFIG_FILE
	", if it exists)\n";
static const char usage_tail[] =
	"  --help, --version\n\n"
	"Every setting may stand in the file as KEY = VALUE; the command line wins.\n"
	"SIGHUP opens the outputs again; SIGTERM stops.\n";

static void print_version(void)
{
	printf("pmdpulse-agent %s (segment ABI %d)\ncompiler: %s\nflags: %s\n", PMDP_VERSION,
	       PMDP_ABI_VERSION, PMDP_BUILD_CC, PMDP_BUILD_FLAGS);
}

static void print_help(void)
{
	fputs(usage_head, stdout);
	pmdp_settings_help(&ag_settings, stdout);
	fputs(usage_tail, stdout);
}

int main(int argc, char **argv)
{
	static struct ag_agent agent;
	char error[PMDP_SETTINGS_ERROR_BYTES];

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			print_help();
			return 0;
		}
		if (!strcmp(argv[i], "--version")) {
			print_version();
			return 0;
		}
	}
	ag_log_init(false);
	ag_config_init(&agent.config);
	if (pmdp_settings_main(&ag_settings, &agent.config, argc, argv, error, sizeof(error))) {
		ag_log(AG_ERROR, "%s", error);
		ag_log_fini(100);
		return EXIT_USAGE;
	}
	ag_log_init(agent.config.is_debug);
	int rc = ag_agent_start(&agent);
	if (!rc) {
		rc = ag_loop_run(&agent.loop);
		if (rc)
			ag_log(AG_ERROR, "event loop: %s", strerror(-rc));
		ag_agent_stop(&agent);
	}
	ag_log_fini(100);
	return rc || agent.is_failed ? EXIT_FAILURE : 0;
}
