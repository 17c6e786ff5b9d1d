/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hashtable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/hash.h"

#define FIRST_PLACES 16

static void *hashtable_item(const struct hashtable *table, size_t place)
{
	return table->items + place * table->item_size;
}

static uint32_t hashtable_hash_at(const struct hashtable *table, size_t place)
{
	uint32_t hash;

	memcpy(&hash, hashtable_item(table, place), sizeof(hash));
	return hash;
}

/* Returns an item's 32 bits; 0 marks a free place. */
static uint32_t hashtable_fold(uint64_t hash)
{
	uint32_t high = (uint32_t)(hash >> 32);

	return high ? high : 1;
}

static size_t hashtable_free_place(const struct hashtable *table, uint32_t hash)
{
	size_t mask = table->places - 1, place = hash & mask;

	while (hashtable_hash_at(table, place))
		place = (place + 1) & mask;
	return place;
}

void hashtable_release(struct hashtable *table)
{
	free(TAKE(table->items));
	table->places = table->n = 0;
}

void hashtable_clear(struct hashtable *table)
{
	if (table->n)
		memset(table->items, 0, table->places * table->item_size);
	table->n = 0;
}

void *hashtable_find(const struct hashtable *table, uint64_t hash, const void *key)
{
	if (!table->n)
		return NULL;
	uint32_t wanted = hashtable_fold(hash), found;
	size_t mask = table->places - 1;
	for (size_t place = wanted & mask; (found = hashtable_hash_at(table, place));
		place = (place + 1) & mask)
		if (found == wanted && table->equal(hashtable_item(table, place), key, table->arg))
			return hashtable_item(table, place);
	return NULL;
}

int hashtable_add(struct hashtable *table, uint64_t hash, const char *what, void *ret_item)
{
	uint32_t kept = hashtable_fold(hash);

	if ((table->n + 1) * 4 > table->places * 3) {
		struct hashtable grown = *table;
		grown.places = table->places ? table->places * 2 : FIRST_PLACES;
		grown.items = calloc(grown.places, grown.item_size);
		if (!grown.items)
			return err_set(-ENOMEM, "growing %s", what);
		for (size_t i = 0; i < table->places; i++) {
			uint32_t moved = hashtable_hash_at(table, i);
			if (moved)
				memcpy(hashtable_item(&grown, hashtable_free_place(&grown, moved)),
					hashtable_item(table, i), table->item_size);
		}
		free(table->items);
		*table = grown;
	}
	void *item = hashtable_item(table, hashtable_free_place(table, kept));
	memcpy(item, &kept, sizeof(kept));
	table->n++;
	memcpy(ret_item, &item, sizeof(item));
	return 0;
}

void hashtable_remove(struct hashtable *table, void *item)
{
	size_t mask = table->places - 1;
	size_t hole = (size_t)((uint8_t *)item - table->items) / table->item_size;
	uint32_t hash;

	REQUIRE(table->n && hole <= mask && hashtable_hash_at(table, hole));
	for (size_t i = (hole + 1) & mask; (hash = hashtable_hash_at(table, i));
		i = (i + 1) & mask) {
		/* An item may move into the hole unless its probing begins after the hole. */
		if (((i - hash) & mask) < ((i - hole) & mask))
			continue;
		memcpy(hashtable_item(table, hole), hashtable_item(table, i), table->item_size);
		hole = i;
	}
	memset(hashtable_item(table, hole), 0, table->item_size);
	table->n--;
}

void *hashtable_next(const struct hashtable *table, size_t *place)
{
	while (*place < table->places) {
		size_t at = (*place)++;
		if (hashtable_hash_at(table, at))
			return hashtable_item(table, at);
	}
	return NULL;
}

/* ---- numbers ------------------------------------------------------------ */

bool hashtable_number_is(const void *item, const void *key, const void *arg)
{
	(void)arg;
	return ((const struct hashtable_number *)item)->key == *(const uint64_t *)key;
}

struct hashtable_number *hashtable_find_number(const struct hashtable *table, uint64_t key)
{
	return hashtable_find(table, hash_u64(key, 0), &key);
}

int hashtable_put_number(struct hashtable *table, uint64_t key, uint32_t value, const char *what)
{
	struct hashtable_number *item = hashtable_find_number(table, key);
	int r = item ? 0 : hashtable_add(table, hash_u64(key, 0), what, &item);

	if (r < 0)
		return r;
	item->key = key;
	item->value = value;
	return 0;
}
