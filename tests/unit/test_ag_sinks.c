// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Sinks against receivers that are slow, broken, late or absent. The loop is the agent's own; a
 * test runs it until a condition holds, with a deadline.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "ag_log.h"
#include "ag_loop.h"
#include "ag_pump.h"
#include "ag_sink.h"
#include "pmdp_clock.h"
#include "pmdp_incident.h"

#define NS_PER_MS UINT64_C(1000000)
#define DEADLINE_NS (10000 * NS_PER_MS)

struct fixture {
	struct ag_loop loop;
	struct ag_timer tick; // wakes the loop so that conditions are looked at
	bool (*until)(struct fixture *f);
	uint64_t deadline_ns;
	bool is_reached;
	char dir[64];
	char path[128];
	struct ag_sink *sink;
	uint64_t wanted; // for the conditions
};

static void on_tick(void *ctx, uint64_t now_ns)
{
	struct fixture *f = ctx;

	f->is_reached = f->until && f->until(f);
	f->loop.is_stopping = f->is_reached || now_ns > f->deadline_ns;
	f->tick.due_ns = now_ns + 5 * NS_PER_MS;
}

static bool run_until(struct fixture *f, bool (*until)(struct fixture *f))
{
	f->until = until;
	f->is_reached = f->loop.is_stopping = false;
	f->deadline_ns = pmdp_mono_now_ns() + DEADLINE_NS;
	f->tick.due_ns = 1;
	assert_int_equal(ag_loop_run(&f->loop), 0);
	return f->is_reached;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	signal(SIGPIPE, SIG_IGN);
	ag_log_init(false);
	strcpy(f->dir, "/tmp/pmdpulse-sinks-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	assert_int_equal(ag_loop_init(&f->loop), 0);
	f->tick = (struct ag_timer){.fn = on_tick, .ctx = f};
	ag_loop_add_timer(&f->loop, &f->tick);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];

	if (f->sink)
		f->sink->close(f->sink);
	ag_loop_fini(&f->loop);
	snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

static void put(struct fixture *f, const char *json)
{
	static const struct pmdp_incident incident;

	f->sink->event(f->sink, &incident, json, strlen(json));
}

static struct ag_sink_stats stats_of(struct fixture *f)
{
	struct ag_sink_stats stats;

	f->sink->stats(f->sink, &stats);
	return stats;
}

static const char *content(const char *path)
{
	static char text[1 << 20];
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = 0;
	return text;
}

static void open_json(struct fixture *f, const char *name)
{
	snprintf(f->path, sizeof(f->path), "%s/%s", f->dir, name);
	assert_int_equal(ag_json_open(&f->loop, f->path, &f->sink), 0);
}

static void test_json_appends_lines(void **state)
{
	struct fixture *f = *state;

	open_json(f, "out.json");
	put(f, "{\"n\":1}");
	put(f, "{\"n\":2}");
	assert_string_equal(content(f->path), "{\"n\":1}\n{\"n\":2}\n");
	assert_int_equal(stats_of(f).n_written, 2);
	f->sink->close(f->sink);
	open_json(f, "out.json");
	put(f, "{\"n\":3}");
	assert_string_equal(content(f->path), "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n");
}

static void test_json_reopens_after_rotation(void **state)
{
	struct fixture *f = *state;
	char old[160];

	open_json(f, "out.json");
	put(f, "before");
	snprintf(old, sizeof(old), "%s.1", f->path);
	assert_int_equal(rename(f->path, old), 0);
	put(f, "still the old one");
	f->sink->reopen(f->sink);
	put(f, "after");
	assert_string_equal(content(old), "before\nstill the old one\n");
	assert_string_equal(content(f->path), "after\n");
}

static void test_json_refuses_a_folder(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(ag_json_open(&f->loop, f->dir, &f->sink), -EISDIR);
	f->sink = NULL;
}

static bool all_written(struct fixture *f)
{
	return stats_of(f).n_written == f->wanted;
}

// /dev/full answers every write with ENOSPC, as a full disk does.
static void test_json_full_disk_is_counted(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(ag_json_open(&f->loop, "/dev/full", &f->sink), 0);
	for (int i = 0; i < 300; i++)
		put(f, "x");
	struct ag_sink_stats stats = stats_of(f);
	assert_int_equal(stats.n_written, 0);
	assert_int_equal(stats.n_waiting, 256);
	assert_int_equal(stats.n_lost, 300 - 256);
	assert_string_equal(stats.error, strerror(ENOSPC));
}

static void test_json_fifo_without_reader_waits_for_one(void **state)
{
	struct fixture *f = *state;
	char text[64] = "";

	snprintf(f->path, sizeof(f->path), "%s/fifo", f->dir);
	assert_int_equal(mkfifo(f->path, 0600), 0);
	assert_int_equal(ag_json_open(&f->loop, f->path, &f->sink), 0);
	put(f, "one");
	put(f, "two");
	assert_int_equal(stats_of(f).n_waiting, 2);
	int fd = open(f->path, O_RDONLY | O_NONBLOCK);
	f->wanted = 2;
	assert_true(run_until(f, all_written));
	assert_int_equal(read(fd, text, sizeof(text) - 1), 8);
	assert_string_equal(text, "one\ntwo\n");
	close(fd);
}

static uint64_t reader_bytes, reader_lines;
static int reader_fd;

static bool read_all(struct fixture *f)
{
	char buffer[65536];
	ssize_t n = read(reader_fd, buffer, sizeof(buffer));

	for (ssize_t i = 0; i < n; i++) {
		reader_bytes++;
		reader_lines += buffer[i] == '\n';
	}
	return stats_of(f).n_waiting == 0 && n < 0;
}

// A FIFO that is open and not read: put never waits, loses the oldest, and what it says it wrote is
// what a reader then finds, whole lines all.
static void test_json_blocked_fifo_loses_and_counts(void **state)
{
	struct fixture *f = *state;
	static char line[1000];

	snprintf(f->path, sizeof(f->path), "%s/fifo", f->dir);
	assert_int_equal(mkfifo(f->path, 0600), 0);
	reader_fd = open(f->path, O_RDONLY | O_NONBLOCK);
	assert_int_equal(ag_json_open(&f->loop, f->path, &f->sink), 0);
	memset(line, 'x', sizeof(line) - 1);
	uint64_t begin_ns = pmdp_mono_now_ns();
	for (int i = 0; i < 2000; i++)
		put(f, line);
	assert_in_range(pmdp_mono_now_ns() - begin_ns, 0, 5000 * NS_PER_MS);
	struct ag_sink_stats stats = stats_of(f);
	assert_true(stats.n_lost > 0);
	assert_string_equal(stats.error, strerror(EAGAIN));
	assert_int_equal(stats.n_written + stats.n_waiting + stats.n_lost, 2000);
	reader_bytes = reader_lines = 0;
	assert_true(run_until(f, read_all));
	assert_int_equal(reader_lines, 2000 - stats.n_lost);
	assert_int_equal(reader_bytes, reader_lines * sizeof(line));
	assert_null(stats_of(f).error);
	close(reader_fd);
}

// The reader goes away and another comes: nothing but what it had not read is lost.
static void test_json_fifo_reader_comes_back(void **state)
{
	struct fixture *f = *state;
	char text[64] = "";

	snprintf(f->path, sizeof(f->path), "%s/fifo", f->dir);
	assert_int_equal(mkfifo(f->path, 0600), 0);
	int fd = open(f->path, O_RDONLY | O_NONBLOCK);
	assert_int_equal(ag_json_open(&f->loop, f->path, &f->sink), 0);
	put(f, "one");
	close(fd);
	put(f, "two");
	fd = open(f->path, O_RDONLY | O_NONBLOCK);
	put(f, "three");
	f->wanted = 3;
	assert_true(run_until(f, all_written));
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "two\nthree\n");
	close(fd);
}

struct refuser {
	int n_opens;
};

static int refuse_open(void *ctx, struct ag_pump *pump)
{
	(void)pump;
	((struct refuser *)ctx)->n_opens++;
	return -ECONNREFUSED;
}

// A receiver that can't be opened is tried about once a second, not in a tight loop.
static bool second_try(struct fixture *f)
{
	return (uint64_t)(((struct refuser *)(uintptr_t)f->wanted)->n_opens) >= 2;
}

static void test_pump_retries_slowly(void **state)
{
	struct fixture *f = *state;
	struct refuser refuser = {0};
	struct ag_pump pump = {
		.name = "test", .remedy = "none", .open = refuse_open, .ctx = &refuser};

	assert_int_equal(ag_pump_init(&pump, &f->loop, 4), 0);
	uint64_t begin_ns = pmdp_mono_now_ns();
	ag_pump_put(&pump, "x", 1);
	f->wanted = (uintptr_t)&refuser;
	assert_true(run_until(f, second_try));
	assert_true(pmdp_mono_now_ns() - begin_ns >= 900 * NS_PER_MS);
	assert_int_equal(refuser.n_opens, 2);
	ag_pump_fini(&pump);
	assert_int_equal(pump.q.n_lost, 1);
}

// A journal of the test's own: a datagram socket that is read when the test wants.
static int open_journal(struct fixture *f)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/journal", f->dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(ag_journal_open(&f->loop, address.sun_path, true, &f->sink), 0);
	return fd;
}

static void put_incident(struct fixture *f)
{
	struct pmdp_incident incident;

	pmdp_incident_init(&incident, "blue", PMDP_KIND_PMD_STALL, PMDP_PHASE_RAISE);
	pmdp_incident_thread(&incident, "pmd-c01", 42, 1);
	pmdp_incident_culprit(&incident, "evil", 7, 8, "SCHED_FIFO", 1500000000);
	pmdp_evidence_text(&incident, "wait-chan", "do_x");
	pmdp_evidence_int(&incident, "stalls", 3);
	incident.state = PMDP_STATE_DEAD;
	incident.severity = PMDP_SEVERITY_FAILURE;
	incident.cause = PMDP_CAUSE_PREEMPTED;
	incident.duration_ns = 2500000001;
	strcpy(incident.id, "blue-1-1");
	strcpy(incident.message, "it\nstalled");
	f->sink->event(f->sink, &incident, "", 0);
}

static void test_journal_fields(void **state)
{
	static const char *const wanted[] = {
		"MESSAGE=it stalled\n", // a line break would begin a field of its own
		"\nMESSAGE_ID=0ce2ea8ad79c4391847dcc403b12225f\n",
		"\nPRIORITY=3\n",
		"\nPMDP_ID=blue-1-1\n",
		"\nPMDP_KIND=pmd-stall\n",
		"\nPMDP_PHASE=raise\n",
		"\nPMDP_INSTANCE=blue\n",
		"\nPMDP_THREAD=pmd-c01\n",
		"\nPMDP_TID=42\n",
		"\nPMDP_CORE=1\n",
		"\nPMDP_STATE=DEAD\n",
		"\nPMDP_CAUSE=preempted\n",
		"\nPMDP_CULPRIT=evil\n",
		"\nPMDP_CULPRIT_PID=7\n",
		"\nPMDP_CULPRIT_TID=8\n",
		"\nPMDP_CULPRIT_CLASS=SCHED_FIFO\n",
		"\nPMDP_CULPRIT_TOOK_S=1.500000000\n",
		"\nPMDP_DURATION_S=2.500000001\n",
		"\nPMDP_EVIDENCE_WAIT_CHAN=do_x\n",
		"\nPMDP_EVIDENCE_STALLS=3\n",
	};
	struct fixture *f = *state;
	int fd = open_journal(f);
	char entry[8192];

	put_incident(f);
	ssize_t n = recv(fd, entry, sizeof(entry) - 1, 0);
	assert_true(n > 0);
	entry[n] = 0;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (!strstr(entry, wanted[i]))
			fail_msg("no %s in:\n%s", wanted[i], entry);
	close(fd);
}

static bool journal_read(struct fixture *f)
{
	char entry[8192];

	while (recv(reader_fd, entry, sizeof(entry), 0) > 0)
		reader_lines++;
	return stats_of(f).n_waiting == 0;
}

// A journald that stands still: nothing waits, what is lost is counted, the rest comes later.
static void test_journal_that_is_stuck_does_not_block(void **state)
{
	struct fixture *f = *state;

	reader_fd = open_journal(f);
	reader_lines = 0;
	uint64_t begin_ns = pmdp_mono_now_ns();
	for (int i = 0; i < 2000; i++)
		put_incident(f);
	assert_in_range(pmdp_mono_now_ns() - begin_ns, 0, 5000 * NS_PER_MS);
	struct ag_sink_stats stats = stats_of(f);
	assert_true(stats.n_lost > 0);
	assert_int_equal(stats.n_written + stats.n_waiting + stats.n_lost, 2000);
	assert_true(run_until(f, journal_read));
	assert_int_equal(reader_lines, 2000 - stats.n_lost);
	close(reader_fd);
}

static void test_journal_that_is_absent(void **state)
{
	struct fixture *f = *state;
	char path[128];

	snprintf(path, sizeof(path), "%s/none", f->dir);
	assert_int_equal(ag_journal_open(&f->loop, path, false, &f->sink), -ENOENT);
	f->sink = NULL;
}

static void write_hook(struct fixture *f, const char *script)
{
	snprintf(f->path, sizeof(f->path), "%s/hook", f->dir);
	FILE *file = fopen(f->path, "w");
	assert_non_null(file);
	fprintf(file, "#!/bin/sh\ncd %s\n%s\n", f->dir, script);
	assert_int_equal(fchmod(fileno(file), 0755), 0);
	fclose(file);
}

static bool hooks_over(struct fixture *f)
{
	struct ag_sink_stats stats = stats_of(f);

	return stats.n_written + stats.n_lost >= f->wanted && stats.n_waiting == 0;
}

static void test_hook_gets_json_on_stdin(void **state)
{
	struct fixture *f = *state;
	char out[128];

	write_hook(f, "cat > got");
	assert_int_equal(ag_hook_open(&f->loop, f->path, 5000, &f->sink), 0);
	put(f, "{\"id\":\"a-1-1\"}");
	f->wanted = 1;
	assert_true(run_until(f, hooks_over));
	assert_int_equal(stats_of(f).n_written, 1);
	assert_null(stats_of(f).error);
	snprintf(out, sizeof(out), "%s/got", f->dir);
	assert_string_equal(content(out), "{\"id\":\"a-1-1\"}\n");
}

// A hook that held the helper's socket could read events and keep the helper from ending.
static void test_hook_holds_nothing_of_the_agent(void **state)
{
	struct fixture *f = *state;
	char out[128];

	write_hook(f, "for fd in 0 1 2 3 4 5 6 7 8 9; do "
		      "[ -e /proc/$$/fd/$fd ] && echo $fd; done > fds; exit 0");
	assert_int_equal(ag_hook_open(&f->loop, f->path, 5000, &f->sink), 0);
	put(f, "{}");
	f->wanted = 1;
	assert_true(run_until(f, hooks_over));
	assert_int_equal(stats_of(f).n_written, 1);
	snprintf(out, sizeof(out), "%s/fds", f->dir);
	assert_string_equal(content(out), "0\n1\n2\n");
}

static void test_hook_that_runs_too_long_is_ended(void **state)
{
	struct fixture *f = *state;

	write_hook(f, "sleep 1000 & sleep 1000"); // its child must go too
	assert_int_equal(ag_hook_open(&f->loop, f->path, 200, &f->sink), 0);
	put(f, "x");
	f->wanted = 1;
	assert_true(run_until(f, hooks_over));
	assert_int_equal(stats_of(f).n_lost, 1);
	assert_string_equal(stats_of(f).error, "some ran too long");
}

static void test_hook_that_fails_is_counted(void **state)
{
	struct fixture *f = *state;

	write_hook(f, "exit 3");
	assert_int_equal(ag_hook_open(&f->loop, f->path, 5000, &f->sink), 0);
	put(f, "x");
	put(f, "y");
	f->wanted = 2;
	assert_true(run_until(f, hooks_over));
	assert_int_equal(stats_of(f).n_lost, 2);
	assert_string_equal(stats_of(f).error, "some failed");
	unlink(f->path);
	put(f, "z"); // and one that is not there any more
	f->wanted = 3;
	assert_true(run_until(f, hooks_over));
	assert_int_equal(stats_of(f).n_lost, 3);
}

// More events than may wait: the agent's side returns at once, each event is run or counted as
// lost, and no more than four hooks ever run side by side.
static void test_hook_flood_is_bounded_and_counted(void **state)
{
	struct fixture *f = *state;
	char running[128];

	write_hook(f, "mkdir run.$$; ls -d run.* 2>/dev/null | wc -l >> running; "
		      "sleep 0.05; rmdir run.$$");
	assert_int_equal(ag_hook_open(&f->loop, f->path, 5000, &f->sink), 0);
	uint64_t begin_ns = pmdp_mono_now_ns();
	for (int i = 0; i < 200; i++)
		put(f, "{}");
	assert_in_range(pmdp_mono_now_ns() - begin_ns, 0, 1000 * NS_PER_MS);
	f->wanted = 200;
	assert_true(run_until(f, hooks_over));
	struct ag_sink_stats stats = stats_of(f);
	assert_int_equal(stats.n_written + stats.n_lost, 200);
	assert_true(stats.n_written >= 64);
	assert_true(stats.n_lost > 0);
	snprintf(running, sizeof(running), "%s/running", f->dir);
	for (const char *at = content(running); *at; at = strchr(at, '\n') + 1)
		assert_in_range(atoi(at), 1, 4);
}

static bool helper_noticed(struct fixture *f)
{
	return stats_of(f).error && strstr(stats_of(f).error, "helper") != NULL;
}

static void test_hook_helper_killed_is_noticed(void **state)
{
	struct fixture *f = *state;
	char command[96];

	write_hook(f, "exit 0");
	assert_int_equal(ag_hook_open(&f->loop, f->path, 5000, &f->sink), 0);
	snprintf(command, sizeof(command), "pkill -KILL -P %d -x pmdpulse-hook", getpid());
	while (system(command)) // until it has taken its name
		usleep(1000);
	assert_true(run_until(f, helper_noticed));
	put(f, "x");
	assert_int_equal(stats_of(f).n_lost, 1); // within ten seconds of its start it isn't started
						 // again
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_json_appends_lines),
		TEST(test_json_reopens_after_rotation),
		TEST(test_json_refuses_a_folder),
		TEST(test_json_full_disk_is_counted),
		TEST(test_json_fifo_without_reader_waits_for_one),
		TEST(test_json_blocked_fifo_loses_and_counts),
		TEST(test_json_fifo_reader_comes_back),
		TEST(test_pump_retries_slowly),
		TEST(test_journal_fields),
		TEST(test_journal_that_is_stuck_does_not_block),
		TEST(test_journal_that_is_absent),
		TEST(test_hook_gets_json_on_stdin),
		TEST(test_hook_holds_nothing_of_the_agent),
		TEST(test_hook_that_runs_too_long_is_ended),
		TEST(test_hook_that_fails_is_counted),
		TEST(test_hook_flood_is_bounded_and_counted),
		TEST(test_hook_helper_killed_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
