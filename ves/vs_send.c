// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// From the queue to the collector, and what its answers mean.
#include <stdlib.h>
#include <string.h>

#include "pmdp_ves.h"
#include "vs_log.h"
#include "vs_poster.h"

#define NS_PER_S UINT64_C(1000000000)
#define REPORTER "pmdpulse-ves"

// A fault goes before the state change of the same event.
static uint32_t next_domain(const struct vs_item *item)
{
	return item->domains & VS_FAULT ? VS_FAULT : item->domains;
}

static char *render(const struct vs_poster *poster, const struct vs_item *item, uint32_t domain,
		    uint64_t n_lost)
{
	const struct pmdp_ves_source source = {
		.host = poster->config.source_name,
		.reporter = REPORTER,
		.n_lost = n_lost,
	};

	return domain == VS_FAULT ? pmdp_ves_fault(&item->incident, &source)
				  : pmdp_ves_state_change(&item->incident, &source);
}

// How many from the front of the queue go together: of one domain, and nothing left of them after.
static uint32_t batch_of(const struct vs_poster *poster, uint32_t domain)
{
	uint32_t n = 1;

	if (poster->n_single || poster->queue.items[0]->domains != domain)
		return 1;
	while (n < poster->config.batch && n < poster->queue.n &&
	       poster->queue.items[n]->domains == domain)
		n++;
	return n;
}

// {"eventList": [...]} out of {"event": {...}} texts.
static char *render_batch(const struct vs_poster *poster, uint32_t n, uint32_t domain)
{
	static const char key[] = "{\"event\":";
	char *text = NULL, *one;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool is_right = out != NULL;

	if (out)
		fputs("{\"eventList\":[", out);
	for (uint32_t i = 0; is_right && i < n; i++) {
		one = render(poster, poster->queue.items[i], domain,
			     i ? 0 : poster->queue.n_untold);
		is_right = one && !strncmp(one, key, sizeof(key) - 1);
		if (is_right)
			fprintf(out, "%s%.*s", i ? "," : "", (int)(strlen(one) - sizeof(key)),
				one + sizeof(key) - 1);
		free(one);
	}
	if (out) {
		fputs("]}", out);
		is_right = !fclose(out) && is_right;
	}
	if (is_right)
		return text;
	free(text);
	return NULL;
}

static void failed(struct vs_poster *poster, const struct vs_result *result, uint64_t now_ns)
{
	bool is_known = poster->failing_since_ns && poster->last_trouble == result->trouble;

	vs_pace_failed(&poster->pace, now_ns, result->retry_after_ns, (uint32_t)random() * 2u);
	poster->n_failed++;
	if (!poster->failing_since_ns)
		poster->failing_since_ns = now_ns;
	// Each reason once in a row: a collector that is away for a night is one line.
	vs_log(is_known ? VS_DEBUG : VS_WARNING, "%s: %s; next try in %.1f s, %u events wait",
	       poster->config.url, result->text, (double)(poster->pace.ready_ns - now_ns) / 1e9,
	       poster->queue.n);
	poster->last_trouble = result->trouble;
	snprintf(poster->last_error, sizeof(poster->last_error), "%s", result->text);
}

static void begin(struct vs_poster *poster, char *body, bool is_batch, uint64_t now_ns)
{
	struct vs_result result = {.trouble = -1, .text = "no memory"};

	if (body && !vs_post_begin(&poster->post, body, is_batch, result.text, sizeof(result.text)))
		return;
	poster->under_way = VS_NOTHING;
	poster->queue.n_busy = 0;
	failed(poster, &result, now_ns);
}

static void begin_events(struct vs_poster *poster, uint64_t now_ns)
{
	uint32_t domain = next_domain(poster->queue.items[0]);
	uint32_t n = batch_of(poster, domain);

	poster->under_way = VS_EVENTS;
	poster->under_way_domain = domain;
	poster->under_way_untold = poster->queue.n_untold;
	poster->queue.n_busy = n;
	begin(poster,
	      n > 1 ? render_batch(poster, n, domain)
		    : render(poster, poster->queue.items[0], domain, poster->queue.n_untold),
	      n > 1, now_ns);
}

void vs_send_next(struct vs_poster *poster, uint64_t now_ns)
{
	if (vs_post_is_busy(&poster->post) || now_ns < poster->pace.ready_ns)
		return;
	if (now_ns >= poster->beat_due_ns && !poster->is_stopping) {
		poster->under_way = VS_BEAT;
		begin(poster, vs_report_heartbeat(poster), false, now_ns);
	} else if (poster->queue.n) {
		begin_events(poster, now_ns);
	}
}

uint64_t vs_send_due_ns(const struct vs_poster *poster)
{
	uint64_t due_ns = poster->queue.n ? 0 : poster->beat_due_ns;

	if (vs_post_is_busy(&poster->post))
		return UINT64_MAX; // libcurl knows
	return due_ns > poster->pace.ready_ns ? due_ns : poster->pace.ready_ns;
}

static void taken(struct vs_poster *poster, uint64_t now_ns)
{
	uint32_t n = poster->queue.n_busy;

	if (poster->failing_since_ns)
		vs_log(VS_NOTICE, "%s: takes events again, after %.1f s and %llu tries",
		       poster->config.url, (double)(now_ns - poster->failing_since_ns) / 1e9,
		       (unsigned long long)poster->pace.n_failed);
	poster->failing_since_ns = 0;
	poster->last_error[0] = 0;
	vs_pace_succeeded(&poster->pace);
	if (poster->under_way == VS_BEAT) {
		poster->n_beats++;
		poster->beat_due_ns = now_ns + poster->config.heartbeat_s * NS_PER_S;
		return;
	}
	poster->queue.n_untold -= poster->under_way_untold;
	poster->n_sent += n;
	for (uint32_t i = 0; i < n; i++)
		vs_queue_done(&poster->queue, poster->under_way_domain);
	if (poster->n_single)
		poster->n_single--;
}

// The collector will never take this body. What is in it goes, one by one, and is counted.
static void refused(struct vs_poster *poster, const char *why, uint64_t now_ns)
{
	if (poster->under_way == VS_BEAT) {
		poster->beat_due_ns = now_ns + poster->config.heartbeat_s * NS_PER_S;
		vs_log(VS_WARNING, "%s: refused a heartbeat: %s", poster->config.url, why);
		return;
	}
	if (poster->queue.n_busy > 1) {
		poster->n_single = poster->queue.n_busy;
		vs_log(VS_INFO, "%s: refused a batch: %s; its events go one by one",
		       poster->config.url, why);
		return;
	}
	vs_log(VS_WARNING, "%s: refused event %s: %s; it is not sent again", poster->config.url,
	       poster->queue.items[0]->incident.id, why);
	poster->n_refused++;
	vs_queue_refused(&poster->queue, poster->under_way_domain);
	if (poster->n_single)
		poster->n_single--;
}

void vs_send_result(struct vs_poster *poster, const struct vs_result *result, uint64_t now_ns)
{
	if (result->verdict == VS_TAKEN)
		taken(poster, now_ns);
	else if (result->verdict == VS_REFUSED)
		refused(poster, result->text, now_ns);
	else
		failed(poster, result, now_ns);
	poster->under_way = VS_NOTHING;
	poster->queue.n_busy = 0;
}
