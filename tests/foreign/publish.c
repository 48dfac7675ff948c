// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// A foreign program: publishes with three calls, reads with two, knows the library from its
// installed header and pkg-config file alone. Usage: publish INSTANCE BEATS
#include <pmdpulse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *what, int rc)
{
	fprintf(stderr, "%s: %s\n", what, strerror(-rc));
	return 1;
}

int main(int argc, char **argv)
{
	const char *instance = argc > 1 ? argv[1] : "foreign";
	long n_beats = argc > 2 ? atol(argv[2]) : 1000;
	struct pmdp_reader *reader;
	struct pmdp_look look;
	struct pmdp *p;
	int rc = pmdp_open(instance, NULL, &p);

	if (rc < 0)
		return fail("pmdp_open", rc);
	for (long i = 0; i < n_beats; i++) {
		usleep(1000); // the work
		pmdp_beat(p);
	}

	rc = pmdp_reader_open(instance, NULL, &reader);
	if (rc < 0)
		return fail("pmdp_reader_open", rc);
	rc = pmdp_reader_look(reader, &look);
	if (rc < 0)
		return fail("pmdp_reader_look", rc);
	for (unsigned int i = 0; i < look.n_lanes; i++) {
		if (look.lanes[i].is_claimed)
			printf("lane %u: %llu beats, the last %.6f s ago, every %.3f s is due\n", i,
			       (unsigned long long)look.lanes[i].beats,
			       1e-9 * (double)(look.now_ns - look.lanes[i].beat_ns),
			       1e-9 * (double)look.keepalive_interval_ns);
	}
	pmdp_reader_close(reader);
	pmdp_close(p);
	return 0;
}
