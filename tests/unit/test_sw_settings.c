// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The table of settings.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sw_settings.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

static void test_settings_good(void **state)
{
	static const struct {
		const char *key, *value, *shown;
	} good[] = {
		{"pmd-cpu-mask", "0x6", "0x6"},
		{"pmd-cpu-mask", "C0", "0xc0"}, // hexadecimal without 0x, as OVS takes it
		{"pmd-cpu-mask", "0x0", "0x0"},
		{"pmd-cpu-mask", "0x80000000000000000000000000000001",
		 "0x80000000000000000000000000000001"},
		{"pmd-sched", "nice", "nice:-20"},
		{"pmd-sched", "fifo:1", "fifo:1"},
		{"pmd-sched", "fifo:99", "fifo:99"},
		{"enable-keepalive", "false", "false"},
		{"keepalive-interval", "1", "1"},
		{"keepalive-interval", "2.5", "2.5"},
		{"keepalive-interval", "1.000001", "1.000001"},
		{"keepalive-interval", "3600000", "3600000"},
		{"tx-flush-interval", "0", "0"},
		{"watchdog-needs-pmds", "true", "true"},
		{"reconfigure-timeout", "600000", "600000"},
		{"mbufs", "262144", "262144"},
	};
	struct sw_settings settings;
	char value[SW_SETTINGS_VALUE_BYTES];
	struct sw_error err;

	(void)state;
	sw_settings_init(&settings);
	for (size_t i = 0; i < N(good); i++) {
		if (sw_settings_set(&settings, good[i].key, good[i].value, &err) < 0)
			fail_msg("%s", err.text);
		assert_int_equal(sw_settings_get(&settings, good[i].key, value, sizeof(value)), 0);
		assert_string_equal(value, good[i].shown);
		assert_int_equal(sw_settings_get(&settings, good[i].key, value,
						 strlen(good[i].shown)),
				 -ENOSPC);
	}
	sw_settings_set(&settings, "pmd-cpu-mask", "0x6", &err);
	assert_int_equal(CPU_COUNT(&settings.pmd_cpus), 2);
	assert_true(CPU_ISSET(1, &settings.pmd_cpus) && CPU_ISSET(2, &settings.pmd_cpus));
	assert_true(settings.is_pmd_cpus_given);
	sw_settings_set(&settings, "pmd-cpu-mask", "0", &err);
	assert_false(settings.is_pmd_cpus_given);
	sw_settings_set(&settings, "keepalive-interval", "2.5", &err);
	assert_int_equal(settings.keepalive_interval_ns, 2500000);
}

static void test_settings_bad(void **state)
{
	static const struct {
		const char *key, *value;
	} bad[] = {
		{"pmd-cpu-mask", ""},
		{"pmd-cpu-mask", "0x"},
		{"pmd-cpu-mask", "0xg"},
		{"pmd-cpu-mask", "1,2"},
		{"pmd-sched", "fifo:0"},
		{"pmd-sched", "fifo:100"},
		{"pmd-sched", "fifo:"},
		{"pmd-sched", "fifo:1x"},
		{"pmd-sched", "rr:1"},
		{"enable-keepalive", "maybe"},
		{"enable-keepalive", ""},
		{"keepalive-interval", "0"},
		{"keepalive-interval", "0.9"},
		{"keepalive-interval", "."},
		{"keepalive-interval", "-1"},
		{"keepalive-interval", "5ms"},
		{"keepalive-interval", "1e3"},
		{"keepalive-interval", ""},
		{"keepalive-interval", "3600000.1"},
		{"keepalive-interval", "99999999999999999999999"},
		{"tx-flush-interval", "-1"},
		{"tx-flush-interval", "1000001"},
		{"tx-flush-interval", "4294967296"},
		{"reconfigure-timeout", "0"},
		{"mbufs", "99999999999999999999"},
		{"mbufs", " 1"},
	};
	char mask[1024];
	struct sw_settings settings, before;
	struct sw_error err;

	(void)state;
	memset(&before, 0, sizeof(before));
	sw_settings_init(&before);
	settings = before;
	for (size_t i = 0; i < N(bad); i++) {
		if (sw_settings_set(&settings, bad[i].key, bad[i].value, &err) != -EINVAL)
			fail_msg("%s=%s: taken", bad[i].key, bad[i].value);
		assert_non_null(strstr(err.text, bad[i].key));
		assert_non_null(strstr(err.text, "must be"));
		assert_memory_equal(&settings, &before, sizeof(settings));
	}
	memset(mask, '1', sizeof(mask) - 1); // more cores than a cpu_set_t has
	mask[sizeof(mask) - 1] = 0;
	assert_int_equal(sw_settings_set(&settings, "pmd-cpu-mask", mask, &err), -EINVAL);
}

static void test_settings_unknown_key_names_near_ones(void **state)
{
	struct sw_settings settings;
	struct sw_error err;

	(void)state;
	sw_settings_init(&settings);
	assert_int_equal(sw_settings_set(&settings, "keepalive-intervall", "1", &err), -ENOENT);
	assert_non_null(strstr(err.text, "(near ones are keepalive-interval)"));
	assert_int_equal(sw_settings_set(&settings, "pmdcpumask", "1", &err), -ENOENT);
	assert_non_null(strstr(err.text, "pmd-cpu-mask"));
	assert_int_equal(sw_settings_check("q", &err), -ENOENT);
	assert_non_null(strstr(err.text, "there are pmd-cpu-mask"));
	assert_non_null(strstr(err.text, "mbufs"));
	assert_int_equal(sw_settings_check("mbufs", &err), 0);
}

// Every key has a help, and its default is a value that set takes.
static void test_settings_table(void **state)
{
	struct sw_settings settings, again;
	char value[SW_SETTINGS_VALUE_BYTES];
	struct sw_error err;
	const char *key;
	size_t n = 0;

	(void)state;
	sw_settings_init(&settings);
	for (; (key = sw_settings_key(n)); n++) {
		assert_true(strlen(sw_settings_help(key)) > 10);
		assert_int_equal(sw_settings_get(&settings, key, value, sizeof(value)), 0);
		sw_settings_init(&again);
		assert_int_equal(sw_settings_set(&again, key, value, &err), 0);
		assert_memory_equal(&again, &settings, sizeof(settings));
	}
	assert_true(n >= 8);
	assert_null(sw_settings_help("nothing"));
	assert_int_equal(sw_settings_get(&settings, "nothing", value, sizeof(value)), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_settings_good),
		cmocka_unit_test(test_settings_bad),
		cmocka_unit_test(test_settings_unknown_key_names_near_ones),
		cmocka_unit_test(test_settings_table),
	};

	return cmocka_run_group_tests_name("sw_settings", tests, NULL, NULL);
}
