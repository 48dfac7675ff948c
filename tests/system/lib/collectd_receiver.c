// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * A collectd plugin for the tests: writes what it receives as JSON lines, with all meta data, which
 * no stock plugin does. Built by lib/collectd.py as pmdptest.so.
 *
 *	<Plugin pmdptest>
 *		Values "FILE"         a line a value list: {"host", "plugin_instance", "type", ...}
 *		Notifications "FILE"  one line a notification
 *		Slow "FILE"           while it exists, each notification takes the seconds in it
 *	</Plugin>
 */
#include <math.h>
#include <pthread.h>
#include <time.h>

#include <collectd/core/daemon/collectd.h>
#include <collectd/core/daemon/plugin.h>
#include <collectd/core/utils/common/common.h>
#include <yajl/yajl_gen.h>

static char *values_path, *notifications_path, *slow_path;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *const keys[] = {"Values", "Notifications", "Slow"};

static void text(yajl_gen gen, const char *key, const char *value)
{
	yajl_gen_string(gen, (const unsigned char *)key, strlen(key));
	yajl_gen_string(gen, (const unsigned char *)value, strlen(value));
}

static void number(yajl_gen gen, const char *key, double value)
{
	if (key != NULL)
		yajl_gen_string(gen, (const unsigned char *)key, strlen(key));
	if (isfinite(value))
		yajl_gen_double(gen, value);
	else
		yajl_gen_null(gen);
}

static void integer(yajl_gen gen, const char *key, long long value)
{
	if (key != NULL)
		yajl_gen_string(gen, (const unsigned char *)key, strlen(key));
	yajl_gen_integer(gen, value);
}

static long long mono_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (long long)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

// One write() a line, so that a reader never sees half of it in front of another.
static void append(const char *path, yajl_gen gen)
{
	const unsigned char *buffer;
	size_t len;
	FILE *file;

	yajl_gen_get_buf(gen, &buffer, &len);
	pthread_mutex_lock(&lock);
	file = fopen(path, "ae");
	if (file != NULL) {
		fwrite(buffer, 1, len, file);
		fputc('\n', file);
		fclose(file);
	}
	pthread_mutex_unlock(&lock);
	yajl_gen_free(gen);
}

static int on_write(const data_set_t *ds, const value_list_t *vl, user_data_t *user_data)
{
	yajl_gen gen = yajl_gen_alloc(NULL);

	(void)user_data;
	if (strcmp(vl->plugin, "pmdpulse") != 0)
		return 0;
	yajl_gen_map_open(gen);
	text(gen, "host", vl->host);
	text(gen, "object", vl->plugin_instance);
	text(gen, "type", vl->type);
	text(gen, "detail", vl->type_instance);
	number(gen, "time", CDTIME_T_TO_DOUBLE(vl->time));
	yajl_gen_string(gen, (const unsigned char *)"values", 6);
	yajl_gen_map_open(gen);
	for (size_t i = 0; i < ds->ds_num; i++) {
		if (ds->ds[i].type == DS_TYPE_GAUGE)
			number(gen, ds->ds[i].name, vl->values[i].gauge);
		else
			integer(gen, ds->ds[i].name, vl->values[i].derive);
	}
	yajl_gen_map_close(gen);
	yajl_gen_map_close(gen);
	append(values_path, gen);
	return 0;
}

static void meta(yajl_gen gen, const notification_meta_t *m)
{
	for (; m != NULL; m = m->next) {
		switch (m->type) {
		case NM_TYPE_STRING:
			text(gen, m->name, m->nm_value.nm_string);
			break;
		case NM_TYPE_SIGNED_INT:
			integer(gen, m->name, m->nm_value.nm_signed_int);
			break;
		case NM_TYPE_UNSIGNED_INT:
			integer(gen, m->name, (long long)m->nm_value.nm_unsigned_int);
			break;
		case NM_TYPE_DOUBLE:
			number(gen, m->name, m->nm_value.nm_double);
			break;
		case NM_TYPE_BOOLEAN:
			integer(gen, m->name, m->nm_value.nm_boolean);
			break;
		}
	}
}

static void be_slow(void)
{
	FILE *file = slow_path != NULL ? fopen(slow_path, "re") : NULL;
	double seconds = 0;

	if (file == NULL)
		return;
	if (fscanf(file, "%lf", &seconds) != 1)
		seconds = 0;
	fclose(file);
	nanosleep(&(struct timespec){.tv_sec = (time_t)seconds,
				     .tv_nsec = (long)(fmod(seconds, 1) * 1e9)},
		  NULL);
}

static int on_notification(const notification_t *n, user_data_t *user_data)
{
	yajl_gen gen = yajl_gen_alloc(NULL);

	(void)user_data;
	yajl_gen_map_open(gen);
	integer(gen, "received_ns", mono_ns());
	integer(gen, "severity", n->severity);
	number(gen, "time", CDTIME_T_TO_DOUBLE(n->time));
	text(gen, "host", n->host);
	text(gen, "plugin", n->plugin);
	text(gen, "object", n->plugin_instance);
	text(gen, "type", n->type);
	text(gen, "detail", n->type_instance);
	text(gen, "message", n->message);
	yajl_gen_string(gen, (const unsigned char *)"meta", 4);
	yajl_gen_map_open(gen);
	meta(gen, n->meta);
	yajl_gen_map_close(gen);
	yajl_gen_map_close(gen);
	append(notifications_path, gen);
	be_slow();
	return 0;
}

static int on_config(const char *key, const char *value)
{
	if (strcasecmp(key, keys[0]) == 0)
		values_path = strdup(value);
	else if (strcasecmp(key, keys[1]) == 0)
		notifications_path = strdup(value);
	else
		slow_path = strdup(value);
	return 0;
}

static int on_init(void)
{
	if (values_path != NULL)
		plugin_register_write("pmdptest", on_write, NULL);
	if (notifications_path != NULL)
		plugin_register_notification("pmdptest", on_notification, NULL);
	return 0;
}

void module_register(void);
void module_register(void)
{
	plugin_register_config("pmdptest", on_config, (const char **)keys, 3);
	plugin_register_init("pmdptest", on_init);
}
