// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Incidents as data, as a line and as JSON values; text of any origin.
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "pmdp_json.h"
#include "pmdp_names.h"
#include "pmdp_text.h"
#include "test_dir.h"

static void test_incident_severity(void **state)
{
	(void)state;
	assert_int_equal(pmdp_incident_severity(PMDP_KIND_PMD_STALL, PMDP_PHASE_RAISE,
						PMDP_STATE_MISSING),
			 PMDP_SEVERITY_WARNING);
	assert_int_equal(pmdp_incident_severity(PMDP_KIND_PMD_STALL, PMDP_PHASE_UPDATE,
						PMDP_STATE_DEAD),
			 PMDP_SEVERITY_FAILURE);
	assert_int_equal(pmdp_incident_severity(PMDP_KIND_SWITCH_GONE, PMDP_PHASE_RAISE, 0),
			 PMDP_SEVERITY_FAILURE);
	assert_int_equal(pmdp_incident_severity(PMDP_KIND_LINK, PMDP_PHASE_RAISE, 0),
			 PMDP_SEVERITY_WARNING);
	assert_int_equal(pmdp_incident_severity(PMDP_KIND_SWITCH_STOPPED, PMDP_PHASE_RAISE, 0),
			 PMDP_SEVERITY_OKAY);
	for (uint32_t kind = 0; kind < PMDP_N_KINDS + 2; kind++)
		assert_int_equal(pmdp_incident_severity(kind, PMDP_PHASE_CLEAR, PMDP_STATE_DEAD),
				 PMDP_SEVERITY_OKAY);
}

// From a segment: a key stands once, and is text that a document can carry.
static void test_incident_evidence_keys(void **state)
{
	static const char *const keys[] = {"a", "b", "a", "\xff", "\xfe", ""};
	static const uint32_t types[] = {PMDP_EVIDENCE_INT, PMDP_EVIDENCE_INT,  PMDP_EVIDENCE_NONE,
					 PMDP_EVIDENCE_INT, PMDP_EVIDENCE_NONE, PMDP_EVIDENCE_INT};
	struct pmdp_incident incident;

	(void)state;
	pmdp_incident_init(&incident, "default", PMDP_KIND_PMD_STALL, PMDP_PHASE_RAISE);
	incident.n_evidence = 6;
	for (uint32_t i = 0; i < 6; i++) {
		strcpy(incident.evidence[i].key, keys[i]);
		incident.evidence[i].type = PMDP_EVIDENCE_INT;
	}
	pmdp_incident_sanitize(&incident);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(incident.evidence[i].type, types[i]);
	assert_string_equal(incident.evidence[3].key, "?");
}

static void test_incident_evidence(void **state)
{
	struct pmdp_incident incident;
	char key[16];

	(void)state;
	pmdp_incident_init(&incident, "i", PMDP_KIND_PMD_STALL, PMDP_PHASE_RAISE);
	assert_null(pmdp_evidence_find(&incident, "a"));
	assert_int_equal(pmdp_evidence_int(&incident, "a", 1), 0);
	assert_int_equal(pmdp_evidence_real(&incident, "a", 2.5), 0);
	assert_int_equal(incident.n_evidence, 1); // replaced
	assert_true(pmdp_evidence_find(&incident, "a")->real == 2.5);
	for (int i = 1; i < PMDP_N_EVIDENCE; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		assert_int_equal(pmdp_evidence_text(&incident, key, "v"), 0);
	}
	assert_int_equal(pmdp_evidence_int(&incident, "one-more", 1), -ENOSPC);
	assert_int_equal(pmdp_evidence_int(&incident, "k3", 1), 0);
	incident.n_evidence = UINT32_MAX; // from a segment
	assert_non_null(pmdp_evidence_find(&incident, "k3"));
	assert_null(pmdp_evidence_find(&incident, "one-more"));
	assert_int_equal(pmdp_evidence_int(&incident, "one-more", 1), -ENOSPC);
}

static void test_text_copy(void **state)
{
	char out[8];

	(void)state;
	pmdp_text_copy(out, sizeof(out), "abcdefghij");
	assert_string_equal(out, "abcdefg");
	pmdp_text_copy(out, sizeof(out), "abcdef\xc3\xbc"); // would be cut in the middle
	assert_string_equal(out, "abcdef");
	pmdp_text_copy(out, sizeof(out), "abcde\xc3\xbc");
	assert_string_equal(out, "abcde\xc3\xbc");
	pmdp_text_copy(out, sizeof(out), "\xff\xff"); // as it is
	assert_string_equal(out, "\xff\xff");
	pmdp_text_copy(out, sizeof(out), NULL);
	assert_string_equal(out, "");
}

static void test_text_utf8(void **state)
{
	static const char *const valid[] = {"",
					    "a",
					    "\xc2\x80",
					    "\xe0\xa0\x80",
					    "\xed\x9f\xbf",
					    "\xee\x80\x80",
					    "\xf0\x90\x80\x80",
					    "\xf4\x8f\xbf\xbf"};
	static const char *const invalid[] = {
		"\x80",         "\xc0\x80",         "\xc1\xbf",         "\xe0\x9f\xbf",
		"\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
		"\xc3",         "\xe2\x82",         "\xf0\x9f\x98",     "\xff"};

	(void)state;
	for (size_t i = 0; i < sizeof(valid) / sizeof(*valid); i++)
		assert_true(pmdp_utf8_is_valid(valid[i], strlen(valid[i])));
	for (size_t i = 0; i < sizeof(invalid) / sizeof(*invalid); i++)
		assert_false(pmdp_utf8_is_valid(invalid[i], strlen(invalid[i])));
}

static void test_text_clean_and_append(void **state)
{
	char out[64];
	size_t used = 0;

	(void)state;
	pmdp_text_clean(out, sizeof(out), "a\nb\x7f\xff\xc3\xbc");
	assert_string_equal(out, "a?b?\xef\xbf\xbd\xc3\xbc");
	pmdp_text_clean(out, 4, "ab\xc3\xbc");
	assert_string_equal(out, "ab");
	out[0] = 0;
	pmdp_text_append(out, 8, &used, "%s", "abc");
	pmdp_text_append(out, 8, &used, "%s", "de\xe2\x82\xac"); // three bytes, room for two
	assert_string_equal(out, "abcde");
	assert_int_equal(used, 5);
	pmdp_text_append(out, 8, &used, "%s", "fg");
	assert_string_equal(out, "abcdefg");
	pmdp_text_append(out, 8, &used, "%s", "more");
	assert_string_equal(out, "abcdefg");
}

static void make_stall(struct pmdp_incident *incident, uint32_t phase)
{
	pmdp_incident_init(incident, "default", PMDP_KIND_PMD_STALL, phase);
	pmdp_incident_thread(incident, "pmd-c01/id:2", 4200, 1);
	incident->state = PMDP_STATE_DEAD;
	incident->duration_ns = 301234567;
	incident->cause = PMDP_CAUSE_PREEMPTED;
	pmdp_incident_culprit(incident, "hog-x7", 4242, 4242, "SCHED_FIFO", 300000000);
}

static void assert_message(struct pmdp_incident *incident, const char *expected)
{
	pmdp_incident_compose(incident);
	assert_string_equal(incident->message, expected);
}

static void test_incident_messages(void **state)
{
	struct pmdp_incident incident;

	(void)state;
	make_stall(&incident, PMDP_PHASE_UPDATE);
	assert_message(&incident, "pmd-c01/id:2 (core 1) stalled for 0.301 s: preempted by hog-x7 "
				  "(pid 4242, SCHED_FIFO) for 0.300 s");
	pmdp_evidence_int(&incident, "ongoing", 1);
	assert_message(&incident,
		       "pmd-c01/id:2 (core 1) is stalled for 0.301 s so far: preempted by "
		       "hog-x7 (pid 4242, SCHED_FIFO) for 0.300 s");
	pmdp_evidence_int(&incident, "ongoing", 0);
	pmdp_evidence_int(&incident, "stalls", 12);
	pmdp_evidence_real(&incident, "stalled_s", 2.01);
	incident.phase = PMDP_PHASE_CLEAR;
	incident.culprit_pid = 0;
	incident.culprit_comm[0] = 0;
	incident.cause = PMDP_CAUSE_BLOCKED;
	pmdp_evidence_text(&incident, "wchan", "futex_wait");
	assert_message(&incident,
		       "pmd-c01/id:2 (core 1) runs again, was stalled for 0.301 s (longest "
		       "of 12, together 2.010 s): blocked in the kernel in futex_wait");
	incident.thread_core = -1;
	incident.thread_name[0] = 0;
	incident.duration_ns = 4250000;
	incident.cause = PMDP_CAUSE_UNKNOWN;
	incident.n_evidence = 0;
	assert_message(&incident,
		       "thread 4200 runs again, was stalled for 4.250 ms: cause unknown");
	pmdp_incident_init(&incident, "default", PMDP_KIND_LINK, PMDP_PHASE_RAISE);
	strcpy(incident.object, "a\"b\n\xff");
	assert_message(&incident, "link of port a\"b?\xef\xbf\xbd is down");
	pmdp_incident_init(&incident, "default", PMDP_KIND_SWITCH_GONE, PMDP_PHASE_RAISE);
	pmdp_evidence_int(&incident, "pid", 77);
	assert_message(&incident,
		       "switch default (pid 77) is gone: its process died without a clean stop");
}

// However long and odd its parts, a message is one line of valid UTF-8 below 256 bytes.
static void test_incident_message_bounds(void **state)
{
	uint64_t seed = test_seed("test_incident_message_bounds");
	struct pmdp_incident incident;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		unsigned char *bytes = (unsigned char *)&incident;

		for (size_t k = 0; k < sizeof(incident); k++)
			bytes[k] = (unsigned char)test_random(&seed);
		pmdp_incident_sanitize(&incident);
		incident.kind = (uint32_t)i % (PMDP_N_KINDS + 1);
		pmdp_evidence_text(&incident, "where", (char *)bytes + 64);
		pmdp_evidence_text(&incident, "ended", (char *)bytes + 65);
		pmdp_incident_compose(&incident);
		assert_non_null(memchr(incident.message, 0, sizeof(incident.message)));
		assert_true(pmdp_utf8_is_valid(incident.message, strlen(incident.message)));
		for (const char *c = incident.message; *c; c++)
			assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
	}
}

static void test_incident_sanitize(void **state)
{
	struct pmdp_incident incident;

	(void)state;
	memset(&incident, 0xff, sizeof(incident));
	pmdp_incident_sanitize(&incident);
	assert_int_equal(strlen(incident.id), PMDP_ID_BYTES - 1);
	assert_int_equal(strlen(incident.message), PMDP_MESSAGE_BYTES - 1);
	assert_int_equal(incident.n_evidence, PMDP_N_EVIDENCE);
	assert_int_equal(incident.evidence[0].type, PMDP_EVIDENCE_NONE);
	assert_int_equal(incident.thread_core, -1);
	assert_int_equal(incident.cause, PMDP_CAUSE_UNKNOWN);
	assert_string_not_equal(pmdp_phase_name(incident.phase), "unknown");
	// What a terminated string hides is not passed on.
	memset(incident.object, 'x', sizeof(incident.object));
	incident.object[3] = 0;
	pmdp_incident_sanitize(&incident);
	assert_int_equal(incident.object[4], 0);
}

static void with_zone(const char *zone)
{
	setenv("TZ", zone, 1);
	tzset();
}

static void test_incident_times(void **state)
{
	struct pmdp_incident incident;
	struct timespec ts;
	uint64_t now_us;
	char text[256];

	(void)state;
	with_zone("UTC0");
	assert_string_equal(pmdp_rfc3339(1764507600000001, text, sizeof(text)),
			    "2025-11-30T13:00:00.000001+00:00");
	assert_string_equal(pmdp_rfc3339(0, text, sizeof(text)),
			    "1970-01-01T00:00:00.000000+00:00");
	with_zone("<+0530>-5:30");
	assert_string_equal(pmdp_rfc3339(1764507600123456, text, sizeof(text)),
			    "2025-11-30T18:30:00.123456+05:30");
	with_zone("<-0330>3:30");
	assert_string_equal(pmdp_rfc3339(1764507600123456, text, sizeof(text)),
			    "2025-11-30T09:30:00.123456-03:30");
	pmdp_rfc3339(UINT64_MAX, text, 40);
	assert_true(strlen(text) < 40);
	with_zone("UTC0");
	make_stall(&incident, PMDP_PHASE_RAISE);
	strcpy(incident.id, "default-7-1");
	strcpy(incident.message, "two\nlines");
	incident.emitted_realtime_us = 1764507600123456;
	assert_string_equal(
		pmdp_incident_line(&incident, text, sizeof(text)),
		"2025-11-30T13:00:00.123456 FAILURE raise default-7-1 pmd-stall: two?lines");
	pmdp_incident_line(&incident, text, 20);
	assert_true(strlen(text) < 20);

	clock_gettime(CLOCK_REALTIME, &ts);
	now_us = (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
	assert_in_range(pmdp_realtime_us(test_now_ns()), now_us - 1000000, now_us + 1000000);
	assert_in_range(pmdp_realtime_us(test_now_ns() - 1000000000), now_us - 2000000,
			now_us - 900000);
}

static const char *json_of(yajl_gen gen)
{
	static char text[1024];
	const unsigned char *buf;
	size_t len;

	assert_int_equal(yajl_gen_get_buf(gen, &buf, &len), yajl_gen_status_ok);
	snprintf(text, sizeof(text), "%.*s", (int)len, buf);
	yajl_gen_free(gen);
	return text;
}

static void test_json_values(void **state)
{
	yajl_gen gen = yajl_gen_alloc(NULL);

	(void)state;
	yajl_gen_map_open(gen);
	assert_int_equal(pmdp_json_kv_text(gen, "t", "a\"\\\n\xff\xc3\xbc"), 0);
	assert_int_equal(pmdp_json_kv_text(gen, "n", NULL), 0);
	assert_int_equal(pmdp_json_kv_u64(gen, "u", UINT64_MAX), 0);
	assert_int_equal(pmdp_json_kv_int(gen, "i", -5), 0);
	assert_int_equal(pmdp_json_kv_seconds(gen, "s0", 0), 0);
	assert_int_equal(pmdp_json_kv_seconds(gen, "s1", 1500000000), 0);
	assert_int_equal(pmdp_json_kv_seconds(gen, "s2", 1), 0);
	assert_int_equal(pmdp_json_kv_real(gen, "r", 0.1), 0);
	assert_int_equal(pmdp_json_kv_real(gen, "nan", (double)NAN), 0);
	assert_int_equal(pmdp_json_kv_real(gen, "inf", -(double)INFINITY), 0);
	assert_int_equal(pmdp_json_kv_bool(gen, "b", true), 0);
	assert_int_equal(pmdp_json_kv_null(gen, "z"), 0);
	yajl_gen_map_close(gen);
	// After the document is complete the generator refuses.
	assert_int_equal(pmdp_json_text(gen, "more"), -EIO);
	assert_string_equal(json_of(gen),
			    "{\"t\":\"a\\\"\\\\\\n\xef\xbf\xbd\xc3\xbc\",\"n\":null,"
			    "\"u\":18446744073709551615,\"i\":-5,\"s0\":0.0,\"s1\":1.5,"
			    "\"s2\":0.000000001,\"r\":0.1,\"nan\":null,\"inf\":null,"
			    "\"b\":true,\"z\":null}");
}

static void test_json_in_a_comma_locale(void **state)
{
	static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8",
					    "nl_NL.UTF-8"};
	const char *found = NULL;
	yajl_gen gen;

	(void)state;
	for (size_t i = 0; !found && i < sizeof(names) / sizeof(*names); i++)
		found = setlocale(LC_NUMERIC, names[i]);
	if (!found)
		test_skip("no locale with a decimal comma is installed");
	gen = yajl_gen_alloc(NULL);
	assert_int_equal(pmdp_json_real(gen, 0.5), 0);
	setlocale(LC_NUMERIC, "C");
	assert_string_equal(json_of(gen), "0.5");
}

static void test_json_drops(void **state)
{
	uint64_t drops[PMDP_N_DROPS] = {[PMDP_DROP_NO_RULE] = 7, [PMDP_DROP_NO_MEMORY] = 9};
	yajl_gen gen = yajl_gen_alloc(NULL);
	const char *text;

	(void)state;
	yajl_gen_map_open(gen);
	assert_int_equal(pmdp_json_kv_drops(gen, "drops", drops), 0);
	yajl_gen_map_close(gen);
	text = json_of(gen);
	assert_non_null(strstr(text, "\"no_rule\":7"));
	assert_non_null(strstr(text, "\"no_memory\":9"));
	assert_non_null(strstr(text, "\"mtu\":0"));
	assert_null(strstr(text, "\"\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_incident_severity),
		cmocka_unit_test(test_incident_evidence),
		cmocka_unit_test(test_incident_evidence_keys),
		cmocka_unit_test(test_text_copy),
		cmocka_unit_test(test_text_utf8),
		cmocka_unit_test(test_text_clean_and_append),
		cmocka_unit_test(test_incident_messages),
		cmocka_unit_test(test_incident_message_bounds),
		cmocka_unit_test(test_incident_sanitize),
		cmocka_unit_test(test_incident_times),
		cmocka_unit_test(test_json_values),
		cmocka_unit_test(test_json_in_a_comma_locale),
		cmocka_unit_test(test_json_drops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
