// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "cp_config.h"

#include <math.h>
#include <pwd.h>

#include <collectd/core/daemon/collectd.h>
#include <collectd/core/daemon/configfile.h>
#include <collectd/core/daemon/plugin.h>
#include <collectd/core/utils/common/common.h>

#include "cp_log.h"

#define INTERVAL_MIN_S 0.001
#define INTERVAL_MAX_S 3600.0

struct cp_config cp_config = {.is_notifying = true, .is_dispatching = true};

static int refuse(const oconfig_item_t *ci, const char *value, const char *wanted)
{
	cp_log(LOG_ERR, "option `%s': bad value `%s': %s", ci->key, value, wanted);
	return -1;
}

// The only value as text, also when it was written as a number or a boolean. NULL: not exactly one.
static const char *one_value(const oconfig_item_t *ci, char *buffer, size_t size)
{
	if (ci->values_num != 1 || ci->children_num != 0)
		return NULL;
	switch (ci->values[0].type) {
	case OCONFIG_TYPE_STRING:
		return ci->values[0].value.string;
	case OCONFIG_TYPE_NUMBER:
		snprintf(buffer, size, "%.15g", ci->values[0].value.number);
		return buffer;
	case OCONFIG_TYPE_BOOLEAN:
		return ci->values[0].value.boolean ? "true" : "false";
	default:
		return NULL;
	}
}

static int read_instance(const oconfig_item_t *ci, const char *value)
{
	void *grown;

	if (pmdp_instance_check(value) < 0)
		return refuse(ci, value,
			      "an instance is 1 to 63 letters, digits, `_', `.', `-', and does not "
			      "begin with `.' or `-' nor end in `.agent'");
	for (size_t i = 0; i < cp_config.n_instances; i++)
		if (strcmp(cp_config.instances[i], value) == 0)
			return 0;
	grown = realloc(cp_config.instances,
			(cp_config.n_instances + 1) * sizeof(*cp_config.instances));
	if (grown == NULL)
		return refuse(ci, value, "no memory");
	cp_config.instances = grown;
	sstrncpy(cp_config.instances[cp_config.n_instances++], value, PMDP_INSTANCE_BYTES);
	return 0;
}

static int read_rundir(const oconfig_item_t *ci, const char *value)
{
	char *copy;

	if (value[0] != '/')
		return refuse(ci, value, "the folder of the segments is an absolute path");
	copy = strdup(value);
	if (copy == NULL)
		return refuse(ci, value, "no memory");
	free(cp_config.rundir);
	cp_config.rundir = copy;
	return 0;
}

static int read_interval(const oconfig_item_t *ci, const char *value)
{
	char *end;
	double seconds = strtod(value, &end);

	if (end == value || *end != 0 || !isfinite(seconds) || seconds < INTERVAL_MIN_S ||
	    seconds > INTERVAL_MAX_S)
		return refuse(ci, value, "seconds from 0.001 to 3600 are wanted");
	cp_config.keepalive_interval_ns = (uint64_t)(seconds * 1e9 + 0.5);
	return 0;
}

static int read_bool(const oconfig_item_t *ci, const char *value, bool *out)
{
	if (IS_TRUE(value))
		*out = true;
	else if (IS_FALSE(value))
		*out = false;
	else
		return refuse(ci, value, "true or false is wanted");
	return 0;
}

static int read_thread(const oconfig_item_t *ci, const char *value)
{
	char why[160] = "no memory";

	if (cp_select_add(&cp_config.threads, value, why, sizeof(why)) < 0)
		return refuse(ci, value, why);
	return 0;
}

static int read_user(const oconfig_item_t *ci, const char *value)
{
	char buffer[16384];
	struct passwd entry, *found = NULL;
	char *end;
	unsigned long number;

	if (getpwnam_r(value, &entry, buffer, sizeof(buffer), &found) == 0 && found != NULL) {
		cp_config.publisher_uid = found->pw_uid;
	} else {
		errno = 0;
		number = strtoul(value, &end, 10);
		if (end == value || *end != 0 || errno != 0 || number >= UINT32_MAX ||
		    value[0] == '-')
			return refuse(ci, value, "no such user, and not a user id");
		cp_config.publisher_uid = (uid_t)number;
	}
	cp_config.has_publisher_uid = true;
	return 0;
}

static int read_option(const oconfig_item_t *ci)
{
	static const char *const known[] = {
		"Instance",       "RunDir", "KeepaliveInterval", "SendNotification",
		"DispatchValues", "Thread", "IgnoreSelected",    "PublisherUser",
	};
	char buffer[64];
	const char *value;
	size_t i = 0;

	while (i < STATIC_ARRAY_SIZE(known) && strcasecmp(known[i], ci->key) != 0)
		i++;
	if (i == STATIC_ARRAY_SIZE(known)) {
		cp_log(LOG_WARNING, "Unknown option `%s'.", ci->key);
		return 0;
	}
	value = one_value(ci, buffer, sizeof(buffer));
	if (value == NULL)
		return refuse(ci, ci->values_num == 0 ? "" : "...", "exactly one value is wanted");
	switch (i) {
	case 0:
		return read_instance(ci, value);
	case 1:
		return read_rundir(ci, value);
	case 2:
		return read_interval(ci, value);
	case 3:
		return read_bool(ci, value, &cp_config.is_notifying);
	case 4:
		return read_bool(ci, value, &cp_config.is_dispatching);
	case 5:
		return read_thread(ci, value);
	case 6:
		return read_bool(ci, value, &cp_config.threads.is_inverted);
	default:
		return read_user(ci, value);
	}
}

int cp_config_read(oconfig_item_t *block)
{
	int status = 0;

	// All of them are looked at, so that one start names every mistake.
	for (int i = 0; i < block->children_num; i++)
		if (read_option(&block->children[i]) != 0)
			status = -1;
	return status;
}

void cp_config_clear(void)
{
	free(cp_config.instances);
	free(cp_config.rundir);
	cp_select_clear(&cp_config.threads);
	memset(&cp_config, 0, sizeof(cp_config));
	cp_config.is_notifying = cp_config.is_dispatching = true;
}
