/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/env_copy.h"

#include <criterion/criterion.h>
#include <errno.h>

#include "store/env/env.h"

#define SECOND 1000000000ull
#define MIB    (1ull << 20)

/* Asks at NOW seconds, with as many MiB in use and in the file. */
static bool due(struct surplus *surplus, uint64_t now, uint64_t used, uint64_t file)
{
	struct env_info info = {.used_bytes = used * MIB, .file_bytes = file * MIB};

	return surplus_is_due(surplus, &info, now * SECOND);
}

Test(surplus, a_file_is_as_long_as_what_it_holds_and_three_tenths_and_16_MiB)
{
	struct surplus surplus = {.next_ns = 0};

	/* With the eighth that is allocated ahead. */
	cr_assert_not(due(&surplus, 1000, 100, 129));
	cr_assert(due(&surplus, 1002, 100, 131));
	surplus = (struct surplus){.next_ns = 0};
	cr_assert_not(due(&surplus, 1004, 1, 15));
	cr_assert(due(&surplus, 1006, 1, 16));
}

/* Each trim takes what has come since the last one. */
Test(surplus, the_most_of_the_last_minute_counts)
{
	struct surplus surplus = {.next_ns = 0};

	for (uint64_t now = 1010; now < 2000; now += 2)
		cr_assert_not(
			due(&surplus, now, now % 20 == 10 ? 200 : 50, 210), "at %zu", (size_t)now);
	for (uint64_t now = 2000; now < 2030; now += 2)
		cr_assert_not(due(&surplus, now, 50, 210), "at %zu", (size_t)now);
	cr_assert(due(&surplus, 2062, 50, 210));
}

Test(surplus, copies_take_a_twentieth_of_the_time_and_failures_wait)
{
	struct surplus surplus = {.next_ns = 0};

	cr_assert(due(&surplus, 1000, 1, 100));
	surplus_end(&surplus, 0, 1000 * SECOND, 1001 * SECOND);
	cr_assert_not(due(&surplus, 1060, 1, 100));
	cr_assert(due(&surplus, 1062, 1, 100));
	surplus_end(&surplus, 0, 1062 * SECOND, 1072 * SECOND);
	cr_assert_not(due(&surplus, 1271, 1, 100));
	cr_assert(due(&surplus, 1273, 1, 100));
	surplus_end(&surplus, -ENOSPC, 1273 * SECOND, 1273 * SECOND);
	cr_assert_not(surplus_is_allowed(&surplus, 1872 * SECOND));
	cr_assert(surplus_is_allowed(&surplus, 1874 * SECOND));
}

Test(surplus, a_file_that_is_by_far_too_long_waits_for_seconds_only)
{
	struct surplus surplus = {.next_ns = 0};

	cr_assert(due(&surplus, 1000, 100, 450));
	surplus_end(&surplus, 0, 1000 * SECOND, 1000 * SECOND);
	cr_assert_not(due(&surplus, 1004, 100, 450));
	cr_assert_not(due(&surplus, 1006, 100, 400), "that can wait for a minute");
	cr_assert(due(&surplus, 1008, 100, 450));
	surplus_end(&surplus, 0, 1008 * SECOND, 1009 * SECOND);
	cr_assert_not(due(&surplus, 1028, 100, 450), "a twentieth of the time");
	cr_assert(due(&surplus, 1030, 100, 450));
	surplus_end(&surplus, -ENOSPC, 1030 * SECOND, 1030 * SECOND);
	cr_assert_not(due(&surplus, 1600, 100, 450));
}
