// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Any text is a rule or is refused with a reason; the dump of a rule is the same rule again.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sw_rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), dump[SW_FLOW_TEXT_BYTES];
	struct sw_rule rule, again;
	struct sw_flow_filter filter;
	struct sw_error err = {.text = ""};

	memcpy(text, data, size);
	text[size] = 0;
	sw_flow_filter_parse(NULL, text, size & 1, &filter, &err);
	err.text[0] = 0;
	if (sw_rule_parse(NULL, text, &rule, &err) < 0) {
		if (err.text[0] == 0)
			abort();
	} else {
		if (sw_rule_format(&rule, dump, sizeof(dump)) >= (int)sizeof(dump) ||
		    sw_rule_parse(NULL, dump, &again, &err) < 0 || !sw_rule_is_same(&again, &rule))
			abort();
		sw_rule_free(&again);
		sw_rule_free(&rule);
	}
	free(text);
	return 0;
}
