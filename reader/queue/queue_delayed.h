/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The delayed keys of a queue: a binary heap ordered by time. The queue embeds a queue_timer in
 * each of its items; the heap stores pointers to them and each timer knows its place: any timer can
 * be removed or moved to an earlier time.
 */
#ifndef READER_QUEUE_DELAYED_H
#define READER_QUEUE_DELAYED_H

#include <stddef.h>
#include <stdint.h>

struct queue_timer {
	uint64_t ready_at; /* ns */
	uint64_t turn;     /* orders timers of the same time: first added, first out */
	size_t place;      /* in the heap, counted from 1; 0: not in the heap */
};

struct queue_delayed {
	struct queue_timer **timers;
	size_t n, room;
	uint64_t turns;
};

/* Adds TIMER, or moves it to an earlier READY_AT. */
int queue_delayed_add(struct queue_delayed *delayed, struct queue_timer *timer, uint64_t ready_at);
void queue_delayed_remove(struct queue_delayed *delayed, struct queue_timer *timer);
/* Returns the earliest timer, NULL if there is none. */
struct queue_timer *queue_delayed_first(const struct queue_delayed *delayed);
void queue_delayed_release(struct queue_delayed *delayed);

#endif
