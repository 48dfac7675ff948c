// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "build_info.h"
#include "vs_log.h"
#include "vs_poster.h"

#define EXIT_USAGE 2 // wrong usage or a wrong setting: starting again would not help

static const char usage_head[] =
	"Usage: pmdpulse-ves [-c FILE] [--KEY=VALUE]...\n"
	"Posts the incidents of pmdpulse agents as VES 7.2.1 events to a collector.\n\n"
	"  -c FILE                        settings file (default: " VS_CONFIG_FILE
	", if it exists)\n";
static const char usage_tail[] =
	"  --help, --version\n\n"
	"Every setting may stand in the file as KEY = VALUE; the command line wins.\n"
	"SIGTERM stops, after what waits had two seconds to go.\n";

static void print_version(void)
{
	printf("pmdpulse-ves %s (segment ABI %d)\ncompiler: %s\nflags: %s\n%s\n", PMDP_VERSION,
	       PMDP_ABI_VERSION, PMDP_BUILD_CC, PMDP_BUILD_FLAGS, curl_version());
}

static void print_help(void)
{
	fputs(usage_head, stdout);
	pmdp_settings_help(&vs_settings, stdout);
	fputs(usage_tail, stdout);
}

int main(int argc, char **argv)
{
	static struct vs_poster poster;
	char error[PMDP_SETTINGS_ERROR_BYTES];
	struct timespec now;

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
	vs_log_init(false);
	vs_config_init(&poster.config);
	if (pmdp_settings_main(&vs_settings, &poster.config, argc, argv, error, sizeof(error)) ||
	    vs_config_check(&poster.config, error, sizeof(error))) {
		vs_log(VS_ERROR, "%s", error);
		return EXIT_USAGE;
	}
	vs_log_init(poster.config.is_debug);
	clock_gettime(CLOCK_REALTIME, &now);
	srandom((unsigned int)now.tv_nsec ^ (unsigned int)getpid()); // for the jitter alone
	if (vs_poster_start(&poster))
		return EXIT_FAILURE;
	vs_poster_run(&poster);
	vs_poster_stop(&poster);
	return 0;
}
