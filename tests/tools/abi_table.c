// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Prints the table that is checked in as tests/unit/abi.txt. Run it only together with a new
 * PMDP_ABI_VERSION (or to append a constant):
 *
 *	build/tests/tools/abi_table > tests/unit/abi.txt
 */
#include <inttypes.h>
#include <stdio.h>

#include "abi_fields.h"

int main(void)
{
	printf("version %d\n", PMDP_ABI_VERSION);
#define PRINT_STRUCT(s) printf("struct %s %zu\n", #s, sizeof(struct s));
#define PRINT_FIELD(s, f) \
	printf("field %s.%s %zu %zu\n", #s, #f, offsetof(struct s, f), sizeof(((struct s *)0)->f));
#define PRINT_CONSTANT(c) printf("constant %s %" PRIu64 "\n", #c, (uint64_t)(c));
	ABI_STRUCTS(PRINT_STRUCT, PRINT_FIELD)
	ABI_CONSTANTS(PRINT_CONSTANT)
	return 0;
}
