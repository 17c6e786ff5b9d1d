/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far the journal may be trimmed. History stays for the retention time and for as long as a
 * named cursor lags, whichever is longer, but never more than the retention size; what the index
 * has not taken, or holds back for an open list, stays in any case. Without an index nothing is
 * trimmed (docs/architecture.md, Snapshot and rebuild).
 *
 *	retention_goal(retention, ...)  where the horizon should go, and how far it may
 *	journal_trim_towards(...)       in slices, between two turns
 *
 * The size is that of the records above the horizon, which the journal counts: so neither a burst
 * nor a restart escapes it.
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

/*
 * LIST_BEGIN: of the oldest open relist as the reflector knows it, UINT64_MAX: none. PRESSED: the
 * disk is full, nothing is kept for its age. 0 with the goal; AGAIN: nothing may be trimmed now (no
 * index, or one of another journal).
 */
int retention_goal(struct retention *retention, uint64_t list_begin, bool pressed,
	struct trim_goal *ret_goal);

#endif
