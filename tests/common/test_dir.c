// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "test_dir.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pmdp_clock.h"

static char dir[64];

const char *test_dir_make(void)
{
	snprintf(dir, sizeof dir, "/dev/shm/pmdp-test-XXXXXX");
	if (!mkdtemp(dir)) {
		fprintf(stderr, "%s: %s\n", dir, strerror(errno));
		exit(1);
	}
	return dir;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

void test_dir_remove(void)
{
	if (*dir)
		nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	*dir = 0;
}

int test_dir_setup(void **state)
{
	*state = (void *)test_dir_make();
	return 0;
}

int test_dir_teardown(void **state)
{
	(void)state;
	test_dir_remove();
	return 0;
}

const char *test_dir_path(const char *name)
{
	static char paths[4][512];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof paths[0], "%s/%s", dir, name);
	return path;
}

uint64_t test_seed(const char *test)
{
	const char *given = getenv("PMDP_TEST_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : test_now_ns();

	if (!seed)
		seed = 1;
	printf("%s: PMDP_TEST_SEED=%llu\n", test, (unsigned long long)seed);
	fflush(stdout);
	return seed;
}

uint64_t test_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return x * UINT64_C(0x2545f4914f6cdd1d);
}

uint64_t test_now_ns(void)
{
	return pmdp_mono_now_ns();
}
