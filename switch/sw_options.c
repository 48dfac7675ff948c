// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "build_info.h"
#include "pmdpulse.h"

static const char usage[] =
	"usage: pmdpulse-switch [EAL options] -- [-c FILE] [--instance NAME] [--rundir DIR]\n"
	"\n"
	"  -c, --config FILE    carry out the commands of FILE, one a line, before serving\n"
	"  -i, --instance NAME  name of segment and control socket (default)\n"
	"  -r, --rundir DIR     where they are: else $PMDPULSE_RUNDIR, else (for root)\n"
	"                       /run/pmdpulse, else $XDG_RUNTIME_DIR/pmdpulse, else\n"
	"                       /dev/shm/pmdpulse-UID\n"
	"  -h, --help           this; for EAL's options see DPDK's documentation\n"
	"  -V, --version        version and flags of the build\n";

static const struct option long_options[] = {
	{"config", required_argument, NULL, 'c'}, {"instance", required_argument, NULL, 'i'},
	{"rundir", required_argument, NULL, 'r'}, {"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},      {NULL, 0, NULL, 0},
};

static void print_version(void)
{
	printf("pmdpulse-switch %s\n%s\n%s\n", PMDP_VERSION, PMDP_BUILD_CC, PMDP_BUILD_FLAGS);
}

// help and version are ours on either side of "--".
static int look_before_dashes(int argc, char **argv, int *out_eal_argc)
{
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			fputs(usage, stdout);
			return SW_OPTIONS_DONE;
		}
		if (strcmp(argv[i], "--version") == 0) {
			print_version();
			return SW_OPTIONS_DONE;
		}
	}
	*out_eal_argc = i;
	return SW_OPTIONS_RUN;
}

static int parse_ours(int argc, char **argv, struct sw_options *options, const char **out_rundir,
		      struct sw_error *err)
{
	int c;

	optind = 1;
	while ((c = getopt_long(argc, argv, "+c:i:r:hV", long_options, NULL)) != -1) {
		switch (c) {
		case 'c':
			options->file = optarg;
			break;
		case 'i':
			if (pmdp_instance_check(optarg) != 0)
				return sw_fail(err, -EINVAL,
					       "--instance '%s': 1 to 63 of A-Z a-z 0-9 _ . -, not "
					       "beginning with '.' or '-', not ending in '.agent'",
					       optarg);
			snprintf(options->instance, sizeof(options->instance), "%s", optarg);
			break;
		case 'r':
			*out_rundir = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return SW_OPTIONS_DONE;
		case 'V':
			print_version();
			return SW_OPTIONS_DONE;
		default:
			return sw_fail(err, -EINVAL, "wrong usage; see --help");
		}
	}
	if (optind < argc)
		return sw_fail(err, -EINVAL, "'%s' is no option; see --help", argv[optind]);
	return SW_OPTIONS_RUN;
}

int sw_options_parse(int argc, char **argv, struct sw_options *out_options, int *out_eal_argc,
		     struct sw_error *err)
{
	struct sw_options options = {.instance = "default"};
	const char *rundir = NULL;
	int rc = look_before_dashes(argc, argv, out_eal_argc);

	if (rc == SW_OPTIONS_RUN && *out_eal_argc < argc)
		rc = parse_ours(argc - *out_eal_argc, argv + *out_eal_argc, &options, &rundir, err);
	if (rc != SW_OPTIONS_RUN)
		return rc;
	rc = pmdp_rundir(rundir, options.rundir, sizeof(options.rundir));
	if (rc != 0)
		return sw_fail(err, rc, "the run directory's name is too long");
	*out_options = options;
	return SW_OPTIONS_RUN;
}
