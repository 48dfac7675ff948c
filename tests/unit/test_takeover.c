// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Who may take a name over from whom, with real processes.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "pmdp_clock.h"
#include "pmdpulse.h"
#include "test_dir.h"

#define N_STARTERS 6
#define N_RACES 30

static int open_ring(const char *dir, struct pmdp_publisher **out_pub)
{
	const struct pmdp_publisher_opts opts = {
		.rundir = dir, .n_lanes = 2, .records_per_lane = 4};

	return pmdp_publisher_open("t", &opts, out_pub);
}

// A child that publishes and then waits to be killed. Returns once it has said what open gave.
static pid_t start_writer(const char *dir, int *out_rc)
{
	struct pmdp_publisher *pub;
	int ends[2], rc;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		rc = open_ring(dir, &pub);
		if (write(ends[1], &rc, sizeof rc) != sizeof rc)
			_exit(1);
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	assert_int_equal(read(ends[0], out_rc, sizeof *out_rc), sizeof *out_rc);
	close(ends[0]);
	close(ends[1]);
	return pid;
}

static void end_writer(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static struct pmdp_header_shm *map_ring(void)
{
	int fd = open(test_dir_path("t.ring"), O_RDWR);
	struct pmdp_header_shm *header;

	assert_true(fd >= 0);
	header = mmap(NULL, sizeof *header, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	assert_true(header != MAP_FAILED);
	return header;
}

static void test_takeover_not_from_the_living(void **state)
{
	struct pmdp_publisher *pub;
	int rc;
	pid_t pid = start_writer(*state, &rc);

	assert_int_equal(rc, 0);
	assert_int_equal(open_ring(*state, &pub), -EEXIST);
	assert_int_equal(kill(pid, SIGSTOP), 0); // stopped is not dead
	assert_int_equal(open_ring(*state, &pub), -EEXIST);
	end_writer(pid);
}

static void test_takeover_not_from_oneself(void **state)
{
	struct pmdp_publisher *pub, *second;

	assert_int_equal(open_ring(*state, &pub), 0);
	assert_int_equal(open_ring(*state, &second), -EEXIST);
	pmdp_publisher_close(pub);
	assert_int_equal(open_ring(*state, &pub), 0);
	pmdp_publisher_close(pub);
}

static void test_takeover_after_a_kill(void **state)
{
	const struct pmdp_reader_opts opts = {.rundir = *state};
	struct pmdp_publisher *pub;
	struct pmdp_reader *reader;
	uint64_t generation;
	int rc;
	pid_t pid = start_writer(*state, &rc);

	assert_int_equal(pmdp_reader_open("t", &opts, &reader), 0);
	generation = pmdp_reader_info(reader)->generation;
	assert_int_equal(pmdp_reader_writer_alive(reader), 1);
	end_writer(pid);
	assert_int_equal(pmdp_reader_writer_alive(reader), 0);
	assert_int_equal(pmdp_reader_check(reader), 0); // the file stays: a post-mortem reads it
	assert_int_equal(open_ring(*state, &pub), 0);
	assert_true(pmdp_publisher_generation(pub) > generation);
	assert_int_equal(pmdp_reader_check(reader), -ESTALE);
	pmdp_reader_close(reader);
	pmdp_publisher_close(pub);
	assert_int_equal(access(test_dir_path("t.ring"), F_OK), -1);
}

// A zombie still has its pid.
static void test_takeover_from_a_zombie(void **state)
{
	struct pmdp_publisher *pub;
	siginfo_t info;
	int rc;
	pid_t pid = start_writer(*state, &rc);

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(open_ring(*state, &pub), 0);
	pmdp_publisher_close(pub);
	waitpid(pid, NULL, 0);
}

static void test_takeover_from_a_recycled_pid(void **state)
{
	struct pmdp_header_shm *header;
	struct pmdp_publisher *pub;
	int rc;
	pid_t pid = start_writer(*state, &rc);

	end_writer(pid);
	header = map_ring();
	header->writer_pid = (uint32_t)getpid(); // alive, but began at another time
	header->writer_start_ticks = 1;
	munmap(header, sizeof *header);
	assert_int_equal(open_ring(*state, &pub), 0);
	pmdp_publisher_close(pub);
}

static void test_takeover_from_another_boot(void **state)
{
	struct pmdp_header_shm *header;
	struct pmdp_publisher *pub;
	int rc;
	pid_t pid = start_writer(*state, &rc);

	header = map_ring();
	header->boot_id[3] ^= 1;
	munmap(header, sizeof *header);
	assert_int_equal(open_ring(*state, &pub), 0);
	pmdp_publisher_close(pub);
	end_writer(pid);
}

// The first 128 bytes mean the same in every version: a newer writer that lives is not robbed.
static void test_takeover_across_versions(void **state)
{
	struct pmdp_header_shm *header;
	struct pmdp_publisher *pub;
	int rc;
	pid_t pid = start_writer(*state, &rc);

	header = map_ring();
	header->abi_version = PMDP_ABI_VERSION + 1;
	assert_int_equal(open_ring(*state, &pub), -EEXIST);
	end_writer(pid);
	header->generation = pmdp_realtime_now_us() / 1000 + 5000000; // a clock that was ahead
	assert_int_equal(open_ring(*state, &pub), 0);
	assert_true(pmdp_publisher_generation(pub) == header->generation + 1);
	munmap(header, sizeof *header);
	pmdp_publisher_close(pub);
}

// Stopped cleanly but still running: the name is free.
static void test_takeover_from_the_stopped(void **state)
{
	struct pmdp_header_shm *header;
	struct pmdp_publisher *pub;
	int rc;
	pid_t pid = start_writer(*state, &rc);

	header = map_ring();
	header->stopped_ns = 1;
	munmap(header, sizeof *header);
	assert_int_equal(open_ring(*state, &pub), 0);
	pmdp_publisher_close(pub);
	end_writer(pid);
}

// The writer's lock tells where its pid can't.
static void test_takeover_in_another_pid_namespace(void **state)
{
	const struct pmdp_reader_opts opts = {.rundir = *state};
	struct pmdp_publisher *pub;
	struct pmdp_reader *reader;
	int status, ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) { // becomes the parent of the first process of a new namespace
		if (unshare(CLONE_NEWPID) < 0)
			_exit(77);
		pid = fork();
		if (pid == 0) {
			if (open_ring(*state, &pub) < 0 || write(ready[1], "r", 1) != 1)
				_exit(1);
			raise(SIGSTOP); // ignored by the first of a namespace, but harmless
			pause();
		}
		if (pid < 0 || waitpid(pid, &status, 0) < 0)
			_exit(1);
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {
		assert_int_equal(waitpid(pid, &status, 0), pid);
		close(ready[0]);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 77);
		test_skip("no right to make a pid namespace");
	}
	close(ready[0]);
	assert_int_equal(pmdp_reader_open("t", &opts, &reader), 0);
	assert_false(pmdp_reader_info(reader)->is_same_pidns);
	assert_int_equal(pmdp_reader_info(reader)->writer_pid, 1); // someone else here
	assert_int_equal(pmdp_reader_writer_alive(reader), 1);
	assert_int_equal(open_ring(*state, &pub), -EEXIST);
	// Kill the inner one: it is the only child of pid.
	{
		char path[64], text[32] = "";
		FILE *file;

		snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
		file = fopen(path, "r");
		assert_non_null(file);
		assert_non_null(fgets(text, sizeof text, file));
		fclose(file);
		assert_int_equal(kill((pid_t)strtol(text, NULL, 10), SIGKILL), 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(pmdp_reader_writer_alive(reader), 0);
	assert_int_equal(open_ring(*state, &pub), 0);
	pmdp_reader_close(reader);
	pmdp_publisher_close(pub);
}

// Child of a race: open, tell the result, stay alive until told.
static void race_child(const char *dir, int go_fd, int result_fd)
{
	struct pmdp_publisher *pub;
	char byte;
	int rc;

	if (read(go_fd, &byte, 1) < 0) // returns at the close of the other end
		_exit(1);
	rc = open_ring(dir, &pub);
	if (write(result_fd, &rc, sizeof rc) != sizeof rc)
		_exit(1);
	for (;;)
		pause();
}

// Several start at once, over a dead predecessor (from the second round on): exactly one wins.
static void test_takeover_race(void **state)
{
	pid_t pids[N_STARTERS];
	int go[2], results[2], rc, n_winners;

	for (int race = 0; race < N_RACES; race++) {
		assert_int_equal(pipe(go), 0);
		assert_int_equal(pipe(results), 0);
		for (int i = 0; i < N_STARTERS; i++) {
			pids[i] = fork();
			if (pids[i] == 0) {
				close(go[1]);
				race_child(*state, go[0], results[1]);
			}
			assert_true(pids[i] > 0);
		}
		close(go[0]);
		close(go[1]);
		n_winners = 0;
		for (int i = 0; i < N_STARTERS; i++) {
			assert_int_equal(read(results[0], &rc, sizeof rc), sizeof rc);
			assert_true(rc == 0 || rc == -EEXIST);
			n_winners += rc == 0;
		}
		for (int i = 0; i < N_STARTERS; i++)
			end_writer(pids[i]);
		close(results[0]);
		close(results[1]);
		assert_int_equal(n_winners, 1);
	}
}

// Does the process have this file open for writing? Then it waits for the lock of the name.
static bool has_open_for_writing(pid_t pid, const char *path)
{
	char link[64], target[128], text[256];
	FILE *info;
	ssize_t len;

	for (int fd = 3; fd < 32; fd++) {
		unsigned int flags = 0;

		// The flags first: the number of the file that was only looked at goes to the
		// nameless one next, which is open for writing too.
		snprintf(link, sizeof link, "/proc/%d/fdinfo/%d", (int)pid, fd);
		info = fopen(link, "r");
		if (!info)
			continue;
		while (fgets(text, sizeof text, info) && sscanf(text, "flags: %o", &flags) != 1)
			;
		fclose(info);
		snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, fd);
		len = readlink(link, target, sizeof target - 1);
		if (len < 0)
			continue;
		target[len] = 0;
		if (strcmp(target, path) == 0 && (flags & O_ACCMODE) == O_RDWR)
			return true;
	}
	return false;
}

// A starter that waits for the lock of a dead predecessor finds, when it gets it, that the name
// leads to someone else by now, who lives.
static void test_takeover_loses_while_it_waits(void **state)
{
	const struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = 1};
	uint64_t deadline_ns = test_now_ns() + 5000000000;
	struct pmdp_publisher *pub, *other;
	char path[128], byte;
	int rc, status, fd, ready[2];
	pid_t pid = start_writer(*state, &rc);

	end_writer(pid);
	strcpy(path, test_dir_path("t.ring"));
	assert_int_equal(pipe(ready), 0);
	fd = open(path, O_RDWR);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
	pid = fork();
	if (pid == 0) {
		close(fd); // a lock goes with the last copy of its descriptor
		close(ready[0]);
		close(ready[1]);
		_exit(-open_ring(*state, &other));
	}
	// What it has open from here on, it has opened itself.
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 0);
	close(ready[0]);
	while (!has_open_for_writing(pid, path))
		assert_true(test_now_ns() < deadline_ns);
	assert_int_equal(rename(path, test_dir_path("aside")), 0);
	assert_int_equal(open_ring(*state, &pub), 0);
	close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EEXIST);
	pmdp_publisher_close(pub);
}

// A clean stop removes the name only while it is its own.
static void test_takeover_close_leaves_a_successor(void **state)
{
	struct pmdp_publisher *pub, *successor;
	struct pmdp_header_shm *header;

	assert_int_equal(open_ring(*state, &pub), 0);
	header = map_ring();
	header->stopped_ns = 1; // as if it were about to unlink
	munmap(header, sizeof *header);
	assert_int_equal(open_ring(*state, &successor), 0);
	pmdp_publisher_close(pub);
	assert_int_equal(access(test_dir_path("t.ring"), F_OK), 0);
	pmdp_publisher_close(successor);
	assert_int_equal(access(test_dir_path("t.ring"), F_OK), -1);
}

// A forked child that runs its parent's clean-up takes nothing away.
static void test_takeover_close_in_a_child(void **state)
{
	struct pmdp_publisher *pub;
	struct pmdp_header_shm *header;
	int status;
	pid_t pid;

	assert_int_equal(open_ring(*state, &pub), 0);
	pid = fork();
	if (pid == 0) {
		pmdp_publisher_close(pub);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	header = map_ring();
	assert_int_equal(header->stopped_ns, 0);
	munmap(header, sizeof *header);
	pmdp_publisher_close(pub);
}

// A starter that was killed between link and rename left its side name: the next one gets by.
static void test_takeover_over_a_side_name(void **state)
{
	struct pmdp_publisher *pub;
	int rc, fd = open(test_dir_path(".t.ring.new"), O_CREAT | O_WRONLY, 0600);
	pid_t pid = start_writer(*state, &rc);

	assert_true(fd >= 0);
	close(fd);
	end_writer(pid);
	assert_int_equal(open_ring(*state, &pub), 0);
	assert_int_equal(access(test_dir_path(".t.ring.new"), F_OK), -1);
	pmdp_publisher_close(pub);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, test_dir_setup, test_dir_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_takeover_not_from_the_living),
		TEST(test_takeover_not_from_oneself),
		TEST(test_takeover_after_a_kill),
		TEST(test_takeover_from_a_zombie),
		TEST(test_takeover_from_a_recycled_pid),
		TEST(test_takeover_from_another_boot),
		TEST(test_takeover_across_versions),
		TEST(test_takeover_from_the_stopped),
		TEST(test_takeover_in_another_pid_namespace),
		TEST(test_takeover_race),
		TEST(test_takeover_loses_while_it_waits),
		TEST(test_takeover_close_leaves_a_successor),
		TEST(test_takeover_close_in_a_child),
		TEST(test_takeover_over_a_side_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
