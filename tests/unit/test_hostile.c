// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Segments made to harm: each is refused with the right code and a reason that names the failed
 * check, or, where the damage comes after the attach, at the next look. Nothing crashes: run it
 * under the address sanitizer.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "pmdpulse.h"
#include "test_dir.h"
#include "test_ring.h"

static struct pmdp_publisher *pub;
static struct pmdp_lane *lane;
static struct test_ring ring;

static int setup(void **state)
{
	struct pmdp_publisher_opts opts = {.n_lanes = 4, .n_ports = 2, .records_per_lane = 8};

	*state = (void *)test_dir_make();
	opts.rundir = *state;
	if (pmdp_publisher_open("t", &opts, &pub) < 0 ||
	    pmdp_lane_claim(pub, "t", PMDP_LANE_PMD, -1, -1, 0, &lane) < 0)
		return -1;
	test_ring_map(&ring, *state, "t.ring");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	test_ring_unmap(&ring);
	pmdp_lane_release(lane);
	pmdp_publisher_close(pub);
	test_dir_remove();
	return 0;
}

static int open_why(char reason[128], struct pmdp_reader **out_reader)
{
	const struct pmdp_reader_opts opts = {.rundir = test_dir_path(".")};

	reason[0] = 0;
	return pmdp_reader_open_why("t", &opts, out_reader, reason, 128);
}

// Refused with this code, for a reason with this text in it.
static void assert_file_refused(int code, const char *text)
{
	struct pmdp_reader *reader = NULL;
	char reason[128];

	assert_int_equal(open_why(reason, &reader), code);
	assert_null(reader);
	if (!strstr(reason, text))
		fail_msg("the reason is '%s', not '%s'", reason, text);
}

// The same, and through memory with the same code.
static void assert_refused(int code, const char *text)
{
	struct pmdp_reader *reader = NULL;

	assert_file_refused(code, text);
	assert_int_equal(pmdp_reader_open_memory(ring.header, ring.size, &reader), code);
	assert_null(reader);
}

static void write_ring(const void *data, size_t size)
{
	int fd;

	unlink(test_dir_path("t.ring"));
	fd = open(test_dir_path("t.ring"), O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
	close(fd);
}

static void test_hostile_sizes(void **state)
{
	char *copy = malloc(ring.size);

	(void)state;
	assert_non_null(copy);
	memcpy(copy, ring.header, ring.size);
	write_ring(copy, 0);
	assert_file_refused(-EBADMSG, "empty");
	write_ring(copy, 1);
	assert_file_refused(-EBADMSG, "too short");
	write_ring(copy, sizeof *ring.header - 1);
	assert_file_refused(-EBADMSG, "too short");
	write_ring(copy, sizeof *ring.header);
	assert_file_refused(-EBADMSG, "segment size");
	write_ring(copy, ring.size - 1);
	assert_file_refused(-EBADMSG, "segment size");
	free(copy);
}

static void test_hostile_garbage(void **state)
{
	uint64_t random = test_seed("test_hostile_garbage");
	uint64_t *copy = malloc(ring.size);
	struct pmdp_reader *reader;

	(void)state;
	assert_non_null(copy);
	memset(copy, 0, ring.size);
	write_ring(copy, ring.size);
	assert_file_refused(-EBADMSG, "wrong magic");
	for (int i = 0; i < 100; i++) {
		for (size_t j = 0; j < ring.size / 8; j++)
			copy[j] = test_random(&random);
		assert_int_equal(pmdp_reader_open_memory(copy, ring.size, &reader), -EBADMSG);
		copy[0] = PMDP_MAGIC;
		assert_int_equal(pmdp_reader_open_memory(copy, ring.size, &reader),
				 -EPROTONOSUPPORT);
	}
	write_ring(copy, ring.size);
	assert_file_refused(-EPROTONOSUPPORT, "ABI version");
	free(copy);
}

static void test_hostile_header_words(void **state)
{
	struct pmdp_header_shm *h = ring.header, before;

	(void)state;
	memcpy(&before, h, sizeof before);
#define WITH(change, code, text)                   \
	do {                                       \
		change;                            \
		assert_refused(code, text);        \
		memcpy(h, &before, sizeof before); \
	} while (0)
	WITH(h->magic ^= 1, -EBADMSG, "wrong magic");
	WITH(h->magic = __builtin_bswap64(PMDP_MAGIC), -EBADMSG, "big-endian");
	WITH(h->abi_version = 0, -EPROTONOSUPPORT, "ABI version 0");
	WITH(h->abi_version = PMDP_ABI_VERSION + 1, -EPROTONOSUPPORT, "this build reads");
	WITH(h->header_size_bytes = 0, -EBADMSG, "header size 0");
	WITH(h->header_size_bytes = UINT32_MAX, -EBADMSG, "header size");
	WITH(h->segment_size_bytes = UINT64_MAX, -EBADMSG, "segment size");
	WITH(h->segment_size_bytes -= 64, -EBADMSG, "segment size");
	WITH(h->segment_kind = 3, -EBADMSG, "segment kind 3");
	WITH(h->segment_kind = PMDP_SEGMENT_INCIDENTS, -EBADMSG, "no event ring");
	WITH(h->clock_kind = 2, -EBADMSG, "clock kind 2");
	WITH(memset(h->instance, 'x', sizeof h->instance), -EBADMSG, "instance");
	WITH(memset(h->instance, 0, sizeof h->instance), -EBADMSG, "instance");
	WITH(memcpy(h->instance, "a/b", 4), -EBADMSG, "instance");
	WITH(h->records_per_lane = 7, -EBADMSG, "7 records per lane");
	WITH(h->records_per_lane = UINT32_MAX, -EBADMSG, "records per lane");
	WITH(h->records_per_lane = 0, -EBADMSG, "do not match");
	WITH(h->records_per_lane = 16, -EBADMSG, "do not match");
	WITH((h->clock_kind = PMDP_CLOCK_TSC, h->clock.ticks_hz = 0), -EBADMSG, "frequency");
	WITH((h->clock_kind = PMDP_CLOCK_TSC, h->clock.ticks_hz = UINT64_MAX), -EBADMSG,
	     "frequency");
}

static void test_hostile_sections(void **state)
{
	struct pmdp_header_shm *h = ring.header, before;
	struct pmdp_section_shm *s = h->sections; // hot, lanes, records, ports

	(void)state;
	memcpy(&before, h, sizeof before);
	WITH(s[0].kind = 0, -EBADMSG, "no hot table");
	WITH(s[1].kind = 0, -EBADMSG, "do not match");
	WITH(s[2].kind = 0, -EBADMSG, "do not match");
	WITH(s[3].kind = PMDP_SECTION_HOT, -EBADMSG, "two sections of kind 1");
	for (int i = 0; i < 4; i++) {
		WITH(s[i].n_items = UINT32_MAX, -EBADMSG, "4294967295 items");
		WITH(s[i].item_size_bytes = 0, -EBADMSG, "item size 0");
		WITH(s[i].item_size_bytes += 32, -EBADMSG, "item size");
		WITH(s[i].item_size_bytes = UINT32_MAX - 63, -EBADMSG, "item size");
		WITH(s[i].offset_bytes = ring.size, -EBADMSG, "beyond the file");
		WITH(s[i].offset_bytes = ring.size + 64, -EBADMSG, "beyond the file");
		WITH(s[i].offset_bytes = UINT64_MAX - 63, -EBADMSG, "beyond the file");
		WITH(s[i].offset_bytes = (UINT64_C(1) << 63), -EBADMSG, "beyond the file");
		WITH(s[i].offset_bytes += 8, -EBADMSG, "askew");
		WITH(s[i].offset_bytes = 0, -EBADMSG, "beyond the file or askew");
		WITH(s[i].offset_bytes = 960, -EBADMSG, "beyond the file or askew");
	}
	WITH(s[0].item_size_bytes = 64, -EBADMSG, "item size 64");
	WITH(s[0].n_items = 3, -EBADMSG, "do not match");
	WITH(s[0].n_items = 0, -EBADMSG, "no hot table");
	WITH(s[1].offset_bytes -= 64, -EBADMSG, "sections 0 and 1 overlap");
	WITH(s[3].offset_bytes = s[0].offset_bytes, -EBADMSG, "sections 0 and 3 overlap");
	// A kind that we don't know is a later version's, but its bounds must hold as well.
	WITH((s[4].kind = 77, s[4].n_items = UINT32_MAX, s[4].item_size_bytes = 64,
	      s[4].offset_bytes = 1024),
	     -EBADMSG, "section 4 (kind 77)");
	WITH((s[4].kind = 77, s[4].n_items = 1, s[4].item_size_bytes = 64,
	      s[4].offset_bytes = 1024),
	     -EBADMSG, "overlap");
}

// An unknown section and longer items are what a later version may bring: accepted.
static void test_hostile_later_version_is_no_enemy(void **state)
{
	struct pmdp_section_shm *s = ring.header->sections;
	struct pmdp_reader *reader;
	struct pmdp_port_body body;
	char reason[128];

	(void)state;
	s[4] = (struct pmdp_section_shm){.kind = 77, .n_items = 1, .item_size_bytes = 64};
	s[4].offset_bytes = s[3].offset_bytes + sizeof(struct pmdp_port_shm);
	s[3].n_items = 1;
	ring.ports[0].in_use = 1;
	memset(ring.ports[0].body.name, 'y', sizeof ring.ports[0].body.name);
	assert_int_equal(open_why(reason, &reader), 0);
	assert_int_equal(pmdp_reader_info(reader)->n_ports, 1);
	assert_int_equal(pmdp_reader_port(reader, 0, &body, NULL), 0);
	assert_int_equal(strlen(body.name), 63);
	pmdp_reader_close(reader);
	s[3].item_size_bytes = 1024; // one longer item in the room of two
	s[4].kind = 0;
	assert_int_equal(open_why(reason, &reader), 0);
	pmdp_reader_close(reader);
}

static void test_hostile_truncated_while_attached(void **state)
{
	struct pmdp_record_body record;
	struct pmdp_lane_body body;
	struct pmdp_port_body port;
	struct pmdp_reader *reader;
	struct pmdp_look look;
	uint64_t cursor = 0, lost = 0;
	char reason[128];
	const off_t sizes[] = {(off_t)ring.header->sections[3].offset_bytes,
			       (off_t)ring.header->sections[2].offset_bytes,
			       (off_t)ring.header->sections[1].offset_bytes,
			       (off_t)ring.header->sections[0].offset_bytes + 100,
			       1000,
			       0};

	(void)state;
	assert_int_equal(open_why(reason, &reader), 0);
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		assert_int_equal(truncate(test_dir_path("t.ring"), sizes[i]), 0);
		cursor = 0;
		assert_int_equal(pmdp_reader_look(reader, &look), i < 3 ? 0 : -EBADMSG);
		assert_int_equal(pmdp_reader_port(reader, 0, &port, NULL), -EBADMSG);
		assert_int_equal(pmdp_reader_records(reader, 0, &cursor, &record, 1, &lost),
				 i < 1 ? 1 : -EBADMSG);
		assert_int_equal(pmdp_reader_lane(reader, 0, &body), i < 2 ? 0 : -EBADMSG);
	}
	pmdp_reader_close(reader);
	// The publisher of this test lives in the same mapping: give it its pages back.
	assert_int_equal(truncate(test_dir_path("t.ring"), (off_t)ring.size), 0);
}

// The file shrinks and grows all the time while readers attach: any code, no crash.
static void test_hostile_truncated_while_being_read(void **state)
{
	uint64_t random = test_seed("test_hostile_truncated_while_being_read");
	uint64_t end_ns = test_now_ns() + 500000000;
	char *copy = malloc(ring.size), reason[128];
	struct pmdp_reader *reader;
	struct pmdp_look look;
	int n_opened = 0, n_refused = 0, rc;
	pid_t pid;

	(void)state;
	assert_non_null(copy);
	memcpy(copy, ring.header, ring.size);
	write_ring(copy, ring.size);
	pid = fork();
	if (pid == 0) {
		int fd = open(test_dir_path("t.ring"), O_WRONLY);

		for (;;) {
			if (ftruncate(fd, (off_t)(test_random(&random) % ring.size)) < 0 ||
			    pwrite(fd, copy, ring.size, 0) < 0)
				_exit(1);
		}
	}
	while (test_now_ns() < end_ns) {
		rc = open_why(reason, &reader);
		if (rc == 0) {
			for (int i = 0; i < 10; i++) {
				rc = pmdp_reader_look(reader, &look);
				assert_true(rc == 0 || rc == -EBADMSG);
			}
			pmdp_reader_close(reader);
			n_opened++;
		} else {
			assert_int_equal(rc, -EBADMSG);
			assert_true(*reason);
			n_refused++;
		}
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	free(copy);
	print_message("%d attached, %d refused\n", n_opened, n_refused);
	assert_true(n_opened + n_refused > 0);
}

static void test_hostile_constant_part_changes(void **state)
{
	struct pmdp_reader *reader;
	struct pmdp_look look;
	char reason[128];

	(void)state;
	assert_int_equal(open_why(reason, &reader), 0);
	ring.header->sections[0].n_items = 4000000;
	assert_int_equal(pmdp_reader_look(reader, &look), -EBADMSG);
	ring.header->sections[0].n_items = 4;
	assert_int_equal(pmdp_reader_look(reader, &look), 0);
	ring.header->generation++;
	assert_int_equal(pmdp_reader_look(reader, &look), -EBADMSG);
	pmdp_reader_close(reader);
}

static void test_hostile_replaced_by_another_file(void **state)
{
	struct pmdp_reader *reader;
	struct pmdp_look look;
	char reason[128];

	(void)state;
	assert_int_equal(open_why(reason, &reader), 0);
	write_ring("x", 1);
	assert_int_equal(pmdp_reader_check(reader), -ESTALE);
	assert_int_equal(pmdp_reader_look(reader, &look), 0); // the old one is whole, to the last
	pmdp_reader_close(reader);
	assert_file_refused(-EBADMSG, "too short");
}

static void test_hostile_no_regular_file(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char path[sizeof address.sun_path];
	int fd;

	(void)state;
	strcpy(path, test_dir_path("t.ring"));
	assert_int_equal(rename(path, test_dir_path("real")), 0);
	assert_int_equal(symlink(test_dir_path("real"), path), 0);
	assert_file_refused(-EPERM, "symbolic link");
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_file_refused(-EPERM, "not a regular file"); // and it did not wait for a writer
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_file_refused(-EPERM, "not a regular file");
	rmdir(path);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	memcpy(address.sun_path, path, strlen(path) + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	assert_file_refused(-EPERM, "socket");
	close(fd);
	unlink(path);
	assert_file_refused(-ENOENT, "open: No such file");
}

// In place of libc's, for the library too: a machine on which the services are installed.
int getpwnam_r(const char *name, struct passwd *user, char *buf, size_t size, struct passwd **out)
{
	(void)buf;
	(void)size;
	user->pw_uid = strcmp(name, "pmdpulse") == 0 ? 4713 : 4714;
	*out = strcmp(name, "pmdpulse") == 0 || strcmp(name, "pmdpulse-agent") == 0 ? user : NULL;
	return 0;
}

// The switch's user is believed for rings, the agent's is not.
static void test_hostile_service_owner(void **state)
{
	const struct pmdp_reader_opts opts = {.rundir = *state};
	const struct pmdp_reader_opts incidents = {.rundir = *state, .suffix = "incidents"};
	struct pmdp_reader *reader;

	if (geteuid() != 0)
		test_skip("only root may give a file to another user");
	assert_int_equal(chown(test_dir_path("t.ring"), 4713, (gid_t)-1), 0);
	assert_int_equal(pmdp_reader_open("t", &opts, &reader), 0);
	pmdp_reader_close(reader);
	assert_int_equal(chown(test_dir_path("t.ring"), 4714, (gid_t)-1), 0);
	assert_file_refused(-EPERM, "owned by uid 4714");
	assert_int_equal(rename(test_dir_path("t.ring"), test_dir_path("t.incidents")), 0);
	assert_int_equal(pmdp_reader_open("t", &incidents, &reader), 0);
	pmdp_reader_close(reader);
	assert_int_equal(chown(test_dir_path("t.incidents"), 4713, (gid_t)-1), 0);
	assert_int_equal(pmdp_reader_open("t", &incidents, &reader), -EPERM);
	unlink(test_dir_path("t.incidents"));
}

static void test_hostile_foreign_owner(void **state)
{
	const struct pmdp_reader_opts trusting = {
		.rundir = *state, .publisher_uid = 4711, .has_publisher_uid = true};
	const struct pmdp_reader_opts other = {
		.rundir = *state, .publisher_uid = 4712, .has_publisher_uid = true};
	struct pmdp_reader *reader;
	int status;
	pid_t pid;

	if (geteuid() != 0)
		test_skip("only root may give a file to another user");
	assert_int_equal(chown(test_dir_path("t.ring"), 4711, (gid_t)-1), 0);
	assert_file_refused(-EPERM, "owned by uid 4711");
	assert_int_equal(pmdp_reader_open("t", &other, &reader), -EPERM);
	assert_int_equal(pmdp_reader_open("t", &trusting, &reader), 0);
	pmdp_reader_close(reader);
	// An ordinary user reads its own and root's, and is told when it may not.
	assert_int_equal(chmod(*state, 0755), 0);
	assert_int_equal(chmod(test_dir_path("t.ring"), 0604), 0);
	pid = fork();
	if (pid == 0) {
		if (setgid(4799) < 0 || setuid(4799) < 0)
			_exit(1);
		if (pmdp_reader_open("t", &other, &reader) != -EPERM)
			_exit(2);
		if (pmdp_reader_open("t", &trusting, &reader) != 0)
			_exit(3);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(chown(test_dir_path("t.ring"), 0, (gid_t)-1), 0);
	pid = fork();
	if (pid == 0) {
		if (setgid(4799) < 0 || setuid(4799) < 0)
			_exit(1);
		if (pmdp_reader_open("t", &other, &reader) != 0)
			_exit(2);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(chmod(test_dir_path("t.ring"), 0600), 0);
	pid = fork();
	if (pid == 0) {
		if (setgid(4799) < 0 || setuid(4799) < 0)
			_exit(1);
		_exit(pmdp_reader_open("t", &other, &reader) == -EACCES ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

// After the attach the writer may still write anything at all into what changes.
static void test_hostile_payload(void **state)
{
	uint64_t random = test_seed("test_hostile_payload");
	const size_t from = offsetof(struct pmdp_header_shm, alive_ns);
	struct pmdp_record_body records[8];
	struct pmdp_lane_body body;
	struct pmdp_port_body port;
	struct pmdp_reader *reader;
	struct pmdp_look look;
	char reason[128];

	(void)state;
	ring.header->clock_kind = PMDP_CLOCK_TSC;
	ring.header->clock.ticks_hz = 1000000000;
	assert_int_equal(open_why(reason, &reader), 0);
	for (int round = 0; round < 200; round++) {
		uint64_t *words = (uint64_t *)((char *)ring.header + from);
		uint64_t cursor = 0, lost = 0;

		for (size_t i = 0; i < (ring.size - from) / 8; i++)
			words[i] = round % 2 ? test_random(&random) : test_random(&random) >> 60;
		assert_int_equal(pmdp_reader_look(reader, &look), 0);
		for (uint32_t i = 0; i < look.n_lanes; i++) {
			(void)pmdp_reader_lane(reader, i, &body);
			(void)pmdp_reader_port(reader, i, &port, NULL);
			for (int j = 0; j < 8; j++)
				(void)pmdp_reader_records(reader, i, &cursor, records, 8, &lost);
		}
	}
	pmdp_reader_close(reader);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_hostile_sizes),
		TEST(test_hostile_garbage),
		TEST(test_hostile_header_words),
		TEST(test_hostile_sections),
		TEST(test_hostile_later_version_is_no_enemy),
		TEST(test_hostile_truncated_while_attached),
		TEST(test_hostile_truncated_while_being_read),
		TEST(test_hostile_constant_part_changes),
		TEST(test_hostile_replaced_by_another_file),
		TEST(test_hostile_no_regular_file),
		TEST(test_hostile_foreign_owner),
		TEST(test_hostile_service_owner),
		TEST(test_hostile_payload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
