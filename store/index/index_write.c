/* SPDX-License-Identifier: Apache-2.0 */
/* A transaction's changes: collected here, written by index_flush.c. */
#include "store/index/index.h"

#include <errno.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "store/index/index_internal.h"

/* After an error the transaction does nothing more, and commit becomes an abort. */
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
	return index->error;
}

/* ---- the transaction ---- */

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

void index_abort(struct index *index)
{
	CHECK_OBJ(index, INDEX_MAGIC);
	if (!index->txn)
		return;
	txn_abort(&index->txn);
	changes_reset(&index->changes);
	index_forget(index);
	index->error = 0;
	index->touched_bytes = index->added_bytes = 0;
}

static int commit(struct index *index)
{
	const size_t operations[INDEX_DATABASES] = {
		[INDEX_META] = 1 + index->n_feeds + index->n_definitions};
	int r = index_flush(index);

	/* Also for a transaction that changes nothing else. */
	if (r == 0)
		r = index_make_room(index, operations, 0);
	if (r == 0)
		r = index_save(index);
	if (r < 0)
		return r;
	index_hints_cover(index);
	FAILPOINT_RETURN(INDEX_BEFORE_COMMIT);
	r = txn_commit(&index->txn);
	if (r < 0)
		return r;
	index->touched_bytes = index->added_bytes = 0;
	index_hints_grow(index);
	FAILPOINT_RETURN(INDEX_AFTER_COMMIT);
	return 0;
}

int index_commit(struct index *index)
{
	int r = index_ready(index);

	if (r == 0)
		r = commit(index);
	if (r < 0) {
		index_abort(index);
		changes_reset(&index->changes);
		index_forget(index); /* also when the commit itself ended the transaction */
		index->error = 0;
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

/* Between two changes: bounds the memory of a transaction. */
static int flush_when_full(struct index *index)
{
	return changes_size(&index->changes) > INDEX_FLUSH_BYTES ? index_write_changes(index) : 0;
}

/* ---- objects ---- */

/* The collected change for a name; with what the database holds when it is new. */
static int object_at(struct index *index, uint32_t feed, struct bytes key, uint32_t *ret_object)
{
	if (key.size == 0 || key.size > JOURNAL_KEY_MAX)
		return err_say(ERR_CORRUPT, "an object key of %zu bytes", key.size);
	if (changes_find(&index->changes, feed, key, ret_object) == FOUND)
		return 0;
	struct change_object o = {.feed = feed};
	int r = index_get(index, index->txn, feed, key, &o.to);

	if (r < 0)
		return r;
	if (r == FOUND) {
		o.present = true;
		o.stored_object = o.to.object;
	}
	return changes_add(&index->changes, &o, key, ret_object);
}

static int entry(
	struct index *index, uint32_t feed, struct bytes key, struct index_entry *ret_entry)
{
	uint32_t number;
	int r = flush_when_full(index);

	if (r == 0)
		r = object_at(index, feed, key, &number);
	if (r < 0)
		return r;
	if (!index->changes.objects[number].present)
		return NOT_FOUND;
	*ret_entry = index->changes.objects[number].to;
	return FOUND;
}

int index_entry(struct index *index, uint32_t feed, struct bytes key, struct index_entry *ret_entry)
{
	int r = index_ready(index);

	return r < 0 ? r : index_keep_error(index, entry(index, feed, key, ret_entry));
}

/* Is a definition kept for this object? Those being filled are up to where they are filled. */
static bool is_kept(struct index *index, uint32_t definition, uint64_t object)
{
	const struct index_definition_row *row = index_definition_row(index, definition);

	return row && !row->definition.dropping && object <= row->definition.filled;
}

static bool same_terms(const struct index_change *change)
{
	if (change->n_old != change->n_new)
		return false;
	for (size_t i = 0; i < change->n_old; i++)
		if (change->old[i].definition != change->new[i].definition ||
			!bytes_equal(change->old[i].value, change->new[i].value))
			return false;
	return true;
}

static int compare_side(
	struct index *index, const struct index_term *terms, size_t n, uint64_t object, bool is_new)
{
	uint8_t key[TERM_KEY_MAX];
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		if (is_kept(index, terms[i].definition, object))
			r = changes_compare_term(&index->changes,
				index_term_key(key, terms[i].definition, terms[i].value), is_new);
	return r;
}

static int compare_terms(struct index *index, const struct index_change *change, uint64_t object)
{
	if (same_terms(change))
		return 0;
	changes_compare_begin(&index->changes);
	int r = compare_side(index, change->old, change->n_old, object, false);

	if (r == 0)
		r = compare_side(index, change->new, change->n_new, object, true);
	return r < 0 ? r : changes_compare_end(&index->changes, object);
}

int index_count_object(struct index *index, uint32_t feed, int delta)
{
	struct index_feed_row *row;
	int r = index_feed_row_add(index, feed, &row);

	if (r < 0)
		return r;
	if (delta < 0 && row->feed.objects == 0)
		return err_say(ERR_CORRUPT, "index: feed %u holds more objects than counted", feed);
	row->feed.objects += (uint64_t)(int64_t)delta;
	row->changed = true;
	return 0;
}

static int put(struct index *index, const struct index_change *change)
{
	uint32_t number;
	int r = flush_when_full(index);

	if (r == 0)
		r = object_at(index, change->feed, change->key, &number);
	if (r < 0)
		return r;
	struct change_object *o = &index->changes.objects[number];
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
	return compare_terms(index, change, object);
}

int index_put(struct index *index, const struct index_change *change)
{
	int r = index_ready(index);

	return r < 0 ? r : index_keep_error(index, put(index, change));
}

static int remove_object(struct index *index, uint32_t feed, struct bytes key,
	const struct index_term *old, size_t n_old)
{
	uint32_t number;
	int r = flush_when_full(index);

	if (r == 0)
		r = object_at(index, feed, key, &number);
	if (r < 0)
		return r;
	struct change_object *o = &index->changes.objects[number];

	if (!o->present)
		return NOT_FOUND;
	uint64_t object = o->to.object;

	o->present = false;
	o->changed = true;
	r = index_count_object(index, feed, -1);
	if (r < 0)
		return r;
	struct index_change change = {.old = old, .n_old = n_old};

	return compare_terms(index, &change, object);
}

int index_remove(struct index *index, uint32_t feed, struct bytes key, const struct index_term *old,
	size_t n_old)
{
	int r = index_ready(index);

	return r < 0 ? r : index_keep_error(index, remove_object(index, feed, key, old, n_old));
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
