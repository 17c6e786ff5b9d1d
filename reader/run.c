/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of one term, sorted by key. */
#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "reader/plan.h"

#define AHEAD 8 /* objects whose bodies are on their way from memory */

static int compare_keys(const void *a, const void *b)
{
	const struct snapshot_object *x = a, *y = b;

	return bytes_compare(x->key, y->key);
}

static int run_add(struct run *run, const struct snapshot_object *object)
{
	if (run->n == run->capacity) {
		size_t capacity = run->capacity ? run->capacity * 2 : 128;
		struct snapshot_object *objects =
			realloc(run->objects, capacity * sizeof(*objects));

		if (!objects)
			return err_set(-ENOMEM, "sorting %zu objects", run->n);
		run->objects = objects;
		run->capacity = capacity;
	}
	run->objects[run->n++] = *object;
	return 0;
}

/* Those of N objects that the query can want by their key. */
static int run_take(struct run *run, const struct plan *plan, const struct query *query,
	const struct snapshot_object *objects, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!bytes_starts(objects[i].key, plan->prefix) ||
			bytes_compare(objects[i].key, buf_bytes(&query->from)) < 0)
			continue;
		int r = run_add(run, &objects[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

int run_fill(struct run *run, struct snapshot *snapshot, uint32_t feed, const struct plan *plan,
	const struct query *query)
{
	CLEANUP(index_walk_close) struct index_walk *walk = NULL;
	const struct plan_term *driver = &plan->terms[plan->driver];
	struct snapshot_object objects[SNAPSHOT_OBJECTS_MAX];
	uint64_t count;
	int n;
	int r = index_postings(snapshot_index(snapshot), snapshot_index_txn(snapshot),
		driver->definition, driver->value, &count, &walk);

	run_reset(run);
	if (r != FOUND)
		return r < 0 ? r : 0;
	while ((n = snapshot_walk_objects(snapshot, feed, walk, objects, SNAPSHOT_OBJECTS_MAX)) > 0) {
		r = run_take(run, plan, query, objects, (size_t)n);
		if (r < 0)
			return r;
	}
	if (n < 0)
		return n;
	if (run->n > 1)
		qsort(run->objects, run->n, sizeof(*run->objects), compare_keys);
	return 0;
}

int run_next(struct run *run, struct snapshot *snapshot, struct bytes *ret_key,
	struct index_entry *ret_entry)
{
	if (run->next == run->n)
		return END;
	/* What comes is known here, unlike in a walk: the bodies are spread over all of the journal. */
	if (run->n - run->next > AHEAD)
		snapshot_prefetch(snapshot, &run->objects[run->next + AHEAD].entry);
	*ret_key = run->objects[run->next].key;
	*ret_entry = run->objects[run->next].entry;
	run->next++;
	return FOUND;
}

void run_reset(struct run *run)
{
	run->n = run->next = 0;
}

void run_release(struct run *run)
{
	free(run->objects);
	*run = (struct run){0};
}
