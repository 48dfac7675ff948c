// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The agent's control socket against clients that idle.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "ag_agent.h"
#include "ag_ctl.h"
#include "ag_instance.h"
#include "pmdp_clock.h"
#include "test_dir.h"

#define N_KEPT 16
#define TURN_NS UINT64_C(50000000)

static struct ag_agent agent;
static struct ag_instance instance = {.agent = &agent, .name = "unit"};

static void on_time(void *ctx, uint64_t now_ns)
{
	(void)ctx;
	(void)now_ns;
	agent.loop.is_stopping = true;
}

// All that waits is served, then some.
static void turn(void)
{
	struct ag_timer timer = {.due_ns = pmdp_mono_now_ns() + TURN_NS, .fn = on_time};

	agent.loop.is_stopping = false;
	ag_loop_add_timer(&agent.loop, &timer);
	assert_int_equal(ag_loop_run(&agent.loop), 0);
	ag_loop_remove_timer(&agent.loop, &timer);
}

static int connect_one(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	memcpy(address.sun_path, instance.ctl.path, sizeof(address.sun_path));
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static bool is_answered(int fd)
{
	static const char request[] = "{\"id\":1,\"cmd\":\"version\"}\n";
	char reply[4096];

	if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) < 0)
		return false;
	turn();
	ssize_t n = recv(fd, reply, sizeof(reply) - 1, MSG_DONTWAIT);
	if (n <= 0)
		return false;
	reply[n] = 0;
	return strstr(reply, "\"ok\":true") != NULL;
}

static void test_idle_connections_lock_nobody_out(void **state)
{
	int idle[N_KEPT], late;
	char byte;

	(void)state;
	for (size_t i = 0; i < N_KEPT; i++)
		idle[i] = connect_one();
	turn();
	assert_true(is_answered(idle[0]));
	late = connect_one();
	assert_true(is_answered(late));
	// The second has been silent longest, since the first has spoken.
	assert_int_equal(recv(idle[1], &byte, 1, MSG_DONTWAIT), 0);
	assert_true(is_answered(idle[0]));
	for (size_t i = 2; i < N_KEPT; i++)
		assert_true(is_answered(idle[i]));
	for (size_t i = 0; i < N_KEPT; i++)
		close(idle[i]);
	close(late);
	turn();
	assert_int_equal(instance.ctl.n_clients, 0);
}

static int setup(void **state)
{
	(void)state;
	snprintf(agent.rundir, sizeof(agent.rundir), "%s", test_dir_make());
	return ag_loop_init(&agent.loop) || ag_ctl_open(&instance.ctl, &instance);
}

static int teardown(void **state)
{
	(void)state;
	ag_ctl_close(&instance.ctl);
	ag_loop_fini(&agent.loop);
	test_dir_remove();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_idle_connections_lock_nobody_out, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
