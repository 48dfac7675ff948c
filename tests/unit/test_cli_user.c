// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The user whose segments are believed, out of the agent's settings.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli.h"
#include "test_dir.h"

static bool found_in(const char *text, uid_t *out_uid)
{
	const char *path = test_dir_path("agent.conf");
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	return cli_user_of_agent(path, out_uid);
}

static void test_cli_user_of_agent(void **state)
{
	uid_t uid = 1;

	(void)state;
	assert_false(cli_user_of_agent(test_dir_path("absent.conf"), &uid));
	assert_false(found_in("", &uid));
	assert_false(found_in("# publisher-user = 4711\npublisher-users = 4711\n", &uid));
	assert_false(found_in("publisher-user = no such user\n", &uid));
	assert_int_equal(uid, 1);
	assert_true(found_in("[agent]\nhook-dir = /a=b\n  publisher-user =4711 \n", &uid));
	assert_int_equal(uid, 4711);
	assert_true(found_in("publisher-user = root", &uid));
	assert_int_equal(uid, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_cli_user_of_agent, test_dir_setup,
						test_dir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
