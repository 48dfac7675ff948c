// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * JSON of the product's nouns, written with yajl. Keys are a contract: they may be added to, but
 * not renamed.
 *
 * The caller owns the yajl_gen and opens and closes the surrounding document. Invalid UTF-8 in a
 * string is replaced, never passed on. Functions return 0 or -EIO (the generator refused).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <yajl/yajl_gen.h>

#include "pmdp_incident.h"
#include "pmdpulse.h"

int pmdp_json_key(yajl_gen gen, const char *key);
int pmdp_json_text(yajl_gen gen, const char *value); // NULL gives null
int pmdp_json_seconds(yajl_gen gen, uint64_t ns);    // plain decimal number with 9 digits at most
int pmdp_json_real(yajl_gen gen, double value);      // NaN and infinities give null

// "key": value in one call.
int pmdp_json_kv_text(yajl_gen gen, const char *key, const char *value);
int pmdp_json_kv_int(yajl_gen gen, const char *key, long long value);
int pmdp_json_kv_u64(yajl_gen gen, const char *key, uint64_t value);
int pmdp_json_kv_real(yajl_gen gen, const char *key, double value);
int pmdp_json_kv_seconds(yajl_gen gen, const char *key, uint64_t ns);
int pmdp_json_kv_bool(yajl_gen gen, const char *key, bool value);
int pmdp_json_kv_null(yajl_gen gen, const char *key);

// The incident object of the product (one map, all keys always present).
int pmdp_json_incident(yajl_gen gen, const struct pmdp_incident *incident);

// The value of its "culprit" key: an object, or null where there is none. Also used by
// pmd-health-show.
int pmdp_json_culprit(yajl_gen gen, const struct pmdp_incident *incident);

// One line without newline, malloc'd, for logs and streams; NULL without memory.
char *pmdp_json_incident_line(const struct pmdp_incident *incident);

// "drops": {"no_rule": n, ...} from counters + PMDP_C_DROP0 or PMDP_P_DROP0: every reason, always.
int pmdp_json_kv_drops(yajl_gen gen, const char *key, const uint64_t *drops);
