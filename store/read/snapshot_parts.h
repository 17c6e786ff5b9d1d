/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the snapshot share. Nobody else includes this. */
#ifndef STORE_READ_SNAPSHOT_PARTS_H
#define STORE_READ_SNAPSHOT_PARTS_H

#include <pthread.h>
#include <time.h>

#include "common/check.h"
#include "store/index/hints.h"
#include "common/err.h"
#include "store/read/snapshot.h"

#define STORE_MAGIC    0x6b737472u
#define SNAPSHOT_MAGIC 0x6b736e70u

/* The index and the journal it belongs to, as CURRENT named them. Kept open while a snapshot uses
 * them, however often CURRENT changes meanwhile. */
struct pair {
	unsigned refs; /* under store->lock */
	struct index *index;
	struct journal *journal;
};

/* Tells one CURRENT from the next: it is replaced by rename, inode numbers come again. */
struct file_identity {
	uint64_t inode;
	struct timespec modified;
};

struct store {
	uint32_t magic;
	struct home *home;
	struct store_options options;
	bool copy;
	pthread_mutex_t lock;
	unsigned refs; /* the caller's and one per snapshot */
	struct pair *pair;
	struct file_identity index_current, journal_current;
	bool opening; /* a thread opens a pair, without the lock; others wait for it if they need one */
	pthread_cond_t opened;
	int open_result; /* of the last one that opened */
	struct err_kept open_error;
	uint64_t checked_ns, reopened_ns;
	uint64_t failing_ns; /* since when what CURRENT names can't be opened; 0: it could */
};

struct snapshot {
	uint32_t magic;
	struct store *store;
	struct pair *pair;
	struct txn *index_txn, *journal_txn;
	bool active;
	uint64_t taken_ns;
	struct index_meta index;
	struct journal_meta journal;
	/* Of the index's feeds, read again when the index has moved. */
	struct index_feed *feeds;
	size_t n_feeds, feeds_room;
	uint64_t feeds_txn, feeds_taken;
	uint64_t oldest; /* the smallest visible(feed) */
	struct hints *hints; /* what was found last; NULL: none */
	const struct hints *use_hints; /* HINTS when they go with what was taken */
	uint64_t hints_looked_ns;
};

static inline const struct snapshot *snapshot_active(const struct snapshot *snapshot)
{
	CHECK_OBJ(snapshot, SNAPSHOT_MAGIC);
	REQUIRE(snapshot->active);
	return snapshot;
}

#endif
