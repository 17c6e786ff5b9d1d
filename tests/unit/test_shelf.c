/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/shelf.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#define N_KEYS 5000

struct version {
	int unused;
};

/* In the shelf's storage of an entry: a pointer and the key. */
struct slot {
	struct entry *entry;
	bool there;
};

static struct entry *entry_new(unsigned n)
{
	struct entry *entry = calloc(1, sizeof(*entry) + 16);

	(void)snprintf(entry->key, 16, "k%05u", n);
	return entry;
}

static void expect_all(const struct shelf *shelf, const struct slot *slots)
{
	struct shelf_place place = {0, 0};
	size_t n = 0;

	for (unsigned i = 0; i < N_KEYS; i++) {
		if (!slots[i].there) {
			cr_assert_null(shelf_find(shelf, slots[i].entry->key));
			continue;
		}
		struct shelf_place nth = shelf_nth(shelf, n), sought;

		cr_assert_eq(shelf_left(shelf, place), shelf->count - n);
		cr_assert_eq(shelf_next(shelf, &place), slots[i].entry);
		cr_assert_eq(shelf_next(shelf, &nth), slots[i].entry);
		sought = shelf_seek(shelf, slots[i].entry->key);
		cr_assert_eq(shelf_next(shelf, &sought), slots[i].entry);
		n++;
	}
	cr_assert_null(shelf_next(shelf, &place));
	cr_assert_eq(shelf->count, n);
}

Test(shelf, random_inserts_and_removes_keep_the_order)
{
	static struct slot slots[N_KEYS];
	struct shelf shelf = {0};

	srandom(7);
	for (unsigned i = 0; i < N_KEYS; i++)
		slots[i].entry = entry_new(i);
	for (unsigned round = 0; round < 4; round++) {
		for (unsigned i = 0; i < N_KEYS; i++) {
			struct slot *slot = &slots[(size_t)random() % N_KEYS];

			if (slot->there)
				shelf_remove(&shelf, slot->entry);
			else
				shelf_insert(&shelf, slot->entry);
			slot->there = !slot->there;
		}
		expect_all(&shelf, slots);
	}
	for (unsigned i = 0; i < N_KEYS; i++)
		if (slots[i].there)
			shelf_remove(&shelf, slots[i].entry);
	cr_assert_eq(shelf.count, 0);
	cr_assert_eq(shelf.n_blocks, 0);
	shelf_release(&shelf);
	for (unsigned i = 0; i < N_KEYS; i++)
		free(slots[i].entry);
}

Test(shelf, keys_in_order_fill_their_blocks)
{
	struct shelf shelf = {0};
	struct entry *entries[N_KEYS];

	for (unsigned i = 0; i < N_KEYS; i++)
		shelf_insert(&shelf, entries[i] = entry_new(i));
	cr_assert_leq(shelf.n_blocks, N_KEYS / 500 + 1);
	shelf_release(&shelf);
	for (unsigned i = 0; i < N_KEYS; i++)
		free(entries[i]);
}

Test(shelf, seeking_between_keys_finds_the_next)
{
	struct shelf shelf = {0};
	struct entry *a = entry_new(1), *b = entry_new(3);
	struct shelf_place place = shelf_seek(&shelf, "x");

	cr_assert_null(shelf_next(&shelf, &place));
	shelf_insert(&shelf, b);
	shelf_insert(&shelf, a);
	place = shelf_seek(&shelf, "k00002");
	cr_assert_eq(shelf_next(&shelf, &place), b);
	place = shelf_seek(&shelf, "z");
	cr_assert_null(shelf_next(&shelf, &place));
	cr_assert_eq(shelf_left(&shelf, shelf_seek(&shelf, "k00002")), 1);
	shelf_release(&shelf);
	free(a);
	free(b);
}
