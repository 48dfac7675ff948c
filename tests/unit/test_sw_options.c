// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Command line, port keys, cores for control: what is taken and what is refused.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sw_options.h"
#include "sw_port.h"
#include "sw_sched.h"

static int parse(struct sw_options *options, int *eal_argc, struct sw_error *err, const char *line)
{
	static char text[512];
	char *argv[32] = {NULL};
	int argc = 0;

	strcpy(text, line);
	for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " "))
		argv[argc++] = word;
	return sw_options_parse(argc, argv, options, eal_argc, err);
}

static void test_eal_options_stand_before_dashes(void **state)
{
	struct sw_options options;
	struct sw_error err;
	int eal_argc = 0;

	(void)state;
	assert_int_equal(
		parse(&options, &eal_argc, &err,
		      "sw -c 0x1 -a 0000:00:01.0 -- -c f.conf --instance br0 --rundir /run/x"),
		SW_OPTIONS_RUN);
	assert_int_equal(eal_argc, 5);
	assert_string_equal(options.file, "f.conf");
	assert_string_equal(options.instance, "br0");
	assert_string_equal(options.rundir, "/run/x");
}

static void test_defaults(void **state)
{
	struct sw_options options;
	struct sw_error err;
	int eal_argc = 0;

	(void)state;
	setenv("PMDPULSE_RUNDIR", "/dev/shm/elsewhere", 1);
	assert_int_equal(parse(&options, &eal_argc, &err, "sw"), SW_OPTIONS_RUN);
	assert_int_equal(eal_argc, 1);
	assert_null(options.file);
	assert_string_equal(options.instance, "default");
	assert_string_equal(options.rundir, "/dev/shm/elsewhere");
}

static void test_wrong_usage_is_named(void **state)
{
	struct sw_options options = {.instance = "untouched"};
	struct sw_error err;
	int eal_argc = 0;

	(void)state;
	assert_int_equal(parse(&options, &eal_argc, &err, "sw -- --instance ../x"), -EINVAL);
	assert_non_null(strstr(err.text, "../x"));
	assert_int_equal(parse(&options, &eal_argc, &err, "sw -- stray"), -EINVAL);
	assert_non_null(strstr(err.text, "stray"));
	assert_string_equal(options.instance, "untouched");
}

static void test_port_keys(void **state)
{
	struct sw_port_conf conf;
	struct sw_error err;

	(void)state;
	assert_int_equal(sw_port_conf_init(&conf, "p1", "net_null0", &err), 0);
	assert_int_equal(conf.tx_retries, SW_TX_RETRIES_DEFAULT);
	assert_int_equal(sw_port_conf_set(&conf, "ofport", "65279", &err), 0);
	assert_int_equal(conf.ofport, 65279);
	assert_int_equal(sw_port_conf_set(&conf, "tx-retries", "0", &err), 0);
	assert_int_equal(conf.tx_retries, 0);
	assert_int_equal(sw_port_conf_set(&conf, "ofport", "65280", &err), -EINVAL);
	assert_int_equal(sw_port_conf_set(&conf, "ofport", "-1", &err), -EINVAL);
	assert_int_equal(sw_port_conf_set(&conf, "ofport", "7x", &err), -EINVAL);
	assert_int_equal(sw_port_conf_set(&conf, "mtu", "", &err), -EINVAL);
	assert_int_equal(sw_port_conf_set(&conf, "mtu", "99999999999999999999", &err), -EINVAL);
	assert_int_equal(conf.ofport, 65279);
	assert_int_equal(sw_port_conf_set(&conf, "n_rxqs", "1", &err), -ENOENT);
	assert_non_null(strstr(err.text, "n_rxq,"));
}

static void test_port_names(void **state)
{
	char long_name[PMDP_NAME_BYTES + 1];
	struct sw_port_conf conf;
	struct sw_error err;

	(void)state;
	memset(long_name, 'a', sizeof(long_name));
	long_name[PMDP_NAME_BYTES] = '\0';
	assert_int_equal(sw_port_conf_init(&conf, long_name, "x", &err), -EINVAL);
	long_name[PMDP_NAME_BYTES - 1] = '\0';
	assert_int_equal(sw_port_conf_init(&conf, long_name, "x", &err), 0);
	assert_string_equal(conf.name, long_name);
	assert_int_equal(sw_port_conf_init(&conf, "", "x", &err), -EINVAL);
	assert_int_equal(sw_port_conf_init(&conf, "a b", "x", &err), -EINVAL);
	assert_int_equal(sw_port_conf_init(&conf, "a,b", "x", &err), -EINVAL);
	assert_int_equal(sw_port_conf_init(&conf, "p", "", &err), -EINVAL);
}

static cpu_set_t cpus(uint64_t mask)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int i = 0; i < 64; i++)
		if ((mask >> i & 1) != 0)
			CPU_SET(i, &set);
	return set;
}

static void test_control_cores(void **state)
{
	const uint64_t cases[][3] = {
		// allowed, PMDs, control
		{0x3, 0x2, 0x1}, {0x3, 0x3, 0x1}, {0xf0, 0xe0, 0x10}, {0xf0, 0xf0, 0x10},
		{0x1, 0x1, 0x1}, {0xf, 0x6, 0x9}, {0x8, 0x0, 0x8},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cpu_set_t allowed = cpus(cases[i][0]);
		cpu_set_t pmds = cpus(cases[i][1]);
		cpu_set_t wanted = cpus(cases[i][2]);
		cpu_set_t control;

		sw_sched_control_cpus(&allowed, &pmds, &control);
		assert_true(CPU_EQUAL(&control, &wanted));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_eal_options_stand_before_dashes),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_wrong_usage_is_named),
		cmocka_unit_test(test_port_keys),
		cmocka_unit_test(test_port_names),
		cmocka_unit_test(test_control_cores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
