/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/index_postings.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "store/index/index_internal.h"

/* fewer ids: the block is joined with the next one */
#define POSTINGS_FEW (POSTINGS_MOST / 4)

/* ---- reading ------------------------------------------------------------ */

int postings_read(struct bytes key, struct bytes value, struct postings_block *ret_block)
{
	int r = index_check_row(INDEX_POSTING, key, &value);

	if (r < 0)
		return r;
	if (key.size != POSTING_KEY || value.size % 4 || value.size / 4 >= POSTINGS_MOST)
		return err_say(ERR_CORRUPT, "index: a row of %zu and %zu bytes in 'posting'",
			key.size, value.size);
	*ret_block = (struct postings_block){
		.term = be64_get(key.data),
		.first = be64_get((const uint8_t *)key.data + 8),
		.n = 1 + value.size / 4,
		.rest = value.data,
	};
	return 0;
}

/* Reads the row at the cursor; RESULT is of its move. Returns: FOUND; NOT_FOUND: no row of TERM. */
static int postings_take(int result, uint64_t term, struct bytes key, struct bytes value,
	struct postings_block *ret_block)
{
	struct postings_block block;

	if (result != FOUND)
		return result == END ? NOT_FOUND : result;
	int r = postings_read(key, value, &block);
	if (r < 0 || block.term != term)
		return r < 0 ? r : NOT_FOUND;
	*ret_block = block;
	return FOUND;
}

/* Finds TERM's block for OBJECT: the last one not beginning after it, else the term's first one. */
static int postings_find(
	struct cursor *cursor, uint64_t term, uint64_t object, struct postings_block *ret_block)
{
	uint8_t room[POSTING_KEY];
	struct bytes wanted = index_posting_key(room, term, object), key, value;
	int r = cursor_floor(cursor, wanted, &key, &value);

	r = postings_take(r, term, key, value, ret_block);
	if (r != NOT_FOUND)
		return r;
	r = cursor_seek(cursor, wanted, &key, &value);
	return postings_take(r, term, key, value, ret_block);
}

int postings_has(struct txn *txn, uint64_t term, uint64_t object)
{
	uint8_t room[POSTING_KEY];
	struct bytes wanted = index_posting_key(room, term, object), key, value;
	struct postings_block block;
	int r = txn_floor(txn, INDEX_POSTING, wanted, &key, &value);

	if (r == FOUND)
		r = postings_read(key, value, &block);
	if (r < 0)
		return r;
	size_t low = 0, high = r == FOUND && block.term == term ? block.n : 0;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		uint64_t found = postings_object(&block, middle);

		if (found == object)
			return FOUND;
		if (found < object)
			low = middle + 1;
		else
			high = middle;
	}
	r = index_check_missing(txn, INDEX_POSTING, wanted);
	return r < 0 ? r : NOT_FOUND;
}

/* ---- writing ------------------------------------------------------------ */

void postings_release(struct postings_writer *writer)
{
	cursor_close(&writer->cursor);
	free(TAKE(writer->objects));
	writer->n_objects = writer->objects_room = 0;
}

/* Takes the ids of a block out of its row, and finds where the next block begins: the cursor
 * moves there. */
static int postings_take_old(struct postings_writer *w, const struct postings_block *block)
{
	struct postings_block next;
	struct bytes key, value;

	for (size_t i = 0; i < block->n; i++)
		w->old[i] = postings_object(block, i);
	w->n_old = block->n;
	int r = cursor_next(w->cursor, &key, &value);
	r = postings_take(r, w->term, key, value, &next);
	w->bound = r == FOUND ? next.first : POSTINGS_NO_BOUND;
	return r < 0 ? r : 0;
}

static int postings_delete(struct postings_writer *w, uint64_t first)
{
	uint8_t room[POSTING_KEY];
	struct bytes wanted = index_posting_key(room, w->term, first), key, value;
	int r = cursor_seek(w->cursor, wanted, &key, &value);

	if (r == END || (r == FOUND && !bytes_equal(key, wanted)))
		r = err_say(ERR_CORRUPT, "index: a row of 'posting' is missing");
	return r < 0 ? r : cursor_del(w->cursor);
}

static int postings_keep(struct postings_writer *w, uint64_t object)
{
	if (w->n_objects && w->objects[w->n_objects - 1] >= object)
		return err_say(ERR_CORRUPT, "index: the objects of a term are not in order");
	return ARRAY_ADD(
		w->objects, w->n_objects, w->objects_room, object, "the objects of a term");
}

/* Joins the block as it is with the changes before its bound. */
static int postings_merge(struct postings_writer *w, const struct change_posting **change,
	const struct change_posting *end)
{
	const struct change_posting *c = *change;
	size_t i = 0;
	int r = 0;

	while (r == 0 && (i < w->n_old || (c < end && c->object < w->bound))) {
		bool has_change = c < end && c->object < w->bound;

		if (!has_change || (i < w->n_old && w->old[i] < c->object)) {
			r = postings_keep(w, w->old[i++]);
			continue;
		}
		bool is_there = i < w->n_old && w->old[i] == c->object;

		if (is_there == (c->delta > 0))
			return err_say(ERR_CORRUPT, "index: a posting of object %llu is %s",
				(unsigned long long)c->object,
				is_there ? "there already" : "missing");
		if (is_there)
			i++;
		else
			r = postings_keep(w, c->object);
		c++;
	}
	*change = c;
	return r;
}

/* Writes the block, a large one as several. The last block of a term is filled, because most
 * objects are added there; others are divided evenly. */
static int postings_store(struct postings_writer *w, unsigned flags)
{
	size_t pieces = (w->n_objects + POSTINGS_MOST - 1) / POSTINGS_MOST, most = POSTINGS_MOST;
	uint8_t room[POSTING_KEY], rest[4 * (POSTINGS_MOST - 1) + ROW_CRC];
	int r = 0;

	if (w->is_stored && (!w->n_objects || w->objects[0] != w->first))
		r = postings_delete(w, w->first);
	if (pieces && w->bound != POSTINGS_NO_BOUND)
		most = (w->n_objects + pieces - 1) / pieces;
	for (size_t at = 0, n; r == 0 && at < w->n_objects; at += n) {
		const uint64_t *objects = w->objects + at;

		n = w->n_objects - at < most ? w->n_objects - at : most;
		while (objects[n - 1] - objects[0] > UINT32_MAX)
			n--;
		struct bytes key = index_posting_key(room, w->term, objects[0]);

		for (size_t i = 1; i < n; i++)
			le32_put(rest + 4 * (i - 1), (uint32_t)(objects[i] - objects[0]));
		r = cursor_put(w->cursor, key, index_checksum_row(key, rest, 4 * (n - 1)), flags);
	}
	return r;
}

int postings_change(struct postings_writer *w, uint64_t term, bool is_new,
	const struct change_posting *postings, size_t n)
{
	const struct change_posting *end = postings + n;
	struct postings_block block;
	int r = 0;

	w->term = term;
	while (r == 0 && postings < end) {
		w->n_old = w->n_objects = 0;
		w->bound = POSTINGS_NO_BOUND;
		r = is_new ? NOT_FOUND
			   : postings_find(w->cursor, w->term, postings->object, &block);
		w->is_stored = r == FOUND;
		w->first = w->is_stored ? block.first : 0;
		if (r == FOUND)
			r = postings_take_old(w, &block);
		if (r >= 0)
			r = postings_merge(w, &postings, end);
		/* Goes on with the term's next block: its ids follow the present ones. */
		while (r == 0 && w->n_objects < POSTINGS_FEW && w->bound != POSTINGS_NO_BOUND) {
			uint64_t first = w->bound;

			r = postings_find(w->cursor, w->term, first, &block);
			if (r == FOUND)
				r = postings_take_old(w, &block);
			if (r >= 0)
				r = postings_delete(w, first);
			if (r == 0)
				r = postings_merge(w, &postings, end);
		}
		if (r == 0)
			r = postings_store(w, is_new ? TXN_APPEND : 0);
	}
	return r;
}
