// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Rules from standard input, one a line, as the switch dumps them; or "error: " and why not.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sw_rule.h"

int main(void)
{
	char dump[SW_FLOW_TEXT_BYTES], *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, stdin) > 0) {
		struct sw_rule rule;
		struct sw_error err;

		line[strcspn(line, "\n")] = 0;
		if (sw_rule_parse(NULL, line, &rule, &err) < 0) {
			printf("error: %s\n", err.text);
			continue;
		}
		sw_rule_format(&rule, dump, sizeof(dump));
		puts(dump);
		sw_rule_free(&rule);
	}
	free(line);
	return 0;
}
