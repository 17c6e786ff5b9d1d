/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "reflector/net/pace.h"

#define SECOND 1000000000ull

Test(pace, a_few_may_go_at_once_and_the_rest_is_spread_by_their_number)
{
	struct pace pace = {.n_feeds = 100};
	uint64_t now = 5 * SECOND;

	for (int i = 0; i < PACE_BURST; i++)
		cr_assert_eq(pace_span(&pace, now), 0, "%d", i);
	for (int i = PACE_BURST; i < 100; i++)
		cr_assert_eq(pace_span(&pace, now), 2 * SECOND);
	cr_assert_eq(pace_span(&pace, now + SECOND - 1), 2 * SECOND);
}

Test(pace, every_second_begins_anew)
{
	struct pace pace = {.n_feeds = 50};

	for (uint64_t second = 1; second < 5; second++) {
		for (int i = 0; i < PACE_BURST; i++)
			cr_assert_eq(pace_span(&pace, second * SECOND), 0);
		cr_assert_eq(pace_span(&pace, second * SECOND + SECOND / 2), SECOND);
	}
}

Test(pace, jitter_lies_between_once_and_twice)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (int i = 0; i < 1000; i++) {
		uint64_t ns = pace_jitter(SECOND);

		cr_assert(ns >= SECOND && ns < 2 * SECOND);
		least = ns < least ? ns : least;
		most = ns > most ? ns : most;
	}
	cr_assert(most - least > SECOND / 2, "it is spread");
	cr_assert_eq(pace_jitter(0), 0);
}
