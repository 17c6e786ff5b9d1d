/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions: made, filled in slices, and taken out in slices, as are removed feeds. */
#include "store/index/index.h"

#include <errno.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "store/index/index_internal.h"

/* ---- definitions ---- */

static int define(struct index *index, const struct index_definition *definition, uint32_t *ret_id)
{
	struct index_definition_row *row;
	struct index_feed_row *feed;

	for (size_t i = 0; i < index->n_definitions; i++) {
		const struct index_definition *d = &index->definitions[i]->definition;

		if (d->feed == definition->feed && !d->dropping &&
			strcmp(d->name, definition->name) == 0)
			return err_say(
				ERR_CONFIG, "feed %u has an index '%s' already", d->feed, d->name);
	}
	int r = index_feed_row_add(index, definition->feed, &feed);

	if (r == 0)
		r = index_definition_row_add(index, definition, &row);
	if (r < 0)
		return r;
	feed->changed = row->changed = true;
	row->definition.id = index->state.next_definition++;
	row->definition.filled = feed->feed.objects == 0 ? INDEX_READY : 0;
	index->state_changed = true;
	*ret_id = row->definition.id;
	return 0;
}

int index_define(
	struct index *index, uint32_t feed, const char *name, const char *paths, uint32_t *ret_id)
{
	struct index_definition definition = {.feed = feed, .name = name, .paths = paths};
	int r = index_ready(index);

	return r < 0 ? r : index_keep_error(index, define(index, &definition, ret_id));
}

/* One object into the definition being filled. */
static int backfill_object(struct index *index, uint32_t definition, uint64_t object,
	const struct index_term *terms, size_t n)
{
	uint8_t key[TERM_KEY_MAX];
	int r = 0;

	changes_compare_begin(&index->changes);
	for (size_t i = 0; i < n && r == 0; i++)
		if (terms[i].definition == definition)
			r = changes_compare_term(&index->changes,
				index_term_key(key, definition, terms[i].value), true);
	return r < 0 ? r : changes_compare_end(&index->changes, object);
}

static int backfill_next(struct index *index, struct index_definition *definition, struct bytes key,
	struct bytes value, index_terms_fn *fn, void *arg)
{
	const struct index_term *terms = NULL;
	struct index_entry entry;
	struct bytes name;
	uint32_t feed;
	size_t n = 0;
	int r = key.size == 8
			? index_read_object(value, &feed, &name, &entry)
			: err_say(ERR_CORRUPT, "index: a key of %zu bytes in 'object'", key.size);

	if (r < 0)
		return r;
	definition->filled = be64_get(key.data);
	if (feed != definition->feed)
		return 0;
	r = fn(arg, &entry, feed, name, &terms, &n);
	if (r < 0)
		return r;
	return backfill_object(index, definition->id, definition->filled, terms, n);
}

static int backfill(struct index *index, struct index_definition_row *row, size_t limit,
	index_terms_fn *fn, void *arg)
{
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	struct bytes key, value;
	uint8_t from[8];
	int r = index_write_changes(index); /* so that all objects are in the database */

	if (r == 0)
		r = cursor_open(index->txn, INDEX_OBJECT, &cursor);
	if (r < 0)
		return r;
	row->changed = true;
	be64_put(from, row->definition.filled + 1);
	r = cursor_seek(cursor, BYTES(from, sizeof(from)), &key, &value);
	for (; r == FOUND; r = cursor_next(cursor, &key, &value)) {
		if (limit-- == 0 || changes_size(&index->changes) > INDEX_FLUSH_BYTES)
			return AGAIN;
		r = backfill_next(index, &row->definition, key, value, fn, arg);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	row->definition.filled = INDEX_READY;
	return 0;
}

int index_backfill(
	struct index *index, uint32_t definition, size_t limit, index_terms_fn *fn, void *arg)
{
	int r = index_ready(index);

	if (r < 0)
		return r;
	struct index_definition_row *row = index_definition_row(index, definition);

	REQUIRE(row && limit);
	if (row->definition.filled == INDEX_READY || row->definition.dropping)
		return 0;
	return index_keep_error(index, backfill(index, row, limit, fn, arg));
}

/* ---- dropping: slices of about LIMIT entries, no bodies needed ---- */

/* Takes postings of TERM away, at most *LEFT; how many. */
static int drop_postings(struct index *index, uint64_t term, size_t *left, uint64_t *ret_dropped)
{
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	struct bytes key, value;
	uint8_t from[POSTING_KEY];
	uint64_t n = 0;
	int r = cursor_open(index->txn, INDEX_POSTING, &cursor);

	if (r == 0)
		r = cursor_seek(cursor, index_posting_key(from, term, 0), &key, &value);
	while (r == FOUND && *left && key.size == POSTING_KEY && be64_get(key.data) == term) {
		r = cursor_del(cursor);
		if (r < 0)
			return r;
		n++;
		(*left)--;
		r = cursor_next(cursor, &key, &value);
	}
	*ret_dropped = n;
	return r < 0 ? r : 0;
}

/* The first term of DEFINITION: FOUND, END. */
static int first_term(struct cursor *cursor, uint32_t definition, struct bytes *ret_key,
	uint64_t *ret_term, uint64_t *ret_count)
{
	uint8_t from[4];
	struct bytes value;

	be32_put(from, definition);
	int r = cursor_seek(cursor, BYTES(from, sizeof(from)), ret_key, &value);

	if (r != FOUND)
		return r;
	if (!bytes_starts(*ret_key, BYTES(from, sizeof(from))))
		return END;
	return index_read_term(value, ret_term, ret_count);
}

static int drop_term(struct index *index, struct cursor *cursor, struct bytes key, uint64_t term,
	uint64_t count, size_t *left)
{
	uint8_t copy[ENV_KEY_MAX], row[TERM_BYTES];
	struct bytes name = BYTES(copy, key.size);
	uint64_t dropped;

	memcpy(copy, key.data, key.size); /* the row moves when postings are written */
	int r = drop_postings(index, term, left, &dropped);

	if (r < 0)
		return r;
	if (dropped > count || (dropped < count && *left))
		return err_say(ERR_CORRUPT, "index: a value has %s objects than counted",
			dropped > count ? "more" : "fewer");
	if (dropped == count) {
		r = txn_del(index->txn, INDEX_TERM, name);
		if (*left)
			(*left)--;
		return r == NOT_FOUND ? err_say(ERR_CORRUPT, "index: a value vanished") : r;
	}
	le64_put(row, term);
	le64_put(row + 8, count - dropped);
	return cursor_put(cursor, name, BYTES(row, sizeof(row)), 0);
}

/* AGAIN when *LEFT ran out before the definition was gone. */
static int undefine(struct index *index, uint32_t id, size_t *left)
{
	struct index_definition_row *row = index_definition_row(index, id);
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	uint64_t term, count;
	uint8_t key[META_KEY];
	struct bytes name;

	if (!row)
		return 0;
	row->changed |= !row->definition.dropping;
	row->definition.dropping = true;
	int r = cursor_open(index->txn, INDEX_TERM, &cursor);

	while (r == 0) {
		if (*left == 0)
			return AGAIN;
		r = first_term(cursor, id, &name, &term, &count);
		if (r == FOUND)
			r = drop_term(index, cursor, name, term, count, left);
	}
	if (r != END)
		return r;
	index_definition_row_remove(index, id);
	r = txn_del(index->txn, INDEX_META, index_meta_key(key, META_DEFINITION, id));
	return r < 0 ? r : 0; /* one that was never saved is not there */
}

static int room_for_drop(struct index *index, size_t limit)
{
	size_t operations[INDEX_DATABASES] = {limit, limit, limit, limit, 8};

	return index_make_room(index, operations, 0);
}

int index_undefine(struct index *index, uint32_t definition, size_t limit)
{
	int r = index_flush(index);

	if (r == 0)
		r = index_keep_error(index, room_for_drop(index, limit));
	return r < 0 ? r : index_keep_error(index, undefine(index, definition, &limit));
}

static int drop_name(struct index *index, struct cursor *cursor, uint32_t feed, struct bytes name,
	struct bytes value)
{
	struct index_entry held;
	uint8_t key[8];
	int r = index_read_name(value, &held);

	if (r == 0 && index->hints)
		hints_remove(index->hints, feed,
			BYTES((const uint8_t *)name.data + 4, name.size - 4), held.object);
	if (r == 0)
		r = cursor_del(cursor);
	if (r < 0)
		return r;
	be64_put(key, held.object);
	r = txn_del(index->txn, INDEX_OBJECT, BYTES(key, sizeof(key)));
	if (r == NOT_FOUND)
		r = err_say(ERR_CORRUPT, "index: object %llu has a name but no row",
			(unsigned long long)held.object);
	return r < 0 ? r : index_count_object(index, feed, -1);
}

static int drop_names(struct index *index, uint32_t feed, size_t *left)
{
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	struct bytes key, value;
	uint8_t prefix[4];
	int r = cursor_open(index->txn, INDEX_NAME, &cursor);

	be32_put(prefix, feed);
	if (r == 0)
		r = cursor_seek(cursor, BYTES(prefix, sizeof(prefix)), &key, &value);
	while (r == FOUND && bytes_starts(key, BYTES(prefix, sizeof(prefix)))) {
		if ((*left)-- == 0)
			return AGAIN;
		r = drop_name(index, cursor, feed, key, value);
		if (r < 0)
			return r;
		r = cursor_next(cursor, &key, &value);
	}
	return r < 0 ? r : 0;
}

static int feed_drop(struct index *index, uint32_t feed, size_t limit)
{
	struct index_feed_row *row = index_feed_row(index, feed);
	uint8_t key[META_KEY];
	int r = room_for_drop(index, limit);

	if (r < 0 || !row)
		return r;
	row->feed.removed = row->changed = true;
	for (size_t i = 0; i < index->n_definitions && r == 0;) {
		if (index->definitions[i]->definition.feed == feed)
			r = undefine(index, index->definitions[i]->definition.id, &limit);
		else
			i++;
	}
	if (r == 0)
		r = drop_names(index, feed, &limit);
	if (r != 0)
		return r;
	index_feed_row_remove(index, feed);
	r = txn_del(index->txn, INDEX_META, index_meta_key(key, META_FEED, feed));
	return r < 0 ? r : 0; /* one that was never saved is not there */
}

int index_feed_drop(struct index *index, uint32_t feed, size_t limit)
{
	int r = index_flush(index);

	return r < 0 ? r : index_keep_error(index, feed_drop(index, feed, limit));
}
