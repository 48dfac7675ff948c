// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "vs_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pmdpulse.h"

#define MAX_BATCH 100
#define MAX_QUEUE 16384 // of 2 KiB each

static const char *const domain_names[VS_N_DOMAINS] = {"fault", "stateChange", "heartbeat"};

void vs_config_init(struct vs_config *config)
{
	const char *state_dir = getenv("STATE_DIRECTORY"); // of systemd; several are joined by ':'

	memset(config, 0, sizeof(*config));
	if (gethostname(config->source_name, sizeof(config->source_name) - 1))
		config->source_name[0] = 0;
	config->heartbeat_s = 60;
	config->timeout_ms = 10000;
	config->retry_min_ms = 1000;
	config->retry_max_ms = 60000;
	config->agent_timeout_ms = 5000;
	config->queue = 1024;
	config->batch = 1;
	if (state_dir && state_dir[0] == '/')
		snprintf(config->state_dir, sizeof(config->state_dir), "%.*s",
			 (int)strcspn(state_dir, ":"), state_dir);
}

static bool set_instance(void *ctx, const char *value)
{
	struct vs_config *config = ctx;

	return pmdp_value_instance(value, config->instances, VS_MAX_INSTANCES,
				   &config->n_instances);
}

static void get_instance(const void *ctx, char *out, size_t size)
{
	const struct vs_config *config = ctx;

	pmdp_value_instances(config->instances, config->n_instances, out, size);
}

static void clear_instance(void *ctx)
{
	((struct vs_config *)ctx)->n_instances = 0;
}

static void get_rundir(const void *ctx, char *out, size_t size)
{
	const struct vs_config *config = ctx;

	if (pmdp_rundir(config->rundir, out, size))
		snprintf(out, size, "%s", config->rundir);
}

static bool set_publisher(void *ctx, const char *value)
{
	struct vs_config *config = ctx;

	config->has_publisher_uid = pmdp_value_user(value, &config->publisher_uid);
	return config->has_publisher_uid;
}

static void get_publisher(const void *ctx, char *out, size_t size)
{
	const struct vs_config *config = ctx;

	out[0] = 0;
	if (config->has_publisher_uid)
		snprintf(out, size, "%u", config->publisher_uid);
}

static bool set_url(void *ctx, const char *value)
{
	struct vs_config *config = ctx;
	size_t len = strlen(value), tail = strlen(VS_LISTENER);
	const char *host = !strncmp(value, "https://", 8)  ? value + 8
			   : !strncmp(value, "http://", 7) ? value + 7
							   : "";

	if (!host[0] || host[0] == '/' || strpbrk(value, " \t?#@") || len <= tail ||
	    strcmp(value + len - tail, VS_LISTENER))
		return false;
	return pmdp_value_text(value, config->url, sizeof(config->url));
}

static bool set_source_name(void *ctx, const char *value)
{
	struct vs_config *config = ctx;

	return pmdp_value_text(value, config->source_name, sizeof(config->source_name));
}

static bool set_domain(void *ctx, const char *value)
{
	struct vs_config *config = ctx;
	int word = pmdp_value_word(value, domain_names, VS_N_DOMAINS);

	if (word < 0)
		return false;
	config->domains |= 1u << word;
	return true;
}

static void get_domain(const void *ctx, char *out, size_t size)
{
	const struct vs_config *config = ctx;
	size_t used = 0;

	out[0] = 0;
	for (uint32_t i = 0; i < VS_N_DOMAINS && used < size; i++)
		if (vs_config_sends(config, 1u << i))
			used += (size_t)snprintf(out + used, size - used, "%s%s", used ? " " : "",
						 domain_names[i]);
}

static void clear_domain(void *ctx)
{
	((struct vs_config *)ctx)->domains = 0;
}

static bool set_batch(void *ctx, const char *value)
{
	return pmdp_value_number(value, 1, MAX_BATCH, 10, &((struct vs_config *)ctx)->batch);
}

static bool set_queue(void *ctx, const char *value)
{
	// Twice a batch, since what is on its way can't be dropped.
	return pmdp_value_number(value, 2 * MAX_BATCH, MAX_QUEUE, 10,
				 &((struct vs_config *)ctx)->queue);
}

static bool set_heartbeat(void *ctx, const char *value)
{
	return pmdp_value_number(value, 0, 86400, 10, &((struct vs_config *)ctx)->heartbeat_s);
}

static bool set_state_dir(void *ctx, const char *value)
{
	struct vs_config *config = ctx;

	return !access(value, W_OK | X_OK) &&
	       pmdp_value_path(value, config->state_dir, sizeof(config->state_dir));
}

static bool set_debug(void *ctx, const char *value)
{
	return pmdp_value_bool(value, &((struct vs_config *)ctx)->is_debug);
}

static void get_debug(const void *ctx, char *out, size_t size)
{
	snprintf(out, size, "%s", ((const struct vs_config *)ctx)->is_debug ? "true" : "false");
}

#define GET_TEXT(name, field)                                                      \
	static void get_##name(const void *ctx, char *out, size_t size)            \
	{                                                                          \
		snprintf(out, size, "%s", ((const struct vs_config *)ctx)->field); \
	}
#define PATH(name, field)                                                            \
	static bool set_##name(void *ctx, const char *value)                         \
	{                                                                            \
		struct vs_config *config = ctx;                                      \
                                                                                     \
		return pmdp_value_path(value, config->field, sizeof(config->field)); \
	}
#define FILE_TO_READ(name, field)                                                    \
	static bool set_##name(void *ctx, const char *value)                         \
	{                                                                            \
		struct vs_config *config = ctx;                                      \
                                                                                     \
		return !access(value, R_OK) &&                                       \
		       pmdp_value_path(value, config->field, sizeof(config->field)); \
	}
#define GET_NUMBER(name, field)                                                       \
	static void get_##name(const void *ctx, char *out, size_t size)               \
	{                                                                             \
		snprintf(out, size, "%llu",                                           \
			 (unsigned long long)((const struct vs_config *)ctx)->field); \
	}
#define MILLISECONDS(name, field)                                            \
	static bool set_##name(void *ctx, const char *value)                 \
	{                                                                    \
		return pmdp_value_number(value, 1, 3600000, 10,              \
					 &((struct vs_config *)ctx)->field); \
	}                                                                    \
	GET_NUMBER(name, field)

PATH(rundir, rundir)
PATH(credentials, credentials)
GET_TEXT(credentials, credentials)
FILE_TO_READ(ca_file, ca_file)
GET_TEXT(ca_file, ca_file)
FILE_TO_READ(client_cert, client_cert)
GET_TEXT(client_cert, client_cert)
FILE_TO_READ(client_key, client_key)
GET_TEXT(client_key, client_key)
GET_TEXT(state_dir, state_dir)
GET_TEXT(url, url)
GET_TEXT(source_name, source_name)
MILLISECONDS(timeout, timeout_ms)
MILLISECONDS(retry_min, retry_min_ms)
MILLISECONDS(retry_max, retry_max_ms)
MILLISECONDS(agent_timeout, agent_timeout_ms)
GET_NUMBER(heartbeat, heartbeat_s)
GET_NUMBER(queue, queue)
GET_NUMBER(batch, batch)

#define A_PATH "an absolute path"
#define A_FILE "the absolute path of a file that can be read"
#define A_TIME "whole milliseconds from 1 to 3600000"

static const struct pmdp_setting keys[] = {
	{"url", "URL", "where events are sent (required)",
	 "an http or https URL that ends in " VS_LISTENER ", without a user, like "
	 "https://collector:8443" VS_LISTENER,
	 false, set_url, get_url, NULL},
	{"credentials", "FILE", "file with one line USER:PASSWORD, not readable by others", A_PATH,
	 false, set_credentials, get_credentials, NULL},
	{"ca-file", "FILE", "certificates that the collector's must be signed by (default: system)",
	 A_FILE, false, set_ca_file, get_ca_file, NULL},
	{"client-cert", "FILE", "own certificate, PEM", A_FILE, false, set_client_cert,
	 get_client_cert, NULL},
	{"client-key", "FILE", "its key, PEM, if not in the same file", A_FILE, false,
	 set_client_key, get_client_key, NULL},
	{"instance", "NAME", "follow this instance (repeatable; default: all in the run directory)",
	 "an instance name: 1 to 63 of A-Z a-z 0-9 _ . -, not beginning with . or -, not ending in "
	 ".agent, at most 64 of them",
	 true, set_instance, get_instance, clear_instance},
	{"rundir", "DIR", "run directory with the segments", A_PATH, false, set_rundir, get_rundir,
	 NULL},
	{"publisher-user", "USER",
	 "accept segments of this user beside root's, one's own and the services'",
	 "the name or number of a user that exists here", false, set_publisher, get_publisher,
	 NULL},
	{"source-name", "NAME", "sourceName of every event (default: the host's name)",
	 "a name of 1 to 255 bytes", false, set_source_name, get_source_name, NULL},
	{"domain", "NAME", "send this domain (repeatable; default: fault, stateChange, heartbeat)",
	 "fault, stateChange or heartbeat", true, set_domain, get_domain, clear_domain},
	{"heartbeat-interval", "S", "a heartbeat this often, 0 for none (default: 60)",
	 "whole seconds from 0 to 86400", false, set_heartbeat, get_heartbeat, NULL},
	{"timeout", "MS", "give up a try after this long (default: 10000)", A_TIME, false,
	 set_timeout, get_timeout, NULL},
	{"retry-min", "MS", "pause after a failed try; doubles with each (default: 1000)", A_TIME,
	 false, set_retry_min, get_retry_min, NULL},
	{"retry-max", "MS", "longest pause between tries (default: 60000)", A_TIME, false,
	 set_retry_max, get_retry_max, NULL},
	{"queue", "N", "events that wait while the collector is away (default: 1024)",
	 "a whole number from 200 to 16384", false, set_queue, get_queue, NULL},
	{"batch", "N", "at most so many events of one domain in a post (default: 1: no batches)",
	 "a whole number from 1 to 100", false, set_batch, get_batch, NULL},
	{"agent-timeout", "MS",
	 "raise agent-gone when an agent shows no sign of life for so long (default: 5000)", A_TIME,
	 false, set_agent_timeout, get_agent_timeout, NULL},
	{"state-dir", "DIR",
	 "keeps how far events were sent, over a restart (default: $STATE_DIRECTORY, else nothing)",
	 "the absolute path of a folder that can be written", false, set_state_dir, get_state_dir,
	 NULL},
	{"debug", "true|false", "log more (default: false)", "true or false", false, set_debug,
	 get_debug, NULL},
};

_Static_assert(sizeof(keys) / sizeof(keys[0]) <= PMDP_SETTINGS_MAX, "too many keys");

const struct pmdp_settings vs_settings = {
	.program = "pmdpulse-ves",
	.section = "[ves]",
	.file = VS_CONFIG_FILE,
	.keys = keys,
	.n_keys = sizeof(keys) / sizeof(keys[0]),
};

int vs_config_credentials(const char *path, char *out, size_t size, char *error, size_t error_size)
{
	struct stat st;
	FILE *file = fopen(path, "re");
	int rc = file && !fstat(fileno(file), &st) ? 0 : -errno;

	if (rc) {
		snprintf(error, error_size, "%s: %s; %s", path, strerror(-rc),
			 rc == -EACCES ? "give it to the user that pmdpulse-ves runs as"
				       : "a line USER:PASSWORD must stand there");
	} else if (st.st_mode & 0007) {
		snprintf(error, error_size, "%s: others may read it; chmod o= '%s'", path, path);
		rc = -EINVAL;
	} else if (!fgets(out, (int)size, file) || !strchr(out, ':') || out[0] == ':' ||
		   (strlen(out) == size - 1 && out[size - 2] != '\n')) {
		snprintf(error, error_size, "%s: its first line is not USER:PASSWORD", path);
		rc = -EINVAL;
	} else {
		out[strcspn(out, "\r\n")] = 0;
	}
	if (file)
		fclose(file);
	return rc;
}

int vs_config_check(const struct vs_config *config, char *error, size_t error_size)
{
	char userpwd[VS_USERPWD_BYTES], why[PMDP_SETTINGS_ERROR_BYTES - 32];

	if (!config->url[0]) {
		snprintf(error, error_size, "url: not set; right would be %s", keys[0].right);
		return -EINVAL;
	}
	if (config->retry_max_ms < config->retry_min_ms) {
		snprintf(error, error_size,
			 "retry-max: %llu ms is less than retry-min; right would be %llu or more",
			 (unsigned long long)config->retry_max_ms,
			 (unsigned long long)config->retry_min_ms);
		return -EINVAL;
	}
	if (config->client_key[0] && !config->client_cert[0]) {
		snprintf(error, error_size, "client-key: without client-cert; set both");
		return -EINVAL;
	}
	if (config->credentials[0] && vs_config_credentials(config->credentials, userpwd,
							    sizeof(userpwd), why, sizeof(why))) {
		snprintf(error, error_size, "credentials: %s", why);
		return -EINVAL;
	}
	return 0;
}
