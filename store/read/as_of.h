/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of one feed as of an earlier seq: each object in the version visible then. Continue
 * tokens and sorted pages read by it, so all pages of a walk show one instant.
 *
 * The index holds only the newest state. as_of_renew() therefore reads the log from the seq on and
 * keeps, for each object changed or deleted since, the version before its first change. The walk
 * merges those with the index's unchanged objects. That costs one pass over the log since then, and
 * 16 bytes and the key for each changed object: less than the history itself.
 *
 *	as_of_new(feed, seq, &as_of);
 *	as_of_renew(as_of, snapshot, SIZE_MAX);         0, or LAPPED: that state is not kept
 *	as_of_walk(as_of, AS_OF_ALL, prefix, from);
 *	while (as_of_next(as_of, &key, &entry) == FOUND)
 *		snapshot_record(snapshot, feed, key, &entry, &record);
 *	as_of_free(&as_of);
 *
 * A walk need not hold one snapshot: as_of_rest() releases it, and as_of_renew() with a later
 * snapshot continues after the last key. as_of_take() spares many walks of one state the pass over
 * the log.
 *
 * No reader ever sees half a list. While a list of the feed was open, readers saw the state before
 * it: this is the state as of any seq within the list (as_of_seq).
 *
 * The log reaches back to a seq until one of the feed's own records above it is trimmed. One thread
 * at a time.
 */
#ifndef STORE_READ_AS_OF_H
#define STORE_READ_AS_OF_H

#include "store/read/snapshot.h"

struct as_of;

/* Reads nothing yet: as_of_renew() comes first. */
int as_of_new(uint32_t feed, uint64_t seq, struct as_of **ret_as_of);
void as_of_free(struct as_of **as_of);

/*
 * Reads from SNAPSHOT, to be kept as it is until as_of_rest(). Examines at most LIMIT records of
 * the log. Returns: 0: the state can be read;
 *	AGAIN: LIMIT was reached; call again, with the same or a later snapshot;
 *	LAPPED: the log no longer reaches back, the feed was listed later, the seq is not yet given,
 *	or the journal is another one;
 *	GONE: the feed was removed.
 */
int as_of_renew(struct as_of *as_of, struct snapshot *snapshot, size_t limit);

/* Returns the seq of as_of_new(). */
uint64_t as_of_asked(const struct as_of *as_of);

/* Takes over what OTHER, of the same feed and seq, has read of the log; nothing if AS_OF has read
 * some itself. */
int as_of_take(struct as_of *as_of, const struct as_of *other);

/* Releases the snapshot, before its reset; the walk keeps its position. */
void as_of_rest(struct as_of *as_of);

/* Returns the seq of the state: the one asked for, or the last one before a list open then. Valid
 * after as_of_renew() returned 0. */
uint64_t as_of_seq(const struct as_of *as_of);

/* Returns the oldest readable seq; 0: the feed was never listed. Valid after as_of_renew() returned
 * 0 or LAPPED. */
uint64_t as_of_oldest(const struct as_of *as_of);

/* The version of one object. Returns: FOUND; NOT_FOUND: it did not exist. Borrowed as a record of
 * snapshot_get(). */
int as_of_get(struct as_of *as_of, struct bytes key, struct record *ret_record);

enum as_of_objects {
	AS_OF_ALL, /* every object of then */
	/* those changed or deleted since, unknown to the index's postings and hints */
	AS_OF_CHANGED,
};

/* Begins a walk in key order over the keys with PREFIX, from FROM on (the key after K is K and a
 * NUL). Both are copied. */
int as_of_walk(
	struct as_of *as_of, enum as_of_objects which, struct bytes prefix, struct bytes from);

/*
 * The next object of the walk: FOUND, END. ENTRY is for snapshot_record(); its .object is 0 if the
 * object was changed since: the version's terms must be read from its body then (terms.h). KEY is
 * borrowed until as_of_rest().
 */
int as_of_next(struct as_of *as_of, struct bytes *ret_key, struct index_entry *ret_entry);

#endif
