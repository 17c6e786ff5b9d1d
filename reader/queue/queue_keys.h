/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of nodes by byte strings. Each node begins with a queue_key and is followed by the
 * bytes and a NUL; it does not move. Queues find their items with it, limiters their counts.
 *
 *	struct failures { struct queue_key key; uint64_t n; };
 */
#ifndef READER_QUEUE_KEYS_H
#define READER_QUEUE_KEYS_H

#include "common/hashtable.h"

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
