/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdatomic.h>

#include "reader/kinf.h"

struct tally {
	atomic_uint seen[1001];
	size_t stop_at;
};

static int count(void *arg, size_t piece)
{
	struct tally *tally = arg;

	atomic_fetch_add(&tally->seen[piece], 1);
	return piece == tally->stop_at ? 7 : 0;
}

Test(parallelize, TestParallelizeUntil)
{
	static const struct {
		unsigned workers;
		size_t pieces, chunk;
	} cases[] = {
		{10, 1000, 1},
		{10, 1000, 10},
		{10, 999, 13},
		{10, 1000, 100},
		{10, 999, 13},
		{10, 1000, 1000},
		{10, 1000, 5000},
		{0, 10, 1},
		{3, 0, 1},
		{2, 7, 0},
		{64, 3, 1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tally tally = {.stop_at = SIZE_MAX};

		cr_assert_eq(kinf_parallelize(cases[i].workers, cases[i].pieces, cases[i].chunk,
				     count, &tally),
			0);
		for (size_t piece = 0; piece < 1001; piece++)
			cr_assert_eq(tally.seen[piece], piece < cases[i].pieces ? 1 : 0,
				"case %zu, piece %zu", i, piece);
	}
}

Test(parallelize, first_result_ends_it)
{
	struct tally alone = {.stop_at = 4};
	struct tally many = {.stop_at = 4};

	cr_assert_eq(kinf_parallelize(1, 100, 10, count, &alone), 7);
	cr_assert_eq(alone.seen[4], 1);
	cr_assert_eq(alone.seen[5], 0, "nor is the chunk finished");
	cr_assert_eq(kinf_parallelize(4, 1000, 1, count, &many), 7);
	for (size_t piece = 0; piece < 1001; piece++)
		cr_assert_leq(many.seen[piece], 1);
}
