/* SPDX-License-Identifier: Apache-2.0 */
/* Announcements of a walk's next reads. The tests supply the thread's count of waits for the
 * disk. */
#include "store/env/env.h"

#include <criterion/criterion.h>
#include <sys/resource.h>

static long faults;
static unsigned asked;

/* Instead of the C library's. */
int getrusage(__rusage_who_t who, struct rusage *ret_usage)
{
	(void)who;
	*ret_usage = (struct rusage){.ru_majflt = faults};
	asked++;
	return 0;
}

/* Asks N times; returns how many answers were yes. */
static unsigned cold(struct ahead *ahead, unsigned n)
{
	unsigned yes = 0;

	while (n--)
		yes += ahead_is_cold(ahead);
	return yes;
}

Test(ahead, a_walk_that_waits_for_the_disk_announces)
{
	struct ahead ahead = {0};

	faults = 7;
	cr_assert_eq(cold(&ahead, 1), 0, "the waits of earlier walks do not count");
	faults++;
	cr_assert_eq(cold(&ahead, 1), 1);
	cr_assert_eq(cold(&ahead, 63), 63, "what was announced causes no wait");
	cr_assert_eq(cold(&ahead, 100), 0);
}

Test(ahead, a_walk_in_memory_asks_the_kernel_less_and_less)
{
	struct ahead ahead = {0};

	cr_assert_eq(cold(&ahead, 8), 0);
	cr_assert_eq(asked, 8);
	cr_assert_eq(cold(&ahead, 400), 0);
	cr_assert_eq(asked, 108);
}

Test(ahead, a_wait_is_noticed_four_questions_later_at_the_latest)
{
	for (unsigned before = 0; before < 40; before++) {
		struct ahead ahead = {0};

		cr_assert_eq(cold(&ahead, before + 1), 0);
		faults++;
		cr_assert_geq(cold(&ahead, 4), 1, "after %u", before);
		cr_assert_geq(cold(&ahead, 63), 60, "after %u", before);
		asked = 0;
		cr_assert_eq(cold(&ahead, 8), 0, "after %u", before);
		cr_assert_geq(asked, 4, "it asks often again after %u", before);
	}
}
