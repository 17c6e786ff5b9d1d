/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/record/ages.h"

#include <criterion/criterion.h>

#define SECOND UINT64_C(1000000000)
#define KEPT   (600 * SECOND)
#define START  (5000 * SECOND)       /* monotonic */
#define NOON   (1800000000 * SECOND) /* wall clock */

Test(ages, a_record_is_reached_once_it_is_as_old_as_the_retention_time)
{
	struct ages ages;

	ages_begin(&ages, START);
	for (uint64_t s = 0; s < 3 * 600; s += 2) {
		uint64_t now = START + s * SECOND;

		ages_add(&ages, 1 + s, now, KEPT);
		uint64_t reached = ages_reached(&ages, now, KEPT);
		if (s < 600)
			cr_assert_eq(reached, 0);
		else /* seq 1 + s was there at s; a sample is taken every 600 / 128 s */
			cr_assert(reached <= 1 + s - 600 && reached + 8 >= 1 + s - 600,
				"%llu s: %llu", (unsigned long long)s, (unsigned long long)reached);
	}
}

Test(ages, without_a_retention_time_all_is_reached_at_once)
{
	struct ages ages;

	ages_begin(&ages, START);
	ages_add(&ages, 7, START, 0);
	cr_assert_eq(ages_reached(&ages, START, 0), 7);
	ages_add(&ages, 9, START, 0);
	cr_assert_eq(ages_reached(&ages, START, 0), 9);
}

Test(ages, a_longer_retention_time_thins_samples_out_and_stays_true)
{
	struct ages ages;

	ages_begin(&ages, START);
	for (uint64_t s = 0; s < 100000; s++) {
		uint64_t now = START + s * SECOND;

		ages_add(&ages, 1 + s, now, SECOND); /* as if it had just been raised */
		uint64_t reached = ages_reached(&ages, now, 50000 * SECOND);
		cr_assert(!reached || reached <= 1 + s - 50000);
		cr_assert_leq(ages.n, AGES_MAX);
	}
	cr_assert_gt(ages_reached(&ages, START + 100000 * SECOND, 50000 * SECOND), 0);
}

/* Records of a minute apart, the newest at TIME; the last of them is seq 20. */
static void add_old(struct ages *ages, uint64_t time_ns)
{
	ages_begin(ages, START);
	for (uint64_t i = 0; i < 20; i++)
		ages_add_old(ages, 20 - i, time_ns - i * 60 * SECOND);
}

Test(ages, records_of_an_earlier_run_go_on_ageing)
{
	struct ages ages;

	add_old(&ages, NOON);
	cr_assert_eq(ages_reached(&ages, START, KEPT), 10);
	cr_assert_eq(ages_reached(&ages, START + 60 * SECOND, KEPT), 11);
	cr_assert_eq(ages_reached(&ages, START + KEPT, KEPT), 20);
}

Test(ages, a_clock_that_was_set_while_the_reflector_was_away_changes_nothing)
{
	struct ages past, future;

	add_old(&past, NOON - 30 * 24 * 3600 * SECOND);
	add_old(&future, NOON + 30 * 24 * 3600 * SECOND);
	cr_assert_eq(ages_reached(&past, START, KEPT), 10);
	cr_assert_eq(ages_reached(&future, START, KEPT), 10);
}

Test(ages, records_from_before_a_step_back_are_no_younger_than_those_after_it)
{
	struct ages ages;

	ages_begin(&ages, START);
	ages_add_old(&ages, 3, NOON);
	ages_add_old(&ages, 2, NOON + 3600 * SECOND);
	ages_add_old(&ages, 1, NOON + 3500 * SECOND);
	cr_assert_eq(ages_reached(&ages, START + KEPT - SECOND, KEPT), 0);
	cr_assert_eq(ages_reached(&ages, START + KEPT, KEPT), 3);
}

Test(ages, ages_reach_to_before_the_start_of_the_machine)
{
	struct ages ages;

	ages_begin(&ages, SECOND);
	ages_add_old(&ages, 2, NOON);
	ages_add_old(&ages, 1, 0);
	cr_assert_eq(ages_reached(&ages, SECOND, 3600 * SECOND), 1);
	cr_assert_eq(ages_reached(&ages, SECOND, UINT64_MAX), 0);
}
