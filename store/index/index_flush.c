/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the collected changes: each database in key order, each term looked up and counted
 * once. */

#include <stdlib.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "store/index/index_internal.h"
#include "store/index/index_postings.h"

/* ---- flushing ----------------------------------------------------------- */

/* Finds the row of one term, or gives it an id, and adds its postings to the count. */
static int flush_term(struct index *index, struct cursor *cursor, struct change_term *term)
{
	struct bytes key = changes_key(&index->changes, term->key_at, term->key_size);
	struct bytes found, value;
	uint64_t count = 0;
	int64_t sum = 0;
	int r = cursor_seek(cursor, key, &found, &value);

	if (r < 0)
		return r;
	bool exists = r == FOUND && bytes_equal(found, key);

	if (exists)
		r = index_read_term(key, value, &term->id, &count);
	else
		term->id = index->state.next_term;
	if (r < 0)
		return r;
	for (uint32_t i = term->begin; i < term->end; i++)
		sum += index->changes.postings[i].delta;
	if (sum < 0 && count < (uint64_t)-sum)
		return err_say(ERR_CORRUPT, "index: posting count below zero");
	count += (uint64_t)sum;
	if (count == 0 && !exists)
		return err_say(ERR_CORRUPT, "index: the value to remove is missing");
	if (count == 0)
		return cursor_del(cursor);
	if (!exists) {
		index->state.next_term++;
		index->state_changed = true;
	}
	uint8_t row[TERM_BYTES + ROW_CRC];

	le64_put(row, term->id);
	le64_put(row + 8, count);
	return cursor_put(cursor, key, index_checksum_row(key, row, TERM_BYTES), 0);
}

static int flush_compare_ids(const void *a, const void *b, void *arg)
{
	const struct change_term *terms = arg;
	uint64_t x = terms[*(const uint32_t *)a].id, y = terms[*(const uint32_t *)b].id;

	return (x > y) - (x < y);
}

/* Writes terms in key order, for ascending new ids, then postings by term id. */
static int flush_terms(struct index *index, uint32_t *order, size_t n)
{
	struct changes *changes = &index->changes;
	CLEANUP(cursor_close) struct cursor *terms = NULL;
	CLEANUP(postings_release) struct postings_writer postings = {0};
	uint64_t first_new = index->state.next_term;
	int r = cursor_open(index->txn, INDEX_TERM, &terms);

	for (size_t i = 0; i < n && r == 0; i++)
		r = flush_term(index, terms, &changes->terms[order[i]]);
	if (r < 0)
		return r;
	qsort_r(order, n, sizeof(*order), flush_compare_ids, changes->terms);
	r = cursor_open(index->txn, INDEX_POSTING, &postings.cursor);
	for (size_t i = 0; i < n && r == 0; i++) {
		const struct change_term *t = &changes->terms[order[i]];

		/* Ids are never used again: those of new terms are the highest. */
		r = postings_change(&postings, t->id, t->id >= first_new,
			changes->postings + t->begin, t->end - t->begin);
	}
	return r;
}

/* Returns the last stored name: later ones are appended, to fill the pages. */
static int flush_last_name(
	struct cursor *cursor, uint8_t room[NAME_KEY_MAX], struct bytes *ret_last)
{
	struct bytes key, value;
	int r = cursor_last(cursor, &key, &value);

	*ret_last = BYTES(room, 0);
	if (r != FOUND)
		return r < 0 ? r : 0;
	if (key.size > NAME_KEY_MAX)
		return err_say(ERR_CORRUPT, "index: a key of %zu bytes in 'name'", key.size);
	memcpy(room, key.data, key.size);
	ret_last->size = key.size;
	return 0;
}

static int flush_names(struct index *index, const uint32_t *order)
{
	const struct changes *changes = &index->changes;
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	uint8_t room[NAME_KEY_MAX];
	struct bytes last;
	int r = cursor_open(index->txn, INDEX_NAME, &cursor);

	if (r == 0)
		r = flush_last_name(cursor, room, &last);

	for (size_t i = 0; i < changes->n_objects && r == 0; i++) {
		const struct change_object *o = &changes->objects[order[i]];
		uint8_t buffer[NAME_KEY_MAX], row[ENTRY_BYTES + ROW_CRC];

		if (!o->changed)
			continue;
		struct bytes key = index_name_key(
			buffer, o->feed, changes_key(changes, o->key_at, o->key_size));

		if (o->present) {
			bool append = !o->stored_object && bytes_compare(key, last) > 0;

			index_write_entry(row, &o->to);
			r = cursor_put(cursor, key, index_checksum_row(key, row, ENTRY_BYTES),
				append ? TXN_APPEND : 0);
		} else if (o->stored_object) {
			r = txn_del(index->txn, INDEX_NAME, key);
			if (r == NOT_FOUND)
				r = err_say(ERR_CORRUPT, "index: the name '%.*s' is missing",
					(int)o->key_size, (const char *)key.data + 4);
		}
	}
	return r;
}

/* One operation on the database `object`. */
struct flush_write {
	uint64_t object;
	uint32_t number; /* of the change */
	bool put;
};

static int flush_compare_writes(const void *a, const void *b)
{
	const struct flush_write *x = a, *y = b;

	return (x->object > y->object) - (x->object < y->object);
}

static int flush_objects(struct index *index)
{
	const struct changes *changes = &index->changes;
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	AUTO_FREE struct flush_write *writes = NULL;
	size_t n = 0, room = 0;
	int r = ARRAY_ROOM(writes, 0, room, changes->n_objects * 2 + 1, "the order of objects");

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < changes->n_objects; i++) {
		const struct change_object *o = &changes->objects[i];
		bool stays = o->present && o->stored_object == o->to.object;

		if (!o->changed)
			continue;
		if (o->stored_object && !stays)
			writes[n++] = (struct flush_write){o->stored_object, i, false};
		if (o->present)
			writes[n++] = (struct flush_write){o->to.object, i, true};
	}
	qsort(writes, n, sizeof(*writes), flush_compare_writes);
	r = cursor_open(index->txn, INDEX_OBJECT, &cursor);
	for (size_t i = 0; i < n && r == 0; i++) {
		const struct change_object *o = &changes->objects[writes[i].number];
		struct bytes name = changes_key(changes, o->key_at, o->key_size);
		uint8_t id[8], row[OBJECT_HEAD + JOURNAL_KEY_MAX + ROW_CRC];
		struct bytes key = BYTES(id, sizeof(id));

		be64_put(id, writes[i].object);
		if (writes[i].put) {
			index_write_entry(row, &o->to);
			le32_put(row + ENTRY_BYTES, o->feed);
			memcpy(row + OBJECT_HEAD, name.data, name.size);
			/* Ids are never used again: a new one is the highest. */
			r = cursor_put(cursor, key,
				index_checksum_row(key, row, OBJECT_HEAD + name.size),
				o->stored_object == o->to.object ? 0 : TXN_APPEND);
		} else {
			r = txn_del(index->txn, INDEX_OBJECT, key);
			if (r == NOT_FOUND)
				r = err_say(ERR_CORRUPT, "index: object %llu is missing",
					(unsigned long long)writes[i].object);
		}
	}
	return r;
}

int index_write_changes(struct index *index)
{
	struct changes *changes = &index->changes;
	AUTO_FREE uint32_t *terms = NULL;
	AUTO_FREE uint32_t *names = NULL;
	size_t n_terms;

	if (changes->n_objects == 0 && changes->n_postings == 0)
		return 0;
	int r = changes_sort(changes, &terms, &n_terms);

	if (r == 0)
		r = changes_sort_names(changes, &names);
	if (r < 0)
		return r;
	r = flush_terms(index, terms, n_terms);
	if (r == 0)
		r = flush_names(index, names);
	if (r == 0)
		r = flush_objects(index);
	if (r == 0)
		index_hints_note(index);
	changes_reset(changes);
	return r;
}
