// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "pmdpulse.h"
#include "test_dir.h"

static void test_rundir_order_of_sources(void **state)
{
	char path[256], expected[256];

	(void)state;
	setenv("PMDPULSE_RUNDIR", "/from/env", 1);
	setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
	assert_int_equal(pmdp_rundir("/given//", path, sizeof path), 0);
	assert_string_equal(path, "/given");
	assert_int_equal(pmdp_rundir("", path, sizeof path), 0);
	assert_string_equal(path, "/from/env");
	setenv("PMDPULSE_RUNDIR", "", 1);
	assert_int_equal(pmdp_rundir(NULL, path, sizeof path), 0);
	assert_string_equal(path, geteuid() == 0 ? "/run/pmdpulse" : "/run/user/7/pmdpulse");
	unsetenv("PMDPULSE_RUNDIR");
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(pmdp_rundir(NULL, path, sizeof path), 0);
	snprintf(expected, sizeof expected, "/dev/shm/pmdpulse-%u", (unsigned int)geteuid());
	assert_string_equal(path, geteuid() == 0 ? "/run/pmdpulse" : expected);
}

static void test_rundir_too_long(void **state)
{
	char path[8] = "before";

	(void)state;
	assert_int_equal(pmdp_rundir("/1234567", path, sizeof path), -ENAMETOOLONG);
	assert_string_equal(path, "before");
	assert_int_equal(pmdp_rundir("/123456", path, sizeof path), 0);
	assert_int_equal(pmdp_rundir("/", path, sizeof path), 0);
	assert_string_equal(path, "/");
}

static void test_instance_check(void **state)
{
	char name[80];

	(void)state;
	assert_int_equal(pmdp_instance_check("default"), 0);
	assert_int_equal(pmdp_instance_check("A-z_0.9"), 0);
	memset(name, 'x', sizeof name);
	name[63] = 0;
	assert_int_equal(pmdp_instance_check(name), 0);
	name[63] = 'x';
	name[64] = 0;
	assert_int_equal(pmdp_instance_check(name), -EINVAL);
	assert_int_equal(pmdp_instance_check(NULL), -EINVAL);
	assert_int_equal(pmdp_instance_check(""), -EINVAL);
	assert_int_equal(pmdp_instance_check(".hidden"), -EINVAL);
	assert_int_equal(pmdp_instance_check("-i"), -EINVAL);
	assert_int_equal(pmdp_instance_check("../etc/passwd"), -EINVAL);
	assert_int_equal(pmdp_instance_check("a b"), -EINVAL);
	assert_int_equal(pmdp_instance_check("a.agent"),
			 -EINVAL); // a.agent.ctl is an agent's socket
	assert_int_equal(pmdp_instance_check("agent"), 0);
	assert_int_equal(pmdp_instance_check("a-agent"), 0);
	assert_int_equal(pmdp_instance_check("a.agents"), 0);
	assert_int_equal(pmdp_instance_check("gr\xc3\xbc\xc3\x9f"), -EINVAL);
}

static void test_path(void **state)
{
	char path[32] = "before";

	(void)state;
	assert_int_equal(pmdp_path("/a/b/", "i", "ring", path, sizeof path), 0);
	assert_string_equal(path, "/a/b/i.ring");
	assert_int_equal(pmdp_path("/", "i", "incidents", path, sizeof path), 0);
	assert_string_equal(path, "/i.incidents");
	assert_int_equal(pmdp_path("/a", "a/b", "ring", path, sizeof path), -EINVAL);
	assert_int_equal(pmdp_path("/a", "12345678901234567890123456", "ring", path, sizeof path),
			 -ENAMETOOLONG);
	assert_string_equal(path, "/i.incidents");
}

static void touch(const char *name)
{
	int fd = open(test_dir_path(name), O_CREAT | O_WRONLY, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static void test_instances(void **state)
{
	const char *dir = *state;
	char names[3][PMDP_INSTANCE_BYTES];

	assert_int_equal(pmdp_instances(dir, "ring", names, 3), 0);
	touch("zeta.ring");
	touch("alpha.ring");
	touch("a.b.ring");
	touch("mid.ring");
	touch("mid.incidents");
	touch(".hidden.ring");
	touch("ring");
	touch(".ring");
	touch("not an instance.ring");
	touch("noring");
	touch("mid.ctl");
	touch("mid.agent.ctl");
	memset(names, 'x', sizeof names);
	assert_int_equal(pmdp_instances(dir, "ring", names, 3), 4);
	assert_string_equal(names[0], "a.b");
	assert_string_equal(names[1], "alpha");
	assert_string_equal(names[2], "mid");
	assert_int_equal(pmdp_instances(dir, "ring", NULL, 0), 4);
	assert_int_equal(pmdp_instances(dir, "incidents", names, 3), 1);
	assert_string_equal(names[0], "mid");
	assert_int_equal(pmdp_instances(dir, "ctl", names, 3), 1);
	assert_int_equal(pmdp_instances(test_dir_path("absent"), "ring", names, 3), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rundir_order_of_sources),
		cmocka_unit_test(test_rundir_too_long),
		cmocka_unit_test(test_instance_check),
		cmocka_unit_test(test_path),
		cmocka_unit_test_setup_teardown(test_instances, test_dir_setup, test_dir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
