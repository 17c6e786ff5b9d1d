/* SPDX-License-Identifier: Apache-2.0 */
/* Deep: each body's terms, worked out again, are exactly the postings of its object: each is there,
 * and a definition has no more of them than all bodies together. */
#include "store/verify/verify_layout.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "store/index/terms.h"

struct checked_definition {
	uint32_t id;
	uint64_t filled;
	uint64_t wanted; /* postings that all bodies together have */
	struct buf name; /* kept, with its NUL: faults name it */
};

struct term_check {
	struct verify *v;
	const struct verify_feed *feed;
	struct terms *terms;
	struct term_list list;
	struct checked_definition *definitions;
	size_t n_definitions, room;
};

static void term_check_release(struct term_check *c)
{
	for (size_t i = 0; i < c->n_definitions; i++)
		buf_release(&c->definitions[i].name);
	free(c->definitions);
	term_list_release(&c->list);
	terms_free(&c->terms);
}

static int add_definition(void *arg, const struct index_definition *definition)
{
	struct term_check *c = arg;

	if (definition->dropping)
		return 0;
	int r = verify_room(&c->definitions, c->n_definitions, &c->room, sizeof(*c->definitions));

	if (r == 0)
		r = terms_add(c->terms, definition);
	if (r < 0)
		return r;
	struct checked_definition *d = &c->definitions[c->n_definitions++];

	*d = (struct checked_definition){.id = definition->id, .filled = definition->filled};
	buf_put(&d->name, definition->name, strlen(definition->name) + 1);
	return buf_error(&d->name);
}

static struct checked_definition *find_definition(struct term_check *c, uint32_t id)
{
	for (size_t i = 0; i < c->n_definitions; i++)
		if (c->definitions[i].id == id)
			return &c->definitions[i];
	return NULL;
}

static int compare_terms(const void *a, const void *b)
{
	const struct index_term *x = a, *y = b;

	if (x->definition != y->definition)
		return x->definition < y->definition ? -1 : 1;
	return bytes_compare(x->value, y->value);
}

static int check_term(
	struct term_check *c, const struct index_term *term, struct bytes key, uint64_t object)
{
	struct checked_definition *d = find_definition(c, term->definition);

	if (!d || object > d->filled)
		return 0; /* left to the backfill */
	d->wanted++;
	int r = index_has(snapshot_index(c->v->snapshot), snapshot_index_txn(c->v->snapshot),
		term->definition, term->value, object);

	if (r == NOT_FOUND)
		verify_fault(c->v, "index: '%.*s' is not found under '%s' by its value '%.*s'",
			BYTES_ARG(key), (const char *)d->name.data,
			term->value.size > 100 ? 100 : (int)term->value.size,
			(const char *)term->value.data);
	return r < 0 ? r : 0;
}

static int check_object(struct term_check *c, struct bytes key, const struct index_entry *entry)
{
	struct record record;
	int r = snapshot_record(c->v->snapshot, c->feed->id, key, entry, &record);

	if (r == FOUND)
		r = terms_collect(c->terms, &record, &c->list);
	if (r < 0)
		return r;
	struct index_term *terms = c->list.terms;

	if (c->list.n)
		qsort(terms, c->list.n, sizeof(*terms), compare_terms);
	for (size_t i = 0; i < c->list.n; i++) {
		if (i && compare_terms(&terms[i - 1], &terms[i]) == 0)
			continue;
		r = check_term(c, &terms[i], key, entry->object);
		if (r < 0)
			return r;
	}
	return 0;
}

static void check_sums(struct term_check *c)
{
	for (size_t i = 0; i < c->n_definitions; i++) {
		const struct checked_definition *d = &c->definitions[i];
		uint64_t held = 0;

		for (size_t t = 0; t < c->v->n_terms; t++)
			if (c->v->terms[t].definition == d->id)
				held += c->v->terms[t].seen;
		if (held != d->wanted)
			verify_fault(c->v,
				"index: '%s' of feed %u has %" PRIu64
				" postings, the bodies have %" PRIu64,
				(const char *)d->name.data, c->feed->id, held, d->wanted);
	}
}

static int check_objects(struct term_check *c)
{
	CLEANUP(index_walk_close) struct index_walk *walk = NULL;
	struct index *index = snapshot_index(c->v->snapshot);
	struct txn *txn = snapshot_index_txn(c->v->snapshot);
	struct index_entry entry;
	struct bytes key;
	int r = terms_new(&c->terms);

	if (r == 0)
		r = index_each_definition(index, txn, c->feed->id, add_definition, c);
	if (r == 0)
		r = index_names(index, txn, c->feed->id, BYTES_NONE, BYTES_NONE, &walk);
	while (r == 0) {
		r = index_walk_next(walk, &key, &entry);
		if (r == FOUND)
			r = verify_failed(c->v, check_object(c, key, &entry), "index");
	}
	if (r == END)
		check_sums(c);
	return verify_failed(c->v, r, "index: reading terms");
}

int verify_terms(struct verify *v)
{
	int r = 0;

	for (size_t i = 0; i < v->n_feeds && r == 0; i++) {
		const struct verify_feed *feed = &v->feeds[i];

		/* While a feed is taken out its postings go first. */
		if (!feed->wanted || !feed->in_index || feed->index.removed ||
			feed->checkpoint.phase == FEED_REMOVED)
			continue;
		CLEANUP(term_check_release) struct term_check check = {.v = v, .feed = feed};

		r = check_objects(&check);
	}
	return r;
}
