/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Knows which of many items (feeds, connections) have something to do, so that a turn of the
 * loop costs nothing for the others: a list of the items that something happened to in this
 * turn, and a heap of the times at which the others want to be called.
 *
 *	agenda_add(agenda, &item)          once; room for it is taken here, so that the rest can't fail
 *	agenda_touch(agenda, &item)        something happened: the item is on the list
 *	agenda_set_time(agenda, &item, t)  it wants to be called at T
 *	for (i = 0; i < agenda_touched(agenda); i++) ... agenda_owner(agenda, i) ...
 *	agenda_settle(agenda, fn, arg)     takes those off the list for which FN returns false
 */
#ifndef COMMON_AGENDA_H
#define COMMON_AGENDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Embedded in its owner, to which OWNER points. Zeroed but for OWNER before
 * agenda_add(). */
struct agenda_item {
	void *owner;
	uint64_t time_ns;    /* UINT64_MAX: none */
	uint32_t heap_at;    /* index + 1 in the heap, 0: not in it */
	uint32_t touched_at; /* index + 1 in the list, 0: not on it */
	bool added;
};

/* Begins as zeroes. */
struct agenda {
	struct agenda_item **heap, **touched;
	size_t n_heap, n_touched, n_items, heap_room, touched_room;
};

void agenda_release(struct agenda *agenda);

int agenda_add(struct agenda *agenda, struct agenda_item *item);
/* Takes ITEM off list and heap; also when it was never added. */
void agenda_remove(struct agenda *agenda, struct agenda_item *item);

void agenda_touch(struct agenda *agenda, struct agenda_item *item);
void agenda_set_time(struct agenda *agenda, struct agenda_item *item, uint64_t time_ns);

/* Touches every item that is due. */
void agenda_touch_due(struct agenda *agenda, uint64_t now_ns);
/* The earliest time, UINT64_MAX: none. */
static inline uint64_t agenda_next(const struct agenda *agenda)
{
	return agenda->n_heap ? agenda->heap[0]->time_ns : UINT64_MAX;
}

/* Returns the owner of an item that is due, and takes its time away; NULL: none is due. */
static inline void *agenda_take_due(struct agenda *agenda, uint64_t now_ns)
{
	struct agenda_item *item = agenda_next(agenda) <= now_ns ? agenda->heap[0] : NULL;

	if (item)
		agenda_set_time(agenda, item, UINT64_MAX);
	return item ? item->owner : NULL;
}

/* The list grows at its end while it is walked. */
static inline size_t agenda_touched(const struct agenda *agenda)
{
	return agenda->n_touched;
}
/* The owner of the I-th item on the list; NULL: it has been removed. */
static inline void *agenda_owner(const struct agenda *agenda, size_t i)
{
	return agenda->touched[i] ? agenda->touched[i]->owner : NULL;
}
/* Calls FN for each owner on the list, and takes those off for which it returns false. */
typedef bool agenda_settle_fn(void *arg, void *owner);
void agenda_settle(struct agenda *agenda, agenda_settle_fn *fn, void *arg);

#endif
