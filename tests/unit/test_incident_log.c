// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The incidents segment: what an agent writes, a reader sees and the next agent takes over.
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "pmdp_incident.h"
#include "test_dir.h"

#define NAME "default"

static struct pmdp_incident_log *open_log(uint32_t n_events, uint32_t n_incidents)
{
	struct pmdp_incident_log_opts opts = {
		.rundir = test_dir_path(""), .n_events = n_events, .n_incidents = n_incidents};
	struct pmdp_incident_log *log = NULL;
	bool was_bad = true;
	int rc = pmdp_incident_log_open(NAME, &opts, &log, &was_bad);

	if (rc)
		fail_msg("open: %s", strerror(-rc));
	assert_false(was_bad);
	return log;
}

static struct pmdp_reader *open_reader(void)
{
	struct pmdp_reader_opts opts = {.rundir = test_dir_path(""), .suffix = "incidents"};
	struct pmdp_reader *reader = NULL;

	assert_int_equal(pmdp_reader_open(NAME, &opts, &reader), 0);
	return reader;
}

static void publish(struct pmdp_incident_log *log, uint32_t phase, struct pmdp_incident *incident)
{
	incident->phase = phase;
	incident->severity = phase == PMDP_PHASE_CLEAR ? PMDP_SEVERITY_OKAY : PMDP_SEVERITY_FAILURE;
	pmdp_incident_log_publish(log, incident);
}

static struct pmdp_incident new_incident(void)
{
	struct pmdp_incident incident;

	pmdp_incident_init(&incident, NAME, PMDP_KIND_PMD_STALL, PMDP_PHASE_RAISE);
	pmdp_incident_thread(&incident, "pmd-c01/id:1", 100, 1);
	return incident;
}

static uint32_t n_open(const struct pmdp_incident_log *log)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < pmdp_incident_log_slots(log); i++)
		n += pmdp_incident_log_open_at(log, i) != NULL;
	return n;
}

static uint32_t n_open_read(struct pmdp_reader *reader)
{
	struct pmdp_incident incident;
	uint32_t n = 0;

	for (uint32_t i = 0; i < pmdp_reader_info(reader)->n_incidents; i++)
		n += pmdp_reader_incident(reader, i, &incident) == 0;
	return n;
}

static void test_log_raise_update_clear(void **state)
{
	struct pmdp_incident_log *log = open_log(0, 0);
	struct pmdp_incident incident = new_incident(), read[4];
	struct pmdp_reader *reader = open_reader();
	uint64_t cursor = UINT64_MAX, lost = 0;
	char id[PMDP_ID_BYTES];

	(void)state;
	publish(log, PMDP_PHASE_RAISE, &incident);
	snprintf(id, sizeof(id), NAME "-%llu-1",
		 (unsigned long long)pmdp_incident_log_generation(log));
	assert_string_equal(incident.id, id);
	assert_int_equal(incident.seq, 1);
	assert_true(incident.emitted_realtime_us > 0);
	assert_int_equal(n_open(log), 1);
	assert_int_equal(n_open_read(reader), 1);
	publish(log, PMDP_PHASE_UPDATE, &incident);
	publish(log, PMDP_PHASE_CLEAR, &incident);
	assert_string_equal(incident.id, id);
	assert_int_equal(n_open(log), 0);
	assert_int_equal(n_open_read(reader), 0);
	assert_int_equal(pmdp_reader_events(reader, &cursor, read, 4, &lost), 3);
	assert_int_equal(lost, 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(read[i].seq, i + 1);
		assert_int_equal(read[i].phase, PMDP_PHASE_RAISE + i);
		assert_string_equal(read[i].thread_name, "pmd-c01/id:1");
	}
	pmdp_reader_close(reader);
	pmdp_incident_log_close(log);
}

static void test_log_good_news_is_not_open(void **state)
{
	struct pmdp_incident_log *log = open_log(0, 0);
	struct pmdp_incident incident;

	(void)state;
	pmdp_incident_init(&incident, NAME, PMDP_KIND_SWITCH_BACK, PMDP_PHASE_RAISE);
	pmdp_incident_log_publish(log, &incident);
	assert_true(incident.id[0]);
	assert_int_equal(n_open(log), 0);
	pmdp_incident_log_close(log);
}

// What an agent was told of a switch that came is known to the next one.
static void test_log_knows_whom_it_followed(void **state)
{
	struct pmdp_incident_log *log = open_log(16, 4);
	struct pmdp_incident incident;

	(void)state;
	assert_int_equal(pmdp_incident_log_followed(log), 0);
	for (int64_t generation = 7; generation <= 8; generation++) {
		pmdp_incident_init(&incident, NAME, PMDP_KIND_SWITCH_BACK, PMDP_PHASE_RAISE);
		pmdp_evidence_int(&incident, "generation", generation);
		pmdp_incident_log_publish(log, &incident);
	}
	pmdp_incident_log_close(log);
	log = open_log(16, 4);
	assert_int_equal(pmdp_incident_log_followed(log), 8);
	pmdp_incident_log_close(log);
}

static void test_log_restart_goes_on(void **state)
{
	struct pmdp_incident_log *log = open_log(16, 4);
	struct pmdp_incident a = new_incident(), b = new_incident(), c = new_incident(), read[16];
	uint64_t first, cursor = UINT64_MAX, lost = 0;
	struct pmdp_reader *reader;

	(void)state;
	publish(log, PMDP_PHASE_RAISE, &a);
	publish(log, PMDP_PHASE_RAISE, &b);
	publish(log, PMDP_PHASE_CLEAR, &a);
	first = pmdp_incident_log_generation(log);
	pmdp_incident_log_close(log);

	reader = open_reader(); // history outlives the agent
	assert_int_equal(pmdp_reader_events(reader, &cursor, read, 16, &lost), 3);
	pmdp_reader_close(reader);

	log = open_log(16, 4);
	assert_true(pmdp_incident_log_generation(log) > first);
	assert_int_equal(n_open(log), 1);
	assert_string_equal(pmdp_incident_log_open_at(log, 0)->id, b.id);
	publish(log, PMDP_PHASE_RAISE, &c);
	assert_int_equal(c.seq, 4);
	assert_string_not_equal(c.id, a.id);
	assert_string_not_equal(c.id, b.id);
	publish(log, PMDP_PHASE_CLEAR, &b);
	assert_int_equal(n_open(log), 1);

	reader = open_reader(); // the follower's place is still good
	assert_int_equal(pmdp_reader_events(reader, &cursor, read, 16, &lost), 2);
	assert_int_equal(lost, 0);
	assert_string_equal(read[0].id, c.id);
	assert_string_equal(read[1].id, b.id);
	assert_int_equal(read[1].seq, 5);
	cursor = UINT64_MAX;
	assert_int_equal(pmdp_reader_events(reader, &cursor, read, 16, &lost), 5);
	pmdp_reader_close(reader);
	pmdp_incident_log_close(log);
}

// A smaller ring keeps the newest, a larger one all; numbers stay.
static void test_log_other_sizes(void **state)
{
	static const uint32_t sizes[] = {8, 3, 20, 1};
	struct pmdp_incident incident = new_incident(), read[32];
	uint64_t lost = 0, cursor;
	struct pmdp_incident_log *log;
	struct pmdp_reader *reader;
	uint64_t seq = 0, n_kept = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		log = open_log(sizes[i], 2);
		for (uint32_t k = 0; k < 11; k++)
			publish(log, k ? PMDP_PHASE_UPDATE : PMDP_PHASE_RAISE, &incident);
		assert_int_equal(incident.seq, seq + 11);
		seq = incident.seq;
		reader = open_reader();
		cursor = UINT64_MAX;
		int n = pmdp_reader_events(reader, &cursor, read, 32, &lost);

		n_kept = n_kept + 11 < sizes[i] ? n_kept + 11 : sizes[i];
		assert_int_equal(n, n_kept);
		assert_int_equal(read[n - 1].seq, seq);
		assert_int_equal(cursor, seq);
		pmdp_reader_close(reader);
		pmdp_incident_log_close(log);
	}
}

static bool is_in_table(const struct pmdp_incident_log *log, const struct pmdp_incident *incident)
{
	for (uint32_t i = 0; i < pmdp_incident_log_slots(log); i++) {
		const struct pmdp_incident *open = pmdp_incident_log_open_at(log, i);

		if (open && !strcmp(open->id, incident->id))
			return open->seq == incident->seq;
	}
	return false;
}

// What finds no slot is counted, and gets one as soon as one is free.
static void test_log_table_full(void **state)
{
	struct pmdp_incident_log *log = open_log(64, 2);
	struct pmdp_incident incidents[5];

	(void)state;
	for (int i = 0; i < 5; i++) {
		incidents[i] = new_incident();
		publish(log, PMDP_PHASE_RAISE, &incidents[i]);
		assert_int_equal(pmdp_incident_log_overflows(log), i < 2 ? 0 : i - 1);
	}
	assert_int_equal(n_open(log), 2);
	assert_int_equal(incidents[4].seq, 5); // in the ring all the same
	publish(log, PMDP_PHASE_UPDATE, &incidents[3]);
	assert_int_equal(pmdp_incident_log_overflows(log), 3);
	publish(log, PMDP_PHASE_CLEAR, &incidents[0]); // the oldest that waits comes in
	assert_true(is_in_table(log, &incidents[1]) && is_in_table(log, &incidents[2]));
	publish(log, PMDP_PHASE_CLEAR, &incidents[4]); // was never in it
	assert_int_equal(n_open(log), 2);
	publish(log, PMDP_PHASE_CLEAR, &incidents[1]);
	assert_true(is_in_table(log, &incidents[2]) && is_in_table(log, &incidents[3]));
	publish(log, PMDP_PHASE_CLEAR, &incidents[2]);
	publish(log, PMDP_PHASE_CLEAR, &incidents[3]);
	assert_int_equal(n_open(log), 0);
	assert_int_equal(pmdp_incident_log_overflows(log), 3);
	pmdp_incident_log_close(log);
}

// All that the largest switch of ours can have open has room, and outlives the agent.
static void test_log_table_of_a_full_switch(void **state)
{
	enum {
		N = 2 * 64 + 256 + 8
	};
	struct pmdp_incident_log *log = open_log(0, 0);

	(void)state;
	for (int i = 0; i < N; i++) {
		struct pmdp_incident incident = new_incident();

		publish(log, PMDP_PHASE_RAISE, &incident);
	}
	assert_int_equal(pmdp_incident_log_overflows(log), 0);
	pmdp_incident_log_close(log);
	log = open_log(0, 0);
	assert_int_equal(n_open(log), N);
	pmdp_incident_log_close(log);
}

static void test_log_two_agents(void **state)
{
	struct pmdp_incident_log *log = open_log(0, 0), *other = NULL;
	struct pmdp_incident_log_opts opts = {.rundir = test_dir_path("")};
	pid_t pid;
	int status;

	(void)state;
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(pmdp_incident_log_open(NAME, &opts, &other, NULL) == -EEXIST ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	pmdp_incident_log_close(log);
}

// Killed anywhere: the next agent starts, no number is given twice, nothing that was cleared is
// open.
static void test_log_killed(void **state)
{
	uint64_t seed = test_seed("test_log_killed"), last_seq = 0;
	char last_id[PMDP_ID_BYTES] = "";

	(void)state;
	for (int round = 0; round < 40; round++) {
		struct pmdp_incident incident, read[64];
		struct pmdp_incident_log *log;
		struct pmdp_reader *reader;
		uint64_t cursor = UINT64_MAX;
		int n;
		pid_t pid;

		fflush(NULL);
		pid = fork();
		if (pid == 0) {
			log = open_log(64, 8);
			for (;;) {
				incident = new_incident();
				publish(log, PMDP_PHASE_RAISE, &incident);
				publish(log, PMDP_PHASE_UPDATE, &incident);
				publish(log, PMDP_PHASE_CLEAR, &incident);
			}
		}
		usleep((unsigned int)(test_random(&seed) % 20000));
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);

		log = open_log(64, 8);
		assert_true(n_open(log) <= 1);
		reader = open_reader();
		n = pmdp_reader_events(reader, &cursor, read, 64, NULL);
		assert_true(n >= 0);
		for (int i = 0; i < n; i++) {
			assert_int_equal(read[i].seq, cursor - (uint64_t)n + (uint64_t)i + 1);
			if (i + 1 < n && read[i].phase == PMDP_PHASE_CLEAR)
				assert_string_not_equal(read[i].id, read[i + 1].id);
		}
		if (n_open(log) == 1 && n) {
			const struct pmdp_incident *open = NULL;

			for (uint32_t i = 0; !open; i++)
				open = pmdp_incident_log_open_at(log, i);
			assert_false(read[n - 1].phase == PMDP_PHASE_CLEAR &&
				     !strcmp(read[n - 1].id, open->id));
			incident = *open;
			publish(log, PMDP_PHASE_CLEAR, &incident);
		}
		incident = new_incident();
		publish(log, PMDP_PHASE_RAISE, &incident);
		assert_true(incident.seq > last_seq);
		assert_string_not_equal(incident.id, last_id);
		last_seq = incident.seq;
		memcpy(last_id, incident.id, sizeof(last_id));
		publish(log, PMDP_PHASE_CLEAR, &incident);
		pmdp_reader_close(reader);
		pmdp_incident_log_close(log);
	}
}

// What stands there is kept as it is, for whoever wants to know, and the log begins anew.
static void expect_bad(const char *what)
{
	struct pmdp_incident_log_opts opts = {.rundir = test_dir_path("")};
	struct pmdp_incident incident = new_incident();
	struct pmdp_incident_log *log = NULL;
	struct stat before, after;
	bool was_bad = false;

	print_message("%s\n", what);
	assert_int_equal(stat(test_dir_path(NAME ".incidents"), &before), 0);
	assert_int_equal(pmdp_incident_log_open(NAME, &opts, &log, &was_bad), 0);
	assert_true(was_bad);
	assert_int_equal(stat(test_dir_path(NAME ".incidents.bad"), &after), 0);
	assert_int_equal(after.st_ino, before.st_ino);
	assert_int_equal(after.st_size, before.st_size);
	assert_int_equal(n_open(log), 0);
	publish(log, PMDP_PHASE_RAISE, &incident);
	assert_int_equal(incident.seq, 1);
	pmdp_incident_log_close(log);
}

static void write_at(const char *path, size_t offset, const void *bytes, size_t size)
{
	FILE *file = fopen(path, "r+");

	assert_non_null(file);
	assert_int_equal(fseek(file, (long)offset, SEEK_SET), 0);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	fclose(file);
}

static void test_log_damaged_predecessor(void **state)
{
	static const uint32_t version = PMDP_ABI_VERSION + 1;
	struct pmdp_incident incident = new_incident();
	struct pmdp_incident_log *log;
	char path[256];
	FILE *file;

	(void)state;
	snprintf(path, sizeof(path), "%s", test_dir_path(NAME ".incidents"));
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("this is no segment", file);
	fclose(file);
	expect_bad("no segment");
	assert_int_equal(truncate(path, 2000), 0);
	expect_bad("truncated");
	// A whole one whose count of events can't be.
	log = open_log(0, 0);
	publish(log, PMDP_PHASE_RAISE, &incident);
	pmdp_incident_log_close(log);
	write_at(path, offsetof(struct pmdp_header_shm, n_events),
		 "\xff\xff\xff\xff\xff\xff\xff\xef", 8);
	expect_bad("impossible count");
	write_at(path, offsetof(struct pmdp_header_shm, abi_version), &version, sizeof(version));
	expect_bad("another ABI version");
	if (geteuid() != 0)
		return; // to give a file away takes root
	assert_int_equal(chown(path, 65533, (gid_t)-1), 0);
	expect_bad("a stranger's");
}

static void test_log_arguments(void **state)
{
	struct pmdp_incident_log_opts opts = {.rundir = test_dir_path(""), .n_events = UINT32_MAX};
	struct pmdp_incident_log *log;

	(void)state;
	assert_int_equal(pmdp_incident_log_open(NAME, &opts, &log, NULL), -EINVAL);
	opts.n_events = 0;
	assert_int_equal(pmdp_incident_log_open("a/b", &opts, &log, NULL), -EINVAL);
	pmdp_incident_log_close(NULL);
}

static void test_log_alive(void **state)
{
	struct pmdp_incident_log *log = open_log(0, 0);
	struct pmdp_reader *reader = open_reader();
	struct pmdp_look before, after;

	(void)state;
	assert_int_equal(pmdp_reader_look(reader, &before), 0);
	pmdp_incident_log_alive(log);
	assert_int_equal(pmdp_reader_look(reader, &after), 0);
	assert_true(after.alive_ns > before.alive_ns);
	assert_int_equal(after.stopped_ns, 0);
	pmdp_incident_log_close(log);
	assert_int_equal(pmdp_reader_look(reader, &after), 0);
	assert_true(after.stopped_ns > 0);
	pmdp_reader_close(reader);
}

#define log_test(name) cmocka_unit_test_setup_teardown(name, test_dir_setup, test_dir_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		log_test(test_log_raise_update_clear),
		log_test(test_log_good_news_is_not_open),
		log_test(test_log_knows_whom_it_followed),
		log_test(test_log_restart_goes_on),
		log_test(test_log_other_sizes),
		log_test(test_log_table_full),
		log_test(test_log_table_of_a_full_switch),
		log_test(test_log_two_agents),
		log_test(test_log_killed),
		log_test(test_log_damaged_predecessor),
		log_test(test_log_arguments),
		log_test(test_log_alive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
