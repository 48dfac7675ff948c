// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "vs_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pmdpulse.h"

#define HEAD "pmdpulse-ves 1"
#define PATH_BYTES 4200
#define LINE_BYTES 512

struct vs_place *vs_state_place(struct vs_state *state, const char *instance)
{
	for (uint32_t i = 0; i < state->n_places; i++)
		if (!strcmp(state->places[i].instance, instance))
			return &state->places[i];
	if (state->n_places == VS_STATE_MAX)
		return NULL;
	struct vs_place *place = &state->places[state->n_places++];
	memset(place, 0, sizeof(*place));
	snprintf(place->instance, sizeof(place->instance), "%s", instance);
	return place;
}

static void boot_id(char out[64])
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!file || !fgets(out, 64, file))
		snprintf(out, 64, "unknown");
	out[strcspn(out, "\n")] = 0;
	if (file)
		fclose(file);
}

// One line after the first two; false: no such line.
static bool take_line(struct vs_state *state, const char *line, bool is_same_boot)
{
	char name[PMDP_INSTANCE_BYTES], id[PMDP_ID_BYTES];
	struct vs_place *place;
	uint64_t number;

	if (sscanf(line, "untold %" SCNu64, &number) == 1) {
		state->n_untold = number;
		return true;
	}
	bool is_gone = sscanf(line, "gone %63s %95s %" SCNu64, name, id, &number) == 3;
	if (!is_gone && sscanf(line, "next %63s %95s %" SCNu64, name, id, &number) != 3)
		return false;
	if (pmdp_instance_check(name))
		return false;
	place = vs_state_place(state, name);
	if (!place)
		return false;
	if (is_gone) {
		snprintf(place->gone_id, sizeof(place->gone_id), "%s", id);
		place->gone_started_us = number;
	} else if (is_same_boot) {
		place->next_seq = number;
		if (strcmp(id, "-"))
			snprintf(place->last_id, sizeof(place->last_id), "%s", id);
	}
	return true;
}

static bool read_lines(FILE *file, struct vs_state *state)
{
	char line[LINE_BYTES], boot[64], expected[LINE_BYTES];
	bool is_same_boot, is_right;

	if (!fgets(line, sizeof(line), file) || strcmp(line, HEAD "\n") ||
	    !fgets(line, sizeof(line), file) || strncmp(line, "boot ", 5))
		return false;
	boot_id(boot);
	snprintf(expected, sizeof(expected), "boot %s\n", boot);
	is_same_boot = !strcmp(line, expected);
	is_right = true;
	while (is_right && fgets(line, sizeof(line), file))
		is_right = strchr(line, '\n') && take_line(state, line, is_same_boot);
	return is_right;
}

int vs_state_load(const char *folder, struct vs_state *out_state)
{
	char path[PATH_BYTES];

	memset(out_state, 0, sizeof(*out_state));
	snprintf(path, sizeof(path), "%s/state", folder);
	FILE *file = fopen(path, "re");
	if (!file)
		return errno == ENOENT ? 0 : -errno;
	bool is_right = read_lines(file, out_state);
	fclose(file);
	if (is_right)
		return 0;
	memset(out_state, 0, sizeof(*out_state));
	return -EBADMSG;
}

// An id comes from a segment: what would not be one word of a line is left out.
static const char *word(const char *id)
{
	for (const char *at = id; *at; at++)
		if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 127)
			return "-";
	return id[0] ? id : "-";
}

static void write_lines(FILE *file, const struct vs_state *state)
{
	char boot[64];

	boot_id(boot);
	fprintf(file, HEAD "\nboot %s\nuntold %" PRIu64 "\n", boot, state->n_untold);
	for (uint32_t i = 0; i < state->n_places; i++) {
		const struct vs_place *place = &state->places[i];

		if (place->next_seq)
			fprintf(file, "next %s %s %" PRIu64 "\n", place->instance,
				word(place->last_id), place->next_seq);
		if (strcmp(word(place->gone_id), "-"))
			fprintf(file, "gone %s %s %" PRIu64 "\n", place->instance, place->gone_id,
				place->gone_started_us);
	}
}

int vs_state_save(const char *folder, const struct vs_state *state)
{
	char path[PATH_BYTES], temporary[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/state", folder);
	snprintf(temporary, sizeof(temporary), "%s/.state.new", folder);
	FILE *file = fopen(temporary, "we");
	if (!file)
		return -errno;
	write_lines(file, state);
	int rc = ferror(file) ? -EIO : 0;
	if (fclose(file) && !rc)
		rc = -errno;
	if (!rc && rename(temporary, path))
		rc = -errno;
	if (rc)
		unlink(temporary);
	return rc;
}
