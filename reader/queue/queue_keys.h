/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte strings and what is kept of each: a hash table of nodes that their owners allocate, with the
 * bytes (and a NUL) behind them. Queues find their items with it, limiters their counts.
 *
 *	struct failures { struct queue_key key; uint64_t n; };
 */
#ifndef READER_QUEUE_KEYS_H
#define READER_QUEUE_KEYS_H

#include <stddef.h>
#include <stdint.h>

struct queue_key {
	struct queue_key *next; /* in the same bucket */
	uint64_t hash;
	char *text; /* size bytes and a NUL */
	size_t size;
};

struct queue_keys {
	struct queue_key **buckets;
	size_t n_buckets; /* 0, or a power of two */
	size_t n;
};

/* NULL when it is not there. */
struct queue_key *queue_keys_find(const struct queue_keys *keys, const void *text, size_t size);

/* Adds a key that is not there, in a zeroed node of NODE_SIZE bytes that begins with its queue_key.
 * NULL: no memory. */
struct queue_key *queue_keys_add(
	struct queue_keys *keys, const void *text, size_t size, size_t node_size);

/* Takes it out and frees the node. */
void queue_keys_remove(struct queue_keys *keys, struct queue_key *key);

/* Frees all nodes. */
void queue_keys_release(struct queue_keys *keys);

#endif
