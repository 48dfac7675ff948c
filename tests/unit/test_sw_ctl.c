// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The control socket against clients that behave, that don't, and predecessors dead or alive.
// Server and clients share this thread: the server is asked to serve whenever a client waits.
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "sw_ctl.h"
#include "sw_flow.h"
#include "sw_switch.h"
#include "test_dir.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define PATIENCE_NS UINT64_C(60000000000) // sanitizers are slow with many rules

static struct sw_switch *sw;

static int setup(void **state)
{
	struct sw_error err;

	(void)state;
	sw = calloc(1, sizeof(*sw));
	snprintf(sw->options.rundir, sizeof(sw->options.rundir), "%s", test_dir_make());
	snprintf(sw->options.instance, sizeof(sw->options.instance), "unit");
	sw_settings_init(&sw->settings);
	sw->flows = sw_flow_table_create(NULL);
	if (sw_ctl_create(sw, &sw->ctl, &err) < 0)
		fail_msg("%s", err.text);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sw_ctl_destroy(sw->ctl);
	sw_flow_table_destroy(sw->flows);
	free(sw);
	test_dir_remove();
	return 0;
}

static struct sockaddr_un address_of(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", test_dir_path(name));
	return address;
}

static int dial(void)
{
	struct sockaddr_un address = address_of("unit.ctl");
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void serve(void)
{
	struct pollfd p = {.fd = sw_ctl_fd(sw->ctl), .events = POLLIN};

	if (poll(&p, 1, 0) > 0)
		sw_ctl_serve(sw->ctl);
}

// Send all, serving meanwhile. False: the server has closed.
static bool say(int fd, const char *bytes, size_t len)
{
	uint64_t end_ns = test_now_ns() + PATIENCE_NS;

	while (len > 0) {
		ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			return false;
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
		serve();
		assert_true(test_now_ns() < end_ns);
	}
	return true;
}

// One line without its newline into out; false at the end of the connection.
static bool hear(int fd, char *out, size_t size)
{
	uint64_t end_ns = test_now_ns() + PATIENCE_NS;
	size_t len = 0;

	for (;;) {
		char c;
		ssize_t n = recv(fd, &c, 1, 0);

		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return false;
		if (n == 1 && c == '\n') {
			out[len] = 0;
			return true;
		}
		if (n == 1) {
			assert_true(len + 1 < size);
			out[len++] = c;
		} else {
			serve();
			assert_true(test_now_ns() < end_ns);
		}
	}
}

static void expect(int fd, const char *reply)
{
	char line[4096];

	assert_true(hear(fd, line, sizeof(line)));
	assert_string_equal(line, reply);
}

static void expect_error(int fd, const char *named)
{
	char line[4096];

	assert_true(hear(fd, line, sizeof(line)));
	if (!strstr(line, "\"ok\":false") || !strstr(line, named))
		fail_msg("\"%s\" does not name \"%s\"", line, named);
}

static void ask(int fd, const char *text)
{
	assert_true(say(fd, text, strlen(text)));
}

static void test_ctl_requests(void **state)
{
	int fd = dial();

	(void)state;
	ask(fd, "{\"id\":1,\"cmd\":\"add-flow\",\"args\":[\"in_port=1,actions=2\"]}\n");
	expect(fd, "{\"id\":1,\"ok\":true,\"data\":null}");
	assert_int_equal(sw_flow_count(sw->flows), 1);
	ask(fd, "{\"id\":\"a\\\"b\",\"cmd\":\"del-flows\"}\n"
		"{\"id\":12345678901234567890,\"cmd\":\"del-flows\"}\n"
		"{\"cmd\":\"del-flows\",\"args\":[]}\n");
	expect(fd, "{\"id\":\"a\\\"b\",\"ok\":true,\"data\":null}");
	expect(fd, "{\"id\":12345678901234567890,\"ok\":true,\"data\":null}");
	expect(fd, "{\"id\":null,\"ok\":true,\"data\":null}");
	ask(fd, "{\"id\":2,\"cmd\":\"get\",\"args\":[\"mbufs\"]");
	ask(fd, "}\n");
	expect(fd,
	       "{\"id\":2,\"ok\":true,\"data\":{\"settings\":[{\"key\":\"mbufs\",\"value\":\"0\","
	       "\"default\":\"0\",\"help\":\"packet buffers of the shared pool, before its first "
	       "port; 0: by need\"}]}}");
	ask(fd, "{\"id\":3,\"cmd\":\"dump-flows\"}\r\n");
	expect(fd, "{\"id\":3,\"ok\":true,\"data\":{\"flows\":[]}}");
	close(fd);
	serve();
}

static void test_ctl_bad_requests_get_a_reply(void **state)
{
	static const struct {
		const char *line, *named;
	} bad[] = {
		{"\n", "not a request"},
		{"{\n", "not a request"},
		{"nonsense\n", "not a request"},
		{"{\"id\":1,\"cmd\":\"show\"\n", "not a request"},
		{"[1]\n", "must be an object"},
		{"1\n", "must be an object"},
		{"{\"id\":1}\n", "cmd: is missing"},
		{"{\"id\":1,\"cmd\":2}\n", "cmd: is missing"},
		{"{\"id\":1,\"cmd\":\"show\",\"args\":\"x\"}\n", "args"},
		{"{\"id\":1,\"cmd\":\"show\",\"args\":[1]}\n", "args"},
		{"{\"id\":1,\"cmd\":\"show\",\"args\":[[]]}\n", "args"},
		{"{\"id\":1,\"cmd\":\"get\",\"args\":[\"a\",\"b\"]}\n", "usage: get [KEY]"},
		{"{\"id\":1,\"cmd\":\"frobnicate\"}\n", "frobnicate"},
		{"{\"id\":1,\"cmd\":\"add-flow\","
		 "\"args\":[\"in_port=1,nw_dst=1.2.3.4,actions=drop\"]}\n",
		 "nw_dst"},
		{"{\"id\":1,\"cmd\":\"\xff\xfe\"}\n", "not a request"},
		{"[[[[[[[[[[[[[[[[[[[[[[[[\n", "too deeply"},
	};
	int fd = dial();

	(void)state;
	for (size_t i = 0; i < N(bad); i++) {
		ask(fd, bad[i].line);
		expect_error(fd, bad[i].named);
	}
	assert_true(say(fd, "{\"id\"\0:1}\n", 10));
	expect_error(fd, "0 byte");
	ask(fd, "{\"id\":9,\"cmd\":\"del-flows\"}\n"); // and the connection is still good
	expect(fd, "{\"id\":9,\"ok\":true,\"data\":null}");
	close(fd);
	serve();
}

static void test_ctl_endless_line(void **state)
{
	size_t len = SW_CTL_MAX_LINE_BYTES + 70000;
	char *endless = malloc(len), line[256], limit[64];
	int fd = dial();

	(void)state;
	snprintf(limit, sizeof(limit), "at most %u bytes", (unsigned int)SW_CTL_MAX_LINE_BYTES);
	memset(endless, '[', len);
	say(fd, endless, len); // the server may close in between
	expect_error(fd, "at most 16777216 bytes");
	assert_false(hear(fd, line, sizeof(line)));
	close(fd);
	// One of the longest length is a request like any other, if a bad one.
	fd = dial();
	endless[SW_CTL_MAX_LINE_BYTES - 1] = '\n';
	assert_true(say(fd, endless, SW_CTL_MAX_LINE_BYTES));
	expect_error(fd, "too deeply");
	free(endless);
	close(fd);
	serve();
}

// A client that asks and asks without reading does not hold up another, and gets all replies in
// order when it reads at last.
static void test_ctl_slow_reader(void **state)
{
	enum {
		REQUESTS = 3000
	};
	int slow = dial(), quick = dial();
	char text[128], line[4096];
	unsigned int n_sent;

	(void)state;
	for (n_sent = 0; n_sent < REQUESTS; n_sent++) {
		int len = snprintf(text, sizeof(text), "{\"id\":%u,\"cmd\":\"list-commands\"}\n",
				   n_sent);
		ssize_t n = send(slow, text, (size_t)len, MSG_NOSIGNAL);

		if (n < 0) { // nobody takes any more: just what is wanted
			assert_int_equal(errno, EAGAIN);
			break;
		}
		assert_int_equal(n, len);
		serve();
	}
	assert_true(n_sent > 10);
	ask(quick, "{\"id\":1,\"cmd\":\"del-flows\"}\n");
	expect(quick, "{\"id\":1,\"ok\":true,\"data\":null}");
	for (unsigned int i = 0; i < n_sent; i++) {
		int len = snprintf(text, sizeof(text), "{\"id\":%u,\"ok\":true,", i);

		assert_true(hear(slow, line, sizeof(line)));
		assert_memory_equal(line, text, (size_t)len);
	}
	close(slow);
	close(quick);
	serve();
}

static void test_ctl_half_closed_client_gets_its_replies(void **state)
{
	int fd = dial();
	char line[64];

	(void)state;
	ask(fd, "{\"id\":1,\"cmd\":\"del-flows\"}\n{\"id\":2,\"cmd\":\"del-flows\"}\n{\"id\":3");
	shutdown(fd, SHUT_WR);
	expect(fd, "{\"id\":1,\"ok\":true,\"data\":null}");
	expect(fd, "{\"id\":2,\"ok\":true,\"data\":null}");
	assert_false(hear(fd, line, sizeof(line)));
	close(fd);
}

static void test_ctl_client_that_leaves(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 200; i++) {
		int fd = dial();

		ask(fd, i % 2 ? "{\"id\":1,\"cmd\":\"list-commands\"}\n" : "{\"id\":1");
		close(fd);
		serve();
	}
}

static void test_ctl_more_clients_than_places(void **state)
{
	int fds[SW_CTL_MAX_CLIENTS + 8];
	char line[64];

	(void)state;
	for (size_t i = 0; i < N(fds); i++) {
		fds[i] = dial();
		ask(fds[i], "{\"id\":1,\"cmd\":\"del-flows\"}\n");
		expect(fds[i], "{\"id\":1,\"ok\":true,\"data\":null}");
	}
	for (size_t i = 0; i < 8; i++) // those that were silent longest had to go
		assert_false(hear(fds[i], line, sizeof(line)));
	ask(fds[N(fds) - 1], "{\"id\":2,\"cmd\":\"del-flows\"}\n");
	expect(fds[N(fds) - 1], "{\"id\":2,\"ok\":true,\"data\":null}");
	for (size_t i = 0; i < N(fds); i++)
		close(fds[i]);
	serve();
}

// They come at once, while the server is busy: nobody whose request waits is closed for another.
static void test_ctl_many_clients_at_once(void **state)
{
	static const char request[] = "{\"id\":1,\"cmd\":\"del-flows\"}\n";
	int fds[4 * SW_CTL_MAX_CLIENTS];

	(void)state;
	for (size_t i = 0; i < N(fds); i++) {
		fds[i] = dial();
		assert_int_equal(send(fds[i], request, strlen(request), 0), strlen(request));
	}
	for (size_t i = 0; i < N(fds); i++)
		expect(fds[i], "{\"id\":1,\"ok\":true,\"data\":null}");
	for (size_t i = 0; i < N(fds); i++)
		close(fds[i]);
	serve();
}

// All places are taken by clients that ask without end: another one gets its answer all the same.
static void test_ctl_clients_that_never_pause(void **state)
{
	static const char request[] = "{\"id\":1,\"cmd\":\"del-flows\"}\n";
	uint64_t end_ns = test_now_ns() + PATIENCE_NS;
	int fds[SW_CTL_MAX_CLIENTS], late = -1;
	char text[65536];
	ssize_t n = -1;

	(void)state;
	for (size_t i = 0; i < N(fds); i++)
		fds[i] = dial();
	while (n < 0) {
		for (size_t i = 0; i < N(fds); i++) {
			for (unsigned int k = 0; k < 8; k++)
				send(fds[i], request, strlen(request), MSG_NOSIGNAL);
			(void)!recv(fds[i], text, sizeof(text), 0);
		}
		if (late < 0) {
			late = dial();
			assert_int_equal(send(late, request, strlen(request), 0), strlen(request));
		}
		serve();
		n = recv(late, text, sizeof(text), 0);
		assert_true(test_now_ns() < end_ns);
	}
	assert_memory_equal(text, "{\"id\":1,\"ok\":true", 17);
	close(late);
	for (size_t i = 0; i < N(fds); i++)
		close(fds[i]);
	serve();
}

// A line that is too long to be read byte by byte.
static size_t hear_long(int fd, char *out, size_t size)
{
	uint64_t end_ns = test_now_ns() + PATIENCE_NS;
	size_t len = 0;

	while (len == 0 || out[len - 1] != '\n') {
		ssize_t n = recv(fd, out + len, size - len, 0);

		assert_true(n > 0 || (n < 0 && errno == EAGAIN));
		len += n > 0 ? (size_t)n : 0;
		serve();
		assert_true(test_now_ns() < end_ns);
	}
	out[--len] = 0;
	return len;
}

// As many rules as the table holds are one request and, dumped, one reply.
static void test_ctl_long_request_and_reply(void **state)
{
	size_t size = SW_CTL_MAX_LINE_BYTES, len = 0;
	char *request = malloc(size), *reply = malloc(SW_CTL_MAX_REPLY_BYTES);
	int fd = dial();

	(void)state;
	len += (size_t)snprintf(request, size,
				"{\"id\":1,\"cmd\":\"replace-flows\",\"args\":[\"# all\"");
	for (unsigned int i = 0; i < SW_FLOW_MAX_RULES; i++)
		len += (size_t)snprintf(
			request + len, size - len,
			",\"in_port=%u,priority=%u,udp,nw_dst=20.0.0.0/24,tp_dst=63,"
			"actions=output:2\"",
			1 + i % 64, i / 64);
	snprintf(request + len, size - len, "]}\n");
	ask(fd, request);
	expect(fd, "{\"id\":1,\"ok\":true,\"data\":null}");
	assert_int_equal(sw_flow_count(sw->flows), SW_FLOW_MAX_RULES);
	ask(fd, "{\"id\":2,\"cmd\":\"dump-flows\"}\n");
	len = hear_long(fd, reply, SW_CTL_MAX_REPLY_BYTES);
	assert_non_null(strstr(reply, "n_packets"));
	assert_memory_equal(reply + len - 4, "}]}}", 4);
	free(request);
	free(reply);
	close(fd);
	serve();
}

// A dump beyond the bound of replies says so, and a part of it comes.
static void test_ctl_reply_that_is_too_long(void **state)
{
	enum {
		RULES = 20000,
		NOTES = 20
	};
	struct sw_rule *rules = calloc(RULES, sizeof(*rules));
	char text[SW_FLOW_TEXT_BYTES] = "priority=1,in_port=1,actions=", line[16384];
	size_t len = strlen(text);
	struct sw_error err;
	int fd = dial();

	(void)state;
	for (unsigned int i = 0; i < NOTES; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "note:%064u,", 11);
	assert_int_equal(sw_rule_parse(NULL, text, &rules[0], &err), 0);
	for (unsigned int i = 1; i < RULES; i++) {
		rules[i] = rules[0];
		rules[i].priority = (uint16_t)(i + 1);
	}
	assert_int_equal(sw_flow_replace(sw->flows, rules, RULES, &err), 0);
	ask(fd, "{\"id\":1,\"cmd\":\"dump-flows\"}\n");
	expect_error(fd, "ask for less (give a match)");
	sw_rule_free(&rules[0]);
	assert_int_equal(sw_rule_parse(NULL, "table=7,actions=drop", &rules[0], &err), 0);
	assert_int_equal(sw_flow_add(sw->flows, rules, 1, &err), 0);
	ask(fd, "{\"id\":2,\"cmd\":\"dump-flows\",\"args\":[\"table=7\"]}\n");
	assert_true(hear(fd, line, sizeof(line)));
	assert_non_null(strstr(line, "\"ok\":true"));
	free(rules);
	close(fd);
	serve();
}

static void test_ctl_socket_file(void **state)
{
	struct sw_ctl *second = NULL;
	struct sw_error err;
	struct stat file, folder;

	(void)state;
	assert_int_equal(stat(test_dir_path("unit.ctl"), &file), 0);
	assert_int_equal(stat(test_dir_path(""), &folder), 0);
	assert_int_equal(file.st_mode & 07777, 0660);
	assert_int_equal(file.st_gid, folder.st_gid);
	assert_int_equal(sw_ctl_create(sw, &second, &err), -EADDRINUSE); // a live one is left alone
	assert_non_null(strstr(err.text, "another switch"));
	assert_null(second);
}

static void test_ctl_takes_over_from_a_dead_one(void **state)
{
	struct sockaddr_un address = address_of("unit.ctl");
	int dead = socket(AF_UNIX, SOCK_STREAM, 0), fd;
	struct sw_error err;

	(void)state;
	sw_ctl_destroy(sw->ctl);
	assert_int_equal(access(address.sun_path, F_OK), -1);
	assert_int_equal(bind(dead, (struct sockaddr *)&address, sizeof(address)), 0);
	close(dead); // its file stays
	assert_int_equal(access(address.sun_path, F_OK), 0);
	assert_int_equal(sw_ctl_create(sw, &sw->ctl, &err), 0);
	fd = dial();
	ask(fd, "{\"id\":1,\"cmd\":\"del-flows\"}\n");
	expect(fd, "{\"id\":1,\"ok\":true,\"data\":null}");
	close(fd);
	serve();
}

// A successor that has taken the name keeps its socket when the predecessor ends.
static void test_ctl_removes_only_its_own_socket(void **state)
{
	struct sockaddr_un address = address_of("unit.ctl");
	int other = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sw_error err;

	(void)state;
	assert_int_equal(unlink(address.sun_path), 0);
	assert_int_equal(bind(other, (struct sockaddr *)&address, sizeof(address)), 0);
	sw_ctl_destroy(sw->ctl);
	assert_int_equal(access(address.sun_path, F_OK), 0);
	close(other);
	assert_int_equal(sw_ctl_create(sw, &sw->ctl, &err), 0);
}

static void test_ctl_folder_that_is_not_there(void **state)
{
	struct sw_switch *other = calloc(1, sizeof(*other));
	struct sw_ctl *ctl = NULL;
	struct sw_error err;

	(void)state;
	snprintf(other->options.rundir, sizeof(other->options.rundir), "%.200s",
		 test_dir_path("nothing"));
	snprintf(other->options.instance, sizeof(other->options.instance), "unit");
	assert_int_equal(sw_ctl_create(other, &ctl, &err), -ENOENT);
	assert_non_null(strstr(err.text, "nothing/unit.ctl"));
	memset(other->options.rundir, 'd', sizeof(other->options.rundir) - 1);
	assert_int_equal(sw_ctl_create(other, &ctl, &err), -ENAMETOOLONG);
	free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ctl_requests),
		cmocka_unit_test(test_ctl_bad_requests_get_a_reply),
		cmocka_unit_test(test_ctl_endless_line),
		cmocka_unit_test(test_ctl_slow_reader),
		cmocka_unit_test(test_ctl_half_closed_client_gets_its_replies),
		cmocka_unit_test(test_ctl_client_that_leaves),
		cmocka_unit_test(test_ctl_more_clients_than_places),
		cmocka_unit_test(test_ctl_many_clients_at_once),
		cmocka_unit_test(test_ctl_clients_that_never_pause),
		cmocka_unit_test(test_ctl_long_request_and_reply),
		cmocka_unit_test(test_ctl_reply_that_is_too_long),
		cmocka_unit_test(test_ctl_socket_file),
		cmocka_unit_test(test_ctl_takes_over_from_a_dead_one),
		cmocka_unit_test(test_ctl_removes_only_its_own_socket),
		cmocka_unit_test(test_ctl_folder_that_is_not_there),
	};

	return cmocka_run_group_tests_name("sw_ctl", tests, setup, teardown);
}
