/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of many items (feeds, connections) in a turn of the loop, at no cost for idle ones: a list
 * of the touched items, and a heap of the others' times.
 *
 *	timer_queue_add(queue, &item)          once; reserves room: nothing later can fail
 *	timer_queue_touch(queue, &item)        something happened: the item is on the list
 *	timer_queue_set_time(queue, &item, t)  calls the item at T
 *	for (i = 0; i < timer_queue_touched(queue); i++) ... timer_queue_owner(queue, i) ...
 *	timer_queue_settle(queue, fn, arg)     takes items off the list if FN returns false
 */
#ifndef COMMON_TIMER_QUEUE_H
#define COMMON_TIMER_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Embedded in its owner (OWNER). Zeroed but for OWNER before timer_queue_add(). */
struct timer_queue_item {
	void *owner;
	uint64_t time_ns;    /* UINT64_MAX: none */
	uint32_t heap_at;    /* index + 1 in the heap, 0: not in it */
	uint32_t touched_at; /* index + 1 in the list, 0: not on it */
	bool added;
};

/* Begins as zeroes. */
struct timer_queue {
	struct timer_queue_item **heap, **touched;
	size_t n_heap, n_touched, n_items, heap_room, touched_room;
};

void timer_queue_release(struct timer_queue *queue);

int timer_queue_add(struct timer_queue *queue, struct timer_queue_item *item);
/* Takes ITEM off list and heap; also if never added. */
void timer_queue_remove(struct timer_queue *queue, struct timer_queue_item *item);

void timer_queue_touch(struct timer_queue *queue, struct timer_queue_item *item);
void timer_queue_set_time(
	struct timer_queue *queue, struct timer_queue_item *item, uint64_t time_ns);

/* Touches every due item. */
void timer_queue_touch_due(struct timer_queue *queue, uint64_t now_ns);
/* Returns the earliest time, UINT64_MAX: none. */
static inline uint64_t timer_queue_next(const struct timer_queue *queue)
{
	return queue->n_heap ? queue->heap[0]->time_ns : UINT64_MAX;
}

/* Returns the owner of a due item, and clears its time; NULL: none is due. */
static inline void *timer_queue_take_due(struct timer_queue *queue, uint64_t now_ns)
{
	struct timer_queue_item *item = timer_queue_next(queue) <= now_ns ? queue->heap[0] : NULL;

	if (item)
		timer_queue_set_time(queue, item, UINT64_MAX);
	return item ? item->owner : NULL;
}

/* The list grows at its end while it is walked. */
static inline size_t timer_queue_touched(const struct timer_queue *queue)
{
	return queue->n_touched;
}
/* Returns the owner of the I-th item on the list; NULL: removed. */
static inline void *timer_queue_owner(const struct timer_queue *queue, size_t i)
{
	return queue->touched[i] ? queue->touched[i]->owner : NULL;
}
/* Calls FN for each owner on the list, and takes the owner off if FN returns false. */
typedef bool timer_queue_settle_fn(void *arg, void *owner);
void timer_queue_settle(struct timer_queue *queue, timer_queue_settle_fn *fn, void *arg);

#endif
