// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The layout is what the checked-in table says, and has no unnamed hole.
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "abi_fields.h"

#define MAX_LINES 512

static char expected[MAX_LINES][128];
static char actual[MAX_LINES][128];
static int n_actual;

#define ADD(...) snprintf(actual[n_actual++], sizeof actual[0], __VA_ARGS__)
#define ADD_STRUCT(s) ADD("struct %s %zu\n", #s, sizeof(struct s));
#define ADD_FIELD(s, f) \
	ADD("field %s.%s %zu %zu\n", #s, #f, offsetof(struct s, f), sizeof(((struct s *)0)->f));
#define ADD_CONSTANT(c) ADD("constant %s %" PRIu64 "\n", #c, (uint64_t)(c));

static void fill_actual(void)
{
	n_actual = 0;
	ADD("version %d\n", PMDP_ABI_VERSION);
	ABI_STRUCTS(ADD_STRUCT, ADD_FIELD)
	ABI_CONSTANTS(ADD_CONSTANT)
}

static FILE *open_table(void)
{
	const char *source = getenv("PMDP_SOURCE");
	char path[512];

	snprintf(path, sizeof path, "%s/tests/unit/abi.txt", source ? source : ".");
	return fopen(path, "r");
}

static void test_abi_is_as_checked_in(void **state)
{
	FILE *table = open_table();
	int n = 0;

	(void)state;
	if (!table)
		fail_msg(
			"tests/unit/abi.txt not found: run from the top folder or set PMDP_SOURCE");
	while (n < MAX_LINES && fgets(expected[n], sizeof expected[0], table))
		n++;
	fclose(table);
	fill_actual();
	for (int i = 0; i < n && i < n_actual; i++) {
		if (strcmp(expected[i], actual[i]) != 0)
			fail_msg("line %d of abi.txt: %.100s is now %.100s"
				 "A change of the layout needs a new version and table",
				 i + 1, expected[i], actual[i]);
	}
	assert_int_equal(n, n_actual);
}

// Of each struct, the fields in order leave no byte without a name, so that reserved bytes are
// zero.
static void test_abi_has_no_hole(void **state)
{
	char name[96], struct_name[96] = "", field[96];
	size_t size = 0, next = 0, at, len;

	(void)state;
	fill_actual();
	for (int i = 1; i < n_actual; i++) {
		if (sscanf(actual[i], "field %95s %zu %zu", field, &at, &len) == 3) {
			if (at != next)
				fail_msg("hole before %s: %zu to %zu", field, next, at);
			next = at + len;
			continue;
		}
		if (next != size)
			fail_msg("struct %s ends at %zu, its fields at %zu", struct_name, size,
				 next);
		next = size = 0;
		if (sscanf(actual[i], "struct %95s %zu", name, &size) == 2)
			strcpy(struct_name, name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_abi_is_as_checked_in),
		cmocka_unit_test(test_abi_has_no_hole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
