// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "vs_post.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S UINT64_C(1000000000)
#define MAX_RETRY_AFTER_S 86400

// The beginning of the answer, for the log.
static size_t on_answer(char *data, size_t size, size_t n, void *ctx)
{
	struct vs_post *post = ctx;
	size_t room = sizeof(post->answer) - 1 - post->answer_len;
	size_t len = size * n < room ? size * n : room;

	memcpy(post->answer + post->answer_len, data, len);
	post->answer_len += len;
	post->answer[post->answer_len] = 0;
	return size * n;
}

static bool set_options(struct vs_post *post)
{
	const struct vs_config *config = post->config;
	CURL *easy = post->easy;
	CURLcode rc = CURLE_OK;

#define SET(option, value) rc = rc ? rc : curl_easy_setopt(easy, option, value)
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_POST, 1L);
	SET(CURLOPT_HTTPHEADER, post->headers);
	SET(CURLOPT_TIMEOUT_MS, (long)config->timeout_ms);
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)config->timeout_ms);
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_ERRORBUFFER, post->error);
	SET(CURLOPT_WRITEFUNCTION, on_answer);
	SET(CURLOPT_WRITEDATA, (void *)post);
	SET(CURLOPT_USERAGENT, "pmdpulse-ves");
	SET(CURLOPT_TCP_KEEPALIVE, 1L);
	// A name server that does not answer must hold up neither a time-out nor the end: without
	// this both would wait for the thread that asks it.
	SET(CURLOPT_QUICK_EXIT, 1L);
	if (config->ca_file[0])
		SET(CURLOPT_CAINFO, config->ca_file);
	if (config->client_cert[0])
		SET(CURLOPT_SSLCERT, config->client_cert);
	if (config->client_key[0])
		SET(CURLOPT_SSLKEY, config->client_key);
#undef SET
	return rc == CURLE_OK;
}

int vs_post_init(struct vs_post *post, const struct vs_config *config, char *error,
		 size_t error_size)
{
	struct curl_slist *more;

	memset(post, 0, sizeof(*post));
	post->config = config;
	curl_global_init(CURL_GLOBAL_DEFAULT);
	post->multi = curl_multi_init();
	post->easy = curl_easy_init();
	post->headers = curl_slist_append(NULL, "Content-Type: application/json");
	// No "Expect: 100-continue": a collector that ignores it would cost a second each time.
	more = post->headers ? curl_slist_append(post->headers, "Expect:") : NULL;
	if (!post->multi || !post->easy || !more || !set_options(post)) {
		snprintf(error, error_size, "libcurl: no memory, or built without http or TLS");
		vs_post_fini(post);
		return -EINVAL;
	}
	return 0;
}

void vs_post_fini(struct vs_post *post)
{
	vs_post_cancel(post);
	curl_easy_cleanup(post->easy);
	curl_multi_cleanup(post->multi);
	curl_slist_free_all(post->headers);
	curl_global_cleanup();
	memset(post, 0, sizeof(*post));
}

static int set_credentials(struct vs_post *post, char *error, size_t error_size)
{
	char userpwd[VS_USERPWD_BYTES];
	int rc;

	if (!post->config->credentials[0])
		return 0;
	rc = vs_config_credentials(post->config->credentials, userpwd, sizeof(userpwd), error,
				   error_size);
	if (!rc && curl_easy_setopt(post->easy, CURLOPT_USERPWD, userpwd))
		rc = -ENOMEM;
	explicit_bzero(userpwd, sizeof(userpwd));
	return rc;
}

int vs_post_begin(struct vs_post *post, char *body, bool is_batch, char *error, size_t error_size)
{
	char url[VS_PATH_BYTES + 16];
	int rc = set_credentials(post, error, error_size);

	if (rc) {
		free(body);
		return rc;
	}
	snprintf(url, sizeof(url), "%s%s", post->config->url, is_batch ? "/eventBatch" : "");
	post->error[0] = post->answer[0] = 0;
	post->answer_len = 0;
	if (curl_easy_setopt(post->easy, CURLOPT_URL, url) ||
	    curl_easy_setopt(post->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body)) ||
	    curl_easy_setopt(post->easy, CURLOPT_POSTFIELDS, body) ||
	    curl_multi_add_handle(post->multi, post->easy)) {
		snprintf(error, error_size, "libcurl: no memory");
		free(body);
		return -ENOMEM;
	}
	post->body = body;
	return 0;
}

void vs_post_cancel(struct vs_post *post)
{
	if (!post->body)
		return;
	curl_multi_remove_handle(post->multi, post->easy);
	free(post->body);
	post->body = NULL;
}

/*
 * 4xx mean that the body is at fault, but for those that somebody may mend without it: credentials
 * (401, 403, 407), the address (404, 405), time (408, 425, 429), and an address that is another
 * server's (421).
 */
static enum vs_verdict verdict_of(long http)
{
	if (http >= 200 && http < 300)
		return VS_TAKEN;
	if (http < 400 || http >= 500)
		return VS_RETRY;
	switch (http) {
	case 401:
	case 403:
	case 404:
	case 405:
	case 407:
	case 408:
	case 421:
	case 425:
	case 429:
		return VS_RETRY;
	default:
		return VS_REFUSED;
	}
}

static void one_line(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || (unsigned char)*text >= 127)
			*text = ' ';
}

static void judge(struct vs_post *post, CURLcode code, struct vs_result *result)
{
	curl_off_t wait_s = 0;
	long http = 0;

	curl_easy_getinfo(post->easy, CURLINFO_RESPONSE_CODE, &http);
	if (code) {
		result->verdict = VS_RETRY;
		snprintf(result->text, sizeof(result->text), "%s",
			 post->error[0] ? post->error : curl_easy_strerror(code));
	} else {
		result->verdict = verdict_of(http);
		snprintf(result->text, sizeof(result->text), "HTTP %ld%s%s", http,
			 post->answer_len ? ": " : "", post->answer);
	}
	one_line(result->text);
	result->trouble = code ? (int)code : 1000 + (int)http;
	curl_easy_getinfo(post->easy, CURLINFO_RETRY_AFTER, &wait_s);
	if (wait_s > 0)
		result->retry_after_ns =
			(uint64_t)(wait_s < MAX_RETRY_AFTER_S ? wait_s : MAX_RETRY_AFTER_S) *
			NS_PER_S;
}

bool vs_post_go(struct vs_post *post, struct vs_result *out_result)
{
	CURLMsg *message;
	int n;

	if (!post->body)
		return false;
	curl_multi_perform(post->multi, &n);
	while ((message = curl_multi_info_read(post->multi, &n))) {
		if (message->msg != CURLMSG_DONE)
			continue;
		memset(out_result, 0, sizeof(*out_result));
		judge(post, message->data.result, out_result);
		vs_post_cancel(post);
		return true;
	}
	return false;
}

void vs_post_wait(struct vs_post *post, struct curl_waitfd *fds, unsigned int n_fds, int timeout_ms)
{
	curl_multi_poll(post->multi, fds, n_fds, timeout_ms, NULL);
}
