/* SPDX-License-Identifier: Apache-2.0 */
#include "common/timer_queue.h"

#include <stdlib.h>

#include "common/array.h"

void timer_queue_release(struct timer_queue *queue)
{
	free(queue->heap);
	free(queue->touched);
	*queue = (struct timer_queue){0};
}

int timer_queue_add(struct timer_queue *queue, struct timer_queue_item *item)
{
	/* Room for all items: touching and timing can't fail. */
	int r = ARRAY_ROOM(
		queue->heap, queue->n_items, queue->heap_room, 1, "the times of a timer queue");
	if (r >= 0)
		r = ARRAY_ROOM(queue->touched, queue->n_items, queue->touched_room, 1,
			"the touched items of a timer queue");
	if (r < 0)
		return r;
	queue->n_items++;
	item->added = true;
	item->time_ns = UINT64_MAX;
	item->heap_at = item->touched_at = 0;
	return 0;
}

/* ---- the heap: each item is due no later than the two below it ---------- */

static void timer_queue_put(struct timer_queue *queue, size_t at, struct timer_queue_item *item)
{
	queue->heap[at] = item;
	item->heap_at = (uint32_t)at + 1;
}

static void timer_queue_up(struct timer_queue *queue, size_t at, struct timer_queue_item *item)
{
	for (; at && queue->heap[(at - 1) / 2]->time_ns > item->time_ns; at = (at - 1) / 2)
		timer_queue_put(queue, at, queue->heap[(at - 1) / 2]);
	timer_queue_put(queue, at, item);
}

static void timer_queue_down(struct timer_queue *queue, size_t at, struct timer_queue_item *item)
{
	for (size_t child; (child = 2 * at + 1) < queue->n_heap; at = child) {
		if (child + 1 < queue->n_heap &&
			queue->heap[child + 1]->time_ns < queue->heap[child]->time_ns)
			child++;
		if (queue->heap[child]->time_ns >= item->time_ns)
			break;
		timer_queue_put(queue, at, queue->heap[child]);
	}
	timer_queue_put(queue, at, item);
}

void timer_queue_set_time(
	struct timer_queue *queue, struct timer_queue_item *item, uint64_t time_ns)
{
	if (item->time_ns == time_ns)
		return;
	if (item->heap_at) {
		size_t at = item->heap_at - 1;
		struct timer_queue_item *last = queue->heap[--queue->n_heap];

		item->heap_at = 0;
		if (last != item) {
			timer_queue_up(queue, at, last);
			timer_queue_down(queue, last->heap_at - 1, last);
		}
	}
	item->time_ns = time_ns;
	if (time_ns != UINT64_MAX)
		timer_queue_up(queue, queue->n_heap++, item);
}

void timer_queue_touch_due(struct timer_queue *queue, uint64_t now_ns)
{
	while (queue->n_heap && queue->heap[0]->time_ns <= now_ns) {
		struct timer_queue_item *item = queue->heap[0];

		timer_queue_set_time(queue, item, UINT64_MAX);
		timer_queue_touch(queue, item);
	}
}

/* ---- the list ----------------------------------------------------------- */

/* Removed items leave holes; without them there is room for the rest. */
static void timer_queue_close_holes(struct timer_queue *queue)
{
	size_t n = 0;

	for (size_t i = 0; i < queue->n_touched; i++) {
		if (!queue->touched[i])
			continue;
		queue->touched[n] = queue->touched[i];
		queue->touched[n]->touched_at = (uint32_t)n + 1;
		n++;
	}
	queue->n_touched = n;
}

void timer_queue_touch(struct timer_queue *queue, struct timer_queue_item *item)
{
	if (item->touched_at || !item->added)
		return;
	if (queue->n_touched == queue->touched_room)
		timer_queue_close_holes(queue);
	queue->touched[queue->n_touched++] = item;
	item->touched_at = (uint32_t)queue->n_touched;
}

void timer_queue_settle(struct timer_queue *queue, timer_queue_settle_fn *fn, void *arg)
{
	for (size_t i = 0; i < queue->n_touched; i++) {
		struct timer_queue_item *item = queue->touched[i];

		if (item && !fn(arg, item->owner)) {
			item->touched_at = 0;
			queue->touched[i] = NULL;
		}
	}
	timer_queue_close_holes(queue);
}

void timer_queue_remove(struct timer_queue *queue, struct timer_queue_item *item)
{
	if (!item->added)
		return;
	timer_queue_set_time(queue, item, UINT64_MAX);
	if (item->touched_at)
		queue->touched[item->touched_at - 1] = NULL;
	item->added = false;
	queue->n_items--;
}
