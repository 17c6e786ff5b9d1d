/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "common/array.h"
#include "tests/unit/unit.h"

Test(array, items_are_kept_in_their_order_while_it_grows)
{
	AUTO_FREE uint32_t *items = NULL;
	size_t n = 0, room = 0, moves = 0;

	for (uint32_t i = 0; i < 100000; i++) {
		size_t before = room;
		cr_assert_eq(ARRAY_ADD(items, n, room, i * 3, "numbers"), 0);
		moves += room != before;
	}
	cr_assert_eq(n, 100000);
	cr_assert_leq(n, room);
	cr_assert_leq(moves, 16, "geometric growth, %zu", moves);
	for (uint32_t i = 0; i < n; i++)
		cr_assert_eq(items[i], i * 3);
}

Test(array, room_is_made_for_many_at_once)
{
	struct pair {
		uint64_t a, b;
	} *items = NULL;
	size_t room = 0;

	cr_assert_eq(ARRAY_ROOM(items, 0, room, 1000, "pairs"), 0);
	cr_assert_geq(room, 1000);
	items[999] = (struct pair){1, 2};
	struct pair *before = items;
	cr_assert_eq(ARRAY_ROOM(items, 500, room, 500, "pairs"), 0);
	cr_assert_eq(items, before, "there was room");
	free(items);
}

Test(array, sizes_that_overflow_are_refused_and_change_nothing)
{
	AUTO_FREE uint64_t *items = NULL;
	size_t n = 0, room = 0;

	cr_assert_eq(ARRAY_ADD(items, n, room, 7, "numbers"), 0);
	uint64_t *before = items;
	size_t room_before = room;
	cr_assert_eq(ARRAY_ROOM(items, n, room, SIZE_MAX, "numbers"), -ENOMEM);
	cr_assert_str_eq(err_text(-ENOMEM), "growing numbers: Cannot allocate memory");
	cr_assert_eq(ARRAY_ROOM(items, n, room, SIZE_MAX / 4, "numbers"), -ENOMEM);
	cr_assert(items == before && room == room_before && n == 1 && items[0] == 7);
}

struct numbered {
	unsigned id;
};

Test(array, an_item_has_its_place)
{
	AUTO_FREE struct numbered *items = NULL;
	size_t n = 0, room = 0;

	cr_expect_eq(ARRAY_PLACE(items, n, .id, 1u), 0, "of an empty one");
	for (unsigned i = 0; i < 100; i++) {
		unsigned id = i * 37 % 100 * 2;
		size_t place = ARRAY_PLACE(items, n, .id, id);
		cr_assert_eq(
			ARRAY_INSERT(items, n, room, place, (struct numbered){id}, "numbers"), 0);
	}
	cr_assert_eq(n, 100);
	for (unsigned id = 0; id < 201; id++) {
		size_t place = ARRAY_PLACE(items, n, .id, id);
		cr_expect_eq(place, (id + 1) / 2 < 100 ? (id + 1) / 2 : 100, "%u", id);
		cr_expect(place == 100 || items[place].id == 2 * place);
	}
}
