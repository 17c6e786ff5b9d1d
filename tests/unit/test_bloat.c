/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/env_copy.h"

#include "store/env/env.h"
#include "tests/unit/unit.h"

#define SECOND 1000000000ull
#define MIB    (1ull << 20)

/* Asks at NOW seconds, with as many MiB in use and in the file. */
static bool due(struct bloat *bloat, uint64_t now, uint64_t used, uint64_t file)
{
	struct env_info info = {.used_bytes = used * MIB, .file_bytes = file * MIB};

	return bloat_is_due(bloat, &info, now * SECOND);
}

Test(bloat, a_file_is_as_long_as_what_it_holds_and_three_tenths_and_16_MiB)
{
	struct bloat bloat = {.next_ns = 0};

	/* With the eighth allocated ahead. */
	cr_assert_not(due(&bloat, 1000, 100, 129));
	cr_assert(due(&bloat, 1002, 100, 131));
	bloat = (struct bloat){.next_ns = 0};
	cr_assert_not(due(&bloat, 1004, 1, 15));
	cr_assert(due(&bloat, 1006, 1, 16));
}

/* Each trim frees the growth since the last one. */
Test(bloat, the_most_of_the_last_minute_counts)
{
	struct bloat bloat = {.next_ns = 0};

	for (uint64_t now = 1010; now < 2000; now += 2)
		cr_assert_not(
			due(&bloat, now, now % 20 == 10 ? 200 : 50, 210), "at %zu", (size_t)now);
	for (uint64_t now = 2000; now < 2030; now += 2)
		cr_assert_not(due(&bloat, now, 50, 210), "at %zu", (size_t)now);
	cr_assert(due(&bloat, 2062, 50, 210));
}

Test(bloat, copies_take_a_twentieth_of_the_time_and_failures_wait)
{
	struct bloat bloat = {.next_ns = 0};

	cr_assert(due(&bloat, 1000, 1, 100));
	bloat_end(&bloat, 0, 1000 * SECOND, 1001 * SECOND);
	cr_assert_not(due(&bloat, 1060, 1, 100));
	cr_assert(due(&bloat, 1062, 1, 100));
	bloat_end(&bloat, 0, 1062 * SECOND, 1072 * SECOND);
	cr_assert_not(due(&bloat, 1271, 1, 100));
	cr_assert(due(&bloat, 1273, 1, 100));
	bloat_end(&bloat, -ENOSPC, 1273 * SECOND, 1273 * SECOND);
	cr_assert_not(bloat_is_allowed(&bloat, 1872 * SECOND));
	cr_assert(bloat_is_allowed(&bloat, 1874 * SECOND));
}

Test(bloat, a_file_that_is_by_far_too_long_waits_for_seconds_only)
{
	struct bloat bloat = {.next_ns = 0};

	cr_assert(due(&bloat, 1000, 100, 450));
	bloat_end(&bloat, 0, 1000 * SECOND, 1000 * SECOND);
	cr_assert_not(due(&bloat, 1004, 100, 450));
	cr_assert_not(due(&bloat, 1006, 100, 400), "that can wait for a minute");
	cr_assert(due(&bloat, 1008, 100, 450));
	bloat_end(&bloat, 0, 1008 * SECOND, 1009 * SECOND);
	cr_assert_not(due(&bloat, 1028, 100, 450), "a twentieth of the time");
	cr_assert(due(&bloat, 1030, 100, 450));
	bloat_end(&bloat, -ENOSPC, 1030 * SECOND, 1030 * SECOND);
	cr_assert_not(due(&bloat, 1600, 100, 450));
}
