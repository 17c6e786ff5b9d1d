/* SPDX-License-Identifier: Apache-2.0 */
/* Adds definitions, fills them in slices, and removes definitions and feeds in slices. */
#include "store/index/index.h"

#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "store/index/index_internal.h"
#include "store/index/index_postings.h"

/* ---- definitions -------------------------------------------------------- */

int index_define(
	struct index *index, uint32_t feed, const char *name, const char *paths, uint32_t *ret_id)
{
	const struct index_definition definition = {.feed = feed, .name = name, .paths = paths};
	struct index_definition_row *row;
	struct index_feed_row *feed_row;
	int r = index_ready(index);

	for (size_t i = 0; i < index->n_definitions && r == 0; i++) {
		const struct index_definition *d = &index->definitions[i]->definition;

		if (d->feed == feed && !d->dropping && strcmp(d->name, name) == 0)
			r = err_say(ERR_CONFIG, "feed %u already has an index '%s'", feed, name);
	}
	if (r == 0)
		r = index_feed_row_add(index, feed, &feed_row);
	if (r == 0)
		r = index_definition_row_add(index, &definition, &row);
	if (r < 0)
		return index_keep_error(index, r);
	feed_row->changed = row->changed = true;
	row->definition.id = index->state.next_definition++;
	row->definition.filled = feed_row->feed.objects == 0 ? INDEX_READY : 0;
	index->state_changed = true;
	*ret_id = row->definition.id;
	return 0;
}

/* Adds the terms of one row of `object` to the definition. */
static int index_backfill_object(struct index *index, struct index_definition *definition,
	struct bytes key, struct bytes value, index_terms_fn *fn, void *arg)
{
	uint8_t buffer[TERM_KEY_MAX];
	const struct index_term *terms = NULL;
	struct index_entry entry;
	struct bytes name;
	uint32_t feed;
	size_t n = 0;
	int r = index_read_object(key, value, &feed, &name, &entry);

	if (r < 0)
		return r;
	definition->filled = be64_get(key.data);
	if (feed != definition->feed)
		return 0;
	r = fn(arg, &entry, feed, name, &terms, &n);
	changes_compare_begin(&index->changes);
	for (size_t i = 0; i < n && r == 0; i++)
		if (terms[i].definition == definition->id)
			r = changes_compare_term(&index->changes, i,
				index_term_key(buffer, definition->id, terms[i].value), true);
	return r < 0 ? r : changes_compare_end(&index->changes, definition->filled);
}

int index_each_unfilled(struct index *index, uint32_t definition, size_t limit,
	index_unfilled_fn *fn, void *arg, size_t *ret_n)
{
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	const struct index_definition_row *row = index_definition_row(index, definition);
	struct bytes key, value, name;
	struct index_entry entry;
	uint8_t from[8];
	uint32_t feed;

	REQUIRE(row && index->txn);
	*ret_n = 0;
	if (row->definition.filled == INDEX_READY)
		return 0;
	be64_put(from, row->definition.filled + 1);
	int r = cursor_open(index->txn, INDEX_OBJECT, &cursor);
	if (r == 0)
		r = cursor_seek(cursor, BYTES(from, sizeof(from)), &key, &value);
	while (r == FOUND && *ret_n < limit) {
		r = index_read_object(key, value, &feed, &name, &entry);
		*ret_n += r == 0;
		if (r == 0 && feed == row->definition.feed)
			r = fn(arg, &entry);
		if (r == 0)
			r = cursor_next(cursor, &key, &value);
	}
	return r < 0 ? r : 0;
}

int index_backfill(
	struct index *index, uint32_t definition, size_t limit, index_terms_fn *fn, void *arg)
{
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	struct bytes key, value;
	uint8_t from[8];
	int r = index_ready(index);

	if (r < 0)
		return r;
	struct index_definition_row *row = index_definition_row(index, definition);

	REQUIRE(row && limit);
	if (row->definition.filled == INDEX_READY || row->definition.dropping)
		return 0;
	r = index_write_changes(index); /* all objects must be in the database */
	if (r == 0)
		r = cursor_open(index->txn, INDEX_OBJECT, &cursor);
	if (r < 0)
		return index_keep_error(index, r);
	row->changed = true;
	be64_put(from, row->definition.filled + 1);
	r = cursor_seek(cursor, BYTES(from, sizeof(from)), &key, &value);
	while (r == FOUND) {
		if (limit-- == 0 || changes_size(&index->changes) > INDEX_FLUSH_BYTES)
			return AGAIN;
		r = index_backfill_object(index, &row->definition, key, value, fn, arg);
		if (r == 0)
			r = cursor_next(cursor, &key, &value);
	}
	if (r < 0)
		return index_keep_error(index, r);
	row->definition.filled = INDEX_READY;
	return 0;
}

/* ---- removing, in slices of about LIMIT rows; needs no bodies ----------- */

/* Removes at most *LEFT blocks of a term's postings, then the term. Its count stays: readers no
 * longer see the definition. */
static int index_drop_term(struct index *index, struct bytes key, uint64_t term, size_t *left)
{
	CLEANUP(cursor_close) struct cursor *postings = NULL;
	uint8_t copy[ENV_KEY_MAX], from[POSTING_KEY];
	struct bytes name = BYTES(copy, key.size), posting, ids;
	struct postings_block block;

	memcpy(copy, key.data, key.size); /* deleting postings may move the row */
	int r = cursor_open(index->txn, INDEX_POSTING, &postings);

	if (r == 0)
		r = cursor_seek(postings, index_posting_key(from, term, 0), &posting, &ids);
	for (; r == FOUND && *left; (*left)--) {
		r = postings_read(posting, ids, &block);
		if (r == 0 && block.term != term)
			break;
		if (r == 0)
			r = cursor_del(postings);
		if (r == 0)
			r = cursor_next(postings, &posting, &ids);
	}
	if (r < 0 || *left == 0)
		return r < 0 ? r : 0;
	(*left)--;
	r = txn_del(index->txn, INDEX_TERM, name);
	return r == NOT_FOUND ? err_say(ERR_CORRUPT, "index: the value to remove is missing") : r;
}

/* Returns: 0; AGAIN: *LEFT ran out before the definition was removed. */
static int index_drop_definition(struct index *index, uint32_t id, size_t *left)
{
	struct index_definition_row *row = index_definition_row(index, id);
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	uint64_t term, count;
	uint8_t key[META_KEY], from[4];
	const struct bytes first = BYTES(from, sizeof(from));
	struct bytes name, value;

	if (!row)
		return 0;
	row->changed |= !row->definition.dropping;
	row->definition.dropping = true;
	be32_put(from, id);
	int r = cursor_open(index->txn, INDEX_TERM, &cursor);

	while (r == 0) {
		if (*left == 0)
			return AGAIN;
		r = cursor_seek(cursor, first, &name, &value);
		if (r == FOUND && !bytes_starts(name, first))
			r = END;
		if (r == FOUND)
			r = index_read_term(name, value, &term, &count);
		if (r == FOUND)
			r = index_drop_term(index, name, term, left);
	}
	if (r != END)
		return r;
	index_definition_row_remove(index, id);
	r = txn_del(index->txn, INDEX_META, index_meta_key(key, META_DEFINITION, id));
	return r < 0 ? r : 0; /* NOT_FOUND: it was never saved */
}

int index_undefine(struct index *index, uint32_t definition, size_t limit)
{
	int r = index_flush(index);

	if (r == 0)
		r = index_drop_definition(index, definition, &limit);
	return index_keep_error(index, r);
}

static int index_drop_names(struct index *index, uint32_t feed, size_t *left)
{
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	struct index_entry held;
	struct bytes key, value;
	uint8_t prefix[4], object[8];
	int r = cursor_open(index->txn, INDEX_NAME, &cursor);

	be32_put(prefix, feed);
	if (r == 0)
		r = cursor_seek(cursor, BYTES(prefix, sizeof(prefix)), &key, &value);
	while (r == FOUND && bytes_starts(key, BYTES(prefix, sizeof(prefix)))) {
		if ((*left)-- == 0)
			return AGAIN;
		r = index_read_name(key, value, &held);
		if (r == 0 && index->hints)
			hints_remove(index->hints, feed,
				BYTES((const uint8_t *)key.data + 4, key.size - 4), held.object);
		if (r == 0)
			r = cursor_del(cursor);
		if (r < 0)
			return r;
		be64_put(object, held.object);
		r = txn_del(index->txn, INDEX_OBJECT, BYTES(object, sizeof(object)));
		if (r == NOT_FOUND)
			r = err_say(ERR_CORRUPT, "index: object %llu has a name but no row",
				(unsigned long long)held.object);
		if (r == 0)
			r = index_count_object(index, feed, -1);
		if (r < 0)
			return r;
		r = cursor_next(cursor, &key, &value);
	}
	return r < 0 ? r : 0;
}

int index_feed_drop(struct index *index, uint32_t feed, size_t limit)
{
	uint8_t key[META_KEY];
	int r = index_flush(index);

	if (r < 0)
		return index_keep_error(index, r);
	struct index_feed_row *row = index_feed_row(index, feed);

	if (!row)
		return 0;
	row->feed.removed = row->changed = true;
	for (size_t i = 0; i < index->n_definitions && r == 0;) {
		if (index->definitions[i]->definition.feed == feed)
			r = index_drop_definition(
				index, index->definitions[i]->definition.id, &limit);
		else
			i++;
	}
	if (r == 0)
		r = index_drop_names(index, feed, &limit);
	if (r != 0)
		return index_keep_error(index, r);
	index_feed_row_remove(index, feed);
	r = txn_del(index->txn, INDEX_META, index_meta_key(key, META_FEED, feed));
	return r < 0 ? index_keep_error(index, r) : 0; /* NOT_FOUND: it was never saved */
}

/* ---- work left ---------------------------------------------------------- */

struct index_task index_find_task(const struct index *index)
{
	struct index_task task = {0};

	for (size_t i = 0; i < index->n_feeds && !task.remove_feed; i++)
		if (index->feeds[i].feed.removed)
			task.remove_feed = index->feeds[i].feed.feed;
	for (size_t i = 0; i < index->n_definitions; i++) {
		const struct index_definition *d = &index->definitions[i]->definition;

		if (d->dropping && !task.drop)
			task.drop = d->id;
		else if (d->filled != INDEX_READY && !d->dropping && !task.fill)
			task.fill = d->id;
	}
	return task;
}

int index_drop_leftover(struct index *index, const struct index_task *task, size_t limit)
{
	return task->remove_feed ? index_feed_drop(index, task->remove_feed, limit)
				 : index_undefine(index, task->drop, limit);
}
