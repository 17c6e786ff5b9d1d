/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of one feed as of an earlier event number (seq): each object that readers saw then, in
 * the version that they saw then. Continue tokens and sorted pages read by it, so that all pages of
 * a walk show one instant.
 *
 * The index holds only the newest state. as_of_renew() therefore reads the log from that seq on and
 * keeps, for each object that was changed or deleted since, the version before its first change.
 * The walk merges those with the objects that the index says are unchanged. That costs one pass
 * over the log since then, and 16 bytes and the key for each changed object: less than the history
 * itself.
 *
 *	as_of_new(feed, seq, &as_of);
 *	as_of_renew(as_of, snapshot, SIZE_MAX);         0, or LAPPED: that state is not kept
 *	as_of_walk(as_of, AS_OF_ALL, prefix, from);
 *	while (as_of_next(as_of, &key, &entry) == FOUND)
 *		snapshot_record(snapshot, feed, key, &entry, &record);
 *	as_of_free(&as_of);
 *
 * A walk need not hold one snapshot: as_of_rest() lets go of it, and as_of_renew() with a later
 * snapshot continues after the last key that was given.
 *
 * No reader ever sees half a list. While a list of the feed was open, readers saw the state before
 * it: that is the state as of any seq within the list (as_of_seq).
 *
 * The log reaches back to a seq for as long as none of the feed's records above it was trimmed,
 * even if records of other feeds were. One thread at a time.
 */
#ifndef STORE_READ_AS_OF_H
#define STORE_READ_AS_OF_H

#include "store/read/snapshot.h"

struct as_of;

/* Reads nothing yet: as_of_renew() comes first. */
int as_of_new(uint32_t feed, uint64_t seq, struct as_of **ret_as_of);
void as_of_free(struct as_of **as_of);

/*
 * Reads from SNAPSHOT from now on, which must stay as it is until as_of_rest(). Examines at most
 * LIMIT records of the log.
 * Returns: 0: the state can be read;
 *	AGAIN: LIMIT was reached; call again, with the same or a later snapshot;
 *	LAPPED: the log no longer reaches back, the feed was listed later, the seq is higher than any
 *	that was taken, or the journal is another one;
 *	GONE: the feed was removed.
 */
int as_of_renew(struct as_of *as_of, struct snapshot *snapshot, size_t limit);

/* Lets go of the snapshot; the place of the walk is kept. Call it before the snapshot is reset. */
void as_of_rest(struct as_of *as_of);

/* The seq whose state is read: the one asked for, or the last one before a list that was open then.
 * Valid after as_of_renew() returned 0. */
uint64_t as_of_seq(const struct as_of *as_of);

/* The oldest seq whose state can be read. Valid after as_of_renew() returned 0 or LAPPED; 0 if
 * the feed was never listed. */
uint64_t as_of_oldest(const struct as_of *as_of);

/* The version of one object. Returns: FOUND; NOT_FOUND: it did not exist. Borrowed as a record of
 * snapshot_get(). */
int as_of_get(struct as_of *as_of, struct bytes key, struct record *ret_record);

enum as_of_objects {
	AS_OF_ALL,     /* every object that existed */
	AS_OF_CHANGED, /* those of them that were changed or deleted since: the index's postings and
	                  hints say nothing about these */
};

/* Begins a walk in key order: keys that start with PREFIX, the first one not before FROM (the key
 * after K is K and a NUL). Both are copied. */
int as_of_walk(
	struct as_of *as_of, enum as_of_objects which, struct bytes prefix, struct bytes from);

/*
 * The next object of the walk: FOUND, END. ENTRY is for snapshot_record(); its .object is 0 when
 * the object was changed since: whether such a version has a term is to be read from its body
 * (terms.h). KEY is borrowed until as_of_rest().
 */
int as_of_next(struct as_of *as_of, struct bytes *ret_key, struct index_entry *ret_entry);

#endif
