/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/candidates.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"

#define AHEAD 8 /* objects with bodies fetched from memory ahead of their turn */

static int candidates_compare(const void *a, const void *b)
{
	const struct snapshot_object *x = a, *y = b;

	return bytes_compare(x->key, y->key);
}

static int candidates_add(struct candidates *c, const struct snapshot_object *object)
{
	if (!bytes_starts(object->key, c->plan->prefix) ||
		bytes_compare(object->key, c->query->from) < 0)
		return 0;
	return ARRAY_ADD(c->objects, c->n, c->room, *object, "the sorted candidates of a list");
}

static int candidates_add_postings(struct candidates *c, const struct plan_term *driver)
{
	CLEANUP(index_walk_close) struct index_walk *walk = NULL;
	uint64_t newest = c->as_of ? as_of_seq(c->as_of) : UINT64_MAX, count;
	struct snapshot_object objects[SNAPSHOT_OBJECTS_MAX];
	int n, r = index_postings(snapshot_index(c->snapshot), snapshot_index_txn(c->snapshot),
		       driver->definition, driver->value, &count, &walk);

	if (r != FOUND)
		return r < 0 ? r : 0;
	while ((n = snapshot_walk_objects(c->snapshot, c->feed, walk, objects)) > 0)
		for (int i = 0; i < n; i++) {
			r = objects[i].entry.seq > newest ? 0 : candidates_add(c, &objects[i]);
			if (r < 0)
				return r;
		}
	return n;
}

static int candidates_accept(void *arg, struct bytes key, const struct index_entry *entry)
{
	const struct candidates *c = arg;

	return plan_accepts(c->plan, c->query, c->snapshot, key, entry);
}

int candidates_open(struct candidates *c)
{
	const struct plan *plan = c->plan;
	struct snapshot_object object;

	c->n = c->next = 0;
	if (!plan->postings && c->as_of)
		return as_of_walk(c->as_of, AS_OF_ALL, plan->prefix, c->query->from);
	if (!plan->postings)
		return names_open(c->snapshot, c->feed, plan->prefix, c->query->from,
			candidates_accept, c, &c->names);
	const struct plan_term *driver = &plan->terms[plan->driver];
	int r = 0;
	for (size_t i = 0; r == 0 && !plan->empty && i <= driver->n_more; i++)
		r = candidates_add_postings(c, &driver[i]);
	if (r == 0 && c->as_of) {
		r = as_of_walk(c->as_of, AS_OF_CHANGED, plan->prefix, c->query->from);
		while (r == 0 && (r = as_of_next(c->as_of, &object.key, &object.entry)) == FOUND)
			r = candidates_add(c, &object);
		r = r < 0 ? r : 0;
	}
	if (r == 0 && c->n > 1)
		qsort(c->objects, c->n, sizeof(*c->objects), candidates_compare);
	return r;
}

int candidates_next(struct candidates *c, struct bytes *ret_key, struct index_entry *ret_entry)
{
	int r;

	if (c->names)
		return names_next(c->names, ret_key, ret_entry);
	do {
		if (c->plan->postings && c->next == c->n)
			return END;
		if (c->plan->postings) {
			/* The bodies are spread over the whole journal, and the next ones are
			 * known. */
			if (c->n - c->next > AHEAD)
				snapshot_prefetch(c->snapshot, &c->objects[c->next + AHEAD].entry);
			*ret_key = c->objects[c->next].key;
			*ret_entry = c->objects[c->next++].entry;
			r = FOUND;
		} else {
			r = as_of_next(c->as_of, ret_key, ret_entry);
		}
		if (r == FOUND)
			r = candidates_accept(c, *ret_key, ret_entry);
	} while (r == NOT_FOUND);
	return r;
}

void candidates_close(struct candidates *c)
{
	names_close(&c->names);
	c->n = c->next = 0;
}

void candidates_release(struct candidates *c)
{
	candidates_close(c);
	free(c->objects);
	*c = (struct candidates){0};
}
