/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap; children of place i are 2i and 2i + 1, places count from 1. */
#include <errno.h>
#include <stdlib.h>

#include "common/err.h"
#include "reader/queue/queue_parts.h"

static bool comes_before(const struct queue_item *a, const struct queue_item *b)
{
	return a->ready_at != b->ready_at ? a->ready_at < b->ready_at : a->turn < b->turn;
}

static struct queue_item *at(const struct queue_delayed *delayed, size_t place)
{
	return delayed->items[place - 1];
}

static void put(struct queue_delayed *delayed, size_t place, struct queue_item *item)
{
	delayed->items[place - 1] = item;
	item->place = place;
}

static void move_up(struct queue_delayed *delayed, struct queue_item *item, size_t place)
{
	for (; place > 1 && comes_before(item, at(delayed, place / 2)); place /= 2)
		put(delayed, place, at(delayed, place / 2));
	put(delayed, place, item);
}

static void move_down(struct queue_delayed *delayed, struct queue_item *item, size_t place)
{
	for (size_t child; (child = 2 * place) <= delayed->n; place = child) {
		if (child < delayed->n && comes_before(at(delayed, child + 1), at(delayed, child)))
			child++;
		if (!comes_before(at(delayed, child), item))
			break;
		put(delayed, place, at(delayed, child));
	}
	put(delayed, place, item);
}

static int make_room(struct queue_delayed *delayed)
{
	if (delayed->n < delayed->capacity)
		return 0;
	size_t capacity = delayed->capacity ? delayed->capacity * 2 : 64;
	struct queue_item **items = realloc(delayed->items, capacity * sizeof(struct queue_item *));

	if (!items)
		return err_set(-ENOMEM, "%zu keys for later", delayed->n);
	delayed->items = items;
	delayed->capacity = capacity;
	return 0;
}

int queue_delayed_add(struct queue_delayed *delayed, struct queue_item *item, uint64_t ready_at)
{
	if (item->place && item->ready_at <= ready_at)
		return 0;
	int r = item->place ? 0 : make_room(delayed);
	if (r < 0)
		return r;
	item->ready_at = ready_at;
	item->turn = delayed->turns++;
	move_up(delayed, item, item->place ? item->place : ++delayed->n);
	return 0;
}

void queue_delayed_remove(struct queue_delayed *delayed, struct queue_item *item)
{
	size_t place = item->place;
	struct queue_item *last = at(delayed, delayed->n--);

	item->place = 0;
	if (last == item)
		return;
	if (place > 1 && comes_before(last, at(delayed, place / 2)))
		move_up(delayed, last, place);
	else
		move_down(delayed, last, place);
}

struct queue_item *queue_delayed_first(const struct queue_delayed *delayed)
{
	return delayed->n ? delayed->items[0] : NULL;
}

void queue_delayed_release(struct queue_delayed *delayed)
{
	free(delayed->items);
	*delayed = (struct queue_delayed){0};
}
