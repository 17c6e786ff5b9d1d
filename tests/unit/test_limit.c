/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/wire/limit.h"

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
