// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The empty timer loop that the agent's cost is compared with: sleeps to an absolute time again and
 * again and does nothing else, with the agent's priority and timer slack.
 *
 *	timer_loop WAKES_PER_S SECONDS    prints {"wakes": n, "cpu_ns": n}
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)

static uint64_t read_clock(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

int main(int argc, char **argv)
{
	double rate = argc > 1 ? strtod(argv[1], NULL) : 0;
	double seconds = argc > 2 ? strtod(argv[2], NULL) : 0;
	uint64_t n_wakes = 0;

	if (rate <= 0 || rate > 1e6 || seconds <= 0 || seconds > 3600) {
		fprintf(stderr, "usage: timer_loop WAKES_PER_S SECONDS\n");
		return 2;
	}
	prctl(PR_SET_TIMERSLACK, 1UL);
	if (setpriority(PRIO_PROCESS, 0, -20))
		fprintf(stderr,
			"timer_loop: nice -20 is refused; the agent has none either then\n");
	uint64_t period_ns = (uint64_t)((double)NS_PER_S / rate);
	uint64_t cpu_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t due_ns = read_clock(CLOCK_MONOTONIC);
	uint64_t end_ns = due_ns + (uint64_t)(seconds * (double)NS_PER_S);

	while (due_ns < end_ns) {
		due_ns += period_ns;
		struct timespec due = {.tv_sec = (time_t)(due_ns / NS_PER_S),
				       .tv_nsec = (long)(due_ns % NS_PER_S)};

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
		n_wakes++;
	}
	cpu_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
	printf("{\"wakes\": %llu, \"cpu_ns\": %llu}\n", (unsigned long long)n_wakes,
	       (unsigned long long)cpu_ns);
	return 0;
}
