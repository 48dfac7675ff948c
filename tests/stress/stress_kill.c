// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * A writer that dies at any step of a publish. The writer is a child that is run instruction by
 * instruction (ptrace), so that no step is left out and no hook stands in the code.
 *
 * First the readers look after every single instruction, while the writer stands still there. Then
 * a new writer is killed with SIGKILL after every store that changed the segment, the segment is
 * read post mortem, and the next writer takes it over. Every read returns in bounded time with
 * something whole or with -EAGAIN.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "pmdpulse.h"
#include "test_dir.h"
#include "test_pattern.h"
#include "test_ring.h"

#define MAX_READ_NS UINT64_C(200000000) // generous: the machine may be busy with others
#define MAX_STEPS 2000000
#define N_UPDATES (TEST_PATTERN_FIRST + 1)
#define N_RECORDS_AT_END (2 + N_UPDATES + 3) // start and polling, then dozing, sleep, polling
#define N_BEATS_AT_END (1 + N_UPDATES + 2)   // polling, then before dozing and of polling
#define N_STORES 211                         // more than one publish has; a prime
#define BUDGET_NS UINT64_C(8000000000)       // for each of the two tests

enum {
	PHASE_START,
	PHASE_PUBLISH,
	PHASE_DONE
};

#define N_PARTS (TEST_PATTERN_PARTS + 3)

// Shared with the child, which runs to first_part, stops, and then is stepped to end_part.
static struct {
	_Atomic int phase; // where the child is
	int first_part, end_part;
} * shared;

struct tally {
	uint64_t n_old, n_new, n_again;
};

static void write_part(struct test_pattern_writer *w, int part)
{
	switch (part - TEST_PATTERN_PARTS) {
	case 0:
		// Far ahead, so that the time that the steps take is no gap.
		w->lane->last_ticks += 3600 * UINT64_C(1000000000);
		pmdp_lane_dozing(w->lane, PMDP_REASON_RECONFIGURATION, 1000000000);
		break;
	case 1:
		pmdp_lane_sleep(w->lane, PMDP_REASON_NO_QUEUE);
		break;
	case 2:
		pmdp_lane_polling(w->lane);
		break;
	default:
		test_pattern_write_part(w, part);
	}
}

static _Noreturn void write_as_child(const char *dir)
{
	struct test_pattern_writer w = {0};

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(77);
	if (test_pattern_open(&w, dir) < 0)
		_exit(1);
	test_pattern_next(&w);
	for (int part = 0; part < shared->first_part; part++)
		write_part(&w, part);
	raise(SIGSTOP);
	atomic_store_explicit(&shared->phase, PHASE_PUBLISH, memory_order_release);
	for (int part = shared->first_part; part < shared->end_part; part++)
		write_part(&w, part);
	atomic_store_explicit(&shared->phase, PHASE_DONE, memory_order_release);
	for (;;)
		pause();
}

// A child that stands before a part of its publish. 0: no right to trace.
static pid_t start_writer(const char *dir, int first_part, int end_part)
{
	int status;
	pid_t pid;

	atomic_store_explicit(&shared->phase, PHASE_START, memory_order_relaxed);
	shared->first_part = first_part;
	shared->end_part = end_part;
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		write_as_child(dir);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return 0;
	assert_true(WIFSTOPPED(status));
	assert_int_equal(WSTOPSIG(status), SIGSTOP);
	return pid;
}

static int now_in(void)
{
	return atomic_load_explicit(&shared->phase, memory_order_acquire);
}

static void step(pid_t pid)
{
	int status;

	assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
		fail_msg("the writer did not stop after one instruction: status %#x", status);
}

static void step_to_publish(pid_t pid)
{
	for (int i = 0; now_in() == PHASE_START && i < MAX_STEPS; i++)
		step(pid);
	assert_int_equal(now_in(), PHASE_PUBLISH);
}

static void end_writer(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static const char *read_records(struct pmdp_reader *reader)
{
	struct pmdp_record_body records[8];
	uint64_t cursor = 0, lost = 0;
	int n = pmdp_reader_records(reader, 0, &cursor, records, 8, &lost);

	if (n < 0 || (uint64_t)n + lost != cursor)
		return "records and losses do not sum up";
	for (int i = 0; i < n; i++) {
		const char *torn = test_pattern_check_record(&records[i]);

		if (torn)
			return torn;
	}
	// Update k left record k + 1. The newest that is counted is there; only the oldest may be
	// gone.
	if (n == 0 || (records[n - 1].kind == PMDP_RECORD_GAP &&
		       records[n - 1].length_ticks - TEST_PATTERN_GAP_NS + 2 != cursor))
		return "a record counted before it is there";
	return NULL;
}

static const char *read_look(struct pmdp_reader *reader)
{
	const struct pmdp_lane_look *lane;
	struct pmdp_look look;

	if (pmdp_reader_look(reader, &look) < 0)
		return "error from pmdp_reader_look";
	lane = &look.lanes[0];
	if (lane->announce < PMDP_ANNOUNCE_POLLING || lane->announce > PMDP_ANNOUNCE_SLEEP)
		return "announcement";
	if (lane->announce == PMDP_ANNOUNCE_DOZING && !lane->deadline_ns)
		return "dozing without its deadline";
	if (lane->announce == PMDP_ANNOUNCE_POLLING && lane->n_records == N_RECORDS_AT_END &&
	    lane->beats != N_BEATS_AT_END)
		return "polling before its beat";
	return test_pattern_check_look(lane, 3); // two of polling, one before dozing
}

static const char *read_all(struct pmdp_reader *reader, struct tally *tally)
{
	struct pmdp_lane_body lane;
	struct pmdp_port_body port;
	const char *wrong = NULL;
	int rc = pmdp_reader_lane(reader, 0, &lane);

	if (rc == 0)
		wrong = test_pattern_check_lane(&lane);
	else if (rc != -EAGAIN)
		wrong = "error from pmdp_reader_lane";
	tally->n_old += rc == 0 && lane.snapshot_ticks == TEST_PATTERN_FIRST;
	tally->n_new += rc == 0 && lane.snapshot_ticks == TEST_PATTERN_FIRST + 1;
	tally->n_again += rc == -EAGAIN;
	if (wrong)
		return wrong;
	rc = pmdp_reader_port(reader, 0, &port, NULL);
	if (rc == 0)
		wrong = test_pattern_check_port(&port);
	else if (rc != -EAGAIN)
		wrong = "error from pmdp_reader_port";
	if (!wrong)
		wrong = read_records(reader);
	return wrong ? wrong : read_look(reader);
}

static void read_in_time(struct pmdp_reader *reader, struct tally *tally, uint64_t n)
{
	uint64_t begin_ns = test_now_ns(), took_ns;
	const char *wrong = read_all(reader, tally);

	took_ns = test_now_ns() - begin_ns;
	if (wrong)
		fail_msg("at step %llu: %s", (unsigned long long)n, wrong);
	if (took_ns > MAX_READ_NS)
		fail_msg("at step %llu the readers took %llu ns", (unsigned long long)n,
			 (unsigned long long)took_ns);
}

static void test_kill_stands_still_at_every_instruction(void **state)
{
	const struct pmdp_reader_opts opts = {.rundir = *state};
	uint64_t n_steps = 0, end_ns = test_now_ns() + BUDGET_NS;
	struct pmdp_reader *reader;
	struct tally tally = {0};
	bool is_complete;
	pid_t pid = start_writer(*state, 0, N_PARTS);

	if (!pid)
		test_skip("no right to trace a child (ptrace)");
	assert_int_equal(pmdp_reader_open("t", &opts, &reader), 0);
	step_to_publish(pid);
	while (now_in() == PHASE_PUBLISH && n_steps < MAX_STEPS && test_now_ns() < end_ns) {
		step(pid);
		read_in_time(reader, &tally, n_steps++);
	}
	is_complete = now_in() == PHASE_DONE;
	printf("  %llu instructions%s; lane as before %llu, new %llu, in the middle %llu times\n",
	       (unsigned long long)n_steps, is_complete ? "" : ", then the time was up",
	       (unsigned long long)tally.n_old, (unsigned long long)tally.n_new,
	       (unsigned long long)tally.n_again);
	end_writer(pid);
	pmdp_reader_close(reader);
	assert_true(tally.n_old && tally.n_again);
	if (is_complete)
		assert_true(tally.n_new > 0);
}

// Step until the segment has changed n times, or the time is up. False: the publish was over
// before.
static bool step_to_store(pid_t pid, const char *dir, uint64_t n, uint64_t end_ns)
{
	static char before[65536];
	struct test_ring ring;

	step_to_publish(pid);
	test_ring_map(&ring, dir, "t.ring");
	assert_true(ring.size <= sizeof before);
	memcpy(before, ring.header, ring.size);
	while (n > 0 && now_in() == PHASE_PUBLISH && test_now_ns() < end_ns) {
		step(pid);
		if (memcmp(before, ring.header, ring.size) != 0) {
			memcpy(before, ring.header, ring.size);
			n--;
		}
	}
	test_ring_unmap(&ring);
	return now_in() == PHASE_PUBLISH;
}

static void read_post_mortem(const char *dir, struct tally *tally, uint64_t n)
{
	const struct pmdp_reader_opts opts = {.rundir = dir};
	struct pmdp_reader *reader;

	assert_int_equal(pmdp_reader_open("t", &opts, &reader), 0);
	assert_int_equal(pmdp_reader_writer_alive(reader), 0);
	read_in_time(reader, tally, n);
	pmdp_reader_close(reader);
}

// Killed after store 0, 1, ... of one part, until the part has no more. Returns how many died so.
static uint64_t kill_in_part(const char *dir, int part, uint64_t end_ns, struct tally *tally)
{
	uint64_t n = 0;
	bool was_inside = true;

	while (was_inside && test_now_ns() < end_ns) {
		pid_t pid = start_writer(dir, part, part + 1); // takes over from the one before

		if (!pid)
			test_skip("no right to trace a child (ptrace)");
		was_inside = step_to_store(pid, dir, n++, end_ns);
		end_writer(pid);
		read_post_mortem(dir, tally, n - 1);
	}
	return was_inside ? n : n - 1;
}

/*
 * Killed after every store of every part of a publish, the short parts first, then port and body.
 * Where the time is too short (under a sanitizer a publish has many times the instructions) some
 * parts are left before their end, and the line says so.
 */
static void test_kill_after_every_store(void **state)
{
	static const int parts[N_PARTS] = {1, 3, 4, 5, 6, 2, 0};
	uint64_t begin_ns = test_now_ns(), n_killed = 0, n_late = 0;
	struct tally tally = {0};

	for (int i = 0; i < N_PARTS; i++) {
		uint64_t end_ns = begin_ns + (parts[i] == 0   ? BUDGET_NS
					      : parts[i] == 2 ? BUDGET_NS / 2
							      : BUDGET_NS / 4);

		n_killed += kill_in_part(*state, parts[i], end_ns, &tally);
		n_late += test_now_ns() >= end_ns;
	}
	printf("  %llu writers killed at different stores of a publish; %llu of %d parts not to "
	       "their end for lack of time; lane as before %llu, new %llu, in the middle %llu "
	       "times\n",
	       (unsigned long long)n_killed, (unsigned long long)n_late, N_PARTS,
	       (unsigned long long)tally.n_old, (unsigned long long)tally.n_new,
	       (unsigned long long)tally.n_again);
	assert_true(tally.n_old && tally.n_new && tally.n_again);
	assert_true(n_killed > N_PARTS);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, test_dir_setup, test_dir_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_kill_stands_still_at_every_instruction),
		TEST(test_kill_after_every_store),
	};

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
