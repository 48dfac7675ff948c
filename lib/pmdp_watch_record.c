// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "pmdp_watch_internal.h"

#define RECORDS_BACK 64 // how far a stall that was not seen live is searched for

/*
 * A stall that was not seen live: the lane's own record knows its begin and where the thread was.
 * The newest record of the length that the detector was told is the one. True: found.
 */
static bool find_record(struct pmdp_watch *watch, const struct pmdp_transition *t)
{
	uint64_t n_records = watch->look.lanes[t->lane].n_records;
	uint64_t cursor = n_records > RECORDS_BACK ? n_records - RECORDS_BACK : 0;
	uint64_t last_ns = watch->look.lanes[t->lane].last_stall_ns, lost = 0;
	struct pmdp_watch_lane *lane = &watch->lanes[t->lane];
	struct pmdp_record_body records[RECORDS_BACK];
	int n = pmdp_reader_records(watch->reader, t->lane, &cursor, records, RECORDS_BACK, &lost);

	while (n-- > 0) {
		uint64_t length_ns = pmdp_reader_length_ns(watch->reader, records[n].length_ticks);
		uint64_t begin_ns = pmdp_reader_mono_ns(watch->reader, records[n].begin_ticks);

		if (records[n].kind != PMDP_RECORD_GAP || length_ns != last_ns)
			continue;
		if (begin_ns + length_ns > watch->look.now_ns)
			return false; // its clock lies: our own bounds serve
		lane->recorded.stall_begin_ns = t->stall_begin_ns;
		lane->recorded.begin_ns = begin_ns;
		lane->recorded.end_ns = begin_ns + length_ns;
		lane->recorded.crumb = records[n].crumb;
		return true;
	}
	return false;
}

void pmdp_watch_refine(struct pmdp_watch *watch, const struct pmdp_transition *t,
		       struct pmdp_watch_event *event)
{
	const struct pmdp_watch_lane *lane = &watch->lanes[t->lane];

	if (!t->is_self_timed)
		return;
	if (lane->recorded.stall_begin_ns != t->stall_begin_ns &&
	    (t->what == PMDP_T_CLEAR || !find_record(watch, t)))
		return;
	event->begin_ns = lane->recorded.begin_ns;
	event->end_ns = lane->recorded.end_ns;
	event->crumb = lane->recorded.crumb;
}
