/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/queue/queue_keys.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_BUCKETS 64

/* FNV-1a; what follows it spreads the high bits, because buckets are taken from the low ones. */
static uint64_t hash_of(const void *text, size_t size)
{
	const uint8_t *at = text;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash ^ hash >> 32;
}

static struct queue_key **bucket_of(const struct queue_keys *keys, uint64_t hash)
{
	return &keys->buckets[hash & (keys->n_buckets - 1)];
}

struct queue_key *queue_keys_find(const struct queue_keys *keys, const void *text, size_t size)
{
	uint64_t hash = hash_of(text, size);

	if (!keys->n_buckets)
		return NULL;
	for (struct queue_key *key = *bucket_of(keys, hash); key; key = key->next)
		if (key->hash == hash && key->size == size &&
			(size == 0 || memcmp(key->text, text, size) == 0))
			return key;
	return NULL;
}

/* Without memory for more buckets the old ones do, unless there are none. */
static int grow(struct queue_keys *keys)
{
	struct queue_keys grown = {
		.n_buckets = keys->n_buckets ? keys->n_buckets * 2 : FIRST_BUCKETS, .n = keys->n};

	grown.buckets = calloc(grown.n_buckets, sizeof(struct queue_key *));
	if (!grown.buckets)
		return keys->n_buckets ? 0 : -1;
	for (size_t i = 0; i < keys->n_buckets; i++)
		for (struct queue_key *key = keys->buckets[i], *next; key; key = next) {
			struct queue_key **bucket = bucket_of(&grown, key->hash);

			next = key->next;
			key->next = *bucket;
			*bucket = key;
		}
	free(keys->buckets);
	*keys = grown;
	return 0;
}

struct queue_key *queue_keys_add(
	struct queue_keys *keys, const void *text, size_t size, size_t node_size)
{
	if (keys->n >= keys->n_buckets && grow(keys) < 0)
		return NULL;
	if (size >= SIZE_MAX - node_size)
		return NULL;
	struct queue_key *key = calloc(1, node_size + size + 1);
	if (!key)
		return NULL;
	key->text = (char *)key + node_size;
	key->size = size;
	key->hash = hash_of(text, size);
	if (size)
		memcpy(key->text, text, size);
	struct queue_key **bucket = bucket_of(keys, key->hash);
	key->next = *bucket;
	*bucket = key;
	keys->n++;
	return key;
}

void queue_keys_remove(struct queue_keys *keys, struct queue_key *key)
{
	for (struct queue_key **at = bucket_of(keys, key->hash); *at; at = &(*at)->next)
		if (*at == key) {
			*at = key->next;
			keys->n--;
			free(key);
			return;
		}
}

void queue_keys_release(struct queue_keys *keys)
{
	for (size_t i = 0; i < keys->n_buckets; i++)
		for (struct queue_key *key = keys->buckets[i], *next; key; key = next) {
			next = key->next;
			free(key);
		}
	free(keys->buckets);
	*keys = (struct queue_keys){0};
}
