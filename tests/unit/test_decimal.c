/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/decimal.h"
#include "tests/unit/unit.h"

static void refused(struct bytes text, uint64_t max, const char *sentence)
{
	uint64_t n = 7;

	cr_assert_eq(decimal_parse(text, max, &n), ERR_SYNTAX);
	cr_expect_str_eq(err_text(ERR_SYNTAX), sentence, "%s", err_text(ERR_SYNTAX));
	cr_assert_eq(n, 7, "written only on success");
}

Test(decimal, digits_up_to_the_limit_are_a_number)
{
	uint64_t n;

	cr_assert_eq(decimal_parse(BYTES_LIT("0"), 0, &n), 0);
	cr_assert_eq(n, 0);
	cr_assert_eq(decimal_parse(BYTES_LIT("00100"), 100, &n), 0);
	cr_assert_eq(n, 100);
	cr_assert_eq(decimal_parse(BYTES_LIT("18446744073709551615"), UINT64_MAX, &n), 0);
	cr_assert_eq(n, UINT64_MAX);
	cr_assert_eq(decimal_parse(BYTES("123", 2), 100, &n), 0);
	cr_assert_eq(n, 12);
}

Test(decimal, everything_else_is_refused)
{
	refused(BYTES_NONE, 9, "not a number: ''");
	refused(BYTES_LIT("-1"), 9, "not a number: '-1'");
	refused(BYTES_LIT("+1"), 9, "not a number: '+1'");
	refused(BYTES_LIT(" 1"), 9, "not a number: ' 1'");
	refused(BYTES_LIT("1 "), 9, "not a number: '1 '");
	refused(BYTES_LIT("0x1"), 9, "not a number: '0x1'");
	refused(BYTES_LIT("10"), 9, "more than 9: '10'");
	refused(BYTES_LIT("18446744073709551616"), UINT64_MAX,
		"more than 18446744073709551615: '18446744073709551616'");
}
