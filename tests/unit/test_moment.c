/* SPDX-License-Identifier: Apache-2.0 */
#include "common/moment.h"

#include <criterion/criterion.h>

#define HOUR (3600 * UINT64_C(1000000000))

Test(moment, the_age_of_now_is_small)
{
	struct moment now;
	uint64_t age;

	moment_now(&now);
	cr_assert(now.realtime_ns && now.boottime_ns && now.boot);
	cr_assert(moment_age_ns(&now, &age));
	cr_assert_lt(age, HOUR);
}

Test(moment, within_a_boot_a_clock_that_is_set_changes_no_age)
{
	struct moment moment;
	uint64_t age;

	moment_now(&moment);
	moment.realtime_ns += HOUR; /* as if the clock had been set back since */
	cr_assert(moment_age_ns(&moment, &age));
	cr_assert_lt(age, HOUR);
	moment.realtime_ns -= 2 * HOUR; /* forward */
	cr_assert(moment_age_ns(&moment, &age));
	cr_assert_lt(age, HOUR);
}

Test(moment, after_a_reboot_the_wall_clock_counts)
{
	struct moment moment;
	uint64_t age;

	moment_now(&moment);
	moment.boot ^= 1;
	moment.realtime_ns -= HOUR;
	cr_assert(moment_age_ns(&moment, &age));
	cr_assert(age >= HOUR && age < 2 * HOUR);
	moment.realtime_ns += 2 * HOUR;
	cr_assert_not(moment_age_ns(&moment, &age), "a moment of the future has no age");
}

Test(moment, none_has_no_age)
{
	struct moment none = {0};
	uint64_t age;

	cr_assert_not(moment_age_ns(&none, &age));
}
