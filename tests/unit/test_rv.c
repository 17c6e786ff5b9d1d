/* SPDX-License-Identifier: Apache-2.0 */
#include "store/journal/journal.h"

#include <criterion/criterion.h>

Test(rv, c39_c41_compared_as_numbers_or_not_at_all)
{
	static const struct {
		const char *a, *b;
		int result;
	} cases[] = {
		{"1", "2", -1},
		{"10", "9", 1},
		{"9", "10", -1},
		{"7", "7", 0},
		{"", "", 0},
		{"x", "x", 0},
		{"", "1", RV_NOT_COMPARABLE},
		{"01", "1", RV_NOT_COMPARABLE},
		{"01", "01", 0},
		{"1234567890123456789012345", "999999999999999999999999", 1},
		{"1234567890123456789012345", "1234567890123456789012346", -1},
		{"0", "1", RV_NOT_COMPARABLE},
		{"1a", "2", RV_NOT_COMPARABLE},
		{"340282366920938463463374607431768211455", "18446744073709551616", 1},
		{"340282366920938463463374607431768211456", "1", RV_NOT_COMPARABLE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_assert_eq(rv_compare(bytes_str(cases[i].a), bytes_str(cases[i].b)),
			cases[i].result, "'%s' '%s'", cases[i].a, cases[i].b);
}
