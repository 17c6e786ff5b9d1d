/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides how far the journal may be trimmed. History is kept for the retention time or for as long
 * as a named cursor needs it, whichever is longer, but never more of it than the retention size.
 * Records not yet in the index, or of an open list, are kept in any case. Without an index nothing
 * is trimmed (docs/architecture.md, Snapshot and rebuild).
 *
 *	retention_goal(retention, ...)  where the horizon should go, and how far it may
 *	journal_trim_towards(...)       in slices, between two turns
 *
 * The journal counts the size of the records above the horizon: neither a burst nor a restart
 * escapes it.
 */
#ifndef REFLECTOR_RECORD_RETENTION_H
#define REFLECTOR_RECORD_RETENTION_H

#include "store/env/home.h"
#include "store/journal/journal.h"

struct retention;

struct retention_options {
	uint64_t time_ns;
	uint64_t bytes;     /* 0: no cap */
	uint64_t cursor_ns; /* a cursor not written for this long counts no more */
};

/* Borrows HOME and JOURNAL. */
int retention_new(struct home *home, struct journal *journal,
	const struct retention_options *options, struct retention **ret_retention);
void retention_free(struct retention **retention);
void retention_set(struct retention *retention, const struct retention_options *options);

/* Gives the seq up to which the index needs no records of removed feeds. Returns: FOUND; NOT_FOUND:
 * there is no index of this journal, *RET_TAKEN is 0; errors. */
int retention_taken(struct retention *retention, uint64_t *ret_taken);

/*
 * Computes the goal. LIST_BEGIN: the seq of the oldest open relist's LIST_BEGIN, UINT64_MAX:
 * none.
 * PRESSED: the disk is full, so no history is kept for its age. Returns: 0; AGAIN: nothing may
 * be trimmed now, because there is no index or it belongs to another journal.
 */
int retention_goal(
	struct retention *retention, uint64_t list_begin, bool pressed, struct trim_goal *ret_goal);

#endif
