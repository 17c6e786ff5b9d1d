/* SPDX-License-Identifier: Apache-2.0 */
/* A write transaction: its changes are collected here and written by index_flush.c. */
#include "store/index/index.h"

#include <stdlib.h>

#include "common/check.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "store/index/index_internal.h"

int index_keep_error(struct index *index, int r)
{
	if (r < 0 && index->error == 0)
		index->error = r;
	return r;
}

int index_ready(const struct index *index)
{
	CHECK_OBJ(index, INDEX_MAGIC);
	REQUIRE(index->txn);
	if (index->error)
		return err_set(index->error, "index: the transaction has failed before");
	return 0;
}

/* ---- the transaction ---------------------------------------------------- */

int index_begin(struct index *index)
{
	CHECK_OBJ(index, INDEX_MAGIC);
	if (index->txn)
		return 0;
	int r = txn_begin_write(generation_env(index->gen), &index->txn);

	if (r < 0)
		return r;
	if (!index->loaded)
		r = index_load(index);
	if (r < 0)
		index_abort(index);
	return r;
}

/* Forgets the transaction's changes and the copy of meta, perhaps with some of them. */
static void index_reset(struct index *index)
{
	cursor_close(&index->names);
	changes_reset(&index->changes);
	index_forget(index);
	index->error = 0;
}

void index_abort(struct index *index)
{
	CHECK_OBJ(index, INDEX_MAGIC);
	if (!index->txn)
		return;
	txn_abort(&index->txn);
	index_reset(index);
}

static int index_commit_changes(struct index *index)
{
	int r = index_flush(index);

	if (r == 0)
		r = index_save(index);
	if (r < 0)
		return r;
	if (index->hints)
		hints_cover(index->hints, index->state.meta.taken, txn_id(index->txn));
	FAILPOINT_RETURN(INDEX_BEFORE_COMMIT);
	cursor_close(&index->names);
	r = txn_commit(&index->txn);
	if (r < 0)
		return r;
	index_hints_grow(index);
	FAILPOINT_RETURN(INDEX_AFTER_COMMIT);
	return 0;
}

int index_commit(struct index *index)
{
	int r = index_ready(index);

	if (r == 0)
		r = index_commit_changes(index);
	if (r < 0) { /* a failed commit may have ended the transaction already */
		txn_abort(&index->txn);
		index_reset(index);
	}
	return r;
}

struct txn *index_txn(struct index *index)
{
	CHECK_OBJ(index, INDEX_MAGIC);
	return index->txn;
}

int index_flush(struct index *index)
{
	int r = index_ready(index);

	return r < 0 ? r : index_keep_error(index, index_write_changes(index));
}

/* ---- objects ------------------------------------------------------------ */

/* Gets the stored entry of a name. Returns: FOUND, NOT_FOUND. */
static int index_stored(
	struct index *index, uint32_t feed, struct bytes key, struct index_entry *ret_entry)
{
	uint8_t buffer[NAME_KEY_MAX];
	struct bytes wanted = index_name_key(buffer, feed, key), found, value;
	int r = index->names ? 0 : cursor_open(index->txn, INDEX_NAME, &index->names);

	if (r == 0)
		r = cursor_seek(index->names, wanted, &found, &value);
	if (r == END || (r == FOUND && !bytes_equal(found, wanted)))
		return NOT_FOUND;
	return r < 0 ? r : index_read_name(wanted, value, ret_entry);
}

/*
 * Finds the collected change of a name, or begins one with the stored entry. Every change starts
 * here: a failed transaction is refused, and large changes are written first.
 */
static int index_collect(
	struct index *index, uint32_t feed, struct bytes key, struct change_object **ret_object)
{
	struct change_object o = {.feed = feed};
	uint32_t number;
	int r = index_ready(index);

	if (r == 0 && changes_size(&index->changes) > INDEX_FLUSH_BYTES)
		r = index_write_changes(index);
	if (r == 0 && (key.size == 0 || key.size > JOURNAL_KEY_MAX))
		r = err_say(ERR_CORRUPT, "index: an object key of %zu bytes", key.size);
	if (r == 0 && changes_find(&index->changes, feed, key, &number) != FOUND) {
		r = index_stored(index, feed, key, &o.to);
		if (r == FOUND) {
			o.present = true;
			o.stored_object = o.to.object;
		}
		if (r >= 0)
			r = changes_add(&index->changes, &o, key, &number);
	}
	if (r == 0)
		*ret_object = &index->changes.objects[number];
	return index_keep_error(index, r);
}

int index_entry(struct index *index, uint32_t feed, struct bytes key, struct index_entry *ret_entry)
{
	struct change_object *o;
	int r = index_collect(index, feed, key, &o);

	if (r < 0)
		return r;
	if (!o->present)
		return NOT_FOUND;
	*ret_entry = o->to;
	return FOUND;
}

/* Adds an object's old or new terms to the comparison, but none of a definition not yet filled up
 * to the object: they are left to the backfill. */
static int index_compare_side(
	struct index *index, const struct index_term *terms, size_t n, uint64_t object, bool is_new)
{
	const struct index_definition_row *row = NULL;
	uint8_t key[TERM_KEY_MAX];
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		const struct index_term *term = &terms[i];

		if (!i || term->definition != term[-1].definition)
			row = index_definition_row(index, term->definition);
		if (!row || row->definition.dropping || object > row->definition.filled)
			continue;
		r = changes_compare_same(&index->changes, i, term->definition, term->value, is_new);
		if (r == NOT_FOUND)
			r = changes_compare_term(&index->changes, i,
				index_term_key(key, term->definition, term->value), is_new);
	}
	return r;
}

static int index_compare_terms(
	struct index *index, const struct index_change *change, uint64_t object)
{
	bool same = change->n_old == change->n_new;

	for (size_t i = 0; i < change->n_old && same; i++)
		same = change->old[i].definition ==
		       change->new[i].definition &&bytes_equal(
			       change->old[i].value, change->new[i].value);
	if (same)
		return 0;
	changes_compare_begin(&index->changes);
	int r = index_compare_side(index, change->old, change->n_old, object, false);

	if (r == 0)
		r = index_compare_side(index, change->new, change->n_new, object, true);
	if (r == 0)
		r = changes_compare_end(&index->changes, object);
	return index_keep_error(index, r);
}

int index_count_object(struct index *index, uint32_t feed, int delta)
{
	struct index_feed_row *row;
	int r = index_feed_row_add(index, feed, &row);

	if (r == 0 && delta < 0 && row->feed.objects == 0)
		r = err_say(ERR_CORRUPT, "index: object count of feed %u below zero", feed);
	if (r < 0)
		return index_keep_error(index, r);
	row->feed.objects += (uint64_t)(int64_t)delta;
	row->changed = true;
	return 0;
}

int index_put(struct index *index, const struct index_change *change)
{
	struct change_object *o;
	int r = index_collect(index, change->feed, change->key, &o);

	if (r < 0)
		return r;
	uint64_t object = o->to.object;

	if (!o->present) {
		REQUIRE(change->n_old == 0);
		object = index->state.next_object++;
		index->state_changed = true;
		r = index_count_object(index, change->feed, 1);
		if (r < 0)
			return r;
	}
	o->present = o->changed = true;
	o->to = change->to;
	o->to.object = object;
	return index_compare_terms(index, change, object);
}

int index_remove(struct index *index, uint32_t feed, struct bytes key, const struct index_term *old,
	size_t n_old)
{
	const struct index_change change = {.old = old, .n_old = n_old};
	struct change_object *o;
	int r = index_collect(index, feed, key, &o);

	if (r < 0)
		return r;
	if (!o->present)
		return NOT_FOUND;
	o->present = false;
	o->changed = true;
	r = index_count_object(index, feed, -1);
	return r < 0 ? r : index_compare_terms(index, &change, o->to.object);
}

int index_set_taken(struct index *index, uint64_t seq)
{
	int r = index_ready(index);

	if (r < 0)
		return r;
	REQUIRE(seq >= index->state.meta.taken);
	index->state.meta.taken = seq;
	index->state_changed = true;
	return 0;
}

bool index_feed_set_rv(struct index_feed *feed, struct bytes rv)
{
	struct bytes old = bytes_str(feed->rv);

	if (!rv.size || bytes_equal(rv, old) || rv_compare(rv, old) == -1)
		return false;
	memset(feed->rv, 0, sizeof(feed->rv));
	if (rv.size < sizeof(feed->rv))
		memcpy(feed->rv, rv.data, rv.size);
	return true;
}

int index_feed_set(struct index *index, const struct index_feed *feed)
{
	struct index_feed_row *row;
	int r = index_ready(index);

	if (r == 0)
		r = index_keep_error(index, index_feed_row_add(index, feed->feed, &row));
	if (r < 0)
		return r;
	uint64_t objects = row->feed.objects;

	row->feed = *feed;
	row->feed.objects = objects;
	row->changed = true;
	return 0;
}
