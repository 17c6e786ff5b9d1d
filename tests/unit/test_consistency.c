/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "reflector/feed/consistency.h"

struct object {
	const char *name_space, *name, *uid, *rv;
};

static struct consistency_digest digest(const struct object *objects, size_t n)
{
	struct consistency_digest d = {0, 0};

	for (size_t i = 0; i < n; i++)
		consistency_add(&d, bytes_str(objects[i].name_space), bytes_str(objects[i].name),
			bytes_str(objects[i].uid), bytes_str(objects[i].rv));
	return d;
}

static bool same(struct consistency_digest a, struct consistency_digest b)
{
	return a.sum == b.sum && a.count == b.count;
}

Test(consistency, order_and_how_the_key_is_given_do_not_matter)
{
	static const struct object one[] = {
		{"d", "a", "1", "5"}, {"d", "b", "2", "6"}, {"e", "a", "3", "7"}};
	static const struct object other[] = {
		{"", "e/a", "3", "7"}, {"", "d/a", "1", "5"}, {"", "d/b", "2", "6"}};

	cr_assert(same(digest(one, 3), digest(other, 3)));
	cr_assert_eq(digest(one, 3).count, 3);
}

Test(consistency, each_part_of_an_object_counts)
{
	static const struct object is = {"d", "ab", "12", "34"};
	static const struct object others[] = {{"d", "ab", "12", "35"}, {"d", "ab", "13", "34"},
		{"d", "ac", "12", "34"}, {"e", "ab", "12", "34"}, {"d", "ab1", "2", "34"},
		{"d", "ab", "1", "234"}, {"", "ab", "12", "34"}};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_assert(!same(digest(&is, 1), digest(&others[i], 1)), "%zu", i);
}

/* Cancelling sums would hide a swap of versions between two objects. */
Test(consistency, versions_swapped_between_two_objects_are_seen)
{
	static const struct object one[] = {{"d", "a", "1", "5"}, {"d", "b", "1", "6"}};
	static const struct object other[] = {{"d", "a", "1", "6"}, {"d", "b", "1", "5"}};

	cr_assert(!same(digest(one, 2), digest(other, 2)));
}
