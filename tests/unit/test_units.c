/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/units.h"
#include "tests/unit/unit.h"

Test(units, durations_have_units)
{
	static const char *const bad[] = {"", "10", "m", "1x", "-1s", "1.5h", "1h ", " 1h", "1h30",
		"99999999999999999999s", "300000000000d", "18446744073709551615ns1ns"};
	uint64_t ns = 7;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(units_duration(bad[i], &ns), ERR_SYNTAX, "'%s'", bad[i]);
	cr_assert_eq(ns, 7, "written only on success");
	cr_assert_eq(units_duration("0", &ns) | (int)ns, 0);
	cr_assert_eq(units_duration("1d2h3m4s5ms6us7ns", &ns), 0);
	cr_assert_eq(ns, 93784005006007);
}

Test(units, sizes_are_binary_or_decimal)
{
	static const char *const bad[] = {"", "GiB", "1gib", "1 GiB", "-1", "1GiB1", "1.5GiB",
		"99999999999999999999", "18446744073709551615KiB"};
	uint64_t bytes = 7;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(units_size(bad[i], &bytes), ERR_SYNTAX, "'%s'", bad[i]);
	cr_assert_eq(bytes, 7, "written only on success");
	cr_assert_eq(units_size("12", &bytes), 0);
	cr_assert_eq(bytes, 12);
	cr_assert_eq(units_size("500kB", &bytes), 0);
	cr_assert_eq(bytes, 500000);
	cr_assert_eq(units_size("3MiB", &bytes), 0);
	cr_assert_eq(bytes, 3 << 20);
}
