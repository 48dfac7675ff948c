// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_change.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sw_plain.h"
#include "sw_random.h"

// The match of a rule that is there, or of any; the actions of any.
static void modify(struct sw_flow_table *table)
{
	struct sw_rule rule = sw_random_rule();
	struct sw_flow_mod mod = {.filter = {.match = rule,
					     .is_strict = sw_random_dice(2),
					     .is_any_table = sw_random_dice(2)}};
	struct sw_flow_info info;
	struct sw_error err;
	int rc;

	if (sw_flow_count(table) > 0 && sw_random_dice(4)) {
		sw_flow_get(table, sw_random_dice(sw_flow_count(table)), &info);
		mod.filter.match.value = info.rule->value;
		mod.filter.match.mask = info.rule->mask;
		mod.filter.match.priority = info.rule->priority;
		mod.filter.match.table = info.rule->table;
	}
	rc = sw_flow_modify(table, &mod, &err);
	if (sw_plain_modify(&mod))
		assert_true(rc >= 0);
	else
		assert_int_equal(rc, -EINVAL);
	sw_rule_free(&rule);
}

void sw_change(struct sw_flow_table *table)
{
	struct sw_rule rule;
	struct sw_error err;

	if (sw_random_dice(4) == 0)
		modify(table);
	rule = sw_random_rule();
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
