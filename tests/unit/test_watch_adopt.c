// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// A watch that begins where an earlier one left, or where something else stands than a segment.
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "test_dir.h"
#include "watching.h"

// The agent restarts while a stall lasts: the same incident goes on, nothing is counted twice.
static void test_watch_adopts_what_lasts(void **state)
{
	struct pmdp_incident before;
	uint64_t key;

	(void)state;
	start_and_attach();
	test_publisher_tell(&pub, "stall 3000");
	before = await_event(PMDP_KIND_PMD_STALL, PMDP_PHASE_RAISE)->incident;
	before.cause = PMDP_CAUSE_PREEMPTED;
	before.emitted_realtime_us = pmdp_realtime_us(test_now_ns());
	pmdp_watch_free(watch);
	new_watch();
	key = pmdp_watch_adopt(watch, &before);
	assert_true(key != 0);
	await_event(PMDP_KIND_PMD_STALL, PMDP_PHASE_CLEAR);
	assert_int_equal(count(PMDP_KIND_PMD_STALL, PMDP_PHASE_RAISE), 0);
	assert_int_equal(count(PMDP_KIND_PMD_STALL, PMDP_PHASE_CLEAR), 1);
	for (uint32_t i = 0; i < n_events; i++) {
		assert_int_equal(events[i].key, key);
		assert_int_equal(events[i].incident.started_realtime_us,
				 before.started_realtime_us);
		assert_int_equal(pmdp_evidence_find(&events[i].incident, "stalls")->integer, 1);
	}
	assert_int_equal(events[n_events - 1].incident.cause, PMDP_CAUSE_PREEMPTED);
	assert_true(events[n_events - 1].incident.duration_ns >= 3000 * MS);
	assert_true(events[n_events - 1].incident.duration_ns <= 6000 * MS);
	run_for(500);
	assert_int_equal(count(PMDP_KIND_PMD_STALL, PMDP_PHASE_CLEAR), 1);
}

static void adopt(uint32_t kind, uint32_t tid, const char *object)
{
	struct pmdp_incident incident;

	pmdp_incident_init(&incident, NAME, kind, PMDP_PHASE_RAISE);
	incident.thread_tid = tid;
	snprintf(incident.object, sizeof(incident.object), "%s", object);
	incident.started_realtime_us = pmdp_realtime_us(test_now_ns()) - 1000000;
	assert_true(pmdp_watch_adopt(watch, &incident) != 0);
}

static void test_watch_adopts_what_is_over(void **state)
{
	(void)state;
	start();
	test_publisher_tell(&pub, "port up-again up");
	test_publisher_tell(&pub, "port still-down down");
	adopt(PMDP_KIND_PMD_STALL, (uint32_t)pub.tid, ""); // it beats again
	adopt(PMDP_KIND_PMD_STALL, 1, "");                 // it is not there any more
	adopt(PMDP_KIND_THREAD_GONE, 2, "");
	adopt(PMDP_KIND_LINK, 0, "up-again");
	adopt(PMDP_KIND_LINK, 0, "still-down");
	adopt(PMDP_KIND_LINK, 0, "removed");
	adopt(PMDP_KIND_SWITCH_GONE, 0, "");
	adopt(PMDP_KIND_AGENT_LATE, 0, "");
	adopt(PMDP_KIND_VERSION_MISMATCH, 0, "");
	adopt(PMDP_KIND_PMD_NO_PROGRESS, (uint32_t)pub.tid, ""); // a kind of later versions
	run_for(3500);
	for (uint32_t i = 0; i < n_events; i++) {
		if (events[i].incident.kind != PMDP_KIND_SWITCH_BACK)
			assert_int_equal(events[i].incident.phase, PMDP_PHASE_CLEAR);
		assert_string_not_equal(events[i].incident.object, "still-down");
	}
	assert_int_equal(count(PMDP_KIND_SWITCH_BACK, PMDP_PHASE_RAISE), 1);
	assert_int_equal(n_events, 9 + 1);
	test_publisher_tell(&pub, "port still-down up");
	await_event(PMDP_KIND_LINK, PMDP_PHASE_CLEAR);
	run_for(300);
	assert_int_equal(n_events, 9 + 2);
}

static void test_watch_adopts_gone(void **state)
{
	(void)state;
	start();
	test_publisher_kill(&pub);
	adopt(PMDP_KIND_SWITCH_GONE, 0, "");
	adopt(PMDP_KIND_PMD_STALL, 5, "");
	run_for(500);
	assert_int_equal(pmdp_watch_status(watch), PMDP_WATCH_GONE);
	assert_int_equal(count(PMDP_KIND_SWITCH_GONE, PMDP_PHASE_UPDATE), 1);
	assert_int_equal(count(PMDP_KIND_PMD_STALL, PMDP_PHASE_CLEAR), 1);
	assert_int_equal(n_events, 2);
}

static void write_file(const char *name, const void *bytes, size_t size)
{
	FILE *file = fopen(test_dir_path(name), "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	fclose(file);
}

static void test_watch_refuses(void **state)
{
	static const char garbage[8192] = "nothing of ours";

	(void)state;
	write_file(NAME ".ring", garbage, sizeof(garbage));
	run_for(300);
	assert_int_equal(pmdp_watch_status(watch), PMDP_WATCH_REFUSED);
	assert_true(pmdp_watch_reason(watch)[0]);
	print_message("  reason: %s\n", pmdp_watch_reason(watch));
	assert_int_equal(n_events, 0);
	unlink(test_dir_path(NAME ".ring"));
	run_for(300);
	assert_int_equal(pmdp_watch_status(watch), PMDP_WATCH_ABSENT);
	start_and_attach();
	assert_int_equal(n_events, 0);
}

static void test_watch_other_version(void **state)
{
	struct pmdp_header_shm header;
	FILE *file;

	(void)state;
	start();
	file = fopen(test_dir_path(NAME ".ring"), "r+");
	assert_non_null(file);
	assert_int_equal(fread(&header, 1, sizeof(header), file), sizeof(header));
	header.abi_version = 99;
	rewind(file);
	assert_int_equal(fwrite(&header, 1, offsetof(struct pmdp_header_shm, segment_kind), file),
			 offsetof(struct pmdp_header_shm, segment_kind));
	fclose(file);
	run_for(500);
	assert_int_equal(pmdp_watch_status(watch), PMDP_WATCH_REFUSED);
	assert_int_equal(count(PMDP_KIND_VERSION_MISMATCH, PMDP_PHASE_RAISE), 1);
	assert_int_equal(n_events, 1); // however often it looks
	test_publisher_kill(&pub);
	unlink(test_dir_path(NAME ".ring"));
	start_and_attach();
	assert_int_equal(count(PMDP_KIND_VERSION_MISMATCH, PMDP_PHASE_CLEAR), 1);
	assert_int_equal(n_events, 2);
}

static void test_watch_truncated_while_attached(void **state)
{
	(void)state;
	start_and_attach();
	test_publisher_tell(&pub, "stall 60000");
	await_event(PMDP_KIND_PMD_STALL, PMDP_PHASE_RAISE);
	kill(pub.pid, SIGSTOP); // it would die of SIGBUS
	assert_int_equal(truncate(test_dir_path(NAME ".ring"), 100), 0);
	await_status(PMDP_WATCH_REFUSED);
	run_for(300);
	assert_int_equal(pmdp_watch_status(watch), PMDP_WATCH_REFUSED);
	assert_int_equal(count(PMDP_KIND_PMD_STALL, PMDP_PHASE_CLEAR), 1);
	assert_true(pmdp_watch_reason(watch)[0]);
}

// Any bytes in the changing part of a living segment.
static void test_watch_garbage_in_segment(void **state)
{
	uint64_t seed = test_seed("test_watch_garbage_in_segment");
	struct stat st;
	FILE *file;

	(void)state;
	start_and_attach();
	kill(pub.pid, SIGSTOP);
	file = fopen(test_dir_path(NAME ".ring"), "r+");
	assert_non_null(file);
	setbuf(file, NULL);
	assert_int_equal(fstat(fileno(file), &st), 0);
	for (int i = 0; i < 3000; i++) {
		uint64_t word = test_random(&seed) >> test_random(&seed) % 64;
		long offset =
			512 + (long)(test_random(&seed) % ((uint64_t)st.st_size - 512)) / 8 * 8;

		if (offset == (long)offsetof(struct pmdp_header_shm, stopped_ns))
			continue;
		assert_int_equal(fseek(file, offset, SEEK_SET), 0);
		assert_int_equal(fwrite(&word, 8, 1, file), 1);
		if (i % 8 == 0) {
			n_events = 0;
			pmdp_watch_step(watch, on_event, NULL);
		}
	}
	fclose(file);
	assert_true(pmdp_watch_status(watch) <= PMDP_WATCH_REFUSED);
}

#define watch_test(name) cmocka_unit_test_setup_teardown(name, watching_setup, watching_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		watch_test(test_watch_adopts_what_lasts),
		watch_test(test_watch_adopts_what_is_over),
		watch_test(test_watch_adopts_gone),
		watch_test(test_watch_refuses),
		watch_test(test_watch_other_version),
		watch_test(test_watch_truncated_while_attached),
		watch_test(test_watch_garbage_in_segment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
