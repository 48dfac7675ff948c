// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_ctl.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <yajl/yajl_tree.h>

#include "ag_agent.h"
#include "ag_instance.h"
#include "ag_log.h"
#include "ag_outq.h"
#include "pmdp_clock.h"
#include "pmdp_json.h"

#define AG_CTL_CLIENTS 16
#define AG_CTL_REQUEST_BYTES 4096
#define AG_CTL_REPLIES 64

struct ag_client {
	struct ag_ctl *ctl;
	struct ag_client *next;
	struct ag_source source;
	struct ag_outq out;
	uint64_t active_ns; // came, or last sent something
	bool is_waiting;    // for room to write
	bool is_ended;      // sends no more; goes when its replies are out
	size_t n_in;
	char in[AG_CTL_REQUEST_BYTES];
};

static void close_client(struct ag_client *client)
{
	struct ag_ctl *ctl = client->ctl;

	for (struct ag_client **at = &ctl->clients; *at; at = &(*at)->next)
		if (*at == client) {
			*at = client->next;
			break;
		}
	ag_loop_remove(&ctl->instance->agent->loop, &client->source);
	close(client->source.fd);
	ag_outq_fini(&client->out);
	free(client);
	ctl->n_clients--;
}

static const char *text_of(yajl_val value)
{
	return YAJL_IS_STRING(value) ? YAJL_GET_STRING(value) : NULL;
}

static void put_id(yajl_gen gen, yajl_val id)
{
	pmdp_json_key(gen, "id");
	if (YAJL_IS_NUMBER(id))
		yajl_gen_number(gen, YAJL_GET_NUMBER(id), strlen(YAJL_GET_NUMBER(id)));
	else
		pmdp_json_text(gen, text_of(id));
}

// Build the data apart, so that a refusal leaves no half of it in the reply.
static void answer(struct ag_client *client, yajl_val request, const char *refusal)
{
	static const char *path_id[] = {"id", NULL};
	static const char *path_cmd[] = {"cmd", NULL};
	static const char *path_args[] = {"args", NULL};
	const char *command = request ? text_of(yajl_tree_get(request, path_cmd, yajl_t_string))
				      : NULL;
	yajl_val args = request ? yajl_tree_get(request, path_args, yajl_t_array) : NULL;
	const char *arg = args && args->u.array.len ? text_of(args->u.array.values[0]) : NULL;
	char error[256] = "";
	const unsigned char *text;
	size_t len;

	yajl_gen data = yajl_gen_alloc(NULL);
	yajl_gen gen = yajl_gen_alloc(NULL);
	if (!data || !gen)
		goto out;
	if (refusal)
		snprintf(error, sizeof(error), "%s", refusal);
	else if (!command)
		snprintf(error, sizeof(error), "no \"cmd\" in the request");
	bool is_ok = !error[0] && ag_status_answer(client->ctl->instance, command, arg, data, error,
						   sizeof(error));
	yajl_gen_map_open(gen);
	put_id(gen, request ? yajl_tree_get(request, path_id, yajl_t_any) : NULL);
	pmdp_json_kv_bool(gen, "ok", is_ok);
	if (is_ok) {
		pmdp_json_key(gen, "data");
		yajl_gen_get_buf(data, &text, &len);
		yajl_gen_number(gen, (const char *)text, len); // passes its text on as it is
	} else {
		pmdp_json_kv_text(gen, "error", error);
	}
	yajl_gen_map_close(gen);
	yajl_gen_get_buf(gen, &text, &len);
	ag_outq_put(&client->out, (const char *)text, len);
	ag_outq_put(&client->out, "\n", 1);
out:
	if (data)
		yajl_gen_free(data);
	if (gen)
		yajl_gen_free(gen);
}

static void take_line(struct ag_client *client, const char *line)
{
	char why[128];

	yajl_val request = yajl_tree_parse(line, why, sizeof(why));
	answer(client, request, request ? NULL : "not JSON: one request a line is expected");
	yajl_tree_free(request);
}

// Returns false when the client has to go.
static bool take_input(struct ag_client *client)
{
	ssize_t n = recv(client->source.fd, client->in + client->n_in,
			 sizeof(client->in) - 1 - client->n_in, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	client->active_ns = pmdp_mono_now_ns();
	client->is_ended = n == 0;
	client->n_in += (size_t)n;
	char *begin = client->in;
	char *end;
	while ((end = memchr(begin, '\n', client->n_in - (size_t)(begin - client->in)))) {
		*end = 0;
		take_line(client, begin);
		begin = end + 1;
	}
	client->n_in -= (size_t)(begin - client->in);
	memmove(client->in, begin, client->n_in);
	if (client->n_in < sizeof(client->in) - 1)
		return true;
	answer(client, NULL, "request too long");
	ag_outq_flush(&client->out);
	return false;
}

static void on_client(void *ctx, uint32_t events)
{
	struct ag_client *client = ctx;
	struct ag_loop *loop = &client->ctl->instance->agent->loop;
	bool is_alive = !(events & EPOLLERR);

	if (is_alive && !client->is_ended && (events & (EPOLLIN | EPOLLHUP)))
		is_alive = take_input(client);
	bool is_out = ag_outq_flush(&client->out);
	if (!is_alive || client->out.n_lost || (!is_out && client->out.error != EAGAIN) ||
	    (is_out && client->is_ended)) {
		close_client(client);
		return;
	}
	if (is_out == !client->is_waiting && !client->is_ended)
		return;
	client->is_waiting = !is_out;
	ag_loop_modify(loop, &client->source,
		       (client->is_ended ? 0 : EPOLLIN) | (is_out ? 0 : EPOLLOUT));
}

// Idle connections lock nobody out: the client that has been silent longest makes room.
static void close_silent(struct ag_ctl *ctl)
{
	struct ag_client *oldest = ctl->clients;

	for (struct ag_client *client = oldest; client; client = client->next)
		if (client->active_ns < oldest->active_ns)
			oldest = client;
	if (oldest)
		close_client(oldest);
}

static void on_connect(void *ctx, uint32_t events)
{
	struct ag_ctl *ctl = ctx;

	(void)events;
	int fd = accept4(ctl->listen_source.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0)
		return;
	if (ctl->n_clients >= AG_CTL_CLIENTS)
		close_silent(ctl);
	struct ag_client *client = calloc(1, sizeof(*client));
	if (!client || ag_outq_init(&client->out, AG_CTL_REPLIES)) {
		free(client);
		close(fd); // the client sees the end of the connection
		return;
	}
	client->ctl = ctl;
	client->active_ns = pmdp_mono_now_ns();
	client->source = (struct ag_source){.fd = fd, .fn = on_client, .ctx = client};
	client->out.fd = fd;
	client->out.is_socket = true;
	client->next = ctl->clients;
	ctl->clients = client;
	ctl->n_clients++;
	if (ag_loop_add(&ctl->instance->agent->loop, &client->source, EPOLLIN))
		close_client(client);
}

// The folder's group unless a group is set, whatever group the process has.
static void set_owner(const struct ag_ctl *ctl)
{
	const struct ag_agent *agent = ctl->instance->agent;
	const struct group *group = agent->config.group[0] ? getgrnam(agent->config.group) : NULL;
	struct stat st, own;

	if (stat(ctl->path, &own) || (!group && stat(agent->rundir, &st)))
		return;
	if (group)
		st.st_gid = group->gr_gid;
	// As a service it may not call chown(): the run directory has set the group already.
	if ((own.st_gid != st.st_gid && chown(ctl->path, (uid_t)-1, st.st_gid)) ||
	    chmod(ctl->path, 0660))
		ag_log(AG_WARNING,
		       "%s: group and mode 0660 can't be set: %s; others may not reach it",
		       ctl->path, strerror(errno));
}

int ag_ctl_open(struct ag_ctl *ctl, struct ag_instance *instance)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct ag_loop *loop = &instance->agent->loop;

	*ctl = (struct ag_ctl){.instance = instance};
	ctl->listen_source = (struct ag_source){.fd = -1, .fn = on_connect, .ctx = ctl};
	int rc = pmdp_path(instance->agent->rundir, instance->name, "agent.ctl", address.sun_path,
			   sizeof(address.sun_path));
	if (rc)
		goto refused;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		rc = -errno;
		goto refused;
	}
	ctl->listen_source.fd = fd;
	// The incident segment is ours by now, so a socket that stands here is a dead agent's.
	unlink(address.sun_path);
	mode_t old_mask = umask(0117); // 0660 from the start: nobody slips in before the chmod
	rc = bind(fd, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
	umask(old_mask);
	if (rc)
		goto refused;
	memcpy(ctl->path, address.sun_path, sizeof(ctl->path));
	set_owner(ctl);
	rc = listen(fd, AG_CTL_CLIENTS) ? -errno : ag_loop_add(loop, &ctl->listen_source, EPOLLIN);
	if (!rc)
		return 0;
refused:
	ag_log(AG_ERROR, "%s/%s.agent.ctl: %s; choose a --rundir that is short and may be written",
	       instance->agent->rundir, instance->name, strerror(-rc));
	ag_ctl_close(ctl);
	return rc;
}

void ag_ctl_close(struct ag_ctl *ctl)
{
	struct ag_client *next;

	for (struct ag_client *client = ctl->clients; client; client = next) {
		next = client->next;
		close_client(client);
	}
	if (ctl->listen_source.fd >= 0) {
		ag_loop_remove(&ctl->instance->agent->loop, &ctl->listen_source);
		close(ctl->listen_source.fd);
		ctl->listen_source.fd = -1;
	}
	if (ctl->path[0])
		unlink(ctl->path);
	ctl->path[0] = 0;
}
