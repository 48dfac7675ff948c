// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ag_agent.h"
#include "ag_log.h"
#include "build_info.h"

#define EXIT_USAGE 2 // wrong usage or a wrong setting: starting again would not help

static const char usage_head[] =
	"Usage: pmdpulse-agent [-c FILE] [--KEY=VALUE]...\n"
	"Watches the threads of a pmdpulse switch, finds out why one stalls, and raises incidents.\n\n"
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
	ag_config_help(stdout);
	fputs(usage_tail, stdout);
}

// "-c FILE", "-cFILE": the last one counts. NULL: none. *out_is_wrong: -c without a file.
static const char *file_option(int argc, char **argv, bool *out_is_wrong)
{
	const char *file = NULL;

	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "-c", 2))
			continue;
		if (argv[i][2])
			file = argv[i] + 2;
		else if (i + 1 < argc)
			file = argv[++i];
		else
			*out_is_wrong = true;
	}
	return file;
}

// One option and, for "--key value", the argument after it. Returns how many were used, or 0.
static int take_option(struct ag_config *config, int argc, char **argv, int i, uint64_t *list_seen)
{
	char error[AG_ERROR_BYTES];
	char joined[AG_PATH_BYTES + 64];
	const char *arg = argv[i];
	int used = 1;

	if (!strncmp(arg, "-c", 2))
		return arg[2] ? 1 : 2;
	if (strncmp(arg, "--", 2) || !arg[2]) {
		ag_log(AG_ERROR, "%s: not an option; --help lists them", arg);
		return 0;
	}
	arg += 2;
	if (!strchr(arg, '=') && ag_config_has_key(arg) && i + 1 < argc) {
		snprintf(joined, sizeof(joined), "%s=%s", arg, argv[i + 1]);
		arg = joined;
		used = 2;
	}
	if (ag_config_arg(config, arg, list_seen, error, sizeof(error))) {
		ag_log(AG_ERROR, "%s", error);
		return 0;
	}
	return used;
}

static bool read_settings(struct ag_config *config, int argc, char **argv)
{
	char error[AG_ERROR_BYTES];
	bool is_wrong = false;
	uint64_t list_seen = 0;
	const char *file = file_option(argc, argv, &is_wrong);

	if (is_wrong) {
		ag_log(AG_ERROR, "-c: a file name is missing");
		return false;
	}
	ag_config_init(config);
	int rc = ag_config_file(config, file ? file : AG_CONFIG_FILE, error, sizeof(error));
	if (rc && (file || rc != -ENOENT)) {
		ag_log(AG_ERROR, "%s", error);
		return false;
	}
	for (int i = 1; i < argc;) {
		int used = take_option(config, argc, argv, i, &list_seen);

		if (!used)
			return false;
		i += used;
	}
	return true;
}

int main(int argc, char **argv)
{
	static struct ag_agent agent;

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
	if (!read_settings(&agent.config, argc, argv)) {
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
