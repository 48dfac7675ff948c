// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// pmdpulse: options, choice of the instance, dispatch.
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build_info.h"
#include "cli.h"
#include "pmdp_settings.h"

static void print_usage(FILE *out)
{
	fprintf(out,
		"usage: pmdpulse [-i NAME] [-j] [-T SECONDS] [--rundir DIR]\n"
		"                [--publisher-user USER] COMMAND [ARG...]\n"
		"\n"
		"  -i, --instance NAME   which switch; may be left out when there is one\n"
		"  -j, --json            one JSON document, or one per line for streams\n"
		"  -T, --timeout SECONDS how long to wait for the switch (5)\n"
		"      --rundir DIR      where the segments are (/run/pmdpulse)\n"
		"      --publisher-user USER  accept segments of this user beside root's, one's\n"
		"                        own and the services' (as the agent does)\n"
		"  -h, --help            this text\n"
		"  -V, --version         version and build flags\n"
		"\ncommands:\n");
	for (const struct cli_command *c = cli_commands; c->name != NULL; c++)
		fprintf(out, "  %s%s%s\n        %s\n", c->name, c->args[0] ? " " : "", c->args,
			c->help);
}

int cmd_help(struct cli *cli, int argc, char **argv)
{
	(void)cli;
	(void)argc;
	(void)argv;
	print_usage(stdout);
	return CLI_OK;
}

// Add the names that have a file of this suffix, each once. Returns how many there are now.
static size_t add_instances(const char *rundir, const char *suffix,
			    char (*out)[PMDP_INSTANCE_BYTES], size_t n, size_t size)
{
	char found[64][PMDP_INSTANCE_BYTES];
	int count = pmdp_instances(rundir, suffix, found, 64);

	for (int i = 0; i < count && i < 64; i++) {
		size_t k = 0;

		while (k < n && strcmp(out[k], found[i]) != 0)
			k++;
		if (k == n && n < size)
			memcpy(out[n++], found[i], PMDP_INSTANCE_BYTES);
	}
	return n;
}

/*
 * Names that a switch has or had: a ring or a control socket. Only when there is none, those with
 * an agent's history: an agent keeps one of "default" before any switch is there.
 */
static int find_instances(const char *rundir, char (*out)[PMDP_INSTANCE_BYTES], size_t size)
{
	size_t n = add_instances(rundir, "ring", out, 0, size);

	n = add_instances(rundir, "ctl", out, n, size);
	if (n == 0)
		n = add_instances(rundir, "incidents", out, n, size);
	return (int)n;
}

static int choose_instance(struct cli *cli)
{
	char names[64][PMDP_INSTANCE_BYTES];
	int n = find_instances(cli->rundir, names, 64);

	if (n == 1) {
		memcpy(cli->instance, names[0], PMDP_INSTANCE_BYTES);
	} else if (n == 0) {
		strcpy(cli->instance, "default");
	} else {
		fprintf(stderr, "pmdpulse: several instances in %s, choose one with -i:\n",
			cli->rundir);
		for (int i = 0; i < n; i++)
			fprintf(stderr, "  %s\n", names[i]);
		return CLI_USAGE;
	}
	return CLI_OK;
}

static int parse_options(struct cli *cli, int argc, char **argv)
{
	static const struct option options[] = {
		{"instance", required_argument, NULL, 'i'},
		{"json", no_argument, NULL, 'j'},
		{"timeout", required_argument, NULL, 'T'},
		{"rundir", required_argument, NULL, 'r'},
		{"publisher-user", required_argument, NULL, 'u'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	const char *rundir = NULL;
	long timeout_s = 5;
	int c;

	// '+': options after the command belong to the command, except that -j is welcome anywhere.
	while ((c = getopt_long(argc, argv, "+i:jT:hV", options, NULL)) != -1) {
		switch (c) {
		case 'i':
			if (pmdp_instance_check(optarg) < 0)
				return cli_usage(
					"instance \"%s\": use 1 to 63 of letters, digits, _ . -, "
					"not ending in .agent",
					optarg);
			strcpy(cli->instance, optarg);
			break;
		case 'j':
			cli->is_json = true;
			break;
		case 'T':
			if (!cli_number("-T", optarg, 1, 3600, &timeout_s))
				return CLI_USAGE;
			break;
		case 'r':
			rundir = optarg;
			break;
		case 'u':
			if (!pmdp_value_user(optarg, &cli->publisher_uid))
				return cli_usage(
					"--publisher-user \"%s\": no such user; give a name "
					"or a number",
					optarg);
			cli->has_publisher_uid = true;
			break;
		case 'h':
			print_usage(stdout);
			exit(CLI_OK);
		case 'V':
			printf("pmdpulse %s\nbuilt with %s %s\n", PMDP_VERSION, PMDP_BUILD_CC,
			       PMDP_BUILD_FLAGS);
			exit(CLI_OK);
		default:
			return CLI_USAGE;
		}
	}
	cli->timeout_s = (unsigned)timeout_s;
	if (!cli->has_publisher_uid)
		cli->has_publisher_uid = cli_user_of_agent(CLI_AGENT_CONFIG, &cli->publisher_uid);
	if (pmdp_rundir(rundir, cli->rundir, sizeof(cli->rundir)) < 0)
		return cli_usage("--rundir: path too long");
	return CLI_OK;
}

// Take -j / --json out of the command's own arguments, up to "--".
static int take_json(struct cli *cli, int argc, char **argv)
{
	int n = 0;

	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			while (++i < argc)
				argv[n++] = argv[i];
			break;
		}
		if (strcmp(argv[i], "-j") == 0 || strcmp(argv[i], "--json") == 0)
			cli->is_json = true;
		else
			argv[n++] = argv[i];
	}
	return n;
}

int main(int argc, char **argv)
{
	struct cli cli = {.is_colour = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL};
	const struct cli_command *command;
	int rc = parse_options(&cli, argc, argv);

	if (rc != CLI_OK)
		return rc;
	if (optind == argc) {
		print_usage(stderr);
		return CLI_USAGE;
	}
	command = cli_command_find(argv[optind]);
	if (command == NULL)
		return cli_usage("unknown command \"%s\" (pmdpulse --help lists them)",
				 argv[optind]);
	argv += optind;
	argc = take_json(&cli, argc - optind, argv);
	if (argc - 1 < command->min_args ||
	    (command->max_args >= 0 && argc - 1 > command->max_args))
		return cli_usage("usage: pmdpulse %s %s", command->name, command->args);
	if (cli.instance[0] == 0 && command->run != cmd_help && choose_instance(&cli) != CLI_OK)
		return CLI_USAGE;
	signal(SIGPIPE, SIG_DFL);
	rc = command->run(&cli, argc, argv);
	if (fflush(stdout) != 0 || ferror(stdout))
		return cli_fail("could not write the output: %m");
	return rc;
}
