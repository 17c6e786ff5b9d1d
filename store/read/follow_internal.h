/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The internals of the follow group:
 *
 *	follow.c	making, the loop over the states, waiting
 *	follow_pass.c	snapshots, and passes over the log
 *	follow_live.c	objects by name, and entries of the ring
 */
#ifndef STORE_READ_FOLLOW_INTERNAL_H
#define STORE_READ_FOLLOW_INTERNAL_H

#include "common/buf.h"
#include "common/check.h"
#include "store/read/follow.h"
#include "store/read/names.h"
#include "store/ring/ring.h"
#include "store/ring/taken.h"

#define FOLLOW_MAGIC 0x666f6c6cu

enum follow_state { FOLLOW_PASS, FOLLOW_RANGE, FOLLOW_LIVE, FOLLOW_IDLE };

enum follow_stage {
	STAGE_NEW,     /* no object was given */
	STAGE_INITIAL, /* the keys up to `given` were */
	STAGE_CHANGES, /* the initial state was given, or is not wanted */
};

struct follow_feed {
	enum follow_stage stage;
	bool skip_initial;
	bool foreign;     /* the position belongs to another journal */
	bool damaged;     /* the next record is damaged or missing, and stays so */
	bool resync;      /* STAGE_CHANGES, but the objects after `given` are to be given again */
	bool ranged;      /* the index is at the position: this snapshot can read objects by name */
	bool in_list;     /* the ring showed entries of an open list, not given */
	bool listed;      /* its first list has ended, in the log */
	uint64_t until;   /* a pass in this snapshot gives changes up to here */
	struct buf given; /* the last key of the initial state or resync */
};

struct follow_id {
	uint32_t feed, i; /* its place in positions and feeds */
};

struct follow {
	uint32_t magic;
	struct store *store;
	struct snapshot *snapshot; /* NULL before the first one could be taken */
	bool held, uuid_known, journal_known;
	bool whole;          /* the snapshot is of the index too */
	uint8_t uuid[16];    /* the journal of the positions */
	uint8_t journal[16]; /* the journal of the feeds' ids */
	struct ring_reader *ring;
	uint64_t ring_seq; /* newest seq seen in the ring */
	struct taken_reader *taken;
	enum follow_state state;
	struct journal_walk *log;
	struct names *names;
	struct follow_position *positions; /* in the caller's order, as feeds */
	struct follow_feed *feeds;
	struct follow_id *ids; /* by feed id */
	size_t n;
	bool synced, sync_owed, resync_owed;
	bool awaits_index;   /* objects wait for the index */
	uint64_t behind_ns;  /* since then a resync waits for the index (monotonic); 0: none does */
	uint64_t not_before; /* least applied seq of an index to read the initial state from */
	uint64_t examined;   /* by this pass: the log up to here */
	uint64_t hold_ns;
	uint64_t pass_ns; /* monotonic begin of the last pass */
};

/* Returns: false: the follower does not follow this feed. */
bool follow_find(const struct follow *f, uint32_t feed, size_t *ret_i);

/* ---- follow_pass.c ------------------------------------------------------ */

/* Takes a snapshot of the journal, and with WHOLE of the index too, if there is one. Returns: 0;
 * AGAIN: no index has named a journal yet; GONE: the feeds belong to another journal; errors. */
int follow_take_snapshot(struct follow *f, bool whole);
/* Gives snapshot and walks back. */
int follow_release(struct follow *f);
/* Takes a snapshot and opens the log after the smallest position. Returns: NOT_FOUND: the pass can
 * begin; FOUND: an item comes first, then begin again; AGAIN: there is no index yet; GONE;
 * errors. */
int follow_begin_pass(struct follow *f, struct follow_item *ret_item);
/* Returns: FOUND: a change; NOT_FOUND: the pass is over; GONE; errors. */
int follow_pass_next(struct follow *f, struct follow_item *ret_item);
/* Makes an item of a record and the state before it. An error leaves the position: the next call
 * gives the record again. SHOWN_AT: as in the item. */
int follow_give_change(struct follow *f, size_t i, const struct record *record, uint64_t shown_at,
	struct follow_item *ret_item);

/* ---- follow_live.c ------------------------------------------------------ */

/* Gives the next object owed. A feed without a first list holds back only SYNC. Returns: FOUND: an
 * object, or SYNC at the end; NOT_FOUND: a pass comes next; AGAIN: the index is behind; errors. */
int follow_range_next(struct follow *f, struct follow_item *ret_item);
/* Returns: FOUND; NOT_FOUND: a pass comes next; AGAIN: nothing new; GONE; errors. */
int follow_live_next(struct follow *f, struct follow_item *ret_item);

#endif
