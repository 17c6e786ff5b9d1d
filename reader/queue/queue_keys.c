/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/queue/queue_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/err.h"
#include "common/hash.h"
#include "common/proc.h"

struct queue_keys_item {
	uint32_t hash; /* the table's */
	struct queue_key *key;
};

static bool queue_keys_is(const void *item, const void *key, const void *arg)
{
	const struct queue_key *mine = ((const struct queue_keys_item *)item)->key;

	(void)arg;
	return bytes_equal(BYTES(mine->text, mine->size), *(const struct bytes *)key);
}

int queue_keys_init(struct queue_keys *keys)
{
	keys->table = HASHTABLE_INIT(struct queue_keys_item, queue_keys_is, NULL);
	return proc_random(&keys->seed, sizeof(keys->seed));
}

void queue_keys_release(struct queue_keys *keys)
{
	struct queue_keys_item *item;

	for (size_t place = 0; (item = hashtable_next(&keys->table, &place));)
		free(item->key);
	hashtable_release(&keys->table);
}

struct queue_key *queue_keys_find(const struct queue_keys *keys, const void *text, size_t size)
{
	const struct bytes bytes = BYTES(text, size);
	const struct queue_keys_item *item =
		hashtable_find(&keys->table, hash_bytes(bytes, keys->seed), &bytes);

	return item ? item->key : NULL;
}

int queue_keys_get(struct queue_keys *keys, const void *text, size_t size, size_t node_size,
	struct queue_key **ret_key)
{
	const struct bytes bytes = BYTES(text, size);
	uint64_t hash = hash_bytes(bytes, keys->seed);
	struct queue_keys_item *item = hashtable_find(&keys->table, hash, &bytes);

	if (item) {
		*ret_key = item->key;
		return 0;
	}
	struct queue_key *key =
		size < SIZE_MAX - node_size ? calloc(1, node_size + size + 1) : NULL;
	if (!key)
		return err_set(
			-ENOMEM, "a key of %zu bytes beside %zu others", size, keys->table.n);
	key->text = (char *)key + node_size;
	key->size = size;
	if (size)
		memcpy(key->text, text, size);
	int r = hashtable_add(&keys->table, hash, "the table of keys", &item);
	if (r < 0) {
		free(key);
		return r;
	}
	item->key = key;
	*ret_key = key;
	return 0;
}

void queue_keys_remove(struct queue_keys *keys, struct queue_key *key)
{
	const struct bytes bytes = BYTES(key->text, key->size);

	hashtable_remove(
		&keys->table, hashtable_find(&keys->table, hash_bytes(bytes, keys->seed), &bytes));
	free(key);
}
