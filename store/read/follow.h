/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A follower: gives the current objects of some feeds, then every change in order, whatever happens
 * to the daemons meanwhile. It keeps one position per feed: the last seq examined.
 *
 *	follow_new(store, feeds, n, &options, &f);
 *	for (;;) {
 *		r = follow_next(f, &item);
 *		if (r == FOUND) handle(&item);
 *		else if (r == AGAIN) follow_wait(f, 1000);
 *		else break;
 *	}
 *
 * The initial state is read in key ranges, each from its own short snapshot. Between two ranges the
 * follower gives the changes of keys already given. So no transaction is long and no handler too
 * slow. Afterwards it takes entries of the delta ring and reads their records from the journal.
 * After an overrun, a restart of the writer or damage in the ring, it reads the log from its
 * position instead.
 *
 * Only the initial state and resyncs read the index. Changes, lapses and SYNC come from the journal
 * alone. So a change may be given before the index has it: a caller about to read the cache waits
 * (snapshot_renew_at).
 *
 * No snapshot is held during follow_wait(), nor after AGAIN. A caller slow between two calls holds
 * one snapshot meanwhile; follow_rest() releases it.
 */
#ifndef STORE_READ_FOLLOW_H
#define STORE_READ_FOLLOW_H

#include "store/read/cursor_file.h"
#include "store/read/snapshot.h"

enum follow_kind {
	FOLLOW_INITIAL, /* an object of the initial state: record */
	FOLLOW_SYNC,    /* the initial state of all feeds is complete */
	FOLLOW_CHANGE,  /* record; old: the state before, seq 0 if there was none */
	/* history after the position is gone: a new initial state and SYNC follow; objects missing
	 * in it are gone */
	FOLLOW_LAPPED,
	FOLLOW_RESYNC, /* an object as it is, after follow_resync(): record, and old is the same */
	FOLLOW_KIND_MAX
};

/* Borrowed until the next call on the follower. */
struct follow_item {
	enum follow_kind kind;
	uint32_t feed;
	uint64_t seq; /* CHANGE: the record's; INITIAL, RESYNC: visible(feed) of the index */
	/* An index with this applied seq shows the item. It is after SEQ for a change from a list:
	 * the index applies a list as a whole. */
	uint64_t shown_at;
	struct record record;
	struct record old;
};

struct follow_options {
	bool no_initial; /* begin at now: SYNC at once, then changes */
	/* Continue after these positions (a cursor); overrides no_initial. */
	const struct follow_position *from;
	size_t n_from;
	/* The journal of these positions; LAPPED if the store has another. */
	const uint8_t *from_uuid;
	/* The journal of the feeds' ids; GONE if the store has another. NULL: the one at the first
	 * snapshot. */
	const uint8_t *journal;
	/* Read the initial state only from an index with this applied seq: an earlier follower gave
	 * events up to here, and no object may go back. */
	uint64_t not_before;
	uint64_t max_hold_ns; /* the snapshot is renewed after this, between items; 0: 50 ms */
};

struct follow;

int follow_new(struct store *store, const uint32_t *feeds, size_t n_feeds,
	const struct follow_options *options, struct follow **ret_follow);
void follow_free(struct follow **follow);

/* Returns: FOUND; AGAIN: nothing now; GONE: a feed was removed or replaced, look it up again;
 * errors. After ERR_SNAPSHOT_EXPIRED the items of the last snapshot may be wrong or incomplete. */
int follow_next(struct follow *follow, struct follow_item *ret_item);

/* Returns R, the result of handling the last item, or ERR_SNAPSHOT_EXPIRED: its bytes may have been
 * overwritten meanwhile. */
int follow_checked(const struct follow *follow, int r);

/* Releases the snapshot early, for a caller without a next call in sight. */
int follow_rest(struct follow *follow);

/* Gives all current objects once more, as RESYNC items, in ranges like the initial state. Changes
 * come between them as usual; a RESYNC item is never older than the last change given. A lapse ends
 * it. Returns: false, without effect, before SYNC or during another resync. */
bool follow_resync(struct follow *follow);
bool follow_is_resyncing(const struct follow *follow);

/* Sleeps until something may have happened or a signal handler ran, for at most TIMEOUT_MS
 * (negative: no limit). Returns: 0; AGAIN: the time is over. It never fails. */
int follow_wait(struct follow *follow, int timeout_ms);

/* Returns whether objects wait for the index. follow_wait() waits for it; other waits should be
 * short. */
bool follow_awaits_index(const struct follow *follow);

bool follow_synced(const struct follow *follow);

/* The positions if the last item given counts as handled. A cursor of them is valid after SYNC. */
size_t follow_positions(struct follow *follow, const struct follow_position **ret_positions);
const uint8_t *follow_uuid(const struct follow *follow);

#endif
