/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/sorted.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"

int sorted_new(struct snapshot *snapshot, const struct snapshot_feed *feeds,
	const struct query *query, struct sorted **ret_sorted)
{
	struct sorted *sorted = calloc(1, sizeof(*sorted));

	if (!sorted)
		return err_set(-ENOMEM, "sorting a list");
	*sorted = (struct sorted){.snapshot = snapshot,
		.feeds = feeds,
		.query = query,
		.room = query->limit && query->limit < UINT64_MAX ? query->limit + 1 : UINT64_MAX};
	*ret_sorted = sorted;
	return 0;
}

void sorted_free(struct sorted **sorted)
{
	if (!*sorted)
		return;
	struct sorted *s = TAKE(*sorted);

	free(s->items);
	free(s);
}

/* ---- order -------------------------------------------------------------- */

static int compare_places(const struct sort_value *a_value, struct bytes a_key,
	const struct sort_value *b_value, struct bytes b_key)
{
	int r = sort_value_compare(a_value, b_value);

	return r ? r : bytes_compare(a_key, b_key);
}

static int compare_items(const void *a, const void *b)
{
	const struct sorted_item *x = a, *y = b;

	return compare_places(&x->value, x->key, &y->value, y->key);
}

bool sorted_wants_value(const struct sorted *sorted, const struct sort_value *value)
{
	const struct query *query = sorted->query;

	if (query->continues && sort_value_compare(value, &query->after.value) < 0)
		return false;
	return sorted->n < sorted->room || sort_value_compare(value, &sorted->items[0].value) <= 0;
}

bool sorted_wants(const struct sorted *sorted, const struct sort_value *value, struct bytes key)
{
	const struct sorted_item *last = sorted->items;
	const struct query *query = sorted->query;

	if (query->continues &&
		compare_places(value, key, &query->after.value, query->after.key) <= 0)
		return false;
	return sorted->n < sorted->room || compare_places(value, key, &last->value, last->key) < 0;
}

/* ---- the items of a page ------------------------------------------------ */

/* Moves the item at place I of the heap down to where it belongs. */
static void sorted_sift_down(struct sorted *sorted, size_t i)
{
	struct sorted_item item = sorted->items[i];

	for (size_t child; (child = 2 * i + 1) < sorted->n; i = child) {
		if (child + 1 < sorted->n &&
			compare_items(&sorted->items[child + 1], &sorted->items[child]) > 0)
			child++;
		if (compare_items(&item, &sorted->items[child]) >= 0)
			break;
		sorted->items[i] = sorted->items[child];
	}
	sorted->items[i] = item;
}

int sorted_value(const struct sorted *sorted, struct bytes body, struct sort_value *ret_value)
{
	char scratch[VALUE_SCRATCH];
	struct bytes text = BYTES_NONE;
	struct value value;
	int r = path_first(sorted->query->sort_path, body, &value);

	if (r == FOUND)
		r = value_scalar_text(&value, scratch, &text);
	if (r < 0)
		return r;
	sort_value_read(text, ret_value);
	/* Only numbers are formatted into SCRATCH, and of those nothing is borrowed. */
	REQUIRE(ret_value->kind != SORT_TEXT || text.data != scratch);
	return 0;
}

int sorted_offer(struct sorted *sorted, const struct plan *plan, size_t feed, struct bytes key,
	const struct index_entry *entry)
{
	struct sorted_item item = {.key = key, .entry = *entry, .feed = feed};
	struct record record;
	int r = snapshot_record(
		sorted->snapshot, sorted->feeds[feed].definition.id, key, entry, &record);

	sorted->read++;
	if (r == FOUND)
		r = sorted_value(sorted, record.body, &item.value);
	if (r == NOT_FOUND || (r == 0 && !sorted_wants(sorted, &item.value, key)))
		return 0;
	if (r == 0)
		r = plan_matches(plan, sorted->query, &record, !entry->object);
	if (r != FOUND)
		return r == NOT_FOUND ? 0 : r;
	if (sorted->n == sorted->room) {
		sorted->items[0] = item;
		sorted_sift_down(sorted, 0);
		return 0;
	}
	r = ARRAY_ADD(sorted->items, sorted->n, sorted->items_room, item, "a sorted list");
	if (r < 0)
		return r;
	/* When the page is full, it becomes a heap. */
	for (size_t i = sorted->n / 2; sorted->n == sorted->room && i-- > 0;)
		sorted_sift_down(sorted, i);
	return 0;
}

/* ---- giving out --------------------------------------------------------- */

void sorted_end(struct sorted *sorted)
{
	if (sorted->n > 1)
		qsort(sorted->items, sorted->n, sizeof(*sorted->items), compare_items);
	sorted->next = 0;
}

int sorted_next(struct sorted *sorted, const struct sorted_item **ret_item)
{
	if (sorted->next == sorted->n)
		return END;
	*ret_item = &sorted->items[sorted->next++];
	return FOUND;
}
