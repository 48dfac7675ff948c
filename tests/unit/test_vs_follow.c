// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Following a real incidents segment, with a fed clock: each event once, over restarts of both
// sides.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "test_dir.h"
#include "vs_follow.h"

#define MS UINT64_C(1000000)
#define NAME "default"
#define RING 16

static struct vs_config config;
static struct vs_queue queue;
static struct vs_follower follower;
static struct pmdp_incident_log *agent;
static struct vs_place place;
static uint64_t now_ns;

static void start_agent(void)
{
	const struct pmdp_incident_log_opts opts = {
		.rundir = test_dir_path(""), .n_events = RING, .n_incidents = 8};

	assert_int_equal(pmdp_incident_log_open(NAME, &opts, &agent, NULL), 0);
	pmdp_incident_log_alive(agent);
}

static void stop_agent(void)
{
	pmdp_incident_log_close(agent);
	agent = NULL;
}

static void start_follower(const struct vs_place *known)
{
	static char rundir[256];

	snprintf(rundir, sizeof(rundir), "%s", test_dir_path(""));
	assert_int_equal(vs_follower_init(&follower, NAME, 0, &config, rundir, &queue, known), 0);
}

static void forget_queue(void)
{
	while (queue.n)
		vs_queue_done(&queue, queue.items[0]->domains);
}

// The poster ends and begins anew, knowing what the old one knew; its queue is gone.
static void restart_follower(void)
{
	memset(&place, 0, sizeof(place));
	vs_follower_place(&follower, &place);
	vs_follower_fini(&follower);
	forget_queue();
	start_follower(&place);
}

static void pass(uint64_t ms)
{
	now_ns += ms * MS;
	vs_follower_step(&follower, now_ns);
}

// An agent signs every 250 ms; so long is a step of the clock here.
static void look(bool is_agent_alive)
{
	if (is_agent_alive)
		pmdp_incident_log_alive(agent);
	vs_follower_poke(&follower);
	pass(250);
}

static void look_times(bool is_agent_alive, uint32_t n)
{
	while (n-- > 0)
		look(is_agent_alive);
}

static struct pmdp_incident tell(uint32_t kind, uint32_t phase, const char *id)
{
	struct pmdp_incident incident;

	pmdp_incident_init(&incident, NAME, kind, phase);
	snprintf(incident.id, sizeof(incident.id), "%s", id);
	pmdp_incident_log_publish(agent, &incident);
	return incident;
}

static void stall(uint32_t phase, const char *id)
{
	tell(PMDP_KIND_PMD_STALL, phase, id);
}

static void stall_times(uint32_t phase, const char *id, uint32_t n)
{
	while (n-- > 0)
		stall(phase, id);
}

// "R1 C1" as in the queue's test; takes them out.
static void assert_told(const char *expected)
{
	static const char letters[] = "?RUC";
	char found[1024] = "";
	size_t used = 0;

	while (queue.n) {
		const struct vs_item *item = queue.items[0];

		used += (size_t)snprintf(found + used, sizeof(found) - used, "%s%c%s",
					 used ? " " : "", letters[item->incident.phase],
					 item->is_own ? "agent" : item->incident.id);
		vs_queue_done(&queue, item->domains);
	}
	assert_string_equal(found, expected);
}

// Both are there, and have met.
static void begin(void)
{
	start_agent();
	start_follower(NULL);
	look(true);
}

static void restart_agent(void)
{
	stop_agent();
	start_agent();
}

static void remove_segment(void)
{
	assert_int_equal(unlink(test_dir_path(NAME ".incidents")), 0);
}

static void begin_with_one_raised(void)
{
	begin();
	stall(PMDP_PHASE_RAISE, "1");
	look(true);
	assert_told("R1");
}

static int setup(void **state)
{
	(void)state;
	test_dir_make();
	memset(&config, 0, sizeof(config));
	config.agent_timeout_ms = 2000;
	now_ns = test_now_ns();
	return vs_queue_init(&queue, 256);
}

static int teardown(void **state)
{
	(void)state;
	vs_follower_fini(&follower);
	pmdp_incident_log_close(agent);
	agent = NULL;
	vs_queue_fini(&queue);
	test_dir_remove();
	return 0;
}

static void test_begins_with_what_is_open(void **state)
{
	(void)state;
	start_agent();
	stall(PMDP_PHASE_RAISE, "1");
	stall(PMDP_PHASE_CLEAR, "1");
	stall(PMDP_PHASE_RAISE, "2");
	stall(PMDP_PHASE_UPDATE, "2");
	start_follower(NULL);
	look(true);
	assert_told("R2");
	stall(PMDP_PHASE_CLEAR, "2");
	look_times(true, 2);
	assert_told("C2");
	assert_int_equal(vs_follower_n_open(&follower), 0);
	assert_int_equal(queue.n_lost, 0);
}

static void test_waits_for_an_agent(void **state)
{
	(void)state;
	start_follower(NULL);
	look_times(false, 20);
	assert_told(""); // of an agent that never was, nothing is known
	assert_int_equal(follower.agent, VS_AGENT_ABSENT);
	start_agent();
	look(true);
	stall(PMDP_PHASE_RAISE, "1");
	look(true);
	assert_told("R1");
	assert_int_equal(follower.agent, VS_AGENT_UP);
}

static void test_over_agents_restarts(void **state)
{
	(void)state;
	begin();
	for (int turn = 0; turn < 5; turn++) {
		stall(PMDP_PHASE_RAISE, "a");
		if (turn % 2) // its last word, read after it is gone
			look(true);
		restart_agent();
		stall(PMDP_PHASE_CLEAR, "a");
		look_times(true, 2);
		assert_told("Ra Ca");
	}
	assert_int_equal(queue.n_lost, 0);
}

static void test_over_own_restarts(void **state)
{
	(void)state;
	begin_with_one_raised();
	restart_follower();
	stall(PMDP_PHASE_CLEAR, "1");
	stall(PMDP_PHASE_RAISE, "2");
	look(true);
	assert_int_equal(queue.n, 2);
	restart_follower(); // with both still waiting
	stall(PMDP_PHASE_CLEAR, "2");
	look(true);
	assert_told("C1 R2 C2");
	restart_follower();
	look(true);
	assert_told("");
	assert_int_equal(queue.n_lost, 0);
}

static void test_both_restart(void **state)
{
	(void)state;
	begin_with_one_raised();
	restart_follower();
	restart_agent();
	stall(PMDP_PHASE_CLEAR, "1");
	look(true);
	assert_told("C1");
}

static void test_what_was_overwritten_is_counted(void **state)
{
	(void)state;
	begin();
	stall_times(PMDP_PHASE_UPDATE, "1", RING + 5);
	look(true);
	assert_int_equal(queue.n, RING);
	assert_int_equal(queue.n_lost, 5);
	assert_int_equal(queue.items[0]->incident.seq, 6);
	while (queue.n > 1)
		vs_queue_done(&queue, VS_FAULT);
	restart_follower(); // one was left: while nobody looks, it and two more are overwritten
	stall_times(PMDP_PHASE_UPDATE, "1", RING + 2);
	look(true);
	assert_int_equal(queue.n_lost, 5 + 3);
}

// The segment is removed, or was damaged: the next one counts from 1 again.
static void test_another_history(void **state)
{
	(void)state;
	for (int n_before = 1; n_before < 8; n_before += 3) {
		start_agent();
		if (!follower.batch)
			start_follower(NULL);
		look(true);
		stall_times(PMDP_PHASE_UPDATE, "old", n_before);
		look(true);
		forget_queue();
		stop_agent();
		remove_segment();
		start_agent();
		for (int i = 0; i < 4; i++) // fewer, and more, than the old one had
			stall(PMDP_PHASE_RAISE, (const char[]){(char)('a' + i), 0});
		look_times(true, 2);
		assert_told("Ra Rb Rc Rd");
		stop_agent();
		remove_segment();
	}
	assert_int_equal(queue.n_lost, 0);
}

static void test_a_silent_agent_is_told(void **state)
{
	(void)state;
	begin();
	look_times(false, 7);
	assert_told("");
	look_times(false, 2);
	assert_told("Ragent");
	assert_int_equal(follower.agent, VS_AGENT_GONE);
	look_times(false, 20);
	assert_told("");
	look(true);
	assert_told("Cagent");
	assert_int_equal(follower.agent, VS_AGENT_UP);
}

static void test_a_stopped_agent_is_told_and_comes_back(void **state)
{
	(void)state;
	begin();
	stop_agent();
	for (int i = 0; i < 12; i++)
		pass(250);
	assert_int_equal(queue.n, 1);
	assert_non_null(strstr(queue.items[0]->incident.message, "was stopped"));
	assert_told("Ragent");
	restart_follower(); // which remembers that this alarm is open
	for (int i = 0; i < 12; i++)
		pass(250);
	assert_told("");
	start_agent();
	look_times(true, 2);
	assert_told("Cagent");
}

static void test_own_pause_is_not_held_against_the_agent(void **state)
{
	(void)state;
	begin();
	pass(60000); // suspended: the agent signed meanwhile, unseen, or did not
	assert_told("");
}

static void test_domains(void **state)
{
	(void)state;
	begin();
	tell(PMDP_KIND_LINK, PMDP_PHASE_RAISE, "1");
	stall(PMDP_PHASE_RAISE, "2");
	look(true);
	assert_int_equal(queue.items[0]->domains, VS_FAULT | VS_STATE_CHANGE);
	assert_int_equal(queue.items[1]->domains, VS_FAULT);
	assert_told("R1 R2");
	config.domains = VS_STATE_CHANGE;
	tell(PMDP_KIND_LINK, PMDP_PHASE_CLEAR, "1");
	stall(PMDP_PHASE_CLEAR, "2");
	look(true);
	assert_int_equal(queue.n, 1);
	assert_int_equal(queue.items[0]->domains, VS_STATE_CHANGE);
	config.domains = 0;
}

static void test_a_segment_that_is_none(void **state)
{
	(void)state;
	FILE *file = fopen(test_dir_path(NAME ".incidents"), "w");
	assert_non_null(file);
	fputs("nothing", file);
	fclose(file);
	start_follower(NULL);
	for (int i = 0; i < 4; i++)
		pass(600);
	assert_int_equal(follower.open_error, -EBADMSG);
	remove_segment();
	start_agent();
	stall(PMDP_PHASE_RAISE, "1");
	look_times(true, 2);
	assert_told("R1");
}

// Cut while it is followed, then replaced.
static void test_a_truncated_segment(void **state)
{
	(void)state;
	begin_with_one_raised();
	stop_agent();
	assert_int_equal(truncate(test_dir_path(NAME ".incidents"), 700), 0);
	vs_follower_poke(&follower);
	pass(600);
	start_agent(); // cannot go on from there
	stall(PMDP_PHASE_RAISE, "2");
	look_times(true, 2);
	assert_told("R2");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_begins_with_what_is_open),
		TEST(test_waits_for_an_agent),
		TEST(test_over_agents_restarts),
		TEST(test_over_own_restarts),
		TEST(test_both_restart),
		TEST(test_what_was_overwritten_is_counted),
		TEST(test_another_history),
		TEST(test_a_silent_agent_is_told),
		TEST(test_a_stopped_agent_is_told_and_comes_back),
		TEST(test_own_pause_is_not_held_against_the_agent),
		TEST(test_domains),
		TEST(test_a_segment_that_is_none),
		TEST(test_a_truncated_segment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
