/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trimming. To move the horizon to H the reflector walks the log from the old horizon to H, and
 * deletes each record's previous version, and every DELETED, LIST_* and FEED_* record itself. The
 * records left at or below H are exactly the state as of H. A slice of the walk is one transaction
 * and moves the horizon as far as it came, so a kill between slices leaves nothing to repair.
 *
 * At a FEED_REMOVED the walk stops until all heads of the feed and their versions are deleted, in
 * slices as well. This progress is stored nowhere: the remaining heads are the work left.
 */
#include "store/journal/journal_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "store/journal/journal_record.h"

struct slice {
	struct journal *journal;
	struct trim_goal goal;
	size_t limit;
	uint64_t horizon;      /* how far it came */
	uint64_t history;      /* bytes of history above */
	uint32_t removed_feed; /* the feed whose FEED_REMOVED is next; 0: none */
	uint64_t removed_seq, removed_size;
	uint64_t *unneeded;
	size_t n_unneeded;
	uint64_t deleted;
};

static int trim_note(struct slice *slice, uint32_t feed, uint64_t seq, struct bytes rv)
{
	struct feed_row *row = feed_row_find(slice->journal, feed);

	return row ? feed_row_set_trimmed(row, seq, rv) : 0;
}

/* Never less than nothing: a wrong count must not become a huge one. */
static void trim_pass(struct slice *slice, uint64_t seq, uint64_t size)
{
	slice->horizon = seq;
	slice->history -= size < slice->history ? size : slice->history;
}

/* Returns whether trimming may stop with this horizon and history. */
static bool trim_is_reached(const struct trim_goal *goal, uint64_t horizon, uint64_t history)
{
	return horizon >= goal->target && (horizon >= goal->bound || history <= goal->most);
}

/* Collects the seqs to delete: a deletion here would move the walk's cursor. */
static int trim_walk(struct slice *slice)
{
	CLEANUP(journal_walk_close) struct journal_walk *log = NULL;
	struct journal *journal = slice->journal;
	const struct journal_meta *meta = &journal->meta;
	struct record record;

	int r = journal_walk_open_checked(
		journal->txn, meta->horizon + 1, meta->horizon, meta->next_seq, &log);
	if (r < 0)
		return r;
	for (size_t n = 0; n < slice->limit; n++) {
		if (trim_is_reached(&slice->goal, slice->horizon, slice->history))
			return 0;
		r = journal_walk_next(log, &record);
		if (r < 0)
			return r;
		if (r == END)
			return err_set(ERR_CORRUPT, "the log ends before %" PRIu64,
				journal->meta.next_seq);
		if (record.type == RECORD_FEED_REMOVED) {
			slice->removed_feed = record.feed;
			slice->removed_seq = record.seq;
			slice->removed_size = record.stored.size;
			return 0;
		}
		/* LIST_END's prev is its LIST_BEGIN, already collected. */
		bool is_object = record.type <= RECORD_DELETED;
		if (is_object && record.prev)
			slice->unneeded[slice->n_unneeded++] = record.prev;
		if (!is_object || record.type == RECORD_DELETED)
			slice->unneeded[slice->n_unneeded++] = record.seq;
		r = trim_note(slice, record.feed, record.seq, record.rv);
		if (r < 0)
			return r;
		trim_pass(slice, record.seq, record.stored.size);
	}
	return 0;
}

/* A copy of each leaf, half as much again for the pages above, and the pages of a commit. */
static int trim_allocate_deletes(struct journal *journal, size_t n)
{
	return txn_allocate_copies(
		journal->txn, ((uint64_t)n * 3 / 2 + 16) * env_page_size(journal_env(journal)));
}

/* Deletes in the log's order, to touch each page once; records may be missing. */
static int trim_delete_unneeded(struct slice *slice)
{
	uint8_t room[SEQ_KEY_SIZE];

	int r = trim_allocate_deletes(slice->journal, slice->n_unneeded);
	if (r < 0)
		return r;
	qsort(slice->unneeded, slice->n_unneeded, sizeof(*slice->unneeded), array_by_number);
	for (size_t i = 0; i < slice->n_unneeded; i++) {
		r = txn_del(slice->journal->txn, DB_LOG, seq_key(slice->unneeded[i], room));
		if (r < 0)
			return r;
		slice->deleted += r == FOUND;
	}
	slice->n_unneeded = 0;
	return 0;
}

/* The next heads of the removed feed: FOUND while there were more than fit, END with the last. */
static int trim_drop_heads(struct slice *slice)
{
	struct journal *journal = slice->journal;
	uint8_t room[HEAD_KEY_MAX];
	struct bytes prefix = head_key(slice->removed_feed, BYTES_NONE, room);
	struct bytes key, value;
	struct head head;

	journal->search.key_size = 0;
	for (size_t n = 0; n < slice->limit; n++) {
		int r = cursor_seek(journal->heads, prefix, &key, &value);
		if (r == END || (r == FOUND && !bytes_starts(key, prefix)))
			return END;
		if (r == FOUND)
			r = head_read(key, value, &head);
		if (r == 0)
			slice->unneeded[slice->n_unneeded++] = head.seq;
		if (r == 0)
			r = cursor_del(journal->heads);
		if (r < 0)
			return r;
	}
	return FOUND;
}

/* All records of the feed lie at or below its FEED_REMOVED, and the index has applied it: no new
 * snapshot has the feed. A follower of it gets GONE. */
static int trim_drop_feed(struct slice *slice)
{
	struct txn *txn = slice->journal->txn;
	uint8_t room[FEED_KEY_SIZE];

	int r = trim_allocate_deletes(slice->journal, slice->limit);
	if (r < 0)
		return r;
	r = trim_note(slice, slice->removed_feed, slice->removed_seq, BYTES_NONE);
	if (r == 0)
		r = trim_drop_heads(slice);
	if (r != END)
		return r;
	slice->unneeded[slice->n_unneeded++] = slice->removed_seq;
	trim_pass(slice, slice->removed_seq, slice->removed_size);
	r = 0;
	for (enum feed_part part = 0; r >= 0 && part < FEED_PART_MAX; part++)
		r = txn_del(txn, DB_FEED, feed_key(slice->removed_feed, part, room));
	if (r < 0)
		return r;
	if (feed_row_find(slice->journal, slice->removed_feed))
		feed_row_remove(slice->journal, slice->removed_feed);
	return 0;
}

static int trim_run(struct slice *slice)
{
	struct journal *journal = slice->journal;

	slice->horizon = journal->meta.horizon;
	slice->history = journal->meta.history;
	int r = trim_walk(slice);
	/* A slice of its own, unless the walk stands before it from the beginning. */
	if (r == 0 && slice->removed_feed && slice->horizon == journal->meta.horizon)
		r = trim_drop_feed(slice);
	if (r < 0)
		return r;
	r = trim_delete_unneeded(slice);
	if (r < 0)
		return r;
	journal->meta.horizon = slice->horizon;
	journal->meta.history = slice->history;
	journal->meta_changed = true;
	return failpoint_pass(FAILPOINT_JOURNAL_TRIM);
}

static int trim_slice(
	struct journal *journal, const struct trim_goal *goal, size_t limit, uint64_t *ret_trimmed)
{
	struct slice slice = {.journal = journal, .goal = *goal, .limit = limit};

	int r = journal_begin_trim(journal);
	if (r < 0)
		return r;
	REQUIRE(goal->target < journal->meta.next_seq && goal->bound < journal->meta.next_seq);
	if (trim_is_reached(goal, journal->meta.horizon, journal->meta.history)) {
		journal_abort(journal);
		*ret_trimmed = 0;
		return 0;
	}
	/* Each record marks two at most; a removed feed's heads one each, and itself. */
	AUTO_FREE uint64_t *unneeded = calloc(2 * limit + 1, sizeof(*unneeded));
	slice.unneeded = unneeded;
	journal->error = unneeded ? trim_run(&slice) : err_set(-ENOMEM, "trimming the journal");
	r = journal_finish(journal);
	if (r < 0)
		return r;
	FAILPOINT_RETURN(JOURNAL_TRIMMED);
	*ret_trimmed = slice.deleted;
	return trim_is_reached(goal, slice.horizon, slice.history) ? 0 : AGAIN;
}

int journal_trim_towards(
	struct journal *journal, const struct trim_goal *goal, size_t limit, uint64_t *ret_trimmed)
{
	REQUIRE(!journal_txn(journal) && limit > 0);
	int r = trim_slice(journal, goal, limit, ret_trimmed);
	/* LMDB copies a page before a delete in it: little room needs small slices. */
	while ((r == ERR_MAP_FULL || r == -ENOSPC || r == -EDQUOT) && limit > 1) {
		limit /= 2;
		r = trim_slice(journal, goal, limit, ret_trimmed);
	}
	return r;
}

int journal_trim(struct journal *journal, uint64_t target, size_t limit, uint64_t *ret_trimmed)
{
	struct trim_goal goal = {.target = target, .most = UINT64_MAX};

	return journal_trim_towards(journal, &goal, limit, ret_trimmed);
}
