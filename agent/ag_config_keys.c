// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_config_keys.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmdpulse.h"

#define NS_PER_MS UINT64_C(1000000)

static bool parse_number(const char *text, uint64_t min, uint64_t max, int base, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	unsigned long long value = strtoull(text, &end, base);
	if (errno || *end || value < min || value > max)
		return false;
	*out = value;
	return true;
}

static bool copy_text(char *out, size_t size, const char *value)
{
	size_t len = strlen(value);

	if (len == 0 || len >= size)
		return false;
	memcpy(out, value, len + 1);
	return true;
}

static bool set_instance(struct ag_config *config, const char *value)
{
	if (config->n_instances == AG_MAX_INSTANCES || pmdp_instance_check(value))
		return false;
	for (uint32_t i = 0; i < config->n_instances; i++)
		if (!strcmp(config->instances[i], value))
			return true;
	return copy_text(config->instances[config->n_instances++], PMDP_INSTANCE_BYTES, value);
}

static void get_instance(const struct ag_config *config, char *out, size_t size)
{
	size_t used = 0;

	out[0] = 0;
	for (uint32_t i = 0; i < config->n_instances && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", i ? " " : "",
					 config->instances[i]);
}

static void clear_instance(struct ag_config *config)
{
	config->n_instances = 0;
}

static bool set_rundir(struct ag_config *config, const char *value)
{
	return value[0] == '/' && copy_text(config->rundir, sizeof(config->rundir), value);
}

static void get_rundir(const struct ag_config *config, char *out, size_t size)
{
	if (pmdp_rundir(config->rundir, out, size))
		snprintf(out, size, "%s", config->rundir);
}

static bool set_publisher(struct ag_config *config, const char *value)
{
	const struct passwd *user = getpwnam(value);
	uint64_t uid;

	if (user)
		config->publisher_uid = user->pw_uid;
	else if (parse_number(value, 0, UINT32_MAX - 1, 10, &uid))
		config->publisher_uid = (uid_t)uid;
	else
		return false;
	config->has_publisher_uid = true;
	return true;
}

static void get_publisher(const struct ag_config *config, char *out, size_t size)
{
	out[0] = 0;
	if (config->has_publisher_uid)
		snprintf(out, size, "%u", config->publisher_uid);
}

static bool set_interval(struct ag_config *config, const char *value)
{
	uint64_t ms;

	if (!strcmp(value, "follow")) {
		config->interval_ns = 0;
		return true;
	}
	if (!parse_number(value, 1, 3600000, 10, &ms))
		return false;
	config->interval_ns = ms * NS_PER_MS;
	return true;
}

static void get_interval(const struct ag_config *config, char *out, size_t size)
{
	if (config->interval_ns)
		snprintf(out, size, "%llu", (unsigned long long)(config->interval_ns / NS_PER_MS));
	else
		snprintf(out, size, "follow");
}

static bool set_notify(struct ag_config *config, const char *value)
{
	config->notify_missing = !strcmp(value, "missing");
	return config->notify_missing || !strcmp(value, "dead");
}

static void get_notify(const struct ag_config *config, char *out, size_t size)
{
	snprintf(out, size, "%s", config->notify_missing ? "missing" : "dead");
}

static bool set_hold(struct ag_config *config, const char *value)
{
	uint64_t ms;

	if (!parse_number(value, 1, 3600000, 10, &ms))
		return false;
	config->hold_ns = ms * NS_PER_MS;
	return true;
}

static void get_hold(const struct ag_config *config, char *out, size_t size)
{
	snprintf(out, size, "%llu", (unsigned long long)(config->hold_ns / NS_PER_MS));
}

static bool set_starve(struct ag_config *config, const char *value)
{
	uint64_t pct;

	if (!parse_number(value, 1, 99, 10, &pct))
		return false;
	config->starve_pct = (uint32_t)pct;
	return true;
}

static void get_starve(const struct ag_config *config, char *out, size_t size)
{
	snprintf(out, size, "%u", config->starve_pct);
}

static const char *const journal_modes[] = {"auto", "on", "off"};

static bool set_journal(struct ag_config *config, const char *value)
{
	for (uint32_t i = 0; i < 3; i++)
		if (!strcmp(value, journal_modes[i])) {
			config->journal = (enum ag_journal_mode)i;
			return true;
		}
	return false;
}

static void get_journal(const struct ag_config *config, char *out, size_t size)
{
	snprintf(out, size, "%s", journal_modes[config->journal]);
}

static bool set_json(struct ag_config *config, const char *value)
{
	if (strcmp(value, "-") && value[0] != '/')
		return false;
	for (uint32_t i = 0; i < config->n_json; i++)
		if (!strcmp(config->json[i], value))
			return true;
	if (config->n_json == AG_MAX_JSON ||
	    !copy_text(config->json[config->n_json], AG_PATH_BYTES, value))
		return false;
	config->n_json++;
	return true;
}

static void get_json(const struct ag_config *config, char *out, size_t size)
{
	size_t used = 0;

	out[0] = 0;
	for (uint32_t i = 0; i < config->n_json && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", i ? " " : "",
					 config->json[i]);
}

static void clear_json(struct ag_config *config)
{
	config->n_json = 0;
}

static bool set_hook(struct ag_config *config, const char *value)
{
	return value[0] == '/' && !access(value, X_OK) &&
	       copy_text(config->hook, sizeof(config->hook), value);
}

static void get_hook(const struct ag_config *config, char *out, size_t size)
{
	snprintf(out, size, "%s", config->hook);
}

static bool set_hook_timeout(struct ag_config *config, const char *value)
{
	return parse_number(value, 1, 3600000, 10, &config->hook_timeout_ms);
}

static void get_hook_timeout(const struct ag_config *config, char *out, size_t size)
{
	snprintf(out, size, "%llu", (unsigned long long)config->hook_timeout_ms);
}

static bool set_group(struct ag_config *config, const char *value)
{
	return getgrnam(value) && copy_text(config->group, sizeof(config->group), value);
}

static void get_group(const struct ag_config *config, char *out, size_t size)
{
	snprintf(out, size, "%s", config->group);
}

static bool set_mode(struct ag_config *config, const char *value)
{
	uint64_t mode;

	// The owner must read and write, others must not write: a reader believes the file's owner.
	if (!parse_number(value, 0, 0777, 8, &mode) || (mode & 0600) != 0600 || (mode & 0133))
		return false;
	config->mode = (uint32_t)mode;
	return true;
}

static void get_mode(const struct ag_config *config, char *out, size_t size)
{
	snprintf(out, size, "%04o", config->mode);
}

static bool set_sched(struct ag_config *config, const char *value)
{
	uint64_t fifo_prio = 0;

	config->is_fifo_required = !strncmp(value, "fifo:", 5);
	config->fifo_prio = !strcmp(value, "auto");
	if (config->fifo_prio || !strcmp(value, "nice"))
		return true;
	if (!config->is_fifo_required || !parse_number(value + 5, 1, 99, 10, &fifo_prio))
		return false;
	config->fifo_prio = (uint32_t)fifo_prio;
	return true;
}

static void get_sched(const struct ag_config *config, char *out, size_t size)
{
	if (config->is_fifo_required)
		snprintf(out, size, "fifo:%u", config->fifo_prio);
	else
		snprintf(out, size, "%s", config->fifo_prio ? "auto" : "nice");
}

static bool set_debug(struct ag_config *config, const char *value)
{
	config->is_debug = !strcmp(value, "true");
	return config->is_debug || !strcmp(value, "false");
}

static void get_debug(const struct ag_config *config, char *out, size_t size)
{
	snprintf(out, size, "%s", config->is_debug ? "true" : "false");
}

const struct ag_key ag_keys[] = {
	{"instance", "NAME", "follow this instance (repeatable; default: all in the run directory)",
	 "an instance name: 1 to 63 of A-Z a-z 0-9 _ . -, not beginning with . or -, at most 64 of them",
	 true, set_instance, get_instance, clear_instance},
	{"rundir", "DIR", "run directory with the segments, on a tmpfs", "an absolute path", false,
	 set_rundir, get_rundir, NULL},
	{"publisher-user", "USER", "accept segments of this user beside root's and one's own",
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

_Static_assert(sizeof(ag_keys) / sizeof(ag_keys[0]) == AG_N_KEYS, "count the keys again");
