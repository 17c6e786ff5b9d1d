/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups and walks. The shape of every row is checked: the file may be damaged. */
#include "store/index/index.h"

#include <errno.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "store/index/index_internal.h"
#include "store/index/index_postings.h"

#define WALK_MAGIC 0x6b69776bu

/* ---- rows --------------------------------------------------------------- */

/* Detects a changed number in a page's head: it would hide rows. */
static int index_check_page(struct cursor *cursor, enum index_database db, struct bytes key)
{
	return cursor_page_is_whole(cursor, key)
		       ? 0
		       : err_say(ERR_CORRUPT, "index: a page of '%s' is not filled by its rows",
				 index_kind.databases[db]);
}

/* Checks the rows on both sides of WANTED. A damaged key, in a row or on the way to it, hides rows
 * from LMDB's search: it ends beside a row with a wrong checksum, or in another part of the tree.
 * So a key is missing only if both neighbours are sound and in order. A search going on from the
 * last page ends at once if its last key is less than WANTED; this row counts as the one after it
 * then. IS_THERE: WANTED itself may follow. Returns: 0; ERR_CORRUPT. */
static int index_check_around(
	struct cursor *cursor, enum index_database db, struct bytes wanted, bool is_there)
{
	struct bytes key, value;

	for (int after = 0; after < 2; after++) {
		int r = after ? cursor_seek(cursor, wanted, &key, &value)
			      : cursor_before(cursor, wanted, &key, &value);
		bool is_end = after && r == END;
		if (is_end)
			r = cursor_last(cursor, &key, &value);
		int order = r == FOUND ? bytes_compare(key, wanted) : 0;

		if (r == FOUND &&
			(after && !is_end ? order < 0 || (order == 0 && !is_there) : order >= 0))
			r = err_say(ERR_CORRUPT, "index: the keys of '%s' are not in order",
				index_kind.databases[db]);
		if (r == FOUND)
			r = index_check_row(db, key, &value);
		if (r == FOUND)
			r = index_check_page(cursor, db, key);
		if (r < 0)
			return r;
	}
	return 0;
}

int index_check_missing(struct txn *txn, enum index_database db, struct bytes wanted)
{
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	struct bytes key, value;
	int r = txn_after(txn, db, &key, &value);

	if (r == FOUND && bytes_compare(key, wanted) > 0)
		return index_check_row(db, key, &value);
	if (r < 0)
		return r;
	r = cursor_open(txn, db, &cursor);
	return r < 0 ? r : index_check_around(cursor, db, wanted, false);
}

/* Gets the row KEY. Returns: FOUND; NOT_FOUND; ERR_CORRUPT: damage may hide it. */
static int index_get_row(
	struct txn *txn, enum index_database db, struct bytes key, struct bytes *ret_value)
{
	struct bytes found;
	int r = txn_floor(txn, db, key, &found, ret_value);

	if (r == FOUND && bytes_equal(found, key))
		return r;
	if (r == FOUND)
		r = index_check_row(db, found, ret_value);
	if (r >= 0)
		r = index_check_missing(txn, db, key);
	return r < 0 ? r : NOT_FOUND;
}

/* ---- meta --------------------------------------------------------------- */

int index_meta(struct index *index, struct txn *txn, struct index_meta *ret_meta)
{
	struct index_state state;
	uint8_t buffer[META_KEY];
	struct bytes key = index_meta_key(buffer, META_STATE, 0), value;

	CHECK_OBJ(index, INDEX_MAGIC);
	int r = txn_get(txn, INDEX_META, key, &value);

	if (r == NOT_FOUND)
		return err_say(ERR_CORRUPT, "index: its state is missing in meta");
	if (r == FOUND)
		r = index_read_state(key, value, &state);
	if (r < 0)
		return r;
	*ret_meta = state.meta;
	return 0;
}

int index_feed(struct index *index, struct txn *txn, uint32_t feed, struct index_feed *ret_feed)
{
	uint8_t buffer[META_KEY];
	struct bytes key = index_meta_key(buffer, META_FEED, feed), value;

	CHECK_OBJ(index, INDEX_MAGIC);
	int r = index_get_row(txn, INDEX_META, key, &value);

	return r != FOUND ? r : index_read_feed(key, value, ret_feed);
}

/* Steps to the next row of DB with the prefix FIRST. Returns: FOUND, END. */
static int index_next_row(struct index_rows *rows, enum index_database db, struct bytes first,
	struct bytes *ret_key, struct bytes *ret_value)
{
	bool is_first = !rows->cursor;
	int r = is_first ? cursor_open(rows->txn, db, &rows->cursor) : 0;

	if (r == 0 && is_first)
		r = index_check_around(rows->cursor, db, first, true);
	if (r == 0)
		r = is_first ? cursor_seek(rows->cursor, first, ret_key, ret_value)
			     : cursor_next(rows->cursor, ret_key, ret_value);
	if (r == FOUND)
		r = index_check_page(rows->cursor, db, *ret_key);
	if (r != FOUND || bytes_starts(*ret_key, first))
		return r;
	r = index_check_row(db, *ret_key, ret_value); /* its key may be damaged, and more follow */
	return r < 0 ? r : END;
}

int index_next_feed(struct index_rows *rows, struct index_feed *ret_feed)
{
	static const char tag = META_FEED;
	struct bytes key, value;
	int r = index_next_row(rows, INDEX_META, BYTES(&tag, 1), &key, &value);

	return r == FOUND ? index_read_feed(key, value, ret_feed) : r;
}

int index_next_definition(struct index_rows *rows, struct index_definition *ret_definition)
{
	static const char tag = META_DEFINITION;
	struct bytes key, value;
	int r = index_next_row(rows, INDEX_META, BYTES(&tag, 1), &key, &value);

	return r == FOUND ? index_read_definition(key, value, ret_definition) : r;
}

int index_next_value(struct index_rows *rows, struct index_term_row *ret_row)
{
	uint8_t buffer[TERM_KEY_MAX];
	struct bytes prefix = rows->prefix, key, value;

	if (prefix.size > INDEX_VALUE_MAX)
		prefix.size = INDEX_VALUE_MAX; /* the index keeps no more of a longer value */
	int r = index_next_row(
		rows, INDEX_TERM, index_term_key(buffer, rows->definition, prefix), &key, &value);

	if (r != FOUND)
		return r;
	ret_row->whole = index_term_is_whole(key);
	ret_row->value = BYTES(
		(const uint8_t *)key.data + 4, ret_row->whole ? key.size - 4 : INDEX_VALUE_MAX);
	return index_read_term(key, value, &ret_row->term, &ret_row->count);
}

void index_rows_release(struct index_rows *rows)
{
	cursor_close(&rows->cursor);
}

/* ---- lookups ------------------------------------------------------------ */

int index_get(struct index *index, struct txn *txn, uint32_t feed, struct bytes key,
	struct index_entry *ret_entry)
{
	uint8_t buffer[NAME_KEY_MAX];
	struct bytes value;

	CHECK_OBJ(index, INDEX_MAGIC);
	if (key.size > JOURNAL_KEY_MAX)
		return NOT_FOUND;
	struct bytes wanted = index_name_key(buffer, feed, key);
	int r = index_get_row(txn, INDEX_NAME, wanted, &value);

	return r != FOUND ? r : index_read_name(wanted, value, ret_entry);
}

int index_object(struct index *index, struct txn *txn, uint64_t object, uint32_t *ret_feed,
	struct bytes *ret_key, struct index_entry *ret_entry)
{
	uint8_t buffer[8];
	struct bytes key = BYTES(buffer, sizeof(buffer)), value;

	CHECK_OBJ(index, INDEX_MAGIC);
	be64_put(buffer, object);
	int r = txn_get(txn, INDEX_OBJECT, key, &value);

	return r != FOUND ? r : index_read_object(key, value, ret_feed, ret_key, ret_entry);
}

static int index_find_term(struct txn *txn, uint32_t definition, struct bytes value,
	uint64_t *ret_term, uint64_t *ret_count)
{
	uint8_t buffer[TERM_KEY_MAX];
	struct bytes key = index_term_key(buffer, definition, value), row;
	int r = index_get_row(txn, INDEX_TERM, key, &row);

	return r != FOUND ? r : index_read_term(key, row, ret_term, ret_count);
}

int index_has(struct index *index, struct txn *txn, uint32_t definition, struct bytes value,
	uint64_t object)
{
	uint64_t term, count;

	CHECK_OBJ(index, INDEX_MAGIC);
	int r = index_find_term(txn, definition, value, &term, &count);

	return r != FOUND ? r : postings_has(txn, term, object);
}

/* ---- walks -------------------------------------------------------------- */

#define COUNT_UNKNOWN UINT64_MAX

struct index_walk {
	uint32_t magic;
	bool started;
	bool is_postings;
	bool after; /* begin after FROM, cut because it is longer than any key */
	/* names or postings left, by another row's count; COUNT_UNKNOWN */
	uint64_t left;
	struct cursor *cursor; /* over name, or posting */
	struct txn *txn;
	struct postings_block block;
	size_t in_block; /* of its ids were given */
	size_t prefix_size, from_size;
	uint8_t prefix[NAME_KEY_MAX];
	uint8_t from[NAME_KEY_MAX];
};

static int index_walk_new(struct txn *txn, unsigned database, struct index_walk **ret_walk)
{
	CLEANUP(index_walk_close) struct index_walk *walk = malloc(sizeof(*walk));

	if (!walk)
		return err_set(-ENOMEM, "walking the index");
	walk->magic = WALK_MAGIC;
	walk->started = walk->is_postings = walk->after = false;
	walk->cursor = NULL;
	walk->txn = txn;
	walk->left = COUNT_UNKNOWN;
	walk->block.n = walk->in_block = 0;
	int r = cursor_open(txn, database, &walk->cursor);

	if (r < 0)
		return r;
	*ret_walk = TAKE(walk);
	return 0;
}

void index_walk_close(struct index_walk **walk)
{
	struct index_walk *w = *walk;

	if (!w)
		return;
	CHECK_OBJ(w, WALK_MAGIC);
	cursor_close(&w->cursor);
	w->magic = 0;
	free(w);
	*walk = NULL;
}

int index_names(struct index *index, struct txn *txn, uint32_t feed, struct bytes prefix,
	struct bytes from, struct index_walk **ret_walk)
{
	struct index_walk *walk;
	struct index_feed row;

	CHECK_OBJ(index, INDEX_MAGIC);
	if (prefix.size > JOURNAL_KEY_MAX)
		return err_say(
			ERR_TOO_LARGE, "an object key has at most %d bytes", JOURNAL_KEY_MAX);
	int r = index_walk_new(txn, INDEX_NAME, &walk);

	if (r < 0)
		return r;
	if (from.size > JOURNAL_KEY_MAX) {
		from.size = JOURNAL_KEY_MAX;
		walk->after = bytes_compare(from, prefix) >= 0;
	}
	walk->prefix_size = index_name_key(walk->prefix, feed, prefix).size;
	walk->from_size =
		index_name_key(walk->from, feed, bytes_compare(from, prefix) > 0 ? from : prefix)
			.size;
	if (!prefix.size && !from.size) {
		r = index_feed(index, txn, feed, &row);
		if (r < 0) {
			index_walk_close(&walk);
			return r;
		}
		if (r == FOUND && !row.removed) /* a dropped feed loses its names step by step */
			walk->left = row.objects;
	}
	*ret_walk = walk;
	return 0;
}

int index_term_postings(
	struct index *index, struct txn *txn, uint64_t term, struct index_walk **ret_walk)
{
	CLEANUP(index_walk_close) struct index_walk *walk = NULL;

	CHECK_OBJ(index, INDEX_MAGIC);
	int r = index_walk_new(txn, INDEX_POSTING, &walk);

	if (r < 0)
		return r;
	walk->is_postings = true;
	be64_put(walk->prefix, term);
	walk->prefix_size = 8;
	walk->from_size = index_posting_key(walk->from, term, 0).size;
	*ret_walk = TAKE(walk);
	return FOUND;
}

int index_postings(struct index *index, struct txn *txn, uint32_t definition, struct bytes value,
	uint64_t *ret_count, struct index_walk **ret_walk)
{
	uint64_t term, count;

	CHECK_OBJ(index, INDEX_MAGIC);
	int r = index_find_term(txn, definition, value, &term, &count);

	if (r == FOUND && ret_walk)
		r = index_term_postings(index, txn, term, ret_walk);
	if (r == FOUND && ret_walk)
		(*ret_walk)->left = count;
	if (r == FOUND)
		*ret_count = count;
	return r;
}

int index_walk_object(struct index_walk *walk, uint64_t object, struct bytes *ret_key,
	struct index_entry *ret_entry)
{
	struct bytes key, value;
	uint32_t feed;
	uint8_t id[8];

	CHECK_OBJ(walk, WALK_MAGIC);
	REQUIRE(walk->is_postings);
	be64_put(id, object);
	key = BYTES(id, sizeof(id));
	int r = txn_get(walk->txn, INDEX_OBJECT, key, &value);

	if (r < 0)
		return r;
	if (r == NOT_FOUND)
		return err_say(ERR_CORRUPT, "index: a posting names object %llu, which is missing",
			(unsigned long long)object);
	return index_read_object(key, value, &feed, ret_key, ret_entry);
}

/* Steps to the next key with the walk's prefix. Returns: FOUND, END. */
static int index_walk_row(struct index_walk *walk, struct bytes *ret_key, struct bytes *ret_value)
{
	int r;

	CHECK_OBJ(walk, WALK_MAGIC);
	if (walk->started) {
		r = cursor_next(walk->cursor, ret_key, ret_value);
	} else {
		walk->started = true;
		struct bytes from = BYTES(walk->from, walk->from_size);
		r = walk->is_postings ? 0
				      : index_check_around(walk->cursor, INDEX_NAME, from, true);
		if (r == 0)
			r = cursor_seek(walk->cursor, from, ret_key, ret_value);
		if (r == FOUND && walk->after && bytes_equal(*ret_key, from))
			r = cursor_next(walk->cursor, ret_key, ret_value);
	}
	if (r == FOUND && !walk->is_postings) /* those are counted */
		r = index_check_page(walk->cursor, INDEX_NAME, *ret_key);
	if (r != FOUND || bytes_starts(*ret_key, BYTES(walk->prefix, walk->prefix_size)))
		return r;
	/* The key may be a damaged one, with more rows after it. */
	r = index_check_row(walk->is_postings ? INDEX_POSTING : INDEX_NAME, *ret_key, ret_value);
	return r < 0 ? r : END;
}

/* Counts a step with the result R. A damaged tree may lack rows without looking damaged: then the
 * number of names or postings differs from the count kept elsewhere. */
static int index_walk_count(struct index_walk *walk, int r)
{
	if (walk->left == COUNT_UNKNOWN || r < 0)
		return r;
	if ((r == END) != (walk->left == 0))
		return err_say(ERR_CORRUPT, "index: %s %s than are counted",
			r == END ? "fewer" : "more",
			walk->is_postings ? "postings of a value" : "names of a feed");
	walk->left -= r == FOUND;
	return r;
}

int index_walk_next_id(struct index_walk *walk, uint64_t *ret_object)
{
	struct bytes key, value;
	int r = FOUND;

	CHECK_OBJ(walk, WALK_MAGIC);
	REQUIRE(walk->is_postings);
	if (walk->in_block == walk->block.n) {
		walk->in_block = walk->block.n = 0;
		r = index_walk_row(walk, &key, &value);
		if (r == FOUND)
			r = postings_read(key, value, &walk->block);
	}
	r = index_walk_count(walk, r);
	if (r == FOUND)
		*ret_object = postings_object(&walk->block, walk->in_block++);
	return r;
}

int index_walk_next(struct index_walk *walk, struct bytes *ret_key, struct index_entry *ret_entry)
{
	struct bytes key, value;
	uint64_t object;
	int r;

	CHECK_OBJ(walk, WALK_MAGIC);
	if (walk->is_postings) {
		r = index_walk_next_id(walk, &object);
		return r != FOUND ? r : index_walk_object(walk, object, ret_key, ret_entry);
	}
	r = index_walk_count(walk, index_walk_row(walk, &key, &value));
	if (r != FOUND)
		return r;
	*ret_key = BYTES((const uint8_t *)key.data + 4, key.size - 4);
	return index_read_name(key, value, ret_entry);
}
