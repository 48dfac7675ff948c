// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pmdp_names.h"

static void test_names_states_are_those_of_rte_keepalive(void **state)
{
	static const char *const names[] = {"UNUSED",  "ALIVE",  "DEAD", "GONE",
					    "MISSING", "DOZING", "SLEEP"};

	(void)state;
	for (uint32_t i = 0; i < PMDP_N_STATES; i++)
		assert_string_equal(pmdp_state_name(i), names[i]);
}

static void test_names_every_number_gives_a_name(void **state)
{
	const char *(*const functions[])(uint32_t) = {
		pmdp_state_name, pmdp_kind_name,  pmdp_phase_name,   pmdp_severity_name,
		pmdp_cause_name, pmdp_stage_name, pmdp_reason_name,  pmdp_lane_kind_name,
		pmdp_link_name,  pmdp_drop_name,  pmdp_counter_name, pmdp_port_counter_name,
	};
	const uint32_t numbers[] = {0, 1, 7, 47, 48, 255, UINT32_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
		for (size_t j = 0; j < sizeof numbers / sizeof numbers[0]; j++)
			assert_non_null(functions[i](numbers[j]));
	}
	assert_string_equal(pmdp_state_name(PMDP_N_STATES), "unknown");
	assert_string_equal(pmdp_severity_name(3), "unknown"); // a hole in the table
	assert_string_equal(pmdp_counter_name(PMDP_N_COUNTERS), "");
}

static void test_names_every_kind_and_cause_parses_back(void **state)
{
	(void)state;
	for (uint32_t kind = 1; kind < PMDP_N_KINDS; kind++)
		assert_int_equal(pmdp_kind_parse(pmdp_kind_name(kind)), kind);
	for (uint32_t cause = 0; cause < PMDP_N_CAUSES; cause++)
		assert_int_equal(pmdp_cause_parse(pmdp_cause_name(cause)), cause);
	assert_int_equal(pmdp_kind_parse("PMD-STALL"), -22);
	assert_int_equal(pmdp_kind_parse(""), -22);
	assert_int_equal(pmdp_kind_parse(NULL), -22);
	assert_int_equal(pmdp_cause_parse("preempte"), -22);
}

static void test_names_settled_words(void **state)
{
	(void)state;
	assert_string_equal(pmdp_kind_name(PMDP_KIND_PMD_NO_PROGRESS), "pmd-no-progress");
	assert_string_equal(pmdp_cause_name(PMDP_CAUSE_RT_THROTTLED), "rt-throttled");
	assert_string_equal(pmdp_severity_name(4), "OKAY");
	assert_string_equal(pmdp_phase_name(PMDP_PHASE_UPDATE), "update");
	assert_string_equal(pmdp_reason_name(PMDP_REASON_RECONFIGURATION), "reconfiguration");
	assert_string_equal(pmdp_link_name(PMDP_LINK_UNKNOWN), "unknown");
}

// A drop has one name, whether it is counted by a lane or by a port.
static void test_names_drops_agree(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < PMDP_N_DROPS; i++) {
		const char *name = pmdp_drop_name(i);

		assert_string_equal(pmdp_counter_name(PMDP_C_DROP0 + i),
				    pmdp_port_counter_name(PMDP_P_DROP0 + i));
		if (strcmp(name, "unknown") == 0) {
			assert_string_equal(pmdp_counter_name(PMDP_C_DROP0 + i), "");
			continue;
		}
		assert_memory_equal(pmdp_counter_name(PMDP_C_DROP0 + i), "drop_", 5);
		assert_string_equal(pmdp_counter_name(PMDP_C_DROP0 + i) + 5, name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_states_are_those_of_rte_keepalive),
		cmocka_unit_test(test_names_every_number_gives_a_name),
		cmocka_unit_test(test_names_every_kind_and_cause_parses_back),
		cmocka_unit_test(test_names_settled_words),
		cmocka_unit_test(test_names_drops_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
