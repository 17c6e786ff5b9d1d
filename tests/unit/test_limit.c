/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/limit.h"

#include <criterion/criterion.h>

Test(limit, the_first_one_counts)
{
	struct limit limit = {.first_byte_ns = 10, .idle_ns = 5, .total_ns = 100, .start_ns = 1000};
	const char *what;
	uint64_t ns;

	cr_assert_eq(limit_deadline(&limit, &ns, &what), 1010);
	cr_assert_str_eq(what, "no answer");
	limit.answered = true;
	limit.heard_ns = 1050;
	cr_assert_eq(limit_deadline(&limit, &ns, &what), 1055);
	cr_assert_eq(ns, 5);
	cr_assert_str_eq(what, "nothing more heard");
	limit.heard_ns = 1099;
	cr_assert_eq(limit_deadline(&limit, &ns, &what), 1100);
	cr_assert_eq(ns, 100);
	cr_assert_str_eq(what, "not finished");
	limit = (struct limit){.start_ns = 1000};
	cr_assert_eq(limit_deadline(&limit, &ns, &what), UINT64_MAX);
}

Test(limit, a_drip_counts_as_silence)
{
	const uint64_t second = UINT64_C(1000000000);
	struct limit limit = {
		.first_byte_ns = 60 * second, .idle_ns = 10 * second, .answered = true};
	const char *what;
	uint64_t ns;

	limit_heard(&limit, 2 * second, 10 * LIMIT_RATE - 1);
	cr_assert_eq(limit_deadline(&limit, &ns, &what), 10 * second);
	cr_assert_str_eq(what, "too little heard");
	limit_heard(&limit, 9 * second, 1);
	cr_assert_eq(limit_deadline(&limit, &ns, &what), 19 * second);
	cr_assert_str_eq(what, "nothing more heard");
}
