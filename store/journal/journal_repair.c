/* SPDX-License-Identifier: Apache-2.0 */
/* Stores a damaged record of the log once more, under its own seq, and finds feeds whose rows
 * are damaged. */
#include "store/journal/journal_internal.h"

#include <inttypes.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "store/journal/journal_record.h"

/* in one walk: a damaged tree may give the same record for ever */
#define UNREADABLE_MAX 1000

static bool repair_is_of(const struct record *a, const struct record *b)
{
	return a->feed == b->feed && bytes_equal(a->key, b->key);
}

/* Returns whether type and prev of the damaged record, whose header is sound, can be kept. */
static bool repair_trusts(const struct record *was, const struct record *record)
{
	return repair_is_of(was, record) && record_is_version(was->type);
}

/* Finds the version before SEQ of RECORD's object in the log. */
static int repair_find_prev(
	struct journal *journal, uint64_t seq, const struct record *record, uint64_t *ret_prev)
{
	CLEANUP(journal_walk_close) struct journal_walk *walk = NULL;
	struct record other;
	int unreadable = 0, r = journal_walk_open(journal, journal->txn, 0, &walk);

	*ret_prev = 0;
	while (r == 0) {
		r = journal_walk_next(walk, &other);
		if (r == FOUND && other.seq >= seq)
			break;
		if (r == FOUND && repair_is_of(&other, record))
			*ret_prev = record_is_version(other.type) ? other.seq : 0;
		if (r == ERR_CORRUPT && ++unreadable < UNREADABLE_MAX) {
			err_ignore(r, "it is damaged also, and not the record that is sought");
			r = 0;
		}
	}
	return r < 0 ? r : 0;
}

int journal_repair(struct journal *journal, uint64_t seq, const struct record *record)
{
	struct record whole = *record, was = {0};
	uint8_t room[SEQ_KEY_SIZE];
	struct bytes stored;
	size_t size = record_size(record), before = 0;
	void *place;

	CHECK_OBJ(journal, JOURNAL_MAGIC);
	REQUIRE(journal->txn);
	if (journal->error < 0)
		return journal->error;
	int r = record_fits(record);
	if (r == 0)
		r = txn_get(journal->txn, DB_LOG, seq_key(seq, room), &stored);
	if (r < 0)
		return r;
	if (r == FOUND) {
		before = stored.size;
		err_ignore(record_read(stored, &was), "it is damaged, and stored again");
	}
	whole.seq = seq;
	whole.type = was.type;
	whole.prev = was.prev;
	whole.flags = 0;
	whole.time_ns = was.seq == seq ? was.time_ns : proc_realtime_ns();
	if (was.seq != seq || !repair_trusts(&was, record)) {
		r = repair_find_prev(journal, seq, record, &whole.prev);
		whole.type = whole.prev ? RECORD_MODIFIED : RECORD_ADDED;
	}
	if (r >= 0)
		r = txn_allocate(journal->txn, size + 6 * env_page_size(journal_env(journal)));
	if (r >= 0)
		r = txn_reserve(journal->txn, DB_LOG, seq_key(seq, room), size, 0, &place);
	if (r < 0)
		return journal->error = r;
	record_write(&whole, place);
	if (seq > journal->meta.horizon)
		journal->meta.history += size - before;
	if (seq >
		/* trimming may have left the version before it, and a missing one is counted
		 * twice now */
		journal->sweep_at)
		journal->sweep_at = seq;
	journal->meta.repairs++;
	journal->meta_changed = true;
	return 0;
}

static int repair_ignore_row(void *arg, const struct feed_definition *definition,
	const struct feed_checkpoint *checkpoint)
{
	(void)arg, (void)definition, (void)checkpoint;
	return 0;
}

int journal_find_damaged_feed(
	struct journal *journal, struct txn *txn, uint32_t after, uint32_t *ret_feed)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	for (size_t i = 0; i < journal->n_feeds; i++) {
		uint32_t feed = journal->feeds[i].id;

		if (feed <= after)
			continue;
		int r = journal_one_feed(journal, txn, feed, repair_ignore_row, NULL);
		if (r == NOT_FOUND)
			r = err_set(ERR_CORRUPT, "feed %" PRIu32 " has no definition", feed);
		if (r == ERR_CORRUPT)
			*ret_feed = feed;
		if (r)
			return r == ERR_CORRUPT ? FOUND : r;
	}
	return NOT_FOUND;
}

bool journal_feed_is_removed(const struct journal *journal, uint32_t feed)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	const struct feed_row *row = feed_row_find(journal, feed);

	return row && row->checkpoint.phase == FEED_REMOVED;
}
