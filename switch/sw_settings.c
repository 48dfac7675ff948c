// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sw_mac.h"
#include "sw_mega_fast.h"

#define NS_PER_MS UINT64_C(1000000)
#define KEEPALIVE_MAX_MS UINT64_C(3600000)

// One key: how its value is read, written and explained.
struct key {
	const char *name;
	int (*parse)(const struct key *key, const char *value, void *to, struct sw_error *err);
	void (*format)(const void *from, char *out, size_t size);
	size_t offset; // in struct sw_settings
	uint64_t min, max;
	const char *help;
};

static int wrong(const struct key *key, const char *value, const char *right, struct sw_error *err)
{
	return sw_fail(err, -EINVAL, "%s=%s: must be %s", key->name, value, right);
}

static int parse_bool(const struct key *key, const char *value, void *to, struct sw_error *err)
{
	bool *is_on = to;

	if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
		return wrong(key, value, "true or false", err);
	*is_on = strcmp(value, "true") == 0;
	return 0;
}

static void format_bool(const void *from, char *out, size_t size)
{
	snprintf(out, size, "%s", *(const bool *)from ? "true" : "false");
}

static int parse_u32(const struct key *key, const char *value, void *to, struct sw_error *err)
{
	char right[64], *end;
	unsigned long long n;

	snprintf(right, sizeof(right), "a number from %llu to %llu", (unsigned long long)key->min,
		 (unsigned long long)key->max);
	errno = 0;
	n = strtoull(value, &end, 10);
	if (!isdigit((unsigned char)*value) || *end != 0 || errno != 0 || n < key->min ||
	    n > key->max)
		return wrong(key, value, right, err);
	*(uint32_t *)to = (uint32_t)n;
	return 0;
}

static void format_u32(const void *from, char *out, size_t size)
{
	snprintf(out, size, "%u", *(const uint32_t *)from);
}

// Milliseconds with up to six decimals, kept as whole nanoseconds.
static int parse_ms(const struct key *key, const char *value, void *to, struct sw_error *err)
{
	static const char right[] = "milliseconds from 1 to 3600000, such as 50 or 2.5";
	uint64_t ns = 0, unit = NS_PER_MS;
	const char *at = value;

	for (; isdigit((unsigned char)*at); at++) {
		ns = ns * 10 + (uint64_t)(*at - '0') * NS_PER_MS;
		if (ns > key->max * NS_PER_MS)
			return wrong(key, value, right, err);
	}
	if (at != value && *at == '.') {
		for (at++; isdigit((unsigned char)*at) && unit > 1; at++)
			ns += (uint64_t)(*at - '0') * (unit /= 10);
	}
	if (at == value || *at != 0 || ns < key->min * NS_PER_MS || ns > key->max * NS_PER_MS)
		return wrong(key, value, right, err);
	*(uint64_t *)to = ns;
	return 0;
}

static void format_ms(const void *from, char *out, size_t size)
{
	uint64_t ns = *(const uint64_t *)from;
	int len = snprintf(out, size, "%llu", (unsigned long long)(ns / NS_PER_MS));
	char *end;

	if (ns % NS_PER_MS == 0 || len < 0 || (size_t)len + 8 > size)
		return;
	snprintf(out + len, size - (size_t)len, ".%06llu", (unsigned long long)(ns % NS_PER_MS));
	for (end = out + strlen(out); end[-1] == '0';)
		*--end = 0;
}

// "nice" is priority 0.
static int parse_sched(const struct key *key, const char *value, void *to, struct sw_error *err)
{
	unsigned long n;
	char *end;

	if (strcmp(value, "nice") == 0 || strcmp(value, "nice:-20") == 0) {
		*(int *)to = 0;
		return 0;
	}
	if (strncmp(value, "fifo:", 5) == 0 && isdigit((unsigned char)value[5])) {
		n = strtoul(value + 5, &end, 10);
		if (*end == 0 && n >= 1 && n <= 99) {
			*(int *)to = (int)n;
			return 0;
		}
	}
	return wrong(key, value, "nice:-20 or fifo:PRIORITY with PRIORITY from 1 to 99", err);
}

static void format_sched(const void *from, char *out, size_t size)
{
	int priority = *(const int *)from;

	if (priority == 0)
		snprintf(out, size, "nice:-20");
	else
		snprintf(out, size, "fifo:%d", priority);
}

static int parse_cpus(const struct key *key, const char *value, void *to, struct sw_error *err)
{
	struct sw_settings *settings = to;
	const char *digits = strncasecmp(value, "0x", 2) == 0 ? value + 2 : value;
	size_t len = strlen(digits);
	cpu_set_t cpus;

	if (len == 0 || strspn(digits, "0123456789abcdefABCDEF") != len)
		return wrong(key, value,
			     "a hexadecimal mask of cores, such as 0x6; 0 is the default", err);
	CPU_ZERO(&cpus);
	for (size_t i = 0; i < len; i++) {
		char digit[2] = {digits[len - 1 - i], 0};
		unsigned long bits = strtoul(digit, NULL, 16);

		for (size_t b = 0; b < 4; b++) {
			if (!(bits & 1u << b))
				continue;
			if (i * 4 + b >= CPU_SETSIZE)
				return wrong(key, value, "a mask of at most 1024 cores", err);
			CPU_SET(i * 4 + b, &cpus);
		}
	}
	settings->pmd_cpus = cpus;
	settings->is_pmd_cpus_given = CPU_COUNT(&cpus) > 0;
	return 0;
}

static void format_cpus(const void *from, char *out, size_t size)
{
	const struct sw_settings *settings = from;
	bool is_begun = false;
	size_t len = 0;

	len += (size_t)snprintf(out, size, "0x");
	for (int i = CPU_SETSIZE / 4 - 1; i >= 0; i--) {
		unsigned int bits = 0;

		for (int b = 0; settings->is_pmd_cpus_given && b < 4; b++)
			bits |= (unsigned int)(CPU_ISSET(i * 4 + b, &settings->pmd_cpus) != 0) << b;
		is_begun = is_begun || bits != 0 || i == 0;
		if (is_begun && len < size)
			len += (size_t)snprintf(out + len, size - len, "%x", bits);
	}
}

#define AT(member) offsetof(struct sw_settings, member)

static const struct key keys[] = {
	{"pmd-cpu-mask", parse_cpus, format_cpus, 0, 0, 0,
	 "cores that run a PMD, as a hexadecimal mask; 0x0: all but the first of those allowed"},
	{"pmd-sched", parse_sched, format_sched, AT(fifo_priority), 0, 0,
	 "how PMDs are scheduled: nice:-20 or fifo:PRIORITY"},
	{"enable-keepalive", parse_bool, format_bool, AT(enable_keepalive), 0, 0,
	 "PMDs beat; false: nobody is judged"},
	{"keepalive-interval", parse_ms, format_ms, AT(keepalive_interval_ns), 1, KEEPALIVE_MAX_MS,
	 "milliseconds without a beat until MISSING; twice as long is DEAD"},
	{"tx-flush-interval", parse_u32, format_u32, AT(tx_flush_interval_us), 0, 1000000,
	 "microseconds that packets may wait for a fuller output batch; 0: sent with their burst"},
	{"emc-insert-inv-prob", parse_u32, format_u32, AT(emc_inv_prob), 0, UINT32_MAX - 1,
	 "one in so many keys goes into the exact-match cache; 1: each, 0: the cache is off"},
	{"smc-enable", parse_bool, format_bool, AT(smc_enable), 0, 0,
	 "use the signature-match cache, for more flows than the exact-match cache holds"},
	{"cache-bypass", parse_bool, format_bool, AT(cache_bypass), 0, 0,
	 "a port whose megaflows have one mask goes without the exact-match cache, unless "
	 "emc-insert-inv-prob is 1; smc-enable holds all the same"},
	{"max-idle", parse_u32, format_u32, AT(max_idle_ms), 500, 3600000,
	 "milliseconds without a packet until a megaflow ends"},
	{"flow-limit", parse_u32, format_u32, AT(flow_limit), 1, SW_MEGA_MAX_FLOWS,
	 "megaflows of a PMD; packets beyond are translated one by one"},
	{"hw-offload", parse_bool, format_bool, AT(hw_offload), 0, 0,
	 "let devices mark the packets of megaflows, where they can (rte_flow MARK)"},
	{"mac-aging-time", parse_u32, format_u32, AT(mac_aging_s), 15, 3600,
	 "seconds after which a silent MAC address is forgotten"},
	{"watchdog-needs-pmds", parse_bool, format_bool, AT(watchdog_needs_pmds), 0, 0,
	 "a dead PMD stops feeding systemd's watchdog, which then restarts the switch"},
	{"reconfigure-timeout", parse_u32, format_u32, AT(reconfigure_timeout_ms), 1, 600000,
	 "milliseconds that a command waits for the PMDs to take a change over"},
	{"pmd-perf-metrics", parse_bool, format_bool, AT(pmd_perf_metrics), 0, 0,
	 "PMDs record their iterations for pmd-perf-show and pmd-perf-log"},
	{"mbufs", parse_u32, format_u32, AT(n_mbufs), 0, 16777216,
	 "packet buffers of the shared pool, before its first port; 0: by need"},
};

#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

static const struct key *find(const char *name)
{
	for (size_t i = 0; i < N_KEYS; i++) {
		if (strcmp(keys[i].name, name) == 0)
			return &keys[i];
	}
	return NULL;
}

// How many of a's pairs of neighbouring letters b has too: forgiving to typing errors.
static unsigned int likeness(const char *a, const char *b)
{
	unsigned int n = 0;

	for (; a[0] && a[1]; a++) {
		for (const char *at = b; at[0] && at[1]; at++) {
			if (tolower((unsigned char)a[0]) == at[0] &&
			    tolower((unsigned char)a[1]) == at[1]) {
				n++;
				break;
			}
		}
	}
	return n;
}

// -ENOENT with the keys that look most like the name, or all.
static int unknown(const char *name, struct sw_error *err)
{
	char list[256] = "";
	unsigned int best = 0;
	size_t len = 0;

	for (size_t i = 0; i < N_KEYS; i++) {
		unsigned int n = likeness(name, keys[i].name);

		best = n > best ? n : best;
	}
	if (best < 3)
		best = 0;
	for (size_t i = 0; i < N_KEYS && len < sizeof(list); i++) {
		if (likeness(name, keys[i].name) * 4 >= best * 3)
			len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s",
						len ? ", " : "", keys[i].name);
	}
	return sw_fail(err, -ENOENT, "%.100s: no such setting (%s %s)", name,
		       best ? "near ones are" : "there are", list);
}

void sw_settings_init(struct sw_settings *settings)
{
	memset(settings, 0, sizeof(*settings));
	settings->enable_keepalive = true;
	settings->keepalive_interval_ns = 50 * NS_PER_MS;
	settings->reconfigure_timeout_ms = 2000;
	settings->mac_aging_s = SW_MAC_AGING_S;
	settings->emc_inv_prob = 100;
	settings->cache_bypass = true;
	settings->max_idle_ms = 10000;
	settings->flow_limit = SW_MEGA_MAX_FLOWS;
}

int sw_settings_set(struct sw_settings *settings, const char *key, const char *value,
		    struct sw_error *err)
{
	const struct key *known = find(key);

	if (!known)
		return unknown(key, err);
	return known->parse(known, value, (char *)settings + known->offset, err);
}

int sw_settings_get(const struct sw_settings *settings, const char *key, char *out_value,
		    size_t size)
{
	const struct key *known = find(key);
	char value[SW_SETTINGS_VALUE_BYTES];

	if (!known)
		return -ENOENT;
	known->format((const char *)settings + known->offset, value, sizeof(value));
	if (strlen(value) >= size)
		return -ENOSPC;
	strcpy(out_value, value);
	return 0;
}

const char *sw_settings_key(size_t i)
{
	return i < N_KEYS ? keys[i].name : NULL;
}

const char *sw_settings_help(const char *key)
{
	const struct key *known = find(key);

	return known ? known->help : NULL;
}

int sw_settings_check(const char *key, struct sw_error *err)
{
	return find(key) ? 0 : unknown(key, err);
}
