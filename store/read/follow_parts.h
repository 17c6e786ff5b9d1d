/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the follower share: follow.c has the loop, follow_range.c the reading by name. */
#ifndef STORE_READ_FOLLOW_PARTS_H
#define STORE_READ_FOLLOW_PARTS_H

#include "common/buf.h"
#include "store/read/follow.h"
#include "store/ring/ring.h"

#define FOLLOW_MAGIC 0x666f6c6cu

enum stage {
	NOT_BEGUN, /* nothing was given of it */
	INITIAL,   /* keys up to `passed` were */
	BEGUN,     /* its initial state was, or none is wanted */
};

enum state { PASS, RANGE, LIVE, IDLE };

struct followed {
	enum stage stage;
	bool skip_initial;
	bool foreign;   /* its position is of another journal */
	bool resync;    /* BEGUN, and its objects are wanted once more, those behind `passed` */
	uint64_t until; /* of this pass: visible(feed) */
	struct buf passed;
};

struct follow {
	uint32_t magic;
	struct store *store;
	struct snapshot *snapshot; /* NULL before the first one could be taken */
	bool held;
	bool uuid_known, journal_known;
	uint8_t uuid[16];    /* of the journal that the positions are of */
	uint8_t journal[16]; /* that the feeds are of */
	struct ring_reader *ring;
	enum state state;
	struct journal_walk *log;
	struct index_walk *names;
	struct follow_position *positions;
	struct followed *feeds;
	size_t n;
	bool synced, sync_owed, resync_owed;
	uint64_t examined; /* by this pass: the log up to here */
	uint64_t hold_ns;
	uint64_t passed_ns; /* monotonic, when the last pass began */
};

/* The next object of the ranges that are owed. FOUND (SYNC at the end); NOT_FOUND: over without; AGAIN:
 * a feed has not been listed yet, and all others are read. */
int follow_range_next(struct follow *f, struct follow_item *ret_item);

#endif
