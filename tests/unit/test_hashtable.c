/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hash.h"
#include "common/hashtable.h"
#include "tests/unit/unit.h"

struct item {
	uint32_t hash;
	uint32_t number;
};

static bool item_is(const void *item, const void *key, const void *arg)
{
	cr_assert_eq(arg, (const void *)item_is, "the argument of HASHTABLE_INIT");
	return ((const struct item *)item)->number == *(const uint32_t *)key;
}

/* A bad hash: probing runs far and wraps around the table's end. */
static uint64_t crowded(uint32_t number)
{
	return (uint64_t)(number % 5 + 0xfffffffcu) << 32;
}

static void put(struct hashtable *table, uint32_t number)
{
	struct item *item;

	cr_assert_eq(hashtable_add(table, crowded(number), "items", &item), 0);
	item->number = number;
}

static bool has(const struct hashtable *table, uint32_t number)
{
	const struct item *item = hashtable_find(table, crowded(number), &number);

	cr_assert(!item || item->number == number);
	return item != NULL;
}

Test(hashtable, agrees_with_a_plain_set_under_random_changes)
{
	CLEANUP(hashtable_release)
	struct hashtable table = HASHTABLE_INIT(struct item, item_is, (const void *)item_is);
	bool there[200] = {false};
	size_t n = 0;
	uint32_t random = 1;

	for (int turn = 0; turn < 100000; turn++) {
		random = random * 1664525 + 1013904223;
		uint32_t number = (random >> 16) % 200;
		cr_assert_eq(has(&table, number), there[number]);
		if (there[number])
			hashtable_remove(&table, hashtable_find(&table, crowded(number), &number));
		else
			put(&table, number);
		there[number] = !there[number];
		n += there[number] ? 1 : (size_t)-1;
		cr_assert_eq(table.n, n);
	}
	for (uint32_t i = 0; i < 200; i++)
		cr_assert_eq(has(&table, i), there[i]);
}

Test(hashtable, every_item_is_visited_also_when_some_are_removed_meanwhile)
{
	CLEANUP(hashtable_release)
	struct hashtable table = HASHTABLE_INIT(struct item, item_is, (const void *)item_is);

	for (unsigned mask = 0; mask < 64; mask++) {
		unsigned visits[100] = {0};
		struct item *item;

		hashtable_clear(&table);
		for (uint32_t i = 0; i < 100; i++)
			put(&table, i);
		for (size_t place = 0; (item = hashtable_next(&table, &place));) {
			visits[item->number]++;
			if (mask >> item->number % 6 & 1) {
				hashtable_remove(&table, item);
				place--;
			}
		}
		for (uint32_t i = 0; i < 100; i++) {
			cr_assert(visits[i] >= 1 && visits[i] <= 2, "%u of mask %u", i, mask);
			cr_assert_eq(has(&table, i), !(mask >> i % 6 & 1));
		}
	}
}

Test(hashtable, empty_one_finds_nothing_and_takes_no_memory)
{
	CLEANUP(hashtable_release)
	CLEANUP(hashtable_release)
	struct hashtable table = HASHTABLE_INIT(struct item, item_is, (const void *)item_is);
	size_t place = 0;

	cr_assert(!has(&table, 1));
	cr_assert_null(hashtable_next(&table, &place));
	hashtable_clear(&table);
	cr_assert_null(table.items);
	put(&table, 1);
	hashtable_clear(&table);
	cr_assert(!has(&table, 1) && table.n == 0 && table.items);
}

Test(hashtable, memory_is_at_most_two_and_two_thirds_of_the_items)
{
	CLEANUP(hashtable_release)
	struct hashtable table = HASHTABLE_INIT(struct hashtable_number, hashtable_number_is, NULL);

	for (uint64_t i = 1; i <= 100000; i++) {
		cr_assert_eq(hashtable_put_number(&table, i << 20, (uint32_t)i, "numbers"), 0);
		cr_assert(table.places <= 16 || table.places * 3 <= table.n * 8);
	}
	for (uint64_t i = 1; i <= 100000; i++)
		cr_assert_eq(hashtable_find_number(&table, i << 20)->value, i);
	cr_assert_null(hashtable_find_number(&table, 7));
	cr_assert_eq(hashtable_put_number(&table, 1 << 20, 9, "numbers"), 0);
	cr_assert_eq(table.n, 100000, "a value is replaced");
	cr_assert_eq(hashtable_find_number(&table, 1 << 20)->value, 9);
}

Test(hash, depends_on_every_byte_and_on_the_seed)
{
	char text[40] = {0};
	uint64_t seen[41];

	for (size_t i = 0; i <= 40; i++) {
		memset(text, 0, sizeof(text));
		if (i < 40)
			text[i] = 1;
		seen[i] = hash_bytes(BYTES(text, 40), 0);
		for (size_t k = 0; k < i; k++)
			cr_assert_neq(seen[i], seen[k]);
	}
	cr_assert_neq(hash_bytes(BYTES(text, 40), 0), hash_bytes(BYTES(text, 40), 1));
	cr_assert_neq(hash_bytes(BYTES(text, 40), 0), hash_bytes(BYTES(text, 39), 0));
	cr_assert_neq(hash_u64(1, 0), hash_u64(2, 0));
	cr_assert_eq(hash_bytes(BYTES_NONE, 5), hash_bytes(BYTES_NONE, 5));
}
