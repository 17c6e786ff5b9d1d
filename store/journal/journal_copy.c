/* SPDX-License-Identifier: Apache-2.0 */
#include "store/journal/journal_copy.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "store/env/env_copy.h"
#include "store/journal/journal_internal.h"
#include "store/journal/journal_record.h"

#define JOURNAL_COPY_MAGIC 0x6b1e0e09u

struct journal_copy {
	uint32_t magic;
	struct journal_copy_options options;
	uint8_t uuid[16];
	struct generation *gen;
	struct env_copy to;
	enum { COPY_LOG, COPY_HEADS, COPY_REST } phase;
	uint64_t seq;   /* the log is copied up to here */
	struct buf key; /* the heads are copied up to here */
	uint64_t cut;   /* bytes of bodies above the horizon left out */
	uint64_t total;
	uint32_t *removed; /* feeds without bodies in the copy */
	size_t n_removed, removed_room;
};

/* ---- opening ------------------------------------------------------------ */

static int copy_note_removed(struct journal_copy *copy, struct txn *txn)
{
	CLEANUP(feed_walk_release) struct feed_walk walk = {copy->options.from, txn};
	int r = 0;

	while (r == 0 && (r = feed_walk_next(&walk)) == FOUND)
		/* Its last record is its FEED_REMOVED. */
		if (walk.checkpoint.phase == FEED_REMOVED &&
			walk.checkpoint.last <= copy->options.taken)
			r = ARRAY_ADD(copy->removed, copy->n_removed, copy->removed_room,
				walk.definition.id, "the removed feeds");
	return r == END ? 0 : r;
}

static int copy_begin(struct journal_copy *copy)
{
	static const uint8_t nobody[16];
	CLEANUP(txn_abort) struct txn *own = NULL;
	struct journal *from = copy->options.from;
	struct txn *txn = copy->options.txn;
	struct pin_places places;
	struct generation_options how =
		journal_generation_options(copy->options.to, &copy->options.journal, &places);
	struct env_info info;
	int r = env_info(journal_env(from), &info);

	copy->total = info.used_bytes;
	if (r == 0)
		r = generation_require_room(
			home_journal_fd(copy->options.to), "journal", info.used_bytes);
	if (r == 0 && !txn)
		r = txn_begin_read(journal_env(from), &own);
	if (r == 0)
		r = copy_note_removed(copy, txn ? txn : own);
	if (r == 0)
		r = generation_create(
			home_journal_fd(copy->options.to), &journal_kind, &how, nobody, &copy->gen);
	if (r == 0)
		copy->to.to = generation_env(copy->gen);
	return r;
}

int journal_copy_new(const struct journal_copy_options *options, struct journal_copy **ret_copy)
{
	CLEANUP(journal_copy_free) struct journal_copy *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return err_set(-ENOMEM, "copying the journal");
	copy->magic = JOURNAL_COPY_MAGIC;
	copy->options = *options;
	memcpy(copy->uuid, journal_uuid(options->from), 16);
	int r = options->new_uuid ? journal_new_uuid(copy->uuid) : 0;
	if (r == 0)
		r = copy_begin(copy);
	if (r < 0)
		return err_add(r, "copying the journal");
	*ret_copy = TAKE(copy);
	return 0;
}

void journal_copy_free(struct journal_copy **copy)
{
	struct journal_copy *c = TAKE(*copy);

	if (!c)
		return;
	CHECK_OBJ(c, JOURNAL_COPY_MAGIC);
	txn_abort(&c->to.txn);
	generation_cancel(&c->gen, home_journal_fd(c->options.to)); /* unfinished */
	buf_release(&c->key);
	free(c->removed);
	c->magic = 0;
	free(c);
}

uint64_t journal_copy_done(const struct journal_copy *copy)
{
	return copy->to.bytes;
}

uint64_t journal_copy_total(const struct journal_copy *copy)
{
	return copy->total;
}

/* ---- slices ------------------------------------------------------------- */

/* A damaged record ends the copy: it would look sound there. */
static int copy_record(struct journal_copy *copy, const struct record *record, uint64_t horizon)
{
	uint8_t room[SEQ_KEY_SIZE];
	struct record bare = *record;
	bool is_removed = false;
	void *place;
	int r = record_check(record);

	if (r < 0)
		return r;
	for (size_t i = 0; i < copy->n_removed; i++)
		is_removed |= copy->removed[i] == record->feed;
	if (!record->body.size || !is_removed)
		return env_copy_put(
			&copy->to, DB_LOG, seq_key(record->seq, room), record->stored, TXN_APPEND);
	bare.body = BYTES_NONE;
	if (record->seq > horizon)
		copy->cut += record_size(record) - record_size(&bare);
	r = env_copy_reserve(
		&copy->to, DB_LOG, seq_key(record->seq, room), record_size(&bare), &place);
	if (r == 0)
		record_write(&bare, place);
	return r;
}

/* Gives RECORD's object its present head. */
static int copy_head(struct journal_copy *copy, struct txn *txn, const struct record *record)
{
	uint8_t room[HEAD_KEY_MAX];
	struct bytes key = head_key(record->feed, record->key, room), value;

	if (record->type > RECORD_DELETED)
		return 0;
	int r = txn_get(txn, DB_HEAD, key, &value);
	if (r == FOUND)
		return env_copy_put(&copy->to, DB_HEAD, key, value, 0);
	if (r == NOT_FOUND)
		r = env_copy_del(&copy->to, DB_HEAD, key);
	return r < 0 ? r : 0;
}

/* Copies records up to the byte END of the copy. Returns: END: all of TXN's are copied; 0. */
static int copy_log(struct journal_copy *copy, struct txn *txn, uint64_t end)
{
	CLEANUP(journal_walk_close) struct journal_walk *log = NULL;
	struct journal_meta meta;
	struct record record;
	int r = meta_read(txn, &meta);

	if (r == 0)
		r = journal_walk_open(txn, copy->seq + 1, &log);
	while (r == 0 && copy->to.bytes < end) {
		r = journal_walk_next(log, &record);
		if (r == FOUND)
			r = copy_record(copy, &record, meta.horizon);
		if (r == 0 && copy->phase == COPY_REST)
			r = copy_head(copy, txn, &record);
		if (r == 0)
			copy->seq = record.seq;
	}
	return r;
}

static int copy_heads(struct journal_copy *copy, struct txn *txn, uint64_t end)
{
	CLEANUP(cursor_close) struct cursor *heads = NULL;
	struct bytes key, value;
	int r = cursor_open(txn, DB_HEAD, &heads);

	if (!copy->key.size)
		buf_byte(&copy->key, 0); /* below every key */
	if (r == 0)
		r = buf_error(&copy->key);
	if (r == 0)
		r = cursor_seek(heads, buf_bytes(&copy->key), &key, &value);
	while (r == FOUND && copy->to.bytes < end) {
		r = env_copy_put(&copy->to, DB_HEAD, key, value, TXN_APPEND);
		buf_reset(&copy->key);
		buf_bytes_put(&copy->key, key);
		buf_byte(&copy->key, 0); /* the smallest key after it */
		if (r == 0)
			r = buf_error(&copy->key);
		if (r == 0)
			r = cursor_next(heads, &key, &value);
	}
	return r;
}

static int copy_slice(struct journal_copy *copy, struct txn *txn, uint64_t end)
{
	int r = copy->phase == COPY_HEADS ? copy_heads(copy, txn, end) : copy_log(copy, txn, end);

	if (r < 0)
		return r;
	int committed = env_copy_commit(&copy->to);
	if (committed < 0 || r != END)
		return committed < 0 ? committed : AGAIN;
	if (copy->phase == COPY_REST)
		return 0;
	copy->phase++;
	return AGAIN;
}

int journal_copy_slice(struct journal_copy *copy, uint64_t bytes)
{
	CLEANUP(txn_abort) struct txn *own = NULL;
	struct txn *txn = copy->options.txn;
	int r = 0;

	CHECK_OBJ(copy, JOURNAL_COPY_MAGIC);
	if (!txn)
		r = txn_begin_read(journal_env(copy->options.from), &own);
	if (r == 0)
		r = copy_slice(copy, txn ? txn : own, copy->to.bytes + bytes);
	if (r == AGAIN)
		FAILPOINT_RETURN(COMPACT_SLICE);
	return r < 0 ? err_add(r, "copying the journal") : r;
}

/* ---- the end ------------------------------------------------------------ */

static int copy_finish(struct journal_copy *copy, struct txn *txn, struct journal_meta *ret_meta)
{
	int r = AGAIN;

	while (r == AGAIN)
		r = copy_slice(copy, txn, UINT64_MAX);
	if (r == 0)
		r = env_copy_database(&copy->to, DB_FEED, txn, NULL, NULL);
	if (r == 0) /* the row of meta is written once more below */
		r = env_copy_database(&copy->to, DB_META, txn, NULL, NULL);
	if (r == 0)
		r = meta_read(txn, ret_meta);
	if (r < 0)
		return r;
	memcpy(ret_meta->uuid, copy->uuid, 16);
	ret_meta->history -= copy->cut < ret_meta->history ? copy->cut : ret_meta->history;
	r = env_copy_begin(&copy->to, sizeof(*ret_meta));
	if (r == 0)
		r = meta_write(copy->to.txn, ret_meta);
	if (r == 0)
		r = env_copy_commit(&copy->to);
	if (r == 0)
		r = failpoint_pass(FAILPOINT_COMPACT_FILLED);
	/* A writer's copy is trusted during this boot only, as was its journal; without a writer it
	 * is closed in order. */
	if (r == 0 && copy->options.journal.durable)
		r = env_sync(copy->to.to);
	return r < 0 ? r : generation_set_uuid(copy->gen, copy->uuid);
}

/* Names the copy in CURRENT, also if the error comes after the rename. */
static int copy_publish(struct home *home, uint32_t number)
{
	uint32_t current = 0;
	int r = generation_publish(home_journal_fd(home), number);

	if (r == 0 || generation_current(home_journal_fd(home), &current) != FOUND ||
		current != number)
		return r;
	err_ignore(r, "CURRENT names the copy all the same");
	return 0;
}

int journal_copy_end(struct journal_copy *copy, struct journal *writer)
{
	CLEANUP(txn_abort) struct txn *own = NULL;
	struct txn *txn = copy->options.txn;
	struct home *home = copy->options.to;
	uint32_t number = generation_number(copy->gen);
	struct journal_meta meta;
	int r = 0;

	CHECK_OBJ(copy, JOURNAL_COPY_MAGIC);
	REQUIRE(!writer || (writer == copy->options.from && !writer->txn && home));
	if (!txn)
		r = txn_begin_read(journal_env(copy->options.from), &own);
	if (r == 0)
		r = copy_finish(copy, txn ? txn : own, &meta);
	txn_abort(&own);
	if (r < 0)
		return err_add(r, "copying the journal");
	if (!writer) /* whole on the disk, with its STATE, before CURRENT names it */
		generation_close(&copy->gen);
	r = copy_publish(home, number);
	if (r < 0 && !writer)
		err_ignore(journal_remove_old(home), "the next opening removes the copy");
	if (r < 0)
		return err_add(r, "copying the journal");
	/* From here on CURRENT names the copy: nothing may fail. */
	err_ignore(failpoint_pass(FAILPOINT_COMPACT_SWITCHED), "a test kills the process here");
	if (writer) {
		struct generation *old = writer->gen;

		writer->gen = TAKE(copy->gen);
		writer->meta.history = meta.history;
		generation_discard(&old);
	}
	err_ignore(journal_remove_old(home), "the next opening tries again");
	return 0;
}
