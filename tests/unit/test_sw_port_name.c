// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Names of ports: anything that flow rules, commands and collectd can tell apart.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sw_error.h"
#include "sw_port.h"

static int take(const char *name)
{
	struct sw_port_conf conf;
	struct sw_error err = {0};
	int rc = sw_port_conf_init(&conf, name, "net_null0", &err);

	if (rc == 0)
		assert_string_equal(conf.name, name);
	return rc;
}

static void test_odd_names_are_taken(void **state)
{
	char longest[64];

	(void)state;
	memset(longest, 'x', 63);
	longest[63] = 0;
	assert_int_equal(take(longest), 0);
	assert_int_equal(take("a.b"), 0);
	assert_int_equal(take("a-b"), 0);
	assert_int_equal(take("a\"b"), 0);
	assert_int_equal(take("it's"), 0);
	assert_int_equal(take("a\\b"), 0);
	assert_int_equal(take("a/b"), 0);
	assert_int_equal(take("\xc3\xbc"), 0); // u with two dots
}

static void test_names_that_would_be_misread_are_refused(void **state)
{
	static const char *const names[] = {"",   "a b",   "a\tb", "a,b",   "a=b",   "\"a\"",
					    "'a", "a\x7f", "\xff", "a\xc3", "a\x01b"};
	char longer[65];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(take(names[i]), -EINVAL);
	memset(longer, 'x', 64);
	longer[64] = 0;
	assert_int_equal(take(longer), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_odd_names_are_taken),
		cmocka_unit_test(test_names_that_would_be_misread_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
