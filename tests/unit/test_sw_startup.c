// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The start-up file: words of a line, and errors that name file and line.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sw_flow.h"
#include "sw_startup.h"
#include "sw_switch.h"
#include "test_dir.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

static void test_startup_words(void **state)
{
	static const struct {
		const char *line;
		const char *words[4];
	} cases[] = {
		{"", {NULL}},
		{"   \t ", {NULL}},
		{"# all of it", {NULL}},
		{"  show", {"show"}},
		{"add-port p1\tnet_null0  ofport=1", {"add-port", "p1", "net_null0", "ofport=1"}},
		{"show # why", {"show", NULL}},
		{"show a#b", {"show", "a#b"}},
		{"add-flow 'in_port=1 actions=drop'", {"add-flow", "in_port=1 actions=drop"}},
		{"add-flow \"in_port=1 # no comment\"", {"add-flow", "in_port=1 # no comment"}},
		{"a 'b'\"c\"d", {"a", "bcd"}},
		{"a '' b", {"a", "", "b"}},
		{"a \"x\\\"y\" 'p\\q'", {"a", "x\"y", "p\\q"}},
		{"a b\\ c \\#d", {"a", "b c", "#d"}},
	};

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		const char *words[4] = {NULL};
		char *line = strdup(cases[i].line);
		struct sw_error err;
		int n = sw_startup_split(line, words, 4, &err), expected = 0;

		while (expected < 4 && cases[i].words[expected])
			expected++;
		assert_int_equal(n, expected);
		for (int w = 0; w < n; w++)
			assert_string_equal(words[w], cases[i].words[w]);
		free(line);
	}
}

static void test_startup_words_that_can_not_be(void **state)
{
	static const char *const bad[] = {"a 'b", "a \"b c", "\"", "1 2 3 4 5"};

	(void)state;
	for (size_t i = 0; i < N(bad); i++) {
		char *line = strdup(bad[i]);
		const char *words[4];
		struct sw_error err;

		assert_int_equal(sw_startup_split(line, words, 4, &err), -EINVAL);
		assert_true(strlen(err.text) > 0);
		free(line);
	}
}

static char path[128], rules_path[128];

static void write_file(const char *to, const char *text)
{
	FILE *file = fopen(to, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int run(struct sw_switch *sw, const char *text, struct sw_error *err)
{
	write_file(path, text);
	return sw_startup_run(sw, path, err);
}

static void test_startup_runs_commands(void **state)
{
	struct sw_switch *sw = calloc(1, sizeof(*sw));
	char text[1024];
	struct sw_error err;

	(void)state;
	sw->flows = sw_flow_table_create(NULL);
	write_file(rules_path, "# rules\nin_port=3,actions=1\n\nin_port=4,actions=1\n");
	snprintf(text, sizeof(text),
		 "# comment\r\n\nadd-flow in_port=1,actions=2\nadd-flow 'in_port=2 actions=1'\n"
		 "add-flows %s\ndel-flows in_port=1",
		 rules_path);
	assert_int_equal(run(sw, text, &err), 0);
	assert_int_equal(sw_flow_count(sw->flows), 3);
	snprintf(text, sizeof(text), "replace-flows %s\n", rules_path);
	assert_int_equal(run(sw, text, &err), 0);
	assert_int_equal(sw_flow_count(sw->flows), 2);
	sw_flow_table_destroy(sw->flows);
	free(sw);
}

static void test_startup_errors_name_file_and_line(void **state)
{
	static const struct {
		const char *text, *where, *what;
	} bad[] = {
		{"\nadd-flow in_port=1,ip,actions=frob\n", ":2: ", "frob"},
		{"frobnicate\n", ":1: ", "frobnicate"},
		{"add-flow\n", ":1: ", "usage: add-flow FLOW"},
		{"# x\n# y\nadd-flow 'a\n", ":3: ", "quote"},
		{"dump-flows\n", ":1: ", "only shows"},
		{"add-flows /nonexistent/rules\n", ":1: /nonexistent/rules: ", "No such file"},
		{"add-flows\n", ":1: ", "usage"},
		{"set nonsense=1\n", ":1: ", "nonsense"},
		{"set nonsense\n", ":1: ", "KEY=VALUE"},
	};
	struct sw_switch *sw = calloc(1, sizeof(*sw));
	char text[1024], where[400];
	struct sw_error err;

	(void)state;
	sw->flows = sw_flow_table_create(NULL);
	for (size_t i = 0; i < N(bad); i++) {
		assert_true(run(sw, bad[i].text, &err) < 0);
		snprintf(where, sizeof(where), "%s%s", path, bad[i].where);
		assert_memory_equal(err.text, where, strlen(where));
		assert_non_null(strstr(err.text, bad[i].what));
	}
	// The bad line of the rule file, too; and nothing of it is taken.
	write_file(rules_path, "in_port=3,actions=1\nin_port=4,tp_dst=3,actions=1\n");
	snprintf(text, sizeof(text), "\n\nadd-flows %s\n", rules_path);
	assert_true(run(sw, text, &err) < 0);
	snprintf(where, sizeof(where), "%s:3: %s: line 2: tp_dst", path, rules_path);
	assert_memory_equal(err.text, where, strlen(where));
	assert_int_equal(sw_flow_count(sw->flows), 0);
	assert_int_equal(sw_startup_run(sw, "/nonexistent/file", &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/file"));
	sw_flow_table_destroy(sw->flows);
	free(sw);
}

static int setup(void **state)
{
	(void)state;
	test_dir_make();
	snprintf(path, sizeof(path), "%.100s", test_dir_path("start.conf"));
	snprintf(rules_path, sizeof(rules_path), "%.100s", test_dir_path("rules"));
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_startup_words),
		cmocka_unit_test(test_startup_words_that_can_not_be),
		cmocka_unit_test(test_startup_runs_commands),
		cmocka_unit_test(test_startup_errors_name_file_and_line),
	};

	return cmocka_run_group_tests_name("sw_startup", tests, setup, test_dir_teardown);
}
