// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Settings of the poster: each key, and that a wrong one is refused with its place and the remedy.
#include <errno.h>
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

#include "test_dir.h"
#include "vs_config.h"

#define URL "https://collector.example:8443/eventListener/v7"

static struct vs_config config;
static char error[PMDP_SETTINGS_ERROR_BYTES];

static void write_file(const char *name, const char *text, mode_t mode)
{
	FILE *file;

	unlink(test_dir_path(name)); // an earlier one may be closed to its owner
	file = fopen(test_dir_path(name), "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(chmod(test_dir_path(name), mode), 0);
}

static int read_text(const char *text)
{
	write_file("conf", text, 0600);
	vs_config_init(&config);
	error[0] = 0;
	return pmdp_settings_file(&vs_settings, &config, test_dir_path("conf"), error,
				  sizeof(error));
}

static void test_defaults(void **state)
{
	char host[VS_NAME_BYTES] = "";

	(void)state;
	gethostname(host, sizeof(host) - 1);
	unsetenv("STATE_DIRECTORY");
	assert_int_equal(read_text("[ves]\nurl = " URL "\n"), 0);
	assert_int_equal(vs_config_check(&config, error, sizeof(error)), 0);
	assert_string_equal(config.url, URL);
	assert_string_equal(config.source_name, host);
	assert_true(vs_config_sends(&config, VS_FAULT));
	assert_true(vs_config_sends(&config, VS_STATE_CHANGE));
	assert_true(vs_config_sends(&config, VS_HEARTBEAT));
	assert_int_equal(config.heartbeat_s, 60);
	assert_int_equal(config.queue, 1024);
	assert_int_equal(config.batch, 1);
	assert_string_equal(config.state_dir, "");
	setenv("STATE_DIRECTORY", "/var/lib/a:/var/lib/b", 1);
	vs_config_init(&config);
	assert_string_equal(config.state_dir, "/var/lib/a");
	unsetenv("STATE_DIRECTORY");
}

static void test_every_key_and_back(void **state)
{
	static char value[VS_PATH_BYTES + 64], arg[VS_PATH_BYTES + 128];
	const char *key;
	uint64_t seen = 0;

	(void)state;
	assert_int_equal(
		read_text("url = http://[::1]:80/x/eventListener/v7\ncredentials = /c\n"
			  "ca-file = /dev/null\nclient-cert = /dev/null\nclient-key = /dev/null\n"
			  "instance = one\ninstance = two\nrundir = /r\npublisher-user = root\n"
			  "source-name = a b\ndomain = fault\ndomain = heartbeat\n"
			  "heartbeat-interval = 0\ntimeout = 1\nretry-min = 2\nretry-max = 3\n"
			  "queue = 200\nbatch = 100\nagent-timeout = 4\nstate-dir = /tmp\n"
			  "debug = true\n"),
		0);
	assert_int_equal(config.n_instances, 2);
	assert_true(vs_config_sends(&config, VS_FAULT));
	assert_false(vs_config_sends(&config, VS_STATE_CHANGE));
	assert_int_equal(config.retry_max_ms, 3);
	for (uint32_t i = 0;
	     pmdp_settings_get(&vs_settings, &config, i, &key, NULL, value, sizeof(value)); i++) {
		char *first = strtok(value, " "); // of a list
		snprintf(arg, sizeof(arg), "%s=%s", key, first);
		if (pmdp_settings_arg(&vs_settings, &config, arg, &seen, error, sizeof(error)))
			fail_msg("%s: %s", arg, error);
	}
	assert_int_equal(config.n_instances, 1); // the command line's list takes the file's place
}

static void test_wrong_values(void **state)
{
	static const struct {
		const char *line, *right;
	} wrong[] = {
		{"url = https://collector/", "ends in /eventListener/v7"},
		{"url = ftp://collector/eventListener/v7", "http or https"},
		{"url = https:///eventListener/v7", "http or https"},
		{"url = https://user:secret@collector/eventListener/v7", "without a user"},
		{"url = /eventListener/v7", "http or https"},
		{"credentials = secret", "absolute path"},
		{"ca-file = /no/such/file", "can be read"},
		{"client-cert = /no/such/file", "can be read"},
		{"client-key = relative", "can be read"},
		{"instance = a/b", "instance name"},
		{"rundir = x", "absolute path"},
		{"publisher-user = no-such-user-here", "user that exists"},
		{"source-name =", "1 to 255 bytes"},
		{"domain = faults", "fault, stateChange or heartbeat"},
		{"heartbeat-interval = -1", "0 to 86400"},
		{"timeout = 0", "from 1 to 3600000"},
		{"retry-min = 1s", "whole milliseconds"},
		{"retry-max = 3600001", "from 1 to 3600000"},
		{"queue = 199", "200 to 16384"},
		{"queue = 16385", "200 to 16384"},
		{"batch = 0", "1 to 100"},
		{"agent-timeout = x", "whole milliseconds"},
		{"state-dir = /no/such/folder", "can be written"},
		{"debug = yes", "true or false"},
		{"colour = red", "pmdpulse-ves --help"},
		{"[agent]", "[ves]"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char text[256], key[32] = "";

		snprintf(text, sizeof(text), "# first\n\n%s\n", wrong[i].line);
		sscanf(wrong[i].line, "%31s", key);
		if (read_text(text) != -EINVAL)
			fail_msg("%s: not refused", wrong[i].line);
		if (!strstr(error, "conf:3: ") || !strstr(error, key) ||
		    !strstr(error, wrong[i].right))
			fail_msg("%s: the error says \"%s\"", wrong[i].line, error);
	}
}

static void assert_check(const char *text, const char *key, const char *right)
{
	assert_int_equal(read_text(text), 0);
	assert_int_equal(vs_config_check(&config, error, sizeof(error)), -EINVAL);
	if (strncmp(error, key, strlen(key)) || !strstr(error, right))
		fail_msg("%s: the error says \"%s\"", text, error);
}

static void test_values_that_do_not_agree(void **state)
{
	(void)state;
	assert_check("", "url", "https://");
	assert_check("url = " URL "\nretry-min = 5000\nretry-max = 1000\n", "retry-max", "5000");
	assert_check("url = " URL "\nclient-key = /dev/null\n", "client-key", "client-cert");
	assert_check("url = " URL "\ncredentials = /no/such/file\n", "credentials",
		     "USER:PASSWORD");
}

static int credentials(const char *text, mode_t mode, char *out, size_t size)
{
	write_file("secret", text, mode);
	return vs_config_credentials(test_dir_path("secret"), out, size, error, sizeof(error));
}

static void test_credentials(void **state)
{
	char out[VS_USERPWD_BYTES], text[2 * VS_USERPWD_BYTES];

	(void)state;
	assert_int_equal(credentials("user:pass:word\r\nmore\n", 0600, out, sizeof(out)), 0);
	assert_string_equal(out, "user:pass:word");
	assert_int_equal(credentials("user:", 0440, out, sizeof(out)), 0);
	assert_int_equal(credentials("user:pw\n", 0644, out, sizeof(out)), -EINVAL);
	assert_non_null(strstr(error, "chmod"));
	assert_int_equal(credentials("", 0600, out, sizeof(out)), -EINVAL);
	assert_int_equal(credentials("nothing\nuser:pw\n", 0600, out, sizeof(out)), -EINVAL);
	assert_int_equal(credentials(":pw\n", 0600, out, sizeof(out)), -EINVAL);
	assert_non_null(strstr(error, "USER:PASSWORD"));
	memset(text, 'x', sizeof(text) - 1);
	text[4] = ':';
	text[sizeof(text) - 1] = 0;
	assert_int_equal(credentials(text, 0600, out, sizeof(out)), -EINVAL);
	assert_int_equal(vs_config_credentials("/no/such/file", out, sizeof(out), error,
					       sizeof(error)),
			 -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_every_key_and_back),
		cmocka_unit_test(test_wrong_values),
		cmocka_unit_test(test_values_that_do_not_agree),
		cmocka_unit_test(test_credentials),
	};

	return cmocka_run_group_tests(tests, test_dir_setup, test_dir_teardown);
}
