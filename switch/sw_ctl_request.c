// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_ctl_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_gen.h>
#include <yajl/yajl_tree.h>

#include "pmdp_json.h"
#include "sw_cmd.h"

// A request is {..., "args": [...]}. yajl_tree frees recursively, so depth is stack.
#define MAX_DEPTH 4

static bool is_shallow(const char *line, size_t len)
{
	bool is_string = false;
	int depth = 0;

	for (size_t i = 0; i < len; i++) {
		char c = line[i];

		if (is_string && c == '\\')
			i++;
		else if (c == '"')
			is_string = !is_string;
		else if (!is_string && (c == '[' || c == '{') && ++depth > MAX_DEPTH)
			return false;
		else if (!is_string && (c == ']' || c == '}'))
			depth--;
	}
	return true;
}

static yajl_val get(yajl_val object, const char *key)
{
	const char *path[] = {key, NULL};

	return object ? yajl_tree_get(object, path, yajl_t_any) : NULL;
}

// The client's id as it came: number or string; anything else is null.
static void put_id(yajl_gen gen, yajl_val id)
{
	pmdp_json_key(gen, "id");
	if (YAJL_IS_NUMBER(id))
		yajl_gen_number(gen, YAJL_GET_NUMBER(id), strlen(YAJL_GET_NUMBER(id)));
	else
		pmdp_json_text(gen, YAJL_IS_STRING(id) ? YAJL_GET_STRING(id) : NULL);
}

static yajl_gen reply_begin(yajl_val request, bool is_ok)
{
	yajl_gen gen = yajl_gen_alloc(NULL);

	if (!gen)
		return NULL;
	yajl_gen_map_open(gen);
	put_id(gen, get(request, "id"));
	pmdp_json_kv_bool(gen, "ok", is_ok);
	return gen;
}

// Closes the document and frees gen.
static char *reply_end(yajl_gen gen, size_t *out_len)
{
	const unsigned char *text;
	char *copy = NULL;
	size_t len;

	if (yajl_gen_map_close(gen) == yajl_gen_status_ok &&
	    yajl_gen_get_buf(gen, &text, &len) == yajl_gen_status_ok && (copy = malloc(len + 2))) {
		memcpy(copy, text, len);
		memcpy(copy + len, "\n", 2);
		*out_len = len + 1;
	}
	yajl_gen_free(gen);
	return copy;
}

static char *reply_error(yajl_val request, const char *text, size_t *out_len)
{
	yajl_gen gen = reply_begin(request, false);

	if (!gen)
		return NULL;
	pmdp_json_kv_text(gen, "error", text);
	return reply_end(gen, out_len);
}

// Words of args, pointing into the tree. NULL: not an array of strings.
static const char **words(yajl_val args, int *out_n)
{
	size_t n = YAJL_IS_ARRAY(args) ? YAJL_GET_ARRAY(args)->len : 0;
	const char **list;

	if (args && !YAJL_IS_ARRAY(args))
		return NULL;
	list = calloc(n + 1, sizeof(*list));
	if (!list)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		list[i] = YAJL_GET_STRING(YAJL_GET_ARRAY(args)->values[i]);
		if (!list[i]) {
			free(list);
			return NULL;
		}
	}
	*out_n = (int)n;
	return list;
}

static char *answer(struct sw_switch *sw, yajl_val request, size_t *out_len)
{
	const char *name = YAJL_GET_STRING(get(request, "cmd"));
	const char **args;
	struct sw_error err = {.text = ""};
	yajl_gen gen;
	int n, rc;

	if (!name)
		return reply_error(
			request, "cmd: is missing (write {\"id\": 1, \"cmd\": \"show\"})", out_len);
	args = words(get(request, "args"), &n);
	if (!args)
		return reply_error(request, "args: must be a list of strings", out_len);
	gen = reply_begin(request, true);
	if (!gen) {
		free(args);
		return NULL;
	}
	pmdp_json_key(gen, "data");
	rc = sw_cmd_run(sw, name, n, args, gen, &err);
	free(args);
	if (rc == 0)
		return reply_end(gen, out_len);
	yajl_gen_free(gen);
	return reply_error(request, err.text, out_len);
}

char *sw_ctl_answer(struct sw_switch *sw, const char *line, size_t len, size_t *out_len)
{
	char why[256] = "", *reply;
	yajl_val request;

	if (memchr(line, 0, len))
		return sw_ctl_refuse("not a request: holds a 0 byte", out_len);
	if (!is_shallow(line, len))
		return sw_ctl_refuse("not a request: nested too deeply", out_len);
	request = yajl_tree_parse(line, why, sizeof(why));
	if (!request) {
		char text[320];

		why[strcspn(why, "\n")] = 0;
		snprintf(text, sizeof(text), "not a request: %s", why[0] ? why : "empty line");
		return sw_ctl_refuse(text, out_len);
	}
	if (YAJL_IS_OBJECT(request))
		reply = answer(sw, request, out_len);
	else
		reply = sw_ctl_refuse("not a request: must be an object", out_len);
	yajl_tree_free(request);
	return reply;
}

char *sw_ctl_refuse(const char *text, size_t *out_len)
{
	return reply_error(NULL, text, out_len);
}
