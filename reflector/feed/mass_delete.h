/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mass-delete check (holdMassDelete) doubts implausible lists. A list without many of the known
 * objects may be the answer of a broken server, and followers act on deletions. So at the end of a
 * list, before the first deletion is recorded, its missing objects are counted. If their share is
 * too large the list is held: the session lists again after a pause, and believes the second list.
 *
 *	mass_delete_begin(check)                 a list came to its end
 *	while (mass_delete_check(check, feed, 50) == AGAIN) ...
 *						 MASS_DELETE_HOLD: list again, after a pause
 *	mass_delete_end(check)                   a list was taken
 */
#ifndef REFLECTOR_FEED_MASS_DELETE_H
#define REFLECTOR_FEED_MASS_DELETE_H

#include "reflector/record/record.h"

struct mass_delete {
	bool looked;      /* this list was counted */
	bool held;        /* a list was held, so the next one passes */
	struct buf at;    /* the count goes on after this key */
	uint64_t heads;   /* heads counted so far, the list's new objects included */
	uint64_t missing; /* those of them missing in the list */
	uint64_t known;   /* objects before the list */
};

enum mass_delete_result {
	MASS_DELETE_PASS = 0,
	MASS_DELETE_HOLD = 100, /* `missing` of `known` objects would be deleted */
};

void mass_delete_init(struct mass_delete *check);
void mass_delete_release(struct mass_delete *check);

void mass_delete_begin(struct mass_delete *check);
/* Counts a slice of FEED's heads. PERCENT is the largest missing share allowed; 0: every list
 * passes. So does the first list of a feed. Returns: enum mass_delete_result; AGAIN: there are more
 * heads; an error of the journal. */
int mass_delete_check(struct mass_delete *check, struct record_feed *feed, uint32_t percent);
void mass_delete_end(struct mass_delete *check);

#endif
