/* SPDX-License-Identifier: Apache-2.0 */
/* The children of place i are 2i and 2i + 1; places count from 1. */
#include "reader/queue/queue_internal.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/array.h"

static bool timer_is_before(const struct queue_timer *a, const struct queue_timer *b)
{
	return a->ready_at != b->ready_at ? a->ready_at < b->ready_at : a->turn < b->turn;
}

static struct queue_timer *heap_at(const struct queue_delayed *delayed, size_t place)
{
	return delayed->timers[place - 1];
}

static void heap_set(struct queue_delayed *delayed, size_t place, struct queue_timer *timer)
{
	delayed->timers[place - 1] = timer;
	timer->place = place;
}

/* Puts TIMER at PLACE or above it, wherever it keeps the order. */
static void heap_move_up(struct queue_delayed *delayed, struct queue_timer *timer, size_t place)
{
	for (; place > 1 && timer_is_before(timer, heap_at(delayed, place / 2)); place /= 2)
		heap_set(delayed, place, heap_at(delayed, place / 2));
	heap_set(delayed, place, timer);
}

int queue_delayed_add(struct queue_delayed *delayed, struct queue_timer *timer, uint64_t ready_at)
{
	if (timer->place && timer->ready_at <= ready_at)
		return 0;
	if (!timer->place) {
		int r = ARRAY_ROOM(delayed->timers, delayed->n, delayed->room, 1,
			"the delayed keys of a queue");

		if (r < 0)
			return r;
	}
	timer->ready_at = ready_at;
	timer->turn = delayed->turns++;
	heap_move_up(delayed, timer, timer->place ? timer->place : ++delayed->n);
	return 0;
}

void queue_delayed_remove(struct queue_delayed *delayed, struct queue_timer *timer)
{
	size_t place = timer->place;
	struct queue_timer *last = heap_at(delayed, delayed->n--);

	timer->place = 0;
	if (last == timer)
		return;
	if (place > 1 && timer_is_before(last, heap_at(delayed, place / 2))) {
		heap_move_up(delayed, last, place);
		return;
	}
	for (size_t child; (child = 2 * place) <= delayed->n; place = child) {
		if (child < delayed->n &&
			timer_is_before(heap_at(delayed, child + 1), heap_at(delayed, child)))
			child++;
		if (!timer_is_before(heap_at(delayed, child), last))
			break;
		heap_set(delayed, place, heap_at(delayed, child));
	}
	heap_set(delayed, place, last);
}

struct queue_timer *queue_delayed_first(const struct queue_delayed *delayed)
{
	return delayed->n ? delayed->timers[0] : NULL;
}

void queue_delayed_release(struct queue_delayed *delayed)
{
	free(delayed->timers);
	*delayed = (struct queue_delayed){0};
}
