/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/changes.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/hash.h"

#define TABLE_KEEP 16384 /* places */
#define TEXT_KEEP  (4u << 20)
/* offsets have 32 bits; a transaction is flushed long before */
#define TEXT_LIMIT (1u << 30)

/* An item of both tables. */
struct change_number {
	uint32_t hash;
	uint32_t number; /* in objects or terms */
};

struct change_name {
	uint32_t feed;
	struct bytes key;
};

static bool change_is_object(const void *item, const void *key, const void *arg)
{
	const struct changes *changes = arg;
	const struct change_name *name = key;
	const struct change_object *o =
		&changes->objects[((const struct change_number *)item)->number];

	return o->feed == name->feed &&
	       bytes_equal(changes_key(changes, o->key_at, o->key_size), name->key);
}

static bool change_is_term(const void *item, const void *key, const void *arg)
{
	const struct changes *changes = arg;
	const struct change_term *t = &changes->terms[((const struct change_number *)item)->number];

	return bytes_equal(
		changes_key(changes, t->key_at, t->key_size), *(const struct bytes *)key);
}

void changes_release(struct changes *changes)
{
	buf_release(&changes->text);
	free(changes->objects);
	free(changes->terms);
	free(changes->postings);
	free(changes->touched);
	hashtable_release(&changes->object_numbers);
	hashtable_release(&changes->term_numbers);
	*changes = (struct changes){0};
}

/* A small batch after a large one should not pay for clearing the large one's table. */
static void changes_clear_table(struct hashtable *table)
{
	if (table->places > TABLE_KEEP)
		hashtable_release(table);
	else
		hashtable_clear(table);
}

void changes_reset(struct changes *changes)
{
	buf_trim(&changes->text, TEXT_KEEP);
	changes->n_objects = 0;
	changes->n_terms = 0;
	changes->n_postings = 0;
	changes->n_touched = 0;
	changes->stamp = 0;
	memset(changes->last, 0, sizeof(changes->last));
	changes_clear_table(&changes->object_numbers);
	changes_clear_table(&changes->term_numbers);
}

size_t changes_size(const struct changes *changes)
{
	return changes->text.size + changes->n_objects * sizeof(*changes->objects) +
	       changes->n_terms * sizeof(*changes->terms) +
	       changes->n_postings * sizeof(*changes->postings) +
	       (changes->object_numbers.places + changes->term_numbers.places) *
		       sizeof(struct change_number);
}

/* Adds NUMBER and its key to a table and to the text. */
static int changes_add_key(struct changes *changes, struct hashtable *table,
	hashtable_equal_fn *equal, uint64_t hash, struct bytes key, uint32_t number,
	uint32_t *ret_key_at)
{
	struct change_number *item;

	changes->text.limit = TEXT_LIMIT;
	*ret_key_at = (uint32_t)changes->text.size;
	buf_bytes_put(&changes->text, key);
	int r = buf_error(&changes->text);
	if (r < 0)
		return r;
	if (!table->items)
		*table = HASHTABLE_INIT(struct change_number, equal, changes);
	r = hashtable_add(table, hash, "the table of index changes", &item);
	if (r == 0)
		item->number = number;
	return r;
}

/* ---- objects ------------------------------------------------------------ */

int changes_find(
	const struct changes *changes, uint32_t feed, struct bytes key, uint32_t *ret_object)
{
	const struct change_name name = {feed, key};
	const struct change_number *item =
		hashtable_find(&changes->object_numbers, hash_bytes(key, feed), &name);

	if (!item)
		return NOT_FOUND;
	*ret_object = item->number;
	return FOUND;
}

int changes_add(struct changes *changes, const struct change_object *object, struct bytes key,
	uint32_t *ret_object)
{
	struct change_object o = *object;
	uint32_t number = (uint32_t)changes->n_objects;
	int r = ARRAY_ROOM(changes->objects, changes->n_objects, changes->objects_room, 1,
		"the list of changed objects");

	if (r == 0)
		r = changes_add_key(changes, &changes->object_numbers, change_is_object,
			hash_bytes(key, o.feed), key, number, &o.key_at);
	if (r < 0)
		return r;
	o.key_size = (uint32_t)key.size;
	changes->objects[changes->n_objects++] = o;
	*ret_object = number;
	return 0;
}

/* ---- terms and postings ------------------------------------------------- */

void changes_compare_begin(struct changes *changes)
{
	changes->stamp++;
	changes->n_touched = 0;
}

/* Enters term NUMBER on this side. */
static int changes_touch(struct changes *changes, uint32_t number, bool is_new)
{
	struct change_term *t = &changes->terms[number];
	int r = 0;

	if (t->stamp != changes->stamp) {
		r = ARRAY_ADD(changes->touched, changes->n_touched, changes->touched_room, number,
			"the terms of an object");
		if (r < 0)
			return r;
		t->stamp = changes->stamp;
		t->old = t->new = false;
	}
	if (is_new)
		t->new = true;
	else
		t->old = true;
	return 0;
}

int changes_compare_same(
	struct changes *changes, size_t place, uint32_t definition, struct bytes value, bool is_new)
{
	if (place >= CHANGES_LAST || !changes->last[place])
		return NOT_FOUND;
	uint32_t number = changes->last[place] - 1;
	const struct change_term *t = &changes->terms[number];
	struct bytes key = changes_key(changes, t->key_at, t->key_size);

	if (key.size != 4 + value.size || be32_get(key.data) != definition ||
		memcmp((const uint8_t *)key.data + 4, value.data, value.size) != 0)
		return NOT_FOUND;
	return changes_touch(changes, number, is_new);
}

int changes_compare_term(struct changes *changes, size_t place, struct bytes key, bool is_new)
{
	struct change_term added = {.key_size = (uint32_t)key.size};
	uint64_t hash = hash_bytes(key, 0);
	const struct change_number *item = hashtable_find(&changes->term_numbers, hash, &key);
	uint32_t number = item ? item->number : (uint32_t)changes->n_terms;
	int r = 0;

	if (!item) {
		r = ARRAY_ROOM(changes->terms, changes->n_terms, changes->terms_room, 1,
			"the list of changed terms");
		if (r == 0)
			r = changes_add_key(changes, &changes->term_numbers, change_is_term, hash,
				key, number, &added.key_at);
		if (r < 0)
			return r;
		changes->terms[changes->n_terms++] = added;
	}
	if (place < CHANGES_LAST)
		changes->last[place] = number + 1;
	return changes_touch(changes, number, is_new);
}

int changes_compare_end(struct changes *changes, uint64_t object)
{
	int r = 0;

	for (size_t i = 0; i < changes->n_touched && r == 0; i++) {
		uint32_t number = changes->touched[i];
		const struct change_term *t = &changes->terms[number];
		const struct change_posting posting = {object, number, t->new ? 1 : -1};

		if (t->old != t->new)
			r = ARRAY_ADD(changes->postings, changes->n_postings,
				changes->postings_room, posting, "the list of changed postings");
	}
	return r;
}

/* ---- order -------------------------------------------------------------- */

/* Groups the postings by term and keeps their order within: one pass counts, one places. */
static int changes_group_by_term(struct changes *changes)
{
	struct change_posting *grouped = NULL;
	uint32_t at = 0;
	size_t room = 0;
	int r = ARRAY_ROOM(grouped, 0, room, changes->n_postings + 1, "the sorted postings");

	if (r < 0)
		return r;
	for (size_t i = 0; i < changes->n_terms; i++)
		changes->terms[i].end = 0;
	for (size_t i = 0; i < changes->n_postings; i++)
		changes->terms[changes->postings[i].term].end++;
	for (size_t i = 0; i < changes->n_terms; i++) {
		struct change_term *t = &changes->terms[i];
		uint32_t n = t->end;

		t->begin = t->end = at;
		at += n;
	}
	for (size_t i = 0; i < changes->n_postings; i++)
		grouped[changes->terms[changes->postings[i].term].end++] = changes->postings[i];
	free(changes->postings);
	changes->postings = grouped;
	changes->postings_room = room;
	return 0;
}

static int changes_compare_postings(const void *a, const void *b)
{
	const struct change_posting *x = a, *y = b;

	return (x->object > y->object) - (x->object < y->object);
}

/* Sorts one term's postings by object and adds them up. Those of new objects are in order
 * already. */
static int changes_sum_postings(struct changes *changes, struct change_term *t)
{
	struct change_posting *p = changes->postings;
	uint32_t kept = t->begin;

	for (uint32_t i = t->begin + 1; i < t->end; i++) {
		if (p[i - 1].object > p[i].object) {
			qsort(p + t->begin, t->end - t->begin, sizeof(*p),
				changes_compare_postings);
			break;
		}
	}
	for (uint32_t i = t->begin; i < t->end;) {
		struct change_posting sum = p[i];

		for (i++; i < t->end && p[i].object == sum.object; i++)
			sum.delta += p[i].delta;
		if (sum.delta < -1 || sum.delta > 1)
			return err_say(ERR_CORRUPT,
				"index: two postings of object %llu in one term",
				(unsigned long long)sum.object);
		if (sum.delta)
			p[kept++] = sum;
	}
	t->end = kept;
	return 0;
}

static int changes_compare_keys(const void *a, const void *b, void *arg)
{
	const struct changes *c = arg;
	const struct change_term *x = &c->terms[*(const uint32_t *)a];
	const struct change_term *y = &c->terms[*(const uint32_t *)b];

	return bytes_compare(
		changes_key(c, x->key_at, x->key_size), changes_key(c, y->key_at, y->key_size));
}

int changes_sort(struct changes *changes, uint32_t **ret_order, size_t *ret_n)
{
	AUTO_FREE uint32_t *order = NULL;
	size_t n = 0, room = 0;
	int r = changes_group_by_term(changes);

	if (r == 0)
		r = ARRAY_ROOM(order, 0, room, changes->n_terms + 1, "the order of terms");
	for (uint32_t i = 0; i < changes->n_terms && r == 0; i++) {
		r = changes_sum_postings(changes, &changes->terms[i]);
		if (changes->terms[i].begin < changes->terms[i].end)
			order[n++] = i;
	}
	if (r < 0)
		return r;
	qsort_r(order, n, sizeof(*order), changes_compare_keys, changes);
	*ret_order = TAKE(order);
	*ret_n = n;
	return 0;
}

static int changes_compare_names(const void *a, const void *b, void *arg)
{
	const struct changes *c = arg;
	const struct change_object *x = &c->objects[*(const uint32_t *)a];
	const struct change_object *y = &c->objects[*(const uint32_t *)b];

	if (x->feed != y->feed)
		return x->feed < y->feed ? -1 : 1;
	return bytes_compare(
		changes_key(c, x->key_at, x->key_size), changes_key(c, y->key_at, y->key_size));
}

int changes_sort_names(const struct changes *changes, uint32_t **ret_order)
{
	AUTO_FREE uint32_t *order = NULL;
	size_t room = 0;
	int r = ARRAY_ROOM(order, 0, room, changes->n_objects + 1, "the order of names");

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < changes->n_objects; i++)
		order[i] = i;
	qsort_r(order, changes->n_objects, sizeof(*order), changes_compare_names, (void *)changes);
	*ret_order = TAKE(order);
	return 0;
}
