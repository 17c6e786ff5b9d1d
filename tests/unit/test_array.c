/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/err.h"

Test(array, items_are_kept_in_their_order_while_it_grows)
{
	uint32_t *items = NULL;
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
	free(items);
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
	uint64_t *items = NULL;
	size_t n = 0, room = 0;

	cr_assert_eq(ARRAY_ADD(items, n, room, 7, "numbers"), 0);
	uint64_t *before = items;
	size_t room_before = room;
	cr_assert_eq(ARRAY_ROOM(items, n, room, SIZE_MAX, "numbers"), -ENOMEM);
	cr_assert_str_eq(err_text(-ENOMEM), "growing numbers: Cannot allocate memory");
	cr_assert_eq(ARRAY_ROOM(items, n, room, SIZE_MAX / 4, "numbers"), -ENOMEM);
	cr_assert(items == before && room == room_before && n == 1 && items[0] == 7);
	free(items);
}
