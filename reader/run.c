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
	const struct run_entry *x = a, *y = b;

	return bytes_compare(x->key, y->key);
}

static int run_add(struct run *run, struct bytes key, const struct index_entry *entry)
{
	if (run->n == run->capacity) {
		size_t capacity = run->capacity ? run->capacity * 2 : 128;
		struct run_entry *entries = realloc(run->entries, capacity * sizeof(*entries));

		if (!entries)
			return err_set(-ENOMEM, "sorting %zu objects", run->n);
		run->entries = entries;
		run->capacity = capacity;
	}
	run->entries[run->n++] = (struct run_entry){key, *entry};
	return 0;
}

int run_fill(struct run *run, struct snapshot *snapshot, const struct plan *plan,
	const struct query *query)
{
	CLEANUP(index_walk_close) struct index_walk *walk = NULL;
	const struct plan_term *driver = &plan->terms[plan->driver];
	struct index_entry entry;
	struct bytes key;
	uint64_t count;
	int r = index_postings(snapshot_index(snapshot), snapshot_index_txn(snapshot),
		driver->definition, driver->value, &count, &walk);

	run_reset(run);
	while (r == FOUND && (r = index_walk_next(walk, &key, &entry)) == FOUND) {
		if (!bytes_starts(key, plan->prefix) ||
			bytes_compare(key, buf_bytes(&query->from)) < 0)
			continue;
		int added = run_add(run, key, &entry);
		if (added < 0)
			return added;
	}
	if (r < 0)
		return r;
	if (run->n > 1)
		qsort(run->entries, run->n, sizeof(*run->entries), compare_keys);
	return 0;
}

int run_next(struct run *run, struct snapshot *snapshot, struct bytes *ret_key,
	struct index_entry *ret_entry)
{
	if (run->next == run->n)
		return END;
	/* What comes is known here, unlike in a walk: the bodies are spread over all of the journal. */
	if (run->n - run->next > AHEAD)
		snapshot_prefetch(snapshot, &run->entries[run->next + AHEAD].entry);
	*ret_key = run->entries[run->next].key;
	*ret_entry = run->entries[run->next].entry;
	run->next++;
	return FOUND;
}

void run_reset(struct run *run)
{
	run->n = run->next = 0;
}

void run_release(struct run *run)
{
	free(run->entries);
	*run = (struct run){0};
}
