/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/keylist.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#define N_KEYS 5000

struct version {
	int unused;
};

/* In the list's storage of an entry: a pointer and the key. */
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

static void expect_all(const struct keylist *list, const struct slot *slots)
{
	struct keylist_place place = {0, 0};
	size_t n = 0;

	for (unsigned i = 0; i < N_KEYS; i++) {
		if (!slots[i].there) {
			cr_assert_null(keylist_find(list, slots[i].entry->key));
			continue;
		}
		struct keylist_place nth = keylist_nth(list, n), sought;

		cr_assert_eq(keylist_left(list, place), list->count - n);
		cr_assert_eq(keylist_next(list, &place), slots[i].entry);
		cr_assert_eq(keylist_next(list, &nth), slots[i].entry);
		sought = keylist_seek(list, slots[i].entry->key);
		cr_assert_eq(keylist_next(list, &sought), slots[i].entry);
		n++;
	}
	cr_assert_null(keylist_next(list, &place));
	cr_assert_eq(list->count, n);
}

Test(keylist, random_inserts_and_removes_keep_the_order)
{
	static struct slot slots[N_KEYS];
	struct keylist list = {0};

	srandom(7);
	for (unsigned i = 0; i < N_KEYS; i++)
		slots[i].entry = entry_new(i);
	for (unsigned round = 0; round < 4; round++) {
		for (unsigned i = 0; i < N_KEYS; i++) {
			struct slot *slot = &slots[(size_t)random() % N_KEYS];

			if (slot->there)
				keylist_remove(&list, slot->entry);
			else
				keylist_insert(&list, slot->entry);
			slot->there = !slot->there;
		}
		expect_all(&list, slots);
	}
	for (unsigned i = 0; i < N_KEYS; i++)
		if (slots[i].there)
			keylist_remove(&list, slots[i].entry);
	cr_assert_eq(list.count, 0);
	cr_assert_eq(list.n_blocks, 0);
	keylist_release(&list);
	for (unsigned i = 0; i < N_KEYS; i++)
		free(slots[i].entry);
}

Test(keylist, keys_in_order_fill_their_blocks)
{
	struct keylist list = {0};
	struct entry *entries[N_KEYS];

	for (unsigned i = 0; i < N_KEYS; i++)
		keylist_insert(&list, entries[i] = entry_new(i));
	cr_assert_leq(list.n_blocks, N_KEYS / 500 + 1);
	keylist_release(&list);
	for (unsigned i = 0; i < N_KEYS; i++)
		free(entries[i]);
}

Test(keylist, seeking_between_keys_finds_the_next)
{
	struct keylist list = {0};
	struct entry *a = entry_new(1), *b = entry_new(3);
	struct keylist_place place = keylist_seek(&list, "x");

	cr_assert_null(keylist_next(&list, &place));
	keylist_insert(&list, b);
	keylist_insert(&list, a);
	place = keylist_seek(&list, "k00002");
	cr_assert_eq(keylist_next(&list, &place), b);
	place = keylist_seek(&list, "z");
	cr_assert_null(keylist_next(&list, &place));
	cr_assert_eq(keylist_left(&list, keylist_seek(&list, "k00002")), 1);
	keylist_release(&list);
	free(a);
	free(b);
}
