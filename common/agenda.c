/* SPDX-License-Identifier: Apache-2.0 */
#include "common/agenda.h"

#include <stdlib.h>

#include "common/array.h"

void agenda_release(struct agenda *agenda)
{
	free(agenda->heap);
	free(agenda->touched);
	*agenda = (struct agenda){0};
}

int agenda_add(struct agenda *agenda, struct agenda_item *item)
{
	/* Room for all items, so that neither touching nor timing one can fail. */
	int r = ARRAY_ROOM(
		agenda->heap, agenda->n_items, agenda->heap_room, 1, "the times of an agenda");
	if (r >= 0)
		r = ARRAY_ROOM(agenda->touched, agenda->n_items, agenda->touched_room, 1,
			"the touched items of an agenda");
	if (r < 0)
		return r;
	agenda->n_items++;
	item->added = true;
	item->time_ns = UINT64_MAX;
	item->heap_at = item->touched_at = 0;
	return 0;
}

/* ---- the heap: each item is due no later than the two below it ---------- */

static void agenda_put(struct agenda *agenda, size_t at, struct agenda_item *item)
{
	agenda->heap[at] = item;
	item->heap_at = (uint32_t)at + 1;
}

static void agenda_up(struct agenda *agenda, size_t at, struct agenda_item *item)
{
	for (; at && agenda->heap[(at - 1) / 2]->time_ns > item->time_ns; at = (at - 1) / 2)
		agenda_put(agenda, at, agenda->heap[(at - 1) / 2]);
	agenda_put(agenda, at, item);
}

static void agenda_down(struct agenda *agenda, size_t at, struct agenda_item *item)
{
	for (size_t child; (child = 2 * at + 1) < agenda->n_heap; at = child) {
		if (child + 1 < agenda->n_heap &&
			agenda->heap[child + 1]->time_ns < agenda->heap[child]->time_ns)
			child++;
		if (agenda->heap[child]->time_ns >= item->time_ns)
			break;
		agenda_put(agenda, at, agenda->heap[child]);
	}
	agenda_put(agenda, at, item);
}

void agenda_set_time(struct agenda *agenda, struct agenda_item *item, uint64_t time_ns)
{
	if (item->time_ns == time_ns)
		return;
	if (item->heap_at) {
		size_t at = item->heap_at - 1;
		struct agenda_item *last = agenda->heap[--agenda->n_heap];

		item->heap_at = 0;
		if (last != item) {
			agenda_up(agenda, at, last);
			agenda_down(agenda, last->heap_at - 1, last);
		}
	}
	item->time_ns = time_ns;
	if (time_ns != UINT64_MAX)
		agenda_up(agenda, agenda->n_heap++, item);
}

void agenda_touch_due(struct agenda *agenda, uint64_t now_ns)
{
	while (agenda->n_heap && agenda->heap[0]->time_ns <= now_ns) {
		struct agenda_item *item = agenda->heap[0];

		agenda_set_time(agenda, item, UINT64_MAX);
		agenda_touch(agenda, item);
	}
}

/* ---- the list ----------------------------------------------------------- */

/* Items that were removed leave holes; without them there is room for all that are left. */
static void agenda_close_holes(struct agenda *agenda)
{
	size_t n = 0;

	for (size_t i = 0; i < agenda->n_touched; i++) {
		if (!agenda->touched[i])
			continue;
		agenda->touched[n] = agenda->touched[i];
		agenda->touched[n]->touched_at = (uint32_t)n + 1;
		n++;
	}
	agenda->n_touched = n;
}

void agenda_touch(struct agenda *agenda, struct agenda_item *item)
{
	if (item->touched_at || !item->added)
		return;
	if (agenda->n_touched == agenda->touched_room)
		agenda_close_holes(agenda);
	agenda->touched[agenda->n_touched++] = item;
	item->touched_at = (uint32_t)agenda->n_touched;
}

void agenda_settle(struct agenda *agenda, agenda_settle_fn *fn, void *arg)
{
	for (size_t i = 0; i < agenda->n_touched; i++) {
		struct agenda_item *item = agenda->touched[i];

		if (item && !fn(arg, item->owner)) {
			item->touched_at = 0;
			agenda->touched[i] = NULL;
		}
	}
	agenda_close_holes(agenda);
}

void agenda_remove(struct agenda *agenda, struct agenda_item *item)
{
	if (!item->added)
		return;
	agenda_set_time(agenda, item, UINT64_MAX);
	if (item->touched_at)
		agenda->touched[item->touched_at - 1] = NULL;
	item->added = false;
	agenda->n_items--;
}
