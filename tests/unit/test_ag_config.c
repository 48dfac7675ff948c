// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ag_config.h"

static struct ag_config config;
static char error[PMDP_SETTINGS_ERROR_BYTES];

static int read_text(const char *text)
{
	char path[] = "/tmp/pmdpulse-config-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	ag_config_init(&config);
	error[0] = 0;
	int rc = pmdp_settings_file(&ag_settings, &config, path, error, sizeof(error));
	unlink(path);
	return rc;
}

static int take_arg(const char *arg)
{
	uint64_t seen = 0;

	error[0] = 0;
	return pmdp_settings_arg(&ag_settings, &config, arg, &seen, error, sizeof(error));
}

static void test_config_defaults(void **state)
{
	(void)state;
	assert_int_equal(read_text(""), 0);
	assert_int_equal(config.n_instances, 0);
	assert_int_equal(config.interval_ns, 0);
	assert_false(config.notify_missing);
	assert_int_equal(config.hold_ns, 1000000000);
	assert_int_equal(config.journal, AG_JOURNAL_AUTO);
	assert_int_equal(config.n_json, 0);
	assert_int_equal(config.mode, 0640);
}

static void test_config_reads_every_key(void **state)
{
	(void)state;
	assert_int_equal(read_text(
				 "# a comment\n; another\n\n[agent]\n"
				 "instance = one\n\tinstance=two\ninstance = one\n"
				 "rundir = /dev/shm/x y\npublisher-user = root\n"
				 "keepalive-interval = 5\nnotify = missing\nhold-time = 250\n"
				 "starve-percent=20\njournal = off\njson = -\njson = /tmp/a.json\n"
				 "hook = /bin/true\nhook-timeout = 100\ngroup = root\nmode = 0600\n"
				 "sched = fifo:7\ndebug = true"),
			 0);
	assert_int_equal(config.n_instances, 2);
	assert_string_equal(config.instances[0], "one");
	assert_string_equal(config.instances[1], "two");
	assert_string_equal(config.rundir, "/dev/shm/x y");
	assert_true(config.has_publisher_uid);
	assert_int_equal(config.publisher_uid, 0);
	assert_int_equal(config.interval_ns, 5000000);
	assert_true(config.notify_missing);
	assert_int_equal(config.hold_ns, 250000000);
	assert_int_equal(config.starve_pct, 20);
	assert_int_equal(config.journal, AG_JOURNAL_OFF);
	assert_int_equal(config.n_json, 2);
	assert_string_equal(config.json[0], "-");
	assert_string_equal(config.json[1], "/tmp/a.json");
	assert_string_equal(config.hook, "/bin/true");
	assert_int_equal(config.hook_timeout_ms, 100);
	assert_string_equal(config.group, "root");
	assert_int_equal(config.mode, 0600);
	assert_int_equal(config.fifo_prio, 7);
	assert_true(config.is_fifo_required);
	assert_true(config.is_debug);
}

// Each is refused, and the error names the line, the key and what would be right.
static void test_config_refuses_wrong_values(void **state)
{
	static const struct {
		const char *line, *key, *right;
	} wrong[] = {
		{"instance = .hidden", "instance", "instance name"},
		{"instance = a/b", "instance", "instance name"},
		{"instance =", "instance", "instance name"},
		{"rundir = relative", "rundir", "absolute path"},
		{"publisher-user = no-such-user-here", "publisher-user", "user that exists"},
		{"keepalive-interval = 0", "keepalive-interval", "from 1 to 3600000"},
		{"keepalive-interval = 5ms", "keepalive-interval", "milliseconds"},
		{"keepalive-interval = -5", "keepalive-interval", "milliseconds"},
		{"keepalive-interval = 3600001", "keepalive-interval", "from 1 to 3600000"},
		{"keepalive-interval = 99999999999999999999", "keepalive-interval", "from 1"},
		{"notify = Dead", "notify", "dead or missing"},
		{"hold-time = 1.5", "hold-time", "whole milliseconds"},
		{"starve-percent = 100", "starve-percent", "from 1 to 99"},
		{"journal = yes", "journal", "auto, on or off"},
		{"json = incidents.json", "json", "absolute path"},
		{"hook = /no/such/program", "hook", "may be executed"},
		{"hook-timeout = 0", "hook-timeout", "milliseconds"},
		{"group = no-such-group-here", "group", "group that exists"},
		{"mode = 0666", "mode", "octal"},
		{"mode = 0640x", "mode", "octal"},
		{"mode = 0440", "mode", "rw for the owner"},
		{"sched = fifo", "sched", "priority from 1 to 99"},
		{"sched = fifo:0", "sched", "priority from 1 to 99"},
		{"sched = rr:1", "sched", "auto, nice, or fifo"},
		{"debug = 1", "debug", "true or false"},
		{"colour = red", "colour", "no such setting"},
		{"just words", "just words", "key = value"},
		{"[sink]", "[sink]", "[agent]"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char text[256];

		snprintf(text, sizeof(text), "# first\n\n%s\n", wrong[i].line);
		if (read_text(text) != -EINVAL)
			fail_msg("%s: not refused", wrong[i].line);
		if (!strstr(error, ":3: ") || !strstr(error, wrong[i].key) ||
		    !strstr(error, wrong[i].right))
			fail_msg("%s: the error says \"%s\"", wrong[i].line, error);
	}
}

static void test_config_refuses_a_key_given_twice(void **state)
{
	(void)state;
	assert_int_equal(read_text("notify = dead\nnotify = missing\n"), -EINVAL);
	assert_non_null(strstr(error, ":2: notify"));
	assert_non_null(strstr(error, "line 1"));
}

static void test_config_missing_file(void **state)
{
	(void)state;
	ag_config_init(&config);
	assert_int_equal(pmdp_settings_file(&ag_settings, &config, "/no/such/agent.conf", error,
					    sizeof(error)),
			 -ENOENT);
	assert_non_null(strstr(error, "/no/such/agent.conf"));
}

static void test_config_directory_as_file(void **state)
{
	(void)state;
	ag_config_init(&config);
	assert_int_not_equal(
		pmdp_settings_file(&ag_settings, &config, "/tmp", error, sizeof(error)), 0);
}

static void test_config_command_line_wins(void **state)
{
	uint64_t seen = 0;

	(void)state;
	assert_int_equal(read_text("instance = file\nkeepalive-interval = 5\njson = /tmp/a\n"), 0);
	assert_int_equal(pmdp_settings_arg(&ag_settings, &config, "instance=a", &seen, error,
					   sizeof(error)),
			 0);
	assert_int_equal(pmdp_settings_arg(&ag_settings, &config, "instance=b", &seen, error,
					   sizeof(error)),
			 0);
	assert_int_equal(pmdp_settings_arg(&ag_settings, &config, "keepalive-interval=follow",
					   &seen, error, sizeof(error)),
			 0);
	assert_int_equal(config.n_instances, 2); // the file's list is replaced, not added to
	assert_string_equal(config.instances[0], "a");
	assert_string_equal(config.instances[1], "b");
	assert_int_equal(config.interval_ns, 0);
	assert_int_equal(config.n_json, 1);
}

static void test_config_command_line_errors(void **state)
{
	(void)state;
	ag_config_init(&config);
	assert_int_equal(take_arg("notify=loud"), -EINVAL);
	assert_non_null(strstr(error, "--notify"));
	assert_non_null(strstr(error, "dead or missing"));
	assert_int_equal(take_arg("notify"), -EINVAL);
	assert_non_null(strstr(error, "value is missing"));
	assert_int_equal(take_arg("nothing=1"), -EINVAL);
	assert_non_null(strstr(error, "--nothing"));
	assert_int_equal(take_arg("notif=dead"), -EINVAL); // no abbreviations
}

static void test_config_lists_are_bounded(void **state)
{
	uint64_t seen = 0;
	char arg[64];

	(void)state;
	ag_config_init(&config);
	for (int i = 0; i < AG_MAX_INSTANCES; i++) {
		snprintf(arg, sizeof(arg), "instance=i%d", i);
		assert_int_equal(pmdp_settings_arg(&ag_settings, &config, arg, &seen, error,
						   sizeof(error)),
				 0);
	}
	assert_int_equal(pmdp_settings_arg(&ag_settings, &config, "instance=more", &seen, error,
					   sizeof(error)),
			 -EINVAL);
	for (int i = 0; i < AG_MAX_JSON; i++) {
		snprintf(arg, sizeof(arg), "json=/tmp/%d", i);
		assert_int_equal(pmdp_settings_arg(&ag_settings, &config, arg, &seen, error,
						   sizeof(error)),
				 0);
	}
	assert_int_equal(pmdp_settings_arg(&ag_settings, &config, "json=/tmp/more", &seen, error,
					   sizeof(error)),
			 -EINVAL);
}

// What get prints can be set again: the two halves of each key agree.
static void test_config_get_round_trip(void **state)
{
	static char value[AG_PATH_BYTES * AG_MAX_JSON];
	const char *key;
	uint32_t n = 0;

	(void)state;
	assert_int_equal(
		read_text(
			"instance = one\nrundir = /dev/shm/x\npublisher-user = 0\n"
			"keepalive-interval = 7\njson = /tmp/a\nhook = /bin/true\ngroup = root\n"),
		0);
	for (uint32_t i = 0;
	     pmdp_settings_get(&ag_settings, &config, i, &key, NULL, value, sizeof(value));
	     i++, n++) {
		static char arg[sizeof(value) + 64];

		snprintf(arg, sizeof(arg), "%s=%s", key, value);
		if (take_arg(arg))
			fail_msg("%s: %s", arg, error);
		assert_true(pmdp_settings_has(&ag_settings, key));
	}
	assert_int_equal(n, 15);
	assert_int_equal(config.interval_ns, 7000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_config_defaults),
		cmocka_unit_test(test_config_reads_every_key),
		cmocka_unit_test(test_config_refuses_wrong_values),
		cmocka_unit_test(test_config_refuses_a_key_given_twice),
		cmocka_unit_test(test_config_missing_file),
		cmocka_unit_test(test_config_directory_as_file),
		cmocka_unit_test(test_config_command_line_wins),
		cmocka_unit_test(test_config_command_line_errors),
		cmocka_unit_test(test_config_lists_are_bounded),
		cmocka_unit_test(test_config_get_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
