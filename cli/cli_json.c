// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Parsed documents: look-ups, and printing them again.
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "pmdp_json.h"

yajl_val cli_get(yajl_val map, const char *key)
{
	const char *path[] = {key, NULL};

	return map == NULL ? NULL : yajl_tree_get(map, path, yajl_t_any);
}

const char *cli_get_text(yajl_val map, const char *key, const char *fallback)
{
	yajl_val value = cli_get(map, key);

	return YAJL_IS_STRING(value) ? YAJL_GET_STRING(value) : fallback;
}

double cli_get_number(yajl_val map, const char *key)
{
	yajl_val value = cli_get(map, key);

	if (value == NULL || !YAJL_IS_NUMBER(value))
		return 0;
	return YAJL_IS_INTEGER(value) ? (double)YAJL_GET_INTEGER(value) : YAJL_GET_DOUBLE(value);
}

uint64_t cli_get_u64(yajl_val map, const char *key)
{
	yajl_val value = cli_get(map, key);

	return value == NULL || !YAJL_IS_NUMBER(value) ? 0
						       : strtoull(YAJL_GET_NUMBER(value), NULL, 10);
}

size_t cli_len(yajl_val list)
{
	return YAJL_IS_ARRAY(list) ? YAJL_GET_ARRAY(list)->len : 0;
}

yajl_val cli_item(yajl_val list, size_t i)
{
	return YAJL_GET_ARRAY(list)->values[i];
}

yajl_gen cli_json_begin(void)
{
	yajl_gen gen = yajl_gen_alloc(NULL);

	if (gen == NULL)
		abort();
	return gen;
}

void cli_json_end(yajl_gen gen)
{
	const unsigned char *text;
	size_t len;

	if (yajl_gen_get_buf(gen, &text, &len) == yajl_gen_status_ok) {
		fwrite(text, 1, len, stdout);
		fputc('\n', stdout);
	}
	yajl_gen_free(gen);
}

void cli_json_value(yajl_gen gen, yajl_val value)
{
	switch (value == NULL ? yajl_t_null : value->type) {
	case yajl_t_string:
		pmdp_json_text(gen, YAJL_GET_STRING(value));
		break;
	case yajl_t_number:
		yajl_gen_number(gen, YAJL_GET_NUMBER(value), strlen(YAJL_GET_NUMBER(value)));
		break;
	case yajl_t_object:
		yajl_gen_map_open(gen);
		for (size_t i = 0; i < YAJL_GET_OBJECT(value)->len; i++) {
			pmdp_json_key(gen, YAJL_GET_OBJECT(value)->keys[i]);
			cli_json_value(gen, YAJL_GET_OBJECT(value)->values[i]);
		}
		yajl_gen_map_close(gen);
		break;
	case yajl_t_array:
		yajl_gen_array_open(gen);
		for (size_t i = 0; i < cli_len(value); i++)
			cli_json_value(gen, cli_item(value, i));
		yajl_gen_array_close(gen);
		break;
	case yajl_t_true:
	case yajl_t_false:
		yajl_gen_bool(gen, value->type == yajl_t_true);
		break;
	default:
		yajl_gen_null(gen);
	}
}

void cli_json_print(yajl_val value)
{
	yajl_gen gen = cli_json_begin();

	cli_json_value(gen, value);
	cli_json_end(gen);
}
