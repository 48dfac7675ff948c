// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_change.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sw_plain.h"
#include "sw_random.h"

void sw_change(struct sw_flow_table *table)
{
	struct sw_rule rule = sw_random_rule();
	struct sw_error err;

	if (sw_plain_count() >= SW_PLAIN_MAX_RULES - 1 || sw_random_dice(4) == 0) {
		struct sw_flow_filter filter = {.match = rule,
						.is_strict = sw_random_dice(4),
						.is_any_table = sw_random_dice(2)};
		uint32_t n = sw_plain_count();

		filter.match.n_acts = 0;
		sw_plain_delete(&filter);
		assert_int_equal(sw_flow_delete(table, &filter, &err), n - sw_plain_count());
	}
	if (sw_plain_count() < SW_PLAIN_MAX_RULES - 1) {
		assert_int_equal(sw_flow_add(table, &rule, 1, &err), 0);
		sw_plain_add(&rule);
	} else {
		sw_rule_free(&rule);
	}
	assert_int_equal(sw_flow_count(table), sw_plain_count());
}
