// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * One HTTP POST at a time, by libcurl's multi interface: nothing here waits but vs_post_wait(). One
 * connection is kept and used again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <curl/curl.h>

#include "vs_config.h"

enum vs_verdict {
	VS_TAKEN,   // 2xx
	VS_REFUSED, // this body will never be taken (400, 413, 422, ...)
	VS_RETRY,   // all else: later it may be
};

struct vs_result {
	enum vs_verdict verdict;
	int trouble;             // the same number for the same trouble, whatever the text
	uint64_t retry_after_ns; // what the collector asked for, or 0
	char text[512];          // "HTTP 503: ...", or what libcurl says; one line
};

struct vs_post {
	const struct vs_config *config;
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers;
	char *body; // on its way; NULL: nothing is
	char error[CURL_ERROR_SIZE];
	char answer[256];
	size_t answer_len;
};

// -ENOMEM or -EINVAL (libcurl refuses an option) with a text.
int vs_post_init(struct vs_post *post, const struct vs_config *config, char *error,
		 size_t error_size);
void vs_post_fini(struct vs_post *post);

/*
 * Send body (malloc'd, taken over) to the listener, or to its batch address. Credentials are read
 * from their file each time. 0, or -errno with a text: it was not begun, and is to be tried again.
 */
int vs_post_begin(struct vs_post *post, char *body, bool is_batch, char *error, size_t error_size);

static inline bool vs_post_is_busy(const struct vs_post *post)
{
	return post->body != NULL;
}

// Go on as far as that is possible now. true: it is over, and out_result tells how.
bool vs_post_go(struct vs_post *post, struct vs_result *out_result);
// Give it up.
void vs_post_cancel(struct vs_post *post);

// Until one of fds or the transfer has something to do, or timeout_ms have passed.
void vs_post_wait(struct vs_post *post, struct curl_waitfd *fds, unsigned int n_fds,
		  int timeout_ms);
