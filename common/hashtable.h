/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash table: open addressing with linear probing over items of a fixed size, in place. An item
 * begins with the table's `uint32_t hash`; the rest is the owner's: a pointer, a number, an offset
 * of the key.
 *
 *	struct seen { uint32_t hash; uint32_t at; uint64_t seq; };
 *
 *	static bool seen_is(const void *item, const void *key, const void *arg)
 *	{
 *		const struct seen *seen = item;
 *		return bytes_equal(text_at(arg, seen->at), *(const struct bytes *)key);
 *	}
 *
 *	struct hashtable table = HASHTABLE_INIT(struct seen, seen_is, &text);
 *	uint64_t hash = hash_bytes(key, seed);
 *	struct seen *seen = hashtable_find(&table, hash, &key);
 *	if (!seen) {
 *		r = hashtable_add(&table, hash, "the seen keys", &seen);
 *		...
 *		seen->at = ...;
 *	}
 *
 * Removing shifts the following items: no tombstones slow an old table down. At most three quarters
 * of the places are taken; an item costs 1.33 to 2.67 times its size. A pointer to an item is good
 * until the next hashtable_add(), hashtable_remove() or hashtable_clear().
 */
#ifndef COMMON_HASHTABLE_H
#define COMMON_HASHTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns true if ITEM has the key KEY. Called only if the 32-bit hashes are equal. */
typedef bool hashtable_equal_fn(const void *item, const void *key, const void *arg);

struct hashtable {
	uint8_t *items; /* NULL until the first one is added */
	size_t places;  /* a power of two, or 0 */
	size_t n;       /* taken places */
	size_t item_size;
	hashtable_equal_fn *equal;
	const void *arg;
};

/* ARG goes to EQUAL; a struct with a table inside sets it again after a move. */
#define HASHTABLE_INIT(type, equal_fn, equal_arg) \
	(struct hashtable) \
	{ \
		.item_size = sizeof(type), .equal = (equal_fn), .arg = (equal_arg) \
	}

void hashtable_release(struct hashtable *table);

/* Removes all items and keeps the memory. */
void hashtable_clear(struct hashtable *table);

/* Returns the item of KEY, or NULL. */
void *hashtable_find(const struct hashtable *table, uint64_t hash, const void *key);

/* Adds a zeroed item with its hash for a new key; the caller fills it in. Fails only with -ENOMEM
 * ("growing WHAT: ...") and leaves the table as it was. */
int hashtable_add(struct hashtable *table, uint64_t hash, const char *what, void *ret_item);

/* Removes an item of the table. */
void hashtable_remove(struct hashtable *table, void *item);

/* Visits all items, in no order; *PLACE begins with 0. Returns NULL at the end. After removing the
 * returned item subtract one from *PLACE: another item may have moved there. Each other item is
 * still visited at least once; a few may be visited twice.
 *
 * 	for (size_t place = 0; (item = hashtable_next(&table, &place));)
 * 		if (is_old(item)) {
 * 			hashtable_remove(&table, item);
 * 			place--;
 * 		} */
void *hashtable_next(const struct hashtable *table, size_t *place);

/* A map from numbers (feed ids, seqs) to 32-bit numbers (places in an array):
 *
 *	struct hashtable ids = HASHTABLE_INIT(struct hashtable_number, hashtable_number_is, NULL);
 *	r = hashtable_put_number(&ids, feed->id, (uint32_t)place, "the ids of feeds");
 *	const struct hashtable_number *found = hashtable_find_number(&ids, id);  */
struct hashtable_number {
	uint32_t hash, value;
	uint64_t key;
};
bool hashtable_number_is(const void *item, const void *key, const void *arg);
struct hashtable_number *hashtable_find_number(const struct hashtable *table, uint64_t key);

/* Adds KEY, or replaces its value. */
int hashtable_put_number(struct hashtable *table, uint64_t key, uint32_t value, const char *what);

#endif
