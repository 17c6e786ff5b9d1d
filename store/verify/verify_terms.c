/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the terms of each body again and compares them with its object's postings: each posting
 * exists, and a definition has no more postings than all bodies together. */
#include "store/verify/verify_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "store/index/terms.h"

struct terms_definition {
	uint32_t id;
	uint64_t filled;
	uint64_t expected; /* postings of all bodies together */
	char *name;        /* for faults */
};

struct terms_check {
	struct verify *v;
	const struct verify_feed *feed;
	struct terms *terms;
	struct term_list list;
	struct terms_definition *definitions;
	size_t n_definitions, room;
};

static void terms_check_release(struct terms_check *c)
{
	for (size_t i = 0; i < c->n_definitions; i++)
		free(c->definitions[i].name);
	free(c->definitions);
	term_list_release(&c->list);
	terms_free(&c->terms);
}

static int terms_add_definition(struct terms_check *c, const struct index_definition *definition)
{
	int r = ARRAY_ROOM(c->definitions, c->n_definitions, c->room, 1, "the definitions");

	if (r == 0)
		r = terms_add(c->terms, definition);
	if (r < 0)
		return r;
	struct terms_definition *d = &c->definitions[c->n_definitions++];

	*d = (struct terms_definition){.id = definition->id, .filled = definition->filled};
	d->name = strdup(definition->name);
	return d->name ? 0 : err_set(-ENOMEM, "the definitions");
}

static int terms_compare(const void *a, const void *b)
{
	const struct index_term *x = a, *y = b;

	if (x->definition != y->definition)
		return x->definition < y->definition ? -1 : 1;
	return bytes_compare(x->value, y->value);
}

static int terms_check_object(
	struct terms_check *c, struct bytes key, const struct index_entry *entry)
{
	struct record record;
	int r = snapshot_record(c->v->snapshot, c->feed->id, key, entry, &record);

	if (r == FOUND)
		r = terms_collect(c->terms, &record, &c->list);
	if (r < 0)
		return r;
	struct index_term *terms = c->list.terms;

	if (c->list.n)
		qsort(terms, c->list.n, sizeof(*terms), terms_compare);
	for (size_t i = 0; i < c->list.n; i++) {
		const struct index_term *term = &terms[i];
		struct terms_definition *d = c->definitions, *end = d + c->n_definitions;

		if (i && terms_compare(term - 1, term) == 0)
			continue;
		while (d < end && d->id != term->definition)
			d++;
		if (d == end || entry->object > d->filled)
			continue; /* left to the backfill */
		d->expected++;
		r = index_has(snapshot_index(c->v->snapshot), snapshot_index_txn(c->v->snapshot),
			term->definition, term->value, entry->object);
		if (r < 0)
			return r;
		if (r == NOT_FOUND)
			verify_fault(c->v,
				"index: '%.*s' is not found under '%s' by its value '%.*s'",
				BYTES_ARG(key), d->name,
				term->value.size > 100 ? 100 : (int)term->value.size,
				(const char *)term->value.data);
	}
	return 0;
}

static int terms_check_objects(struct terms_check *c)
{
	CLEANUP(index_walk_close) struct index_walk *walk = NULL;
	struct index *index = snapshot_index(c->v->snapshot);
	struct txn *txn = snapshot_index_txn(c->v->snapshot);
	CLEANUP(index_rows_release) struct index_rows rows = {txn};
	struct index_definition definition;
	struct index_entry entry;
	struct bytes key;
	int r = terms_new(&c->terms);

	while (r == 0 && (r = index_next_definition(&rows, &definition)) == FOUND)
		if (definition.feed == c->feed->id && !definition.dropping)
			r = terms_add_definition(c, &definition);
	r = r == END ? 0 : r;
	if (r == 0)
		r = index_names(index, txn, c->feed->id, BYTES_NONE, BYTES_NONE, &walk);
	while (r == 0) {
		r = index_walk_next(walk, &key, &entry);
		if (r == FOUND)
			r = verify_failed(c->v, terms_check_object(c, key, &entry), "index");
		if (++c->v->checked % 256 == 0 && c->v->options->progress)
			c->v->options->progress(c->v->options->arg, c->v->checked, "objects");
	}
	for (size_t i = 0; i < c->n_definitions && r == END; i++) {
		const struct terms_definition *d = &c->definitions[i];
		uint64_t held = 0;

		for (size_t t = 0; t < c->v->n_terms; t++)
			if (c->v->terms[t].definition == d->id)
				held += c->v->terms[t].seen;
		if (held != d->expected)
			verify_fault(c->v,
				"index: '%s' of feed %u has %" PRIu64
				" postings, the bodies have %" PRIu64,
				d->name, c->feed->id, held, d->expected);
	}
	return verify_failed(c->v, r, "index: reading terms");
}

int verify_terms(struct verify *v)
{
	int r = 0;

	for (size_t i = 0; i < v->n_feeds && r == 0; i++) {
		const struct verify_feed *feed = &v->feeds[i];

		/* The postings of a removed feed go first. */
		if (!feed->compared || !feed->in_index || feed->index.removed ||
			feed->checkpoint.phase == FEED_REMOVED)
			continue;
		CLEANUP(terms_check_release) struct terms_check check = {.v = v, .feed = feed};

		r = terms_check_objects(&check);
	}
	return r;
}
