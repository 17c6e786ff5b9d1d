/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard against implausible lists (holdMassDelete). A list without many of the known objects
 * may be the answer of a broken server, and followers act on deletions. So at the end of a list,
 * before the first deletion is recorded, the guard counts its missing objects. If their share is
 * too large the list is held: the session lists again after a pause, and believes the second list.
 *
 *	guard_begin(guard)                       a list came to its end
 *	while (guard_look(guard, feed, 50) == AGAIN) ...   GUARD_HOLD: list again, after a pause
 *	guard_end(guard)                         a list was taken
 */
#ifndef REFLECTOR_FEED_GUARD_H
#define REFLECTOR_FEED_GUARD_H

#include "reflector/record/record.h"

struct guard {
	bool looked;      /* this list was counted */
	bool held;        /* a list was held, so the next one passes */
	struct buf at;    /* the count goes on after this key */
	uint64_t heads;   /* heads counted so far, the list's new objects included */
	uint64_t missing; /* those of them missing in the list */
	uint64_t known;   /* objects before the list */
};

enum guard_result {
	GUARD_PASS = 0,
	GUARD_HOLD = 100, /* `missing` of `known` objects would be deleted */
};

void guard_init(struct guard *guard);
void guard_release(struct guard *guard);

void guard_begin(struct guard *guard);
/* Counts a slice of FEED's heads. PERCENT is the largest missing share allowed; 0: every list
 * passes. So does the first list of a feed. Returns: enum guard_result; AGAIN: there are more
 * heads; an error of the journal. */
int guard_look(struct guard *guard, struct record_feed *feed, uint32_t percent);
void guard_end(struct guard *guard);

#endif
