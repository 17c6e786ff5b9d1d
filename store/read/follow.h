/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A follower's walk: the current state first, then exactly what came after, whatever happens to the
 * daemons meanwhile. One position per feed: the seq up to which the follower has examined it.
 *
 *	follow_new(store, feeds, n, &options, &f);
 *	for (;;) {
 *		r = follow_next(f, &item);
 *		if (r == FOUND) handle(&item);
 *		else if (r == AGAIN) follow_wait(f, 1000);
 *		else break;
 *	}
 *
 * The initial state is read in key ranges, each from its own short snapshot; between ranges the
 * records up to the next snapshot's visible(feed) are given for keys already passed
 * (docs/architecture.md, Semantics): no long transaction and no lapping, however slow the caller.
 * Live, entries of the event ring are resolved in the journal; lapped, restarted or damaged rings
 * end in reading the log from the position on, the one recovery path.
 *
 * No transaction is held across follow_wait or when follow_next has returned AGAIN; a caller that is
 * slow between two calls costs at most one short-lived snapshot.
 */
#ifndef STORE_READ_FOLLOW_H
#define STORE_READ_FOLLOW_H

#include "store/read/snapshot.h"

enum follow_kind {
	FOLLOW_INITIAL, /* an object of the initial state: record */
	FOLLOW_SYNC,    /* the initial state of all feeds is complete */
	FOLLOW_CHANGE,  /* record; old: the state before, seq 0 when there was none */
	FOLLOW_LAPPED,  /* the position is no longer kept: a new initial state and SYNC follow, and what
	                   is not in it is gone */
	FOLLOW_RESYNC,  /* an object as it is, asked for by follow_resync: record, and old the same */
	FOLLOW_KIND_MAX
};

struct follow_item {
	enum follow_kind kind;
	uint32_t feed;
	uint64_t seq; /* CHANGE: the record's; INITIAL, RESYNC: the snapshot's visible(feed) */
	struct record record;
	struct record old;
	/* Borrowed until the next call on the follower. */
};

struct follow_position {
	uint32_t feed;
	uint64_t seq;
};

struct follow_options {
	bool no_initial;   /* begin at now: SYNC at once, then changes */
	const struct follow_position *from; /* go on after these (a cursor); overrides no_initial */
	size_t n_from;
	const uint8_t *from_uuid; /* the journal they belong to; another one means LAPPED */
	const uint8_t *journal; /* that the feeds' ids are of; another one: GONE. NULL: the one there is
	                           at the first snapshot */
	uint64_t max_hold_ns; /* snapshot renewed after this while items are given; 0: 50 ms */
};

struct follow;

int follow_new(struct store *store, const uint32_t *feeds, size_t n_feeds,
	const struct follow_options *options, struct follow **ret_follow);
void follow_free(struct follow **follow);

/* FOUND, AGAIN (nothing now), GONE (a feed was removed or replaced: look it up again), errors. After
 * ERR_SNAPSHOT_EXPIRED what was given from the last snapshot may be wrong, and more may be missing. */
int follow_next(struct follow *follow, struct follow_item *ret_item);

/* Gives the snapshot back before its time: for callers that do not know when they will ask again. */
int follow_rest(struct follow *follow);

/* All current objects once more, as RESYNC items, in ranges as the initial state is read; changes come
 * between them as ever, and a RESYNC item is never older than the last change given. False, and nothing
 * happens: before SYNC, or while one is under way. A lapse ends it. */
bool follow_resync(struct follow *follow);
bool follow_is_resyncing(const struct follow *follow);

/* Sleeps until something may have happened. 0 or AGAIN on timeout; -EINTR after a signal. */
int follow_wait(struct follow *follow, int timeout_ms);

bool follow_synced(const struct follow *follow);

/* Positions after the last item handed out counts as handled: valid to store once synced. */
size_t follow_positions(struct follow *follow, const struct follow_position **ret_positions);
const uint8_t *follow_uuid(const struct follow *follow);

/*
 * Named cursors: <store>/cursors/NAME, {journal uuid, position per feed} by feed definition, written
 * to a temporary file and renamed. A name is [A-Za-z0-9._-]{1,64}.
 */
struct cursor_file {
	uint8_t uuid[16];
	struct follow_position *positions;
	size_t n;
	uint64_t written_ns; /* CLOCK_REALTIME of its last writing */
};
/* FOUND, NOT_FOUND, ERR_CORRUPT. */
int cursor_load(struct home *home, const char *name, struct cursor_file *ret_cursor);
void cursor_release(struct cursor_file *cursor);
int cursor_save(struct home *home, const char *name, const uint8_t uuid[16],
	const struct follow_position *positions, size_t n);
int cursor_remove(struct home *home, const char *name);
/*
 * Does a cursor that was last written at WRITTEN_NS hold history no longer? A time in the future was
 * taken from a clock that was wrong: it counts as far from now as it is.
 */
bool cursor_is_expired(uint64_t written_ns, uint64_t expiry_ns);
/* Removes cursors that expired EXPIRY_NS ago too (until then their follower is told that it was lapped),
 * and what killed followers left behind. How many. */
int cursor_sweep(struct home *home, uint64_t expiry_ns);
typedef int cursor_fn(void *arg, const char *name, const struct cursor_file *cursor);
/* Those that can be read; others are passed over. */
int cursor_each(struct home *home, cursor_fn *fn, void *arg);

#endif
