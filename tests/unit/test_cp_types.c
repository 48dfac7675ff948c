// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The naming table, the shipped types file and docs/metrics.md say the same.
#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cp_types.h"

#define TYPES_FILE "contrib/collectd/pmdpulse_types.db"
#define STOCK_FILE "/usr/share/collectd/types.db"
#define DOC_FILE "docs/metrics.md"

static void limit(char *out, size_t size, double value)
{
	if (isnan(value))
		snprintf(out, size, "U");
	else
		snprintf(out, size, "%g", value);
}

static void expected_line(const struct cp_type *type, char *out, size_t size)
{
	size_t n = (size_t)snprintf(out, size, "%s\t", type->name);

	for (size_t i = 0; i < type->n_sources; i++) {
		const struct cp_source *source = &type->sources[i];
		char min[32], max[32];

		limit(min, sizeof(min), source->min);
		limit(max, sizeof(max), source->max);
		n += (size_t)snprintf(out + n, size - n, "%s%s:%s:%s:%s", i > 0 ? ", " : "",
				      source->name, source->kind == CP_GAUGE ? "GAUGE" : "DERIVE",
				      min, max);
	}
}

static void test_types_file_is_the_table(void **state)
{
	char line[256], expected[256];
	FILE *file = fopen(TYPES_FILE, "r");
	size_t i = 0;

	(void)state;
	if (file == NULL)
		fail_msg("%s can't be read; run from the top of the tree", TYPES_FILE);
	while (fgets(line, sizeof(line), file) != NULL) {
		line[strcspn(line, "\n")] = 0;
		if (line[0] == '#')
			continue;
		assert_in_range(i, 0, CP_N_TYPES - 1);
		expected_line(&cp_types[i++], expected, sizeof(expected));
		assert_string_equal(line, expected);
	}
	fclose(file);
	assert_int_equal(i, CP_N_TYPES);
}

static void test_names_are_fit_for_collectd_and_prometheus(void **state)
{
	(void)state;
	for (size_t i = 0; i < CP_N_TYPES; i++) {
		const struct cp_type *type = &cp_types[i];

		assert_non_null(type->name);
		assert_true(strlen(type->name) > 0 && strlen(type->name) < 64);
		for (const char *c = type->name; *c != 0; c++)
			assert_true(islower((unsigned char)*c) || *c == '_');
		assert_true(type->help != NULL && type->help[0] != 0);
		assert_in_range(type->n_sources, 1, 2);
		for (size_t j = 0; j < type->n_sources; j++) {
			const struct cp_source *source = &type->sources[j];

			assert_true(source->kind == CP_GAUGE || source->kind == CP_DERIVE);
			if (source->kind == CP_DERIVE)
				assert_true(source->min == 0 && isnan(source->max));
		}
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(type->name, cp_types[j].name);
	}
}

// A stock data set of the same name would be replaced for all other plugins.
static void test_no_stock_type_is_replaced(void **state)
{
	char line[1024];
	FILE *file = fopen(STOCK_FILE, "r");

	(void)state;
	if (file == NULL) {
		print_message("skipped: %s is not there (package collectd-core)\n", STOCK_FILE);
		skip();
	}
	while (fgets(line, sizeof(line), file) != NULL) {
		line[strcspn(line, " \t\n")] = 0;
		for (size_t i = 0; i < CP_N_TYPES; i++)
			assert_string_not_equal(line, cp_types[i].name);
	}
	fclose(file);
}

static void test_doc_has_every_value(void **state)
{
	static char text[1 << 17];
	FILE *file = fopen(DOC_FILE, "r");

	(void)state;
	if (file == NULL)
		fail_msg("%s can't be read", DOC_FILE);
	text[fread(text, 1, sizeof(text) - 1, file)] = 0;
	fclose(file);
	for (size_t i = 0; i < CP_N_TYPES; i++) {
		for (size_t j = 0; j < cp_types[i].n_sources; j++) {
			const struct cp_source *source = &cp_types[i].sources[j];
			bool is_plain = strcmp(source->name, "value") == 0;
			char row[512];

			snprintf(row, sizeof(row), "| `collectd_pmdpulse_%s%s%s%s` | %s | %s |",
				 cp_types[i].name, is_plain ? "" : "_",
				 is_plain ? "" : source->name,
				 source->kind == CP_GAUGE ? "" : "_total",
				 source->kind == CP_GAUGE ? "gauge" : "count", cp_types[i].help);
			if (strstr(text, row) == NULL)
				fail_msg("%s has no row %s", DOC_FILE, row);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types_file_is_the_table),
		cmocka_unit_test(test_names_are_fit_for_collectd_and_prometheus),
		cmocka_unit_test(test_no_stock_type_is_replaced),
		cmocka_unit_test(test_doc_has_every_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
