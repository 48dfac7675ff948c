// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The file of a segment: how it is made, what it looks like, what is refused.
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "pmdp_clock.h"
#include "pmdp_segment.h"
#include "pmdpulse.h"
#include "test_dir.h"

static struct pmdp_segment_opts small_opts(const char *rundir)
{
	return (struct pmdp_segment_opts){
		.rundir = rundir,
		.instance = "t",
		.suffix = "ring",
		.segment_kind = PMDP_SEGMENT_RING,
		.records_per_lane = 4,
		.ticks_hz = PMDP_NS_PER_S,
		.n_sections = 3,
		.sections = {{PMDP_SECTION_HOT, 2, sizeof(struct pmdp_hot_shm)},
			     {PMDP_SECTION_LANES, 2, sizeof(struct pmdp_lane_shm)},
			     {PMDP_SECTION_RECORDS, 8, sizeof(struct pmdp_record_shm)}},
	};
}

// Create and publish, or the error of either.
static int make(const struct pmdp_segment_opts *opts, struct pmdp_segment *out_seg)
{
	int rc = pmdp_segment_create(opts, out_seg);

	if (rc == 0) {
		rc = pmdp_segment_publish(out_seg);
		if (rc < 0)
			pmdp_segment_close(out_seg, false);
	}
	return rc;
}

static void write_file(const char *name, const void *data, size_t size)
{
	int fd = open(test_dir_path(name), O_CREAT | O_TRUNC | O_WRONLY, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
	close(fd);
}

static int n_files(const char *dir)
{
	char command[128];
	FILE *pipe;
	int n = -1;

	snprintf(command, sizeof command, "ls -A %s | wc -l", dir);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	assert_int_equal(fscanf(pipe, "%d", &n), 1);
	pclose(pipe);
	return n;
}

static void test_segment_file_is_whole_and_named_last(void **state)
{
	struct pmdp_segment_opts opts = small_opts(*state);
	struct pmdp_segment seg;
	struct stat st;
	uint32_t n;

	assert_int_equal(pmdp_segment_create(&opts, &seg), 0);
	assert_int_equal(n_files(*state), 0); // no name yet
	assert_int_equal(seg.header->magic, 0);
	assert_int_equal(pmdp_segment_publish(&seg), 0);
	assert_int_equal(n_files(*state), 1);
	assert_true(seg.header->magic == PMDP_MAGIC);
	assert_int_equal(stat(test_dir_path("t.ring"), &st), 0);
	assert_int_equal(st.st_size, seg.size_bytes);
	assert_int_equal(seg.header->segment_size_bytes, seg.size_bytes);
	assert_true((uint64_t)st.st_blocks * 512 >= seg.size_bytes); // no SIGBUS later
	assert_int_equal(seg.header->writer_pid, getpid());
	assert_string_equal(seg.header->instance, "t");
	assert_ptr_equal(pmdp_segment_section(&seg, PMDP_SECTION_HOT, &n),
			 (char *)seg.header + 1024);
	assert_int_equal(n, 2);
	assert_null(pmdp_segment_section(&seg, PMDP_SECTION_PORTS, &n));
	pmdp_segment_close(&seg, true);
	assert_int_equal(n_files(*state), 0);
	pmdp_segment_close(&seg, true); // a closed one is left alone
}

// Whoever owns the folder, or may rename in it, decides what stands under the name.
static void test_segment_folder_of_a_stranger(void **state)
{
	struct pmdp_segment_opts opts = small_opts(*state);
	struct pmdp_segment seg;
	char link[256];

	assert_int_equal(chmod(*state, 0777), 0);
	assert_int_equal(make(&opts, &seg), -EPERM);
	assert_int_equal(chmod(*state, 01777), 0);
	assert_int_equal(make(&opts, &seg), 0);
	pmdp_segment_close(&seg, true);
	assert_int_equal(chmod(*state, 0750), 0);
	snprintf(link, sizeof link, "%s.link", (const char *)*state);
	assert_int_equal(symlink(*state, link), 0);
	opts.rundir = link;
	assert_int_equal(make(&opts, &seg), -EPERM);
	unlink(link);
	opts.rundir = *state;
	if (geteuid() != 0)
		return; // to give a folder away takes root
	assert_int_equal(chown(*state, 4711, (gid_t)-1), 0);
	assert_int_equal(make(&opts, &seg), -EPERM);
	assert_int_equal(n_files(*state), 0);
	opts.publisher_uid = 4711;
	opts.has_publisher_uid = true;
	assert_int_equal(make(&opts, &seg), 0);
	pmdp_segment_close(&seg, true);
}

static void test_segment_mode_and_group_whatever_the_umask(void **state)
{
	struct pmdp_segment_opts opts = small_opts(*state);
	const mode_t umasks[] = {0777, 0};
	struct pmdp_segment seg;
	struct stat st, dir;

	assert_int_equal(stat(*state, &dir), 0);
	for (int i = 0; i < 2; i++) {
		mode_t before = umask(umasks[i]);
		int rc = make(&opts, &seg);

		umask(before);
		assert_int_equal(rc, 0);
		assert_int_equal(fstat(seg.fd, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0640);
		assert_int_equal(st.st_gid, dir.st_gid);
		pmdp_segment_close(&seg, true);
	}
	opts.mode = 0604;
	assert_int_equal(make(&opts, &seg), 0);
	assert_int_equal(fstat(seg.fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0604);
	pmdp_segment_close(&seg, true);
	opts.group = "no such group";
	assert_int_equal(make(&opts, &seg), -ENOENT);
}

static void test_segment_group_is_set(void **state)
{
	struct pmdp_segment_opts opts = small_opts(*state);
	struct pmdp_segment seg;
	struct stat st;

	if (geteuid() != 0)
		test_skip("only root may give a file to another group");
	opts.group = "4711";
	assert_int_equal(make(&opts, &seg), 0);
	assert_int_equal(fstat(seg.fd, &st), 0);
	assert_int_equal(st.st_gid, 4711);
	pmdp_segment_close(&seg, true);
}

static void test_segment_folder_is_made(void **state)
{
	struct pmdp_segment_opts opts = small_opts(test_dir_path("sub"));
	mode_t before = umask(0777);
	struct pmdp_segment seg;
	struct stat st;
	int rc = make(&opts, &seg);

	(void)state;
	umask(before);
	assert_int_equal(rc, 0);
	assert_int_equal(stat(test_dir_path("sub"), &st), 0);
	assert_int_equal(st.st_mode & 07777, geteuid() == 0 ? 03770 : 0750);
	pmdp_segment_close(&seg, true);
	opts.rundir = test_dir_path("no/such/parent");
	assert_int_equal(make(&opts, &seg), -ENOENT);
}

static void test_segment_wants_a_tmpfs(void **state)
{
	char dir[] = "./pmdp-test-XXXXXX";
	struct pmdp_segment_opts opts;
	struct pmdp_segment seg;
	struct statfs fs;
	int rc;

	(void)state;
	assert_int_equal(statfs(".", &fs), 0);
	if (fs.f_type == TMPFS_MAGIC)
		test_skip("the working directory is on a tmpfs itself");
	assert_non_null(mkdtemp(dir));
	opts = small_opts(dir);
	rc = make(&opts, &seg);
	assert_int_equal(rmdir(dir), 0); // nothing was left in it
	assert_int_equal(rc, -ENOTSUP);
	rc = make(&opts, &seg); // a folder that the create made itself is removed again
	assert_int_equal(rc, -ENOTSUP);
	assert_int_equal(access(dir, F_OK), -1);
}

// In a child with a tmpfs of 64 KiB of its own. Exit code: 0, 77 no right to mount, else failed.
static int full_tmpfs_child(const char *dir)
{
	struct pmdp_segment_opts opts = small_opts(dir);
	struct pmdp_segment seg;

	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", dir, "tmpfs", 0, "size=64k") < 0)
		return 77;
	opts.sections[2].n_items = 2 * 65536;
	opts.records_per_lane = 65536;
	if (make(&opts, &seg) != -ENOSPC)
		return 1;
	if (n_files(dir) != 0)
		return 2;
	opts = small_opts(dir);
	return make(&opts, &seg) == 0 ? 0 : 3;
}

static void test_segment_full_tmpfs_fails_at_create(void **state)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(full_tmpfs_child(*state));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		test_skip("no right to mount a tmpfs");
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_segment_bad_arguments(void **state)
{
	struct pmdp_segment_opts opts = small_opts(*state);
	struct pmdp_segment seg;

	opts.instance = "../t";
	assert_int_equal(make(&opts, &seg), -EINVAL);
	opts = small_opts(*state);
	opts.sections[0].item_size_bytes = 100;
	assert_int_equal(make(&opts, &seg), -EINVAL);
	opts = small_opts(*state);
	opts.sections[2].n_items = UINT32_MAX;
	assert_int_equal(make(&opts, &seg), -EINVAL);
	opts = small_opts(*state);
	opts.ticks_hz = 0;
	assert_int_equal(make(&opts, &seg), -EINVAL);
	assert_int_equal(n_files(*state), 0);
}

static void test_segment_damaged_predecessor(void **state)
{
	struct pmdp_segment_opts opts = small_opts(*state);
	char garbage[5000];
	struct pmdp_segment seg;
	struct stat st;

	memset(garbage, 0xa5, sizeof garbage);
	write_file("t.ring", garbage, sizeof garbage);
	assert_int_equal(make(&opts, &seg), 0);
	assert_true(seg.was_damaged);
	pmdp_segment_close(&seg, true);

	write_file("t.ring", garbage, 17);
	opts.is_damaged_kept = true;
	assert_int_equal(make(&opts, &seg), 0);
	assert_true(seg.was_damaged);
	assert_int_equal(stat(test_dir_path("t.ring.bad"), &st), 0);
	assert_int_equal(st.st_size, 17);
	pmdp_segment_close(&seg, true);
	assert_int_equal(make(&opts, &seg), 0);
	assert_false(seg.was_damaged);
	pmdp_segment_close(&seg, true);
}

static void test_segment_no_regular_file(void **state)
{
	struct pmdp_segment_opts opts = small_opts(*state);
	struct pmdp_segment seg;

	assert_int_equal(symlink("/etc/passwd", test_dir_path("t.ring")), 0);
	assert_int_equal(make(&opts, &seg), -ELOOP);
	assert_int_equal(unlink(test_dir_path("t.ring")), 0);
	assert_int_equal(mkfifo(test_dir_path("t.ring"), 0600), 0);
	assert_int_equal(make(&opts, &seg), -ENXIO);
	assert_int_equal(unlink(test_dir_path("t.ring")), 0);
	assert_int_equal(mkdir(test_dir_path("t.ring"), 0700), 0);
	assert_int_equal(make(&opts, &seg), -EISDIR);
	assert_int_equal(n_files(*state), 1);
}

static void test_segment_alive_pair(void **state)
{
	struct pmdp_segment_opts opts = small_opts(*state);
	struct pmdp_segment seg;
	uint64_t before, seq;

	assert_int_equal(make(&opts, &seg), 0);
	seq = seg.header->clock.seq;
	assert_int_equal(seq % 2, 0);
	before = pmdp_mono_now_ns();
	pmdp_segment_alive(&seg);
	assert_int_equal(seg.header->clock.seq, seq + 2);
	assert_true(seg.header->alive_ns >= before);
	assert_true(seg.header->alive_ns <= pmdp_mono_now_ns());
	assert_true(seg.header->clock.mono_ns == seg.header->alive_ns);
	assert_int_equal(seg.header->clock.ticks_hz, 1000000000);
	// A writer that died inside an update left it odd: the next one heals it.
	seg.header->clock.seq = seq + 3;
	pmdp_segment_alive(&seg);
	assert_int_equal(seg.header->clock.seq, seq + 4);
	pmdp_segment_close(&seg, true);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, test_dir_setup, test_dir_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_segment_file_is_whole_and_named_last),
		TEST(test_segment_folder_of_a_stranger),
		TEST(test_segment_mode_and_group_whatever_the_umask),
		TEST(test_segment_group_is_set),
		TEST(test_segment_folder_is_made),
		TEST(test_segment_wants_a_tmpfs),
		TEST(test_segment_full_tmpfs_fails_at_create),
		TEST(test_segment_bad_arguments),
		TEST(test_segment_damaged_predecessor),
		TEST(test_segment_no_regular_file),
		TEST(test_segment_alive_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
