/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/changes.h"

#include <errno.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"

#define SLOTS_MIN  1024
#define TEXT_KEEP  (4u << 20)
#define TEXT_LIMIT (1u << 30) /* offsets are 32 bits; a transaction is flushed long before */

void changes_release(struct changes *changes)
{
	buf_release(&changes->text);
	free(changes->objects);
	free(changes->terms);
	free(changes->postings);
	free(changes->object_slots);
	free(changes->term_slots);
	free(changes->touched);
	*changes = (struct changes){0};
}

static void slots_clear(uint32_t *slots, size_t size)
{
	if (slots)
		memset(slots, 0, size * sizeof(*slots));
}

void changes_reset(struct changes *changes)
{
	buf_trim(&changes->text, TEXT_KEEP);
	changes->n_objects = 0;
	changes->n_terms = 0;
	changes->n_postings = 0;
	changes->n_touched = 0;
	changes->stamp = 0;
	/* A small batch after a large one does not pay for clearing the large one's table. */
	if (changes->object_slots_size > 16 * SLOTS_MIN) {
		free(TAKE(changes->object_slots));
		changes->object_slots_size = 0;
	}
	if (changes->term_slots_size > 16 * SLOTS_MIN) {
		free(TAKE(changes->term_slots));
		changes->term_slots_size = 0;
	}
	slots_clear(changes->object_slots, changes->object_slots_size);
	slots_clear(changes->term_slots, changes->term_slots_size);
}

size_t changes_size(const struct changes *changes)
{
	return changes->text.size + changes->n_objects * sizeof(*changes->objects) +
	       changes->n_terms * sizeof(*changes->terms) +
	       changes->n_postings * sizeof(*changes->postings) +
	       (changes->object_slots_size + changes->term_slots_size) * sizeof(uint32_t);
}

/* ---- arrays and tables ---- */

/* Room for one more of SIZE bytes in the array at *ARRAY. */
static int array_room(void *array, size_t n, size_t *room, size_t size)
{
	if (n < *room)
		return 0;
	size_t wanted = *room ? *room * 2 : 256;
	void *old;

	memcpy(&old, array, sizeof(old));
	void *moved = reallocarray(old, wanted, size);

	if (!moved)
		return err_set(-ENOMEM, "collecting index changes");
	memcpy(array, &moved, sizeof(moved));
	*room = wanted;
	return 0;
}

/* Good enough to spread keys over a table that lives for one transaction. */
static uint64_t hash_bytes(struct bytes b, uint64_t seed)
{
	const uint8_t *p = b.data;
	uint64_t h = seed ^ (b.size * 0x9e3779b97f4a7c15u);
	size_t n = b.size;

	for (; n >= 8; n -= 8, p += 8) {
		h = (h ^ le64_get(p)) * 0xbf58476d1ce4e5b9u;
		h ^= h >> 29;
	}
	uint64_t last = 0;

	if (n)
		memcpy(&last, p, n);
	h = (h ^ last) * 0x94d049bb133111ebu;
	return h ^ (h >> 32);
}

static uint64_t object_hash(uint32_t feed, struct bytes key)
{
	return hash_bytes(key, feed * 0xff51afd7ed558ccdu);
}

typedef uint64_t number_hash_fn(const struct changes *changes, uint32_t number);

static uint64_t object_number_hash(const struct changes *changes, uint32_t number)
{
	const struct change_object *o = &changes->objects[number];

	return object_hash(o->feed, changes_key(changes, o->key_at, o->key_size));
}

static uint64_t term_number_hash(const struct changes *changes, uint32_t number)
{
	const struct change_term *t = &changes->terms[number];

	return hash_bytes(changes_key(changes, t->key_at, t->key_size), 0);
}

static void slot_enter(uint32_t *slots, size_t size, uint64_t hash, uint32_t number)
{
	size_t i = hash & (size - 1);

	while (slots[i])
		i = (i + 1) & (size - 1);
	slots[i] = number + 1;
}

/* A table that stays at most half full with N entries in it. */
static int slots_room(const struct changes *changes, uint32_t **slots, size_t *size, size_t n,
	number_hash_fn *hash)
{
	if (*slots && (n + 1) * 2 <= *size)
		return 0;
	size_t wanted = *size ? *size * 2 : SLOTS_MIN;
	uint32_t *table = calloc(wanted, sizeof(*table));

	if (!table)
		return err_set(-ENOMEM, "collecting index changes");
	for (uint32_t i = 0; i < n; i++)
		slot_enter(table, wanted, hash(changes, i), i);
	free(*slots);
	*slots = table;
	*size = wanted;
	return 0;
}

static int text_add(struct changes *changes, struct bytes key, uint32_t *ret_at)
{
	changes->text.limit = TEXT_LIMIT;
	size_t at = changes->text.size;

	buf_bytes_put(&changes->text, key);
	*ret_at = (uint32_t)at;
	return buf_error(&changes->text);
}

/* ---- objects ---- */

int changes_find(
	const struct changes *changes, uint32_t feed, struct bytes key, uint32_t *ret_object)
{
	if (changes->n_objects == 0)
		return NOT_FOUND;
	size_t mask = changes->object_slots_size - 1;

	for (size_t i = object_hash(feed, key) & mask; changes->object_slots[i];
		i = (i + 1) & mask) {
		uint32_t number = changes->object_slots[i] - 1;
		const struct change_object *o = &changes->objects[number];

		if (o->feed == feed &&
			bytes_equal(changes_key(changes, o->key_at, o->key_size), key)) {
			*ret_object = number;
			return FOUND;
		}
	}
	return NOT_FOUND;
}

int changes_add(struct changes *changes, const struct change_object *object, struct bytes key,
	uint32_t *ret_object)
{
	uint32_t number = (uint32_t)changes->n_objects;
	int r = array_room(
		&changes->objects, number, &changes->objects_room, sizeof(*changes->objects));

	if (r == 0)
		r = slots_room(changes, &changes->object_slots, &changes->object_slots_size, number,
			object_number_hash);
	if (r < 0)
		return r;
	struct change_object o = *object;

	r = text_add(changes, key, &o.key_at);
	if (r < 0)
		return r;
	o.key_size = (uint32_t)key.size;
	changes->objects[number] = o;
	changes->n_objects++;
	slot_enter(changes->object_slots, changes->object_slots_size, object_hash(o.feed, key),
		number);
	*ret_object = number;
	return 0;
}

/* ---- terms and postings ---- */

static int term_number(struct changes *changes, struct bytes key, uint32_t *ret_term)
{
	int r = slots_room(changes, &changes->term_slots, &changes->term_slots_size,
		changes->n_terms, term_number_hash);

	if (r < 0)
		return r;
	uint64_t hash = hash_bytes(key, 0);
	size_t mask = changes->term_slots_size - 1;

	for (size_t i = hash & mask; changes->term_slots[i]; i = (i + 1) & mask) {
		uint32_t number = changes->term_slots[i] - 1;
		const struct change_term *t = &changes->terms[number];

		if (bytes_equal(changes_key(changes, t->key_at, t->key_size), key)) {
			*ret_term = number;
			return 0;
		}
	}
	r = array_room(
		&changes->terms, changes->n_terms, &changes->terms_room, sizeof(*changes->terms));
	if (r < 0)
		return r;
	struct change_term t = {.key_size = (uint32_t)key.size};

	r = text_add(changes, key, &t.key_at);
	if (r < 0)
		return r;
	uint32_t number = (uint32_t)changes->n_terms++;

	changes->terms[number] = t;
	slot_enter(changes->term_slots, changes->term_slots_size, hash, number);
	*ret_term = number;
	return 0;
}

static int posting_add(struct changes *changes, uint32_t term, uint64_t object, int delta)
{
	int r = array_room(&changes->postings, changes->n_postings, &changes->postings_room,
		sizeof(*changes->postings));

	if (r < 0)
		return r;
	changes->postings[changes->n_postings++] =
		(struct change_posting){.object = object, .term = term, .delta = delta};
	return 0;
}

void changes_compare_begin(struct changes *changes)
{
	changes->stamp++;
	changes->n_touched = 0;
}

int changes_compare_term(struct changes *changes, struct bytes key, bool is_new)
{
	uint32_t number;
	int r = term_number(changes, key, &number);

	if (r < 0)
		return r;
	struct change_term *t = &changes->terms[number];

	if (t->stamp != changes->stamp) {
		r = array_room(&changes->touched, changes->n_touched, &changes->touched_room,
			sizeof(*changes->touched));
		if (r < 0)
			return r;
		changes->touched[changes->n_touched++] = number;
		t->stamp = changes->stamp;
		t->old = t->new = false;
	}
	if (is_new)
		t->new = true;
	else
		t->old = true;
	return 0;
}

int changes_compare_end(struct changes *changes, uint64_t object)
{
	for (size_t i = 0; i < changes->n_touched; i++) {
		uint32_t number = changes->touched[i];
		const struct change_term *t = &changes->terms[number];

		if (t->old == t->new)
			continue;
		int r = posting_add(changes, number, object, t->new ? 1 : -1);

		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- order ---- */

/* Groups by term, keeping the order of arrival inside: one pass to count, one to place. */
static int group_by_term(struct changes *changes)
{
	struct change_posting *grouped =
		reallocarray(NULL, changes->n_postings + 1, sizeof(*grouped));

	if (!grouped)
		return err_set(-ENOMEM, "sorting index changes");
	for (size_t i = 0; i < changes->n_terms; i++)
		changes->terms[i].end = 0;
	for (size_t i = 0; i < changes->n_postings; i++)
		changes->terms[changes->postings[i].term].end++;
	uint32_t at = 0;

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
	changes->postings_room = changes->n_postings + 1;
	return 0;
}

static int compare_objects(const void *a, const void *b)
{
	const struct change_posting *x = a, *y = b;

	return (x->object > y->object) - (x->object < y->object);
}

/* Sorts one term's postings by object and sums them; new objects come in order already. */
static int sum_postings(struct changes *changes, struct change_term *t)
{
	struct change_posting *p = changes->postings;

	for (uint32_t i = t->begin + 1; i < t->end; i++) {
		if (p[i - 1].object > p[i].object) {
			qsort(p + t->begin, t->end - t->begin, sizeof(*p), compare_objects);
			break;
		}
	}
	uint32_t kept = t->begin;

	for (uint32_t i = t->begin; i < t->end;) {
		struct change_posting sum = p[i];

		for (i++; i < t->end && p[i].object == sum.object; i++)
			sum.delta += p[i].delta;
		if (sum.delta < -1 || sum.delta > 1)
			return err_say(ERR_CORRUPT,
				"object %llu would be entered twice under one index value",
				(unsigned long long)sum.object);
		if (sum.delta)
			p[kept++] = sum;
	}
	t->end = kept;
	return 0;
}

static int compare_terms(const void *a, const void *b, void *arg)
{
	const struct changes *c = arg;
	const struct change_term *x = &c->terms[*(const uint32_t *)a];
	const struct change_term *y = &c->terms[*(const uint32_t *)b];

	return bytes_compare(
		changes_key(c, x->key_at, x->key_size), changes_key(c, y->key_at, y->key_size));
}

int changes_sort(struct changes *changes, uint32_t **ret_order, size_t *ret_n)
{
	int r = group_by_term(changes);

	if (r < 0)
		return r;
	AUTO_FREE uint32_t *order = reallocarray(NULL, changes->n_terms + 1, sizeof(*order));
	size_t n = 0;

	if (!order)
		return err_set(-ENOMEM, "sorting index changes");
	for (uint32_t i = 0; i < changes->n_terms; i++) {
		r = sum_postings(changes, &changes->terms[i]);
		if (r < 0)
			return r;
		if (changes->terms[i].begin < changes->terms[i].end)
			order[n++] = i;
	}
	qsort_r(order, n, sizeof(*order), compare_terms, changes);
	*ret_order = TAKE(order);
	*ret_n = n;
	return 0;
}

static int compare_names(const void *a, const void *b, void *arg)
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
	AUTO_FREE uint32_t *order = reallocarray(NULL, changes->n_objects + 1, sizeof(*order));

	if (!order)
		return err_set(-ENOMEM, "sorting index changes");
	for (uint32_t i = 0; i < changes->n_objects; i++)
		order[i] = i;
	qsort_r(order, changes->n_objects, sizeof(*order), compare_names, (void *)changes);
	*ret_order = TAKE(order);
	return 0;
}
