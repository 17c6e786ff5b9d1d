/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of an index, for compaction and backup. */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "store/index/index_internal.h"

#define DROP_SLICE        4096 /* entries in a transaction */
#define REPORT_EVERY      256  /* entries between two reports */
#define ENTRIES_LOOKED_AT 64

/* ---- copying ------------------------------------------------------------ */

struct index_copying {
	struct env_copy to;
	struct txn *from;
	struct journal *journal; /* of the copy */
	struct txn *journal_txn;
	env_copy_fn *progress;
	void *arg;
};

/* Copies `name` or `object`; both have rows beginning with an entry. */
static int index_copy_entries(struct index_copying *c, enum index_database db)
{
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	struct index_entry entry;
	struct bytes key, value;
	void *row;
	int r = cursor_open(c->from, db, &cursor);

	if (r == 0)
		r = cursor_seek(cursor, BYTES_LIT("\0"), &key, &value);
	for (uint64_t n = 1; r == FOUND; n++) {
		r = index_check_row(db, key, &value);
		if (r == 0 && value.size < ENTRY_BYTES)
			r = err_say(ERR_CORRUPT, "index: a row of %s is too short",
				index_kind.databases[db]);
		if (r < 0)
			return r;
		index_read_entry(value.data, &entry);
		r = journal_place(
			c->journal, c->journal_txn, entry.seq, &entry.place, &entry.place_size);
		if (r == NOT_FOUND) /* of a removed feed */
			entry.place = entry.place_size = 0;
		entry.generation = journal_generation(c->journal);
		if (r >= 0)
			r = env_copy_reserve(&c->to, db, key, value.size + ROW_CRC, &row);
		if (r < 0)
			return r;
		memcpy(row, value.data, value.size);
		index_write_entry(row, &entry);
		(void)index_checksum_row(key, row, value.size);
		if (c->progress && n % REPORT_EVERY == 0)
			r = c->progress(c->arg, c->to.bytes);
		if (r == 0)
			r = cursor_next(cursor, &key, &value);
	}
	return r == END ? 0 : r;
}

static int index_copy_meta(struct index_copying *c)
{
	struct index_state state = {.next_object = 0};
	uint8_t buffer[META_KEY], row[STATE_BYTES + ROW_CRC];
	struct bytes key = index_meta_key(buffer, META_STATE, 0), value;
	int r = txn_get(c->from, INDEX_META, key, &value);

	if (r == NOT_FOUND)
		r = err_say(ERR_CORRUPT, "index: its state is missing in meta");
	if (r == 0)
		r = index_read_state(key, value, &state);
	/* A sorted copy needs an empty database: removes the state of index_create(). */
	if (r == 0)
		r = env_copy_del(&c->to, INDEX_META, key);
	if (r >= 0)
		r = env_copy_database(&c->to, INDEX_META, c->from, NULL, NULL);
	memcpy(state.meta.journal, journal_uuid(c->journal), 16);
	state.meta.building = true; /* until it is published */
	index_write_state(row, &state);
	return r < 0 ? r
		     : env_copy_put(&c->to, INDEX_META, key,
			       index_checksum_row(key, row, STATE_BYTES), 0);
}

static int index_copy_rows(struct index_copying *c)
{
	int r = txn_begin_read(journal_env(c->journal), &c->journal_txn);

	if (r == 0)
		r = index_copy_entries(c, INDEX_NAME);
	if (r == 0)
		r = index_copy_entries(c, INDEX_OBJECT);
	if (r == 0)
		r = env_copy_database(&c->to, INDEX_TERM, c->from, c->progress, c->arg);
	if (r == 0)
		r = env_copy_database(&c->to, INDEX_POSTING, c->from, c->progress, c->arg);
	if (r == 0)
		r = index_copy_meta(c);
	if (r == 0)
		r = env_copy_commit(&c->to);
	txn_abort(&c->to.txn);
	txn_abort(&c->journal_txn);
	return r == 0 ? failpoint_pass(FAILPOINT_INDEX_COPY) : r;
}

int index_copy(struct index *from, struct txn *txn, struct journal *journal, struct home *to,
	const struct index_options *options, env_copy_fn *progress, void *arg)
{
	CLEANUP(index_close) struct index *copy = NULL;
	struct index_copying copying = {
		.from = txn, .journal = journal, .progress = progress, .arg = arg};
	struct index_meta meta;
	int r = index_meta(from, txn, &meta);

	if (r == 0 && meta.building)
		r = err_say(ERR_CORRUPT, "the index was never finished");
	if (r == 0)
		r = index_create(to, options, journal_uuid(journal), meta.taken, &copy);
	if (r < 0)
		return err_add(r, "copying the index");
	copying.to.to = index_env(copy);
	env_expect_random(journal_env(journal),
		true); /* its log is searched by seq, and lies between the bodies */
	r = index_copy_rows(&copying);
	index_forget(copy); /* its copy of meta is of an empty index */
	if (r == 0)
		r = index_publish(copy, to);
	if (r == 0)
		return 0;
	index_abort(copy);
	generation_cancel(&copy->gen, home_index_fd(to));
	return err_add(r, "copying the index");
}

int index_find_old_places(struct index *index, uint32_t generation)
{
	CLEANUP(txn_abort) struct txn *txn = NULL;
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	struct index_entry entry;
	struct bytes key, value;
	int r = txn_begin_read(index_env(index), &txn);

	if (r == 0)
		r = cursor_open(txn, INDEX_OBJECT, &cursor);
	if (r == 0)
		r = cursor_seek(cursor, BYTES_LIT("\0"), &key, &value);
	for (int i = 0; r == FOUND && i < ENTRIES_LOOKED_AT; i++) {
		r = index_check_row(INDEX_OBJECT, key, &value);
		if (r == 0 && value.size >= ENTRY_BYTES) {
			index_read_entry(value.data, &entry);
			if (entry.place && entry.generation != generation)
				return FOUND;
		}
		if (r == 0)
			r = cursor_next(cursor, &key, &value);
	}
	return r < 0 ? r : NOT_FOUND;
}

/* ---- compaction --------------------------------------------------------- */

static int index_drop_leftovers(struct index *index, env_copy_fn *progress, void *arg)
{
	int r;

	do {
		r = index_begin(index);
		if (r < 0)
			break;
		struct index_task task = index_find_task(index);
		if (!task.remove_feed && !task.drop)
			break;
		r = index_drop_leftover(index, &task, DROP_SLICE);
		if (r >= 0)
			r = index_commit(index);
		if (r == 0 && progress)
			r = progress(arg, 0);
	} while (r >= 0);
	index_abort(index);
	return r;
}

int index_compact(
	struct home *home, const struct index_options *options, env_copy_fn *progress, void *arg)
{
	CLEANUP(index_close) struct index *index = NULL;
	CLEANUP(journal_close) struct journal *journal = NULL;
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct index_meta meta;
	int r = index_open_write(home, options, &index);

	if (r != FOUND)
		return r;
	r = index_drop_leftovers(index, progress, arg);
	if (r == 0)
		r = index_require_room(home);
	if (r == 0)
		r = txn_begin_read(index_env(index), &txn);
	if (r == 0)
		r = index_meta(index, txn, &meta);
	if (r == 0)
		r = journal_open_read(home, meta.journal, &journal);
	if (r == NOT_FOUND)
		return err_say(ERR_CORRUPT, "the index belongs to a journal that is gone");
	if (r == 0)
		r = index_copy(index, txn, journal, home, options, progress, arg);
	txn_abort(&txn);
	if (r == 0) /* it is removed */
		generation_discard(&index->gen);
	return r;
}
