/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue group: queue.c and limiter.c (kinf_queue.h), queue_clock.c (time), queue_keys.c (a
 * table by byte strings).
 */
#ifndef READER_QUEUE_QUEUE_INTERNAL_H
#define READER_QUEUE_QUEUE_INTERNAL_H

#include "common/hashtable.h"
#include "reader/kinf.h"

/* ---- time (queue_clock.c) ----------------------------------------------- */

/*
 * The machine's monotonic clock, or one stepped by a test. A queue subscribes to its stepped clock,
 * and each step wakes the queue's sleeping threads.
 *
 * Order of locks: first the clock's lock of `users`, then a queue's. A clock is read without a
 * lock.
 */
struct clock_user {
	struct clock_user *next;
	void (*wake)(void *arg);
	void *arg;
};

/* CLOCK may be NULL in all of these: the machine's, without subscribers. */
uint64_t clock_read(const struct kinf_clock *clock);
void clock_subscribe(struct kinf_clock *clock, struct clock_user *user);
/* When it returns, wake() is not called any more. */
void clock_unsubscribe(struct kinf_clock *clock, struct clock_user *user);

/* ---- keys (queue_keys.c) ------------------------------------------------ */

/*
 * A table of nodes by byte strings. Each node begins with a queue_key and is followed by the
 * bytes and a NUL; it does not move. Queues find their items with it, limiters their counts.
 *
 *	struct failures { struct queue_key key; uint64_t n; };
 */
struct queue_key {
	char *text; /* size bytes and a NUL */
	size_t size;
};

struct queue_keys {
	struct hashtable table;
	uint64_t seed;
};

int queue_keys_init(struct queue_keys *keys);
/* Frees all nodes. */
void queue_keys_release(struct queue_keys *keys);

/* Returns the node of a key, NULL if there is none. */
struct queue_key *queue_keys_find(const struct queue_keys *keys, const void *text, size_t size);

/* Finds the node of a key, or adds one of NODE_SIZE bytes, zeroed but for the queue_key. Fails
 * only with -ENOMEM. */
int queue_keys_get(struct queue_keys *keys, const void *text, size_t size, size_t node_size,
	struct queue_key **ret_key);

/* Removes and frees a node. */
void queue_keys_remove(struct queue_keys *keys, struct queue_key *key);

#endif
