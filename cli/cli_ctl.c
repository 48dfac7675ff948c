// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Client of the control sockets: one request a line, one reply a line.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli.h"
#include "pmdp_clock.h"
#include "pmdp_json.h"

#define MAX_REPLY_BYTES (64u << 20)

static uint64_t now_ms(void)
{
	return pmdp_mono_now_ns() / 1000000;
}

// Wait for events on fd until the deadline; false when it passed.
static bool wait_for(int fd, short events, uint64_t deadline_ms)
{
	struct pollfd p = {.fd = fd, .events = events};

	for (;;) {
		uint64_t now = now_ms();
		int rc;

		if (now >= deadline_ms)
			return false;
		rc = poll(&p, 1, (int)(deadline_ms - now));
		if (rc > 0)
			return true;
		if (rc < 0 && errno != EINTR)
			return false;
	}
}

// Waits when too many others wait to be let in. 0 or -errno.
static int connect_until(int fd, const struct sockaddr_un *address, uint64_t deadline_ms)
{
	uint64_t now = now_ms(), left_ms = deadline_ms > now ? deadline_ms - now : 1;
	const struct timeval limit = {.tv_sec = (time_t)(left_ms / 1000),
				      .tv_usec = (suseconds_t)(left_ms % 1000 * 1000)};

	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	return fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int connect_to(const struct cli *cli, const char *suffix, uint64_t deadline_ms, char *path,
		      size_t size)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, rc = pmdp_path(cli->rundir, cli->instance, suffix, path, size);

	if (rc < 0)
		return rc;
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	rc = connect_until(fd, &address, deadline_ms);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	return fd;
}

static bool send_all(int fd, const char *text, size_t len, uint64_t deadline_ms)
{
	while (len > 0) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

		if (n > 0) {
			text += n;
			len -= (size_t)n;
		} else if (errno != EAGAIN || !wait_for(fd, POLLOUT, deadline_ms)) {
			return false;
		}
	}
	return true;
}

// One line, without its newline, malloc'd; NULL on timeout, end of file or an endless line.
static char *receive_line(int fd, uint64_t deadline_ms)
{
	size_t len = 0, room = 65536;
	char *line = malloc(room);

	while (line != NULL) {
		ssize_t n;

		if (len + 1 == room) {
			char *larger = room < MAX_REPLY_BYTES ? realloc(line, room * 2) : NULL;

			if (larger == NULL)
				break;
			line = larger;
			room *= 2;
		}
		n = recv(fd, line + len, room - len - 1, 0);
		if (n > 0) {
			char *end = memchr(line + len, '\n', (size_t)n);

			len += (size_t)n;
			if (end != NULL) {
				*end = 0;
				return line;
			}
		} else if (n == 0 || errno != EAGAIN || !wait_for(fd, POLLIN, deadline_ms)) {
			break;
		}
	}
	free(line);
	return NULL;
}

static yajl_gen make_request(const char *command, int argc, char *const *argv)
{
	yajl_gen gen = cli_json_begin();

	yajl_gen_map_open(gen);
	pmdp_json_kv_int(gen, "id", 1);
	pmdp_json_kv_text(gen, "cmd", command);
	pmdp_json_key(gen, "args");
	yajl_gen_array_open(gen);
	for (int i = 0; i < argc; i++)
		pmdp_json_text(gen, argv[i]);
	yajl_gen_array_close(gen);
	yajl_gen_map_close(gen);
	return gen;
}

// 0 and *out_reply, or -errno. path is for messages.
static int exchange(struct cli *cli, const char *suffix, const char *command, int argc,
		    char *const *argv, char *path, size_t path_size, yajl_val *out_reply)
{
	uint64_t deadline_ms = now_ms() + cli->timeout_s * UINT64_C(1000);
	const unsigned char *text;
	yajl_gen gen;
	size_t len;
	char *line;
	int rc, fd = connect_to(cli, suffix, deadline_ms, path, path_size);

	if (fd < 0)
		return fd;
	gen = make_request(command, argc, argv);
	yajl_gen_get_buf(gen, &text, &len);
	if (send_all(fd, (const char *)text, len, deadline_ms))
		send_all(fd, "\n", 1, deadline_ms);
	// Also when not all was taken: the reply then says why.
	line = receive_line(fd, deadline_ms);
	yajl_gen_free(gen);
	close(fd);
	if (line == NULL)
		return now_ms() >= deadline_ms ? -ETIMEDOUT : -ECONNRESET;
	*out_reply = yajl_tree_parse(line, NULL, 0);
	rc = YAJL_IS_OBJECT(*out_reply) ? 0 : -EPROTO;
	free(line);
	if (rc < 0)
		yajl_tree_free(*out_reply);
	return rc;
}

int cli_call(struct cli *cli, const char *suffix, const char *command, int argc, char *const *argv,
	     yajl_val *out_reply)
{
	const char *who = strcmp(suffix, "ctl") == 0 ? "switch" : "agent";
	char path[512] = "";
	int rc = exchange(cli, suffix, command, argc, argv, path, sizeof(path), out_reply);

	if (rc == -ENOENT || rc == -ECONNREFUSED)
		return cli_fail("instance \"%s\": no %s answers at %s (is pmdpulse-%s running?)",
				cli->instance, who, path, who);
	if (rc == -EACCES)
		return cli_fail("%s: permission denied (be root or in the socket's group)", path);
	if (rc == -ETIMEDOUT)
		return cli_fail(
			"instance \"%s\": the %s did not answer within %u s (-T sets the limit)",
			cli->instance, who, cli->timeout_s);
	if (rc < 0)
		return cli_fail("%s: %s", path, strerror(-rc));
	if (YAJL_IS_TRUE(cli_get(*out_reply, "ok")))
		return CLI_OK;
	cli_fail("%s", cli_get_text(*out_reply, "error", "the switch refused without a reason"));
	yajl_tree_free(*out_reply);
	return CLI_FAILED;
}

bool cli_ask(struct cli *cli, const char *suffix, const char *command, yajl_val *out_reply)
{
	struct cli quick = *cli;
	char path[512];

	quick.timeout_s = 1;
	if (exchange(&quick, suffix, command, 0, NULL, path, sizeof(path), out_reply) < 0)
		return false;
	if (YAJL_IS_TRUE(cli_get(*out_reply, "ok")))
		return true;
	yajl_tree_free(*out_reply);
	return false;
}
