/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/sorted.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"

struct order_value {
	struct sort_value value;
	struct bytes text;
	uint64_t count;
};

/* One feed's walk. */
struct order {
	struct sorted *sorted;
	const struct candidates *candidates;
	struct index *index;
	struct txn *txn;
	const struct snapshot_feed *feed;
	size_t number; /* of the feed in the list */
	uint64_t seq;  /* the state as of it; UINT64_MAX: the newest */
	uint32_t definition;
	struct order_value *values; /* a heap, the first one first */
	size_t n, room;
	uint64_t entries; /* objects with a value */
};

/* ---- the index, and its worth ------------------------------------------------ */

/* The page's objects are searched among all objects in their order: the fewer the plan leaves, the
 * more are read for nothing. All objects changed since are read too. */
static bool order_is_cheaper(const struct order *order)
{
	const struct plan *plan = order->candidates->plan;
	uint64_t objects = order->feed->index.objects, candidates = objects;
	uint64_t changed =
		order->seq < order->feed->visible ? order->feed->visible - order->seq : 0;

	if (plan->empty)
		candidates = 0;
	else if (plan->postings)
		candidates = plan->terms[plan->driver].count;
	if (order->sorted->room > objects || plan->prefix.size || !candidates)
		return false;
	return order->sorted->room * objects / candidates + changed < candidates / 2;
}

/* ---- its values in order ------------------------------------------------ */

static void order_sift_down(struct order *order, size_t i)
{
	struct order_value *values = order->values, moved = values[i];

	for (size_t child; (child = 2 * i + 1) < order->n; i = child) {
		if (child + 1 < order->n &&
			sort_value_compare(&values[child + 1].value, &values[child].value) < 0)
			child++;
		if (sort_value_compare(&values[child].value, &moved.value) >= 0)
			break;
		values[i] = values[child];
	}
	values[i] = moved;
}

/* Reads the values of the index. Returns: 0; NOT_FOUND: one is kept as its beginning only. */
static int order_read_values(struct order *order)
{
	CLEANUP(index_rows_release)
	struct index_rows rows = {.txn = order->txn, .definition = order->definition};
	struct index_term_row row;
	struct sort_value value;
	int r = 0;

	while (r == 0 && (r = index_next_value(&rows, &row)) == FOUND) {
		if (!row.value.size)
			continue; /* as good as missing */
		if (!row.whole)
			return NOT_FOUND;
		order->entries += row.count;
		sort_value_read(row.value, &value);
		if (sorted_wants_value(order->sorted, &value))
			r = ARRAY_ADD(order->values, order->n, order->room,
				((struct order_value){value, row.value, row.count}),
				"the sorted values of an index");
	}
	return r == END ? 0 : r;
}

/* ---- objects ------------------------------------------------------------ */

/* Objects changed since are offered by order_offer_all(). */
static int order_offer(struct order *order, struct bytes key, const struct index_entry *entry)
{
	const struct plan *plan = order->candidates->plan;
	struct sorted *sorted = order->sorted;

	if (entry->object && entry->seq > order->seq)
		return 0;
	int r = plan_accepts(plan, sorted->query, sorted->snapshot, key, entry);
	if (r == FOUND)
		r = sorted_offer(sorted, plan, order->number, key, entry);
	return r == NOT_FOUND ? 0 : r;
}

/* Walks the feed's names from the first possible one with VALUE. The first one rejected by
 * sorted_wants() ends the walk. */
static int order_names(
	const struct order *order, const struct sort_value *value, struct index_walk **ret_walk)
{
	const struct query *query = order->sorted->query;
	bool inside = query->continues && sort_value_compare(value, &query->after.value) == 0;

	return index_names(order->index, order->txn, order->feed->definition.id, BYTES_NONE,
		inside ? query->next_key : BYTES_NONE, ret_walk);
}

/* By the value's postings: in no order, so all of them. */
static int order_offer_postings(struct order *order, const struct order_value *value)
{
	CLEANUP(index_walk_close) struct index_walk *walk = NULL;
	struct index_entry entry;
	struct bytes key;
	uint64_t count;
	int r = index_postings(
		order->index, order->txn, order->definition, value->text, &count, &walk);

	while (r == FOUND && (r = index_walk_next(walk, &key, &entry)) == FOUND)
		if (sorted_wants(order->sorted, &value->value, key))
			r = order_offer(order, key, &entry);
	return r < 0 ? r : 0;
}

/* By the names in order: until the page is full of better ones. */
static int order_offer_names(struct order *order, const struct order_value *value)
{
	CLEANUP(index_walk_close) struct index_walk *walk = NULL;
	struct index_entry entry;
	struct bytes key;
	int r = order_names(order, &value->value, &walk);

	while (r == FOUND && (r = index_walk_next(walk, &key, &entry)) == FOUND) {
		if (!sorted_wants(order->sorted, &value->value, key))
			return 0;
		r = index_has(
			order->index, order->txn, order->definition, value->text, entry.object);
		if (r == FOUND)
			r = order_offer(order, key, &entry);
		if (r == NOT_FOUND)
			r = FOUND;
	}
	return r < 0 ? r : 0;
}

/* Objects without a value come first, and most are in no postings: the names are walked until all
 * are found. */
static int order_offer_missing(struct order *order)
{
	CLEANUP(index_walk_close) struct index_walk *walk = NULL;
	const struct sort_value missing = {.kind = SORT_MISSING};
	uint64_t left = order->feed->index.objects - order->entries;
	struct sort_value value;
	struct index_entry entry;
	struct record record;
	struct bytes key;

	if (!left || !sorted_wants_value(order->sorted, &missing))
		return 0;
	int r = order_names(order, &missing, &walk);
	while (r == 0 && left && (r = index_walk_next(walk, &key, &entry)) == FOUND) {
		r = snapshot_record(
			order->sorted->snapshot, order->feed->definition.id, key, &entry, &record);
		if (r == FOUND)
			r = sorted_value(order->sorted, record.body, &value);
		if (r != 0 || value.kind != SORT_MISSING)
			continue;
		if (!sorted_wants(order->sorted, &missing, key))
			return 0;
		left--;
		r = order_offer(order, key, &entry);
	}
	return r < 0 ? r : 0;
}

/* Returns: 0; NOT_FOUND: the index can't give the order. */
static int order_offer_all(struct order *order)
{
	struct as_of *as_of = order->candidates->as_of;
	struct index_entry entry;
	struct bytes key;
	int r = order_read_values(order);

	if (r != 0)
		return r;
	for (size_t i = order->n / 2; i-- > 0;)
		order_sift_down(order, i);
	r = as_of ? as_of_walk(as_of, AS_OF_CHANGED, BYTES_NONE, BYTES_NONE) : END;
	while (r == 0 && (r = as_of_next(as_of, &key, &entry)) == FOUND)
		r = order_offer(order, key, &entry);
	if (r >= 0)
		r = order_offer_missing(order);
	while (r == 0 && order->n) {
		struct order_value first = order->values[0];

		if (!sorted_wants_value(order->sorted, &first.value))
			break; /* nor any after it */
		uint64_t names = order->sorted->room * order->feed->index.objects / first.count;
		order->values[0] = order->values[--order->n];
		if (order->n)
			order_sift_down(order, 0);
		r = first.count > 2 * names ? order_offer_names(order, &first)
					    : order_offer_postings(order, &first);
	}
	return r;
}

int sorted_walk(struct sorted *sorted, const struct candidates *candidates, size_t feed)
{
	struct as_of *as_of = candidates->as_of;
	struct index_definition definition = {.id = 0};
	struct order order = {.sorted = sorted,
		.candidates = candidates,
		.index = snapshot_index(sorted->snapshot),
		.txn = snapshot_index_txn(sorted->snapshot),
		.feed = &sorted->feeds[feed],
		.number = feed,
		.seq = as_of ? as_of_seq(as_of) : UINT64_MAX};

	if (path_is_plural(sorted->query->sort_path) || !order_is_cheaper(&order))
		return NOT_FOUND;
	int r = plan_find_index(
		sorted->snapshot, order.feed, path_text(sorted->query->sort_path), &definition);
	order.definition = definition.id;
	if (r == FOUND)
		r = order_offer_all(&order);
	free(order.values);
	return r;
}
