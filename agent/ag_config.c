// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_config.h"

#include <grp.h>
#include <string.h>
#include <unistd.h>

#include "pmdpulse.h"

#define NS_PER_MS UINT64_C(1000000)

void ag_config_init(struct ag_config *config)
{
	memset(config, 0, sizeof(*config));
	config->hold_ns = 1000 * NS_PER_MS;
	config->starve_pct = 30;
	config->hook_timeout_ms = 10000;
	config->mode = 0640;
	config->fifo_prio = 1;
}

static bool set_instance(void *ctx, const char *value)
{
	struct ag_config *config = ctx;

	return pmdp_value_instance(value, config->instances, AG_MAX_INSTANCES,
				   &config->n_instances);
}

static void get_instance(const void *ctx, char *out, size_t size)
{
	const struct ag_config *config = ctx;

	pmdp_value_instances(config->instances, config->n_instances, out, size);
}

static void clear_instance(void *ctx)
{
	struct ag_config *config = ctx;

	config->n_instances = 0;
}

static bool set_rundir(void *ctx, const char *value)
{
	struct ag_config *config = ctx;

	return pmdp_value_path(value, config->rundir, sizeof(config->rundir));
}

static void get_rundir(const void *ctx, char *out, size_t size)
{
	const struct ag_config *config = ctx;

	if (pmdp_rundir(config->rundir, out, size))
		snprintf(out, size, "%s", config->rundir);
}

static bool set_publisher(void *ctx, const char *value)
{
	struct ag_config *config = ctx;

	config->has_publisher_uid = pmdp_value_user(value, &config->publisher_uid);
	return config->has_publisher_uid;
}

static void get_publisher(const void *ctx, char *out, size_t size)
{
	const struct ag_config *config = ctx;

	out[0] = 0;
	if (config->has_publisher_uid)
		snprintf(out, size, "%u", config->publisher_uid);
}

static bool set_interval(void *ctx, const char *value)
{
	struct ag_config *config = ctx;
	uint64_t ms;

	if (!strcmp(value, "follow")) {
		config->interval_ns = 0;
		return true;
	}
	if (!pmdp_value_number(value, 1, 3600000, 10, &ms))
		return false;
	config->interval_ns = ms * NS_PER_MS;
	return true;
}

static void get_interval(const void *ctx, char *out, size_t size)
{
	const struct ag_config *config = ctx;

	if (config->interval_ns)
		snprintf(out, size, "%llu", (unsigned long long)(config->interval_ns / NS_PER_MS));
	else
		snprintf(out, size, "follow");
}

static bool set_notify(void *ctx, const char *value)
{
	struct ag_config *config = ctx;

	config->notify_missing = !strcmp(value, "missing");
	return config->notify_missing || !strcmp(value, "dead");
}

static void get_notify(const void *ctx, char *out, size_t size)
{
	const struct ag_config *config = ctx;

	snprintf(out, size, "%s", config->notify_missing ? "missing" : "dead");
}

static bool set_hold(void *ctx, const char *value)
{
	struct ag_config *config = ctx;
	uint64_t ms;

	if (!pmdp_value_number(value, 1, 3600000, 10, &ms))
		return false;
	config->hold_ns = ms * NS_PER_MS;
	return true;
}

static void get_hold(const void *ctx, char *out, size_t size)
{
	const struct ag_config *config = ctx;

	snprintf(out, size, "%llu", (unsigned long long)(config->hold_ns / NS_PER_MS));
}

static bool set_starve(void *ctx, const char *value)
{
	struct ag_config *config = ctx;
	uint64_t pct;

	if (!pmdp_value_number(value, 1, 99, 10, &pct))
		return false;
	config->starve_pct = (uint32_t)pct;
	return true;
}

static void get_starve(const void *ctx, char *out, size_t size)
{
	const struct ag_config *config = ctx;

	snprintf(out, size, "%u", config->starve_pct);
}

static const char *const journal_modes[] = {"auto", "on", "off"};

static bool set_journal(void *ctx, const char *value)
{
	struct ag_config *config = ctx;
	int mode = pmdp_value_word(value, journal_modes, 3);

	config->journal = mode < 0 ? AG_JOURNAL_AUTO : (enum ag_journal_mode)mode;
	return mode >= 0;
}

static void get_journal(const void *ctx, char *out, size_t size)
{
	const struct ag_config *config = ctx;

	snprintf(out, size, "%s", journal_modes[config->journal]);
}

static bool set_json(void *ctx, const char *value)
{
	struct ag_config *config = ctx;

	if (strcmp(value, "-") && value[0] != '/')
		return false;
	for (uint32_t i = 0; i < config->n_json; i++)
		if (!strcmp(config->json[i], value))
			return true;
	if (config->n_json == AG_MAX_JSON ||
	    !pmdp_value_text(value, config->json[config->n_json], AG_PATH_BYTES))
		return false;
	config->n_json++;
	return true;
}

static void get_json(const void *ctx, char *out, size_t size)
{
	const struct ag_config *config = ctx;
	size_t used = 0;

	out[0] = 0;
	for (uint32_t i = 0; i < config->n_json && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", i ? " " : "",
					 config->json[i]);
}

static void clear_json(void *ctx)
{
	struct ag_config *config = ctx;

	config->n_json = 0;
}

static bool set_hook(void *ctx, const char *value)
{
	struct ag_config *config = ctx;

	return value[0] == '/' && !access(value, X_OK) &&
	       pmdp_value_text(value, config->hook, sizeof(config->hook));
}

static void get_hook(const void *ctx, char *out, size_t size)
{
	const struct ag_config *config = ctx;

	snprintf(out, size, "%s", config->hook);
}

static bool set_hook_timeout(void *ctx, const char *value)
{
	struct ag_config *config = ctx;

	return pmdp_value_number(value, 1, 3600000, 10, &config->hook_timeout_ms);
}

static void get_hook_timeout(const void *ctx, char *out, size_t size)
{
	const struct ag_config *config = ctx;

	snprintf(out, size, "%llu", (unsigned long long)config->hook_timeout_ms);
}

static bool set_group(void *ctx, const char *value)
{
	struct ag_config *config = ctx;

	return getgrnam(value) && pmdp_value_text(value, config->group, sizeof(config->group));
}

static void get_group(const void *ctx, char *out, size_t size)
{
	const struct ag_config *config = ctx;

	snprintf(out, size, "%s", config->group);
}

static bool set_mode(void *ctx, const char *value)
{
	struct ag_config *config = ctx;
	uint64_t mode;

	// The owner must read and write, others must not write: a reader believes the file's owner.
	if (!pmdp_value_number(value, 0, 0777, 8, &mode) || (mode & 0600) != 0600 || (mode & 0133))
		return false;
	config->mode = (uint32_t)mode;
	return true;
}

static void get_mode(const void *ctx, char *out, size_t size)
{
	const struct ag_config *config = ctx;

	snprintf(out, size, "%04o", config->mode);
}

static bool set_sched(void *ctx, const char *value)
{
	struct ag_config *config = ctx;
	uint64_t fifo_prio = 0;

	config->is_fifo_required = !strncmp(value, "fifo:", 5);
	config->fifo_prio = !strcmp(value, "auto");
	if (config->fifo_prio || !strcmp(value, "nice"))
		return true;
	if (!config->is_fifo_required || !pmdp_value_number(value + 5, 1, 99, 10, &fifo_prio))
		return false;
	config->fifo_prio = (uint32_t)fifo_prio;
	return true;
}

static void get_sched(const void *ctx, char *out, size_t size)
{
	const struct ag_config *config = ctx;

	if (config->is_fifo_required)
		snprintf(out, size, "fifo:%u", config->fifo_prio);
	else
		snprintf(out, size, "%s", config->fifo_prio ? "auto" : "nice");
}

static bool set_debug(void *ctx, const char *value)
{
	struct ag_config *config = ctx;

	return pmdp_value_bool(value, &config->is_debug);
}

static void get_debug(const void *ctx, char *out, size_t size)
{
	const struct ag_config *config = ctx;

	snprintf(out, size, "%s", config->is_debug ? "true" : "false");
}

static const struct pmdp_setting keys[] = {
	{"instance", "NAME", "follow this instance (repeatable; default: all in the run directory)",
	 "an instance name: 1 to 63 of A-Z a-z 0-9 _ . -, not beginning with . or -, not ending in "
	 ".agent, at most 64 of them",
	 true, set_instance, get_instance, clear_instance},
	{"rundir", "DIR", "run directory with the segments, on a tmpfs", "an absolute path", false,
	 set_rundir, get_rundir, NULL},
	{"publisher-user", "USER",
	 "accept segments of this user beside root's, one's own and the services'",
	 "the name or number of a user that exists here", false, set_publisher, get_publisher,
	 NULL},
	{"keepalive-interval", "MS",
	 "one interval without a beat is MISSING, two are DEAD (default: follow)",
	 "whole milliseconds from 1 to 3600000, or follow for the publisher's own setting", false,
	 set_interval, get_interval, NULL},
	{"notify", "dead|missing",
	 "raise after two intervals, or as a warning after one (default: dead)", "dead or missing",
	 false, set_notify, get_notify, NULL},
	{"hold-time", "MS", "clear an incident this long after its last stall (default: 1000)",
	 "whole milliseconds from 1 to 3600000", false, set_hold, get_hold, NULL},
	{"starve-percent", "PCT",
	 "share of time lost in short gaps that is pmd-starved (default: 30)",
	 "a whole number from 1 to 99", false, set_starve, get_starve, NULL},
	{"journal", "auto|on|off", "write incidents to the systemd journal (default: auto)",
	 "auto, on or off", false, set_journal, get_journal, NULL},
	{"json", "FILE|-",
	 "append incidents as JSON lines to a file, a FIFO or - for stdout (repeatable)",
	 "an absolute path, or - for stdout, at most 4 of them", true, set_json, get_json,
	 clear_json},
	{"hook", "PROGRAM", "run this program for each event, with its JSON on stdin",
	 "the absolute path of a program that may be executed", false, set_hook, get_hook, NULL},
	{"hook-timeout", "MS", "end a hook that runs longer than this (default: 10000)",
	 "whole milliseconds from 1 to 3600000", false, set_hook_timeout, get_hook_timeout, NULL},
	{"group", "GROUP", "group of the files and the socket (default: the run directory's)",
	 "the name of a group that exists here", false, set_group, get_group, NULL},
	{"mode", "OCTAL", "mode of the incident segment (default: 0640)",
	 "an octal mode with rw for the owner and no write or execute for others, like 0640", false,
	 set_mode, get_mode, NULL},
	{"sched", "auto|nice|fifo:PRIO",
	 "scheduling of the agent (default: auto, which is fifo:1 where allowed, else nice -20)",
	 "auto, nice, or fifo: and a priority from 1 to 99", false, set_sched, get_sched, NULL},
	{"debug", "true|false", "log more (default: false)", "true or false", false, set_debug,
	 get_debug, NULL},
};

_Static_assert(sizeof(keys) / sizeof(keys[0]) <= PMDP_SETTINGS_MAX, "too many keys");

const struct pmdp_settings ag_settings = {
	.program = "pmdpulse-agent",
	.section = "[agent]",
	.file = AG_CONFIG_FILE,
	.keys = keys,
	.n_keys = sizeof(keys) / sizeof(keys[0]),
};
