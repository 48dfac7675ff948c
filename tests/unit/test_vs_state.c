// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// What the poster remembers over a restart, and what it makes of a file that is not right.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "test_dir.h"
#include "vs_state.h"

static struct vs_state saved, loaded;

static void write_file(const char *text)
{
	FILE *file = fopen(test_dir_path("state"), "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int load(void)
{
	memset(&loaded, 0xff, sizeof(loaded));
	return vs_state_load(test_dir_path(""), &loaded);
}

static void fill(void)
{
	struct vs_place *place;

	memset(&saved, 0, sizeof(saved));
	saved.n_untold = 12;
	place = vs_state_place(&saved, "one");
	place->next_seq = UINT64_C(0xffffffffffffffff);
	strcpy(place->last_id, "one-1764500000000-3");
	place = vs_state_place(&saved, "two");
	place->next_seq = 5;
	strcpy(place->gone_id, "two-1764500000000-agent");
	place->gone_started_us = 1764500000123456;
	assert_int_equal(saved.n_places, 2);
	assert_ptr_equal(vs_state_place(&saved, "two"), place);
}

static void test_round_trip(void **state)
{
	(void)state;
	fill();
	assert_int_equal(vs_state_save(test_dir_path(""), &saved), 0);
	assert_int_equal(load(), 0);
	assert_memory_equal(&saved, &loaded, sizeof(saved));
}

static void test_no_file(void **state)
{
	static const struct vs_state empty;

	(void)state;
	unlink(test_dir_path("state"));
	assert_int_equal(load(), 0);
	assert_memory_equal(&loaded, &empty, sizeof(empty));
}

static void test_an_odd_id_is_left_out(void **state)
{
	(void)state;
	fill();
	strcpy(saved.places[0].last_id, "one 1\nnext two - 1");
	assert_int_equal(vs_state_save(test_dir_path(""), &saved), 0);
	assert_int_equal(load(), 0);
	assert_string_equal(loaded.places[0].last_id, "");
	assert_int_equal(loaded.places[1].next_seq, 5);
}

static void test_another_boot(void **state)
{
	(void)state;
	write_file("pmdpulse-ves 1\nboot 00000000-0000-0000-0000-000000000000\nuntold 3\n"
		   "next one one-1-1 7\ngone one one-1-agent 99\n");
	assert_int_equal(load(), 0);
	assert_int_equal(loaded.n_untold, 3);
	assert_int_equal(loaded.places[0].next_seq, 0);
	assert_string_equal(loaded.places[0].gone_id, "one-1-agent");
}

static void test_damaged(void **state)
{
	static const char *const texts[] = {
		"",
		"pmdpulse-ves 2\nboot x\n",
		"pmdpulse-ves 1\n",
		"pmdpulse-ves 1\nboot x\nnext one\n",
		"pmdpulse-ves 1\nboot x\nnext ../etc - 1\n",
		"pmdpulse-ves 1\nboot x\nuntold 1",
		"pmdpulse-ves 1\nboot x\nhello\n",
		"\xff\xff\xff",
	};
	static const struct vs_state empty;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		write_file(texts[i]);
		if (load() != -EBADMSG)
			fail_msg("taken: %s", texts[i]);
		assert_memory_equal(&loaded, &empty, sizeof(empty));
	}
}

static void test_a_save_that_fails_leaves_the_old_file(void **state)
{
	(void)state;
	fill();
	assert_int_equal(vs_state_save(test_dir_path(""), &saved), 0);
	assert_int_equal(mkdir(test_dir_path(".state.new"), 0700), 0);
	assert_int_equal(vs_state_save(test_dir_path(""), &loaded), -EISDIR);
	assert_int_equal(rmdir(test_dir_path(".state.new")), 0);
	assert_int_equal(load(), 0);
	assert_int_equal(loaded.n_untold, 12);
}

static void test_the_table_is_bounded(void **state)
{
	char name[16];

	(void)state;
	memset(&saved, 0, sizeof(saved));
	for (int i = 0; i < VS_STATE_MAX; i++) {
		snprintf(name, sizeof(name), "i%d", i);
		assert_non_null(vs_state_place(&saved, name));
	}
	assert_null(vs_state_place(&saved, "more"));
	assert_non_null(vs_state_place(&saved, "i0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_no_file),
		cmocka_unit_test(test_an_odd_id_is_left_out),
		cmocka_unit_test(test_another_boot),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_a_save_that_fails_leaves_the_old_file),
		cmocka_unit_test(test_the_table_is_bounded),
	};

	return cmocka_run_group_tests(tests, test_dir_setup, test_dir_teardown);
}
