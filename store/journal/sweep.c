/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trimming passes over records that can't be read or are missing. At or below the horizon that
 * leaves the version before such a record, and the record itself, which nothing names any more;
 * and the count of history has their bytes. Once the horizon is beyond the damage, and all above
 * it can be read, what is needed below is known: the versions that heads name, and those before
 * the records above the horizon. That a sweep is due is stored with the counters, for a later
 * writer.
 */
#include "store/journal/journal_internal.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "store/journal/journal_record.h"

struct sweep {
	struct journal *journal;
	uint64_t *needed;
	size_t n_needed, needed_room;
	uint64_t *unneeded;
	size_t n_unneeded, unneeded_room;
	uint64_t history;
};

static int sweep_by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int sweep_need(struct sweep *sweep, uint64_t seq)
{
	return seq == 0 || seq > sweep->journal->meta.horizon
		       ? 0
		       : ARRAY_ADD(sweep->needed, sweep->n_needed, sweep->needed_room, seq,
				 "sweeping the journal");
}

static int sweep_read_heads(struct sweep *sweep)
{
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	struct bytes key, value;
	struct head head;
	int r = cursor_open(sweep->journal->txn, DB_HEAD, &cursor);

	while (r == 0 && (r = cursor_next(cursor, &key, &value)) == FOUND) {
		r = cursor_page_is_whole(cursor, key)
			    ? head_read(key, value, &head)
			    : err_set(ERR_CORRUPT, "a page of heads lacks some");
		if (r == 0)
			r = sweep_need(sweep, head.seq);
	}
	return r == END ? 0 : r;
}

/* Returns: 0; ERR_CORRUPT: RET_SEQ can't be read; errors. */
static int sweep_read_log(struct sweep *sweep, uint64_t *ret_seq)
{
	CLEANUP(journal_walk_close) struct journal_walk *log = NULL;
	struct journal *journal = sweep->journal;
	const struct journal_meta *meta = &journal->meta;
	struct record record;
	int r = journal_walk_open_checked(
		journal, journal->txn, meta->horizon + 1, meta->horizon, meta->next_seq, &log);

	while (r == 0 && (r = journal_walk_next(log, &record)) == FOUND) {
		sweep->history += record.stored.size;
		r = record.type <= RECORD_DELETED ? sweep_need(sweep, record.prev) : 0;
	}
	if (log)
		*ret_seq = journal_walk_seq(log);
	return r == END ? 0 : r;
}

/* Finds what is not needed: of each record the key alone is read. In a damaged page LMDB might
 * delete another row. */
static int sweep_find(struct sweep *sweep)
{
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	struct bytes key, value;
	uint64_t last = 0;
	int r = cursor_open(sweep->journal->txn, DB_LOG, &cursor);

	if (sweep->n_needed)
		qsort(sweep->needed, sweep->n_needed, sizeof(*sweep->needed), sweep_by_number);
	while (r == 0 && (r = cursor_next(cursor, &key, &value)) == FOUND) {
		uint64_t seq = key.size == SEQ_KEY_SIZE ? be64_get(key.data) : 0;

		if (seq <= last || !cursor_page_is_whole(cursor, key))
			return err_set(ERR_CORRUPT, "a page of the log");
		if (seq > sweep->journal->meta.horizon)
			return 0;
		last = seq;
		if (!sweep->n_needed || !bsearch(&seq, sweep->needed, sweep->n_needed, sizeof(seq),
						sweep_by_number))
			r = ARRAY_ADD(sweep->unneeded, sweep->n_unneeded, sweep->unneeded_room, seq,
				"sweeping the journal");
	}
	return r == END ? 0 : r;
}

static int sweep_delete(struct sweep *sweep)
{
	struct journal *journal = sweep->journal;
	uint8_t room[SEQ_KEY_SIZE];
	int r = journal_allocate_deletes(journal, sweep->n_unneeded);

	for (size_t i = 0; r >= 0 && i < sweep->n_unneeded; i++)
		r = txn_del(journal->txn, DB_LOG, seq_key(sweep->unneeded[i], room));
	return r < 0 ? r : 0;
}

static void sweep_release(struct sweep *sweep)
{
	free(sweep->needed);
	free(sweep->unneeded);
}

int journal_sweep(struct journal *journal)
{
	CLEANUP(sweep_release) struct sweep sweep = {.journal = journal};
	uint64_t seq;

	if (!journal->sweep_at || journal->sweep_at > journal->meta.horizon)
		return 0;
	journal->sweep_at = 0;
	int r = sweep_read_heads(&sweep);
	if (r == ERR_CORRUPT) {
		err_ignore(r, "all stays, because nothing else says what is needed");
		return 0;
	}
	if (r == 0)
		r = sweep_read_log(&sweep, &seq);
	if (r == ERR_CORRUPT) {
		err_ignore(r, "it may need something: trimming passes over it first");
		journal->sweep_at = seq > journal->meta.horizon ? seq : 0;
		return 0;
	}
	if (r == 0)
		r = sweep_find(&sweep);
	if (r == 0)
		r = sweep_delete(&sweep);
	if (r == ERR_CORRUPT) {
		err_ignore(r, "all stays, but history is counted again");
		r = 0;
	}
	if (r < 0)
		return r;
	journal->meta.history = sweep.history;
	journal->meta_changed = true;
	return 0;
}
