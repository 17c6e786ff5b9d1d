/* SPDX-License-Identifier: Apache-2.0 */
/* The indexes of a feed, and their values. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "reader/past.h"
#include "store/index/terms.h"

/* Values of several feeds are gathered, sorted and summed; those of one feed come as they are. */
struct index_values {
	struct buf text;
	struct index_value {
		size_t offset, size;
		uint64_t count;
	} * values;
	size_t n, room;
};

struct index_value_walk {
	kinf_value_fn *fn;
	void *arg;
	struct index_values *gather; /* NULL: straight to FN */
	bool stopped;
};

static int values_add(struct index_values *all, struct bytes value, uint64_t count)
{
	const struct index_value gathered = {all->text.size, value.size, count};

	buf_bytes_put(&all->text, value);
	int r = buf_error(&all->text);
	return r < 0 ? r : ARRAY_ADD(all->values, all->n, all->room, gathered, "index values");
}

static int values_compare(const void *a, const void *b, void *arg)
{
	const struct index_value *x = a, *y = b;
	const uint8_t *text = arg;

	return bytes_compare(BYTES(text + x->offset, x->size), BYTES(text + y->offset, y->size));
}

static int values_give_sums(struct index_values *all, struct index_value_walk *walk)
{
	const uint8_t *text = all->text.data;

	if (!all->n)
		return 0;
	qsort_r(all->values, all->n, sizeof(*all->values), values_compare, all->text.data);
	for (size_t i = 0, next; i < all->n; i = next) {
		const struct index_value *v = &all->values[i];
		uint64_t count = v->count;

		for (next = i + 1;
			next < all->n && values_compare(v, &all->values[next], all->text.data) == 0;
			next++)
			count += all->values[next].count;
		int r = walk->fn(walk->arg, (const char *)text + v->offset, v->size, count);
		if (r != 0)
			return r;
	}
	return 0;
}

/* Returns whether one of the first I terms of LIST is its term I. */
static bool values_has_before(const struct term_list *list, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (bytes_equal(list->terms[k].value, list->terms[i].value))
			return true;
	return false;
}

static int values_of_now(struct snapshot *snapshot, const struct index_definition *definition,
	struct bytes prefix, struct index_value_walk *walk)
{
	CLEANUP(index_rows_release)
	struct index_rows rows = {.txn = snapshot_index_txn(snapshot),
		.definition = definition->id,
		.prefix = prefix};
	struct index_term_row row;
	int r;

	while ((r = index_next_value(&rows, &row)) == FOUND) {
		if (walk->gather)
			r = values_add(walk->gather, row.value, row.count);
		else
			r = walk->fn(walk->arg, row.value.data, row.value.size, row.count);
		walk->stopped = r != 0;
		if (r != 0)
			return r;
	}
	return r == END ? 0 : r;
}

/* Gathers the values of DEFINITION in the objects of the snapshot's event: the index has those of
 * now. */
static int values_of_past(struct kinf_snapshot *snapshot, const struct snapshot_feed *feed,
	const struct index_definition *definition, struct bytes prefix, struct index_values *all)
{
	CLEANUP(as_of_free) struct as_of *as_of = NULL;
	CLEANUP(terms_free) struct terms *terms = NULL;
	CLEANUP(term_list_release) struct term_list list = {0};
	struct index_entry entry;
	struct record record;
	struct bytes key;
	int r = terms_new(&terms);

	if (r == 0)
		r = terms_add(terms, definition);
	if (r == 0)
		r = past_open(snapshot->snapshot, feed, snapshot->at_event, &as_of,
			snapshot->past_reason, sizeof(snapshot->past_reason));
	if (r == 0)
		r = as_of_walk(as_of, AS_OF_ALL, BYTES_NONE, BYTES_NONE);
	while (r == 0 && (r = as_of_next(as_of, &key, &entry)) == FOUND) {
		r = snapshot_record(snapshot->snapshot, feed->definition.id, key, &entry, &record);
		if (r == FOUND)
			r = terms_collect(terms, &record, &list);
		for (size_t i = 0; r == 0 && i < list.n; i++)
			if (bytes_starts(list.terms[i].value, prefix) &&
				!values_has_before(&list, i))
				r = values_add(all, list.terms[i].value, 1);
	}
	return r == END ? 0 : r;
}

int kinf_index_values(struct kinf_snapshot *snapshot, const char *feed, const char *index,
	const char *prefix, kinf_value_fn *fn, void *arg)
{
	CHECK_OBJ(snapshot, KINF_SNAPSHOT_MAGIC);
	struct index_values all = {.n = 0};
	struct index_value_walk walk = {.fn = fn, .arg = arg};
	const struct feed_set *set;
	struct index_definition definition;
	int r = kinf_held(snapshot);

	if (r == 0)
		r = feed_set_get_named(snapshot, feed, &set);
	if (r == 0 && !index)
		r = err_say(-EINVAL, "the name of the index is NULL");
	if (r != 0)
		return kinf_result_of(snapshot, r);
	walk.gather = set->n > 1 || snapshot->at_event ? &all : NULL;
	for (size_t i = 0; r == 0 && i < set->n; i++) {
		if (!set->feeds[i].index.feed) { /* the processor does not know it yet */
			r = AGAIN;
			break;
		}
		r = snapshot_definition(
			snapshot->snapshot, set->feeds[i].definition.id, index, &definition);
		if (r == FOUND && snapshot->at_event)
			r = values_of_past(snapshot, &set->feeds[i], &definition,
				bytes_str(prefix ? prefix : ""), &all);
		else if (r == FOUND)
			r = values_of_now(snapshot->snapshot, &definition,
				bytes_str(prefix ? prefix : ""), &walk);
	}
	if (r == NOT_FOUND && !walk.stopped)
		r = err_say(ERR_NO_INDEX,
			"feed '%s' has no index '%s'; 'kinf index %s' lists those there are", feed,
			index, feed);
	if (r == 0 && walk.gather)
		r = values_give_sums(&all, &walk);
	buf_release(&all.text);
	free(all.values);
	return kinf_result_of(snapshot, r);
}

/* ---- indexes ------------------------------------------------------------ */

struct index_walk_feeds {
	struct kinf_snapshot *snapshot;
	const struct feed_set *set;
	size_t feed; /* in the set: the current one */
	kinf_index_fn *fn;
	void *arg;
};

static int values_count_one(void *arg, const char *value, size_t size, uint64_t count)
{
	(void)value;
	(void)size;
	(void)count;
	++*(uint64_t *)arg;
	return 0;
}

/* Gives sums over the definitions of one name, from one of the feeds on. */
static int definition_give(struct index_walk_feeds *walk, const struct index_definition *definition)
{
	struct snapshot *snapshot = walk->snapshot->snapshot;
	struct index_values all = {.n = 0};
	bool gathers = walk->set->n > 1; /* else the values are all different */
	uint64_t values = 0, entries = 0;
	struct index_value_walk count = {.fn = values_count_one, .arg = &values};
	struct index_definition same;
	bool filling = false;
	int r = 0;

	if (definition->dropping)
		return 0;
	for (size_t i = 0; i < walk->set->n && r >= 0; i++) {
		r = snapshot_definition(
			snapshot, walk->set->feeds[i].definition.id, definition->name, &same);
		if (r < 0 || r == NOT_FOUND)
			continue;
		if (i < walk->feed) /* it was given out with this one */
			return 0;
		filling |= r == AGAIN;
		CLEANUP(index_rows_release)
		struct index_rows rows = {
			.txn = snapshot_index_txn(snapshot), .definition = same.id};
		struct index_term_row row;
		while (r >= 0 && (r = index_next_value(&rows, &row)) == FOUND) {
			entries += row.count;
			values += !gathers;
			if (gathers)
				r = values_add(&all, row.value, row.count);
		}
	}
	if (r >= 0 && gathers)
		r = values_give_sums(&all, &count);
	buf_release(&all.text);
	free(all.values);
	if (r < 0)
		return r;
	return walk->fn(walk->arg, definition->name, definition->paths, values, entries, !filling);
}

int kinf_index_list(struct kinf_snapshot *snapshot, const char *feed, kinf_index_fn *fn, void *arg)
{
	CHECK_OBJ(snapshot, KINF_SNAPSHOT_MAGIC);
	struct index_walk_feeds walk = {.snapshot = snapshot, .fn = fn, .arg = arg};
	const struct index_definition *all;
	size_t n;
	int r = kinf_held(snapshot);

	if (r == 0)
		r = feed_set_get_named(snapshot, feed, &walk.set);
	for (; r == 0 && walk.feed < walk.set->n; walk.feed++) {
		r = snapshot_definitions(
			snapshot->snapshot, walk.set->feeds[walk.feed].definition.id, &all, &n);
		for (size_t i = 0; r == 0 && i < n; i++)
			r = definition_give(&walk, &all[i]);
	}
	return kinf_result_of(snapshot, r);
}
