/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of the snapshot group. */
#ifndef STORE_READ_SNAPSHOT_INTERNAL_H
#define STORE_READ_SNAPSHOT_INTERNAL_H

#include <pthread.h>
#include <time.h>

#include "common/check.h"
#include "store/index/hints.h"
#include "common/err.h"
#include "store/read/snapshot.h"
#include "store/ring/taken.h"

#define STORE_MAGIC    0x6b737472u
#define SNAPSHOT_MAGIC 0x6b736e70u

/* The current index and its journal. They stay open while a snapshot uses them, even after CURRENT
 * changes. */
struct store_pair {
	unsigned refs; /* under store->lock */
	struct index *index;
	struct journal *journal;
};

/* Distinguishes one CURRENT from the next: it is replaced by rename, and inode numbers are used
 * again. */
struct store_identity {
	uint64_t inode;
	struct timespec modified;
};

struct store {
	uint32_t magic;
	struct home *home;
	struct store_options options;
	bool copy;
	pthread_mutex_t lock;
	unsigned refs;  /* the caller's and one per snapshot */
	unsigned forks; /* forks_count() when it was opened */
	struct store_pair *pair;
	struct store_identity index_current, journal_current;
	uint64_t checked_ns, reopened_ns;
	char mismatch[STORE_MISMATCH_SIZE]; /* why the last index and journal did not match */
	/* time of the first failure to open the current pair; 0: it did not fail */
	uint64_t failing_ns;
};

/* A snapshot's transactions. */
enum snapshot_part {
	SNAPSHOT_NOTHING,
	SNAPSHOT_LOG,   /* the journal's */
	SNAPSHOT_WHOLE, /* both */
};

struct snapshot {
	uint32_t magic;
	struct store *store;
	struct store_pair *pair;
	struct txn *index_txn, *journal_txn;
	enum snapshot_part part;
	uint64_t taken_ns;
	struct index_meta index;
	struct journal_meta journal;
	struct index_feed *feeds; /* by id; read again when the index has changed */
	size_t n_feeds, feeds_room;
	uint64_t feeds_txn, feeds_taken;
	struct index_definition *definitions; /* by feed, then id */
	size_t n_definitions, definitions_room;
	bool has_definitions;          /* they were read since it was taken */
	uint64_t oldest;               /* the smallest visible(feed) */
	bool torn;                     /* snapshot_is_torn() */
	struct hints *hints;           /* the table found last; NULL: none */
	const struct hints *use_hints; /* HINTS if they cover this snapshot */
	uint64_t hints_checked_ns;
	struct taken_reader *taken; /* NULL: it has not waited for the index yet */
};

/* Returns the feed's row as of the snapshot; NULL: the index does not know it yet. */
const struct index_feed *snapshot_index_feed(const struct snapshot *snapshot, uint32_t feed);

/* ---- snapshot_store.c --------------------------------------------------- */

#define CURRENT_CHECK_NS 1000000u /* CURRENT is examined this often, not at each renewal */

bool store_pair_is_untrusted(const struct store_pair *pair);
bool store_is_written(const struct home *home); /* a daemon runs */
void store_ref(struct store *store);
void store_unref(struct store *store);
/* Gives back a pair from store_join(). */
void store_leave(struct store *store, struct store_pair **pair);
/* Returns the current pair in *RET_PAIR: HELD, or another one with a reference for the caller.
 * FORCE: open it again even if CURRENT seems unchanged. Returns: 0; AGAIN: there is no index yet;
 * errors. */
int store_join(
	struct store *store, bool force, struct store_pair *held, struct store_pair **ret_pair);
/* Does the same for a reader of the journal alone. A missing or broken index does not matter to it:
 * the open pair stays until another one can be opened. */
int store_join_log(struct store *store, struct store_pair *held, struct store_pair **ret_pair);

static inline const struct snapshot *snapshot_active(const struct snapshot *snapshot)
{
	CHECK_OBJ(snapshot, SNAPSHOT_MAGIC);
	REQUIRE(snapshot->part == SNAPSHOT_WHOLE);
	return snapshot;
}

static inline const struct snapshot *snapshot_log(const struct snapshot *snapshot)
{
	CHECK_OBJ(snapshot, SNAPSHOT_MAGIC);
	REQUIRE(snapshot->part != SNAPSHOT_NOTHING);
	return snapshot;
}

#endif
