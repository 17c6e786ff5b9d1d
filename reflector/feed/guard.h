/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard against implausible lists (holdMassDelete): a list that lacks more than a share of the
 * objects that are known may be a broken server's answer rather than the truth, and deleting is
 * what followers act on. So before the sweep deletes the first of them, what the list lacks is
 * counted; if it is too much the list is not taken, and only a second one, after a pause, is
 * believed whatever it says.
 *
 *	guard_begin(guard)                       a list came to its end
 *	while (guard_look(guard, feed, 50) == AGAIN) ...   GUARD_HOLD: list again, after a pause
 *	guard_end(guard)                         a list was taken
 */
#ifndef REFLECTOR_FEED_GUARD_H
#define REFLECTOR_FEED_GUARD_H

#include "reflector/record/record.h"

struct guard {
	bool looked;  /* this list was found plausible, or is the second */
	bool held;    /* one before it was not */
	struct buf at;
	uint64_t heads;   /* objects with what the list has brought */
	uint64_t missing; /* of them, those that it lacks */
	uint64_t known;   /* objects before it */
};

enum guard_result {
	GUARD_PASS = 0,
	GUARD_HOLD = 100, /* `missing` of `known` objects would be deleted */
};

void guard_init(struct guard *guard);
void guard_release(struct guard *guard);

void guard_begin(struct guard *guard);
/* Counts a slice of FEED's heads. PERCENT 0: everything passes. A feed that was never listed has
 * nothing to lose. enum guard_result, AGAIN, or an error of the journal's. */
int guard_look(struct guard *guard, struct record_feed *feed, uint32_t percent);
void guard_end(struct guard *guard);

#endif
