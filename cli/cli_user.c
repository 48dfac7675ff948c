// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Whose segments are read: the user that the agent believes, so that both see the same switch.
#include <ctype.h>
#include <string.h>

#include "cli.h"
#include "pmdp_settings.h"

#define KEY "publisher-user"

static char *trim(char *text)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*end = 0;
	return text;
}

bool cli_user_of_agent(const char *path, uid_t *out_uid)
{
	char line[PMDP_SETTING_BYTES + 64];
	bool is_found = false;
	FILE *file = fopen(path, "re");

	if (file == NULL)
		return false;
	while (!is_found && fgets(line, sizeof(line), file) != NULL) {
		char *equals = strchr(line, '=');

		if (equals == NULL)
			continue;
		*equals = 0;
		is_found = strcmp(trim(line), KEY) == 0 &&
			   pmdp_value_user(trim(equals + 1), out_uid);
	}
	fclose(file);
	return is_found;
}

struct pmdp_reader_opts cli_reader_opts(const struct cli *cli, const char *suffix)
{
	return (struct pmdp_reader_opts){
		.rundir = cli->rundir,
		.suffix = suffix,
		.publisher_uid = cli->publisher_uid,
		.has_publisher_uid = cli->has_publisher_uid,
	};
}
